"""Run the study of the papers.

    python -m benchmarks.paper [DATA...] [--data-folder DIR] [--model PROVIDER:NAME] [--k 5,1,10] [--retriever A,B] ...

DATA are data sets by name (narrativeqa, ..., en.qa, passkey and its variants, demo) or JSONL files, by default demo.
Without --model the extractive reader answers, which is not a language model: it shows that the study runs, not how well
a model answers. Every reply is kept in --out: after an interruption, run the same command again to go on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.command import models
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.demo import corpus
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.show import show_tables

from .datasets import DATASETS, DEMO, resolve
from .retrieval import first_sentences, load_retriever
from .study import PaperPipelines, ask, ask_based_only_on, ask_closed_book, ask_reasons, asker_of
from .tables import tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study and print its tables; the exit code is 1 if it ended early, and 2 for a wrong option."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=[DEMO])
    parser.add_argument("--data-folder", type=Path, help="the folder with LongBench and InfiniteBench")
    parser.add_argument("--model", help="provider:name; without it the extractive reader answers")
    parser.add_argument("--base-url")
    parser.add_argument("--priced-as")
    parser.add_argument("--k", default="5", help="how many passages; several numbers give a curve")
    parser.add_argument("--retriever", default="all-MiniLM-L6-v2", help="names, separated by commas")
    parser.add_argument("--embeddings", default="all-MiniLM-L6-v2", help="what window and tree compare by")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("paper"))
    parser.add_argument("--max-cost", type=Decimal)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--drop-closed-book", action="store_true", help="Table 5")
    parser.add_argument("--explain-declines", action="store_true", help="Figure 4")
    parser.add_argument("--compare-based-only-on", action="store_true", help="Table 4")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (ConfigurationError, InputError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    loaded = [resolve(name, options.data_folder) for name in options.data]
    questions = [question for some in loaded for question in corpus.spread(some, options.limit)]
    answering = models.load_models(Options(model=options.model, base_url=options.base_url))
    is_reader = answering is None
    answering = answering or models.Models.extractive()
    ks = [int(number) for number in options.k.split(",")]
    folder = None if is_reader else options.out  # the reader costs nothing
    with Replies(folder, max_cost=options.max_cost) as replies:
        pipelines = PaperPipelines(answering.llm, replies, priced_as=options.priced_as)
        asker = asker_of(answering.llm, replies, priced_as=options.priced_as)

        def summarize(prompt: str) -> str:
            return first_sentences(prompt) if is_reader else asker.ask(prompt, "index")[0].text_of("index")

        retrievers = {
            name: load_retriever(name, embeddings=options.embeddings, replies=replies, summarize=summarize)
            for name in options.retriever.split(",")
        }
        at_once = 1 if is_reader else options.concurrency
        with stage(err, "Asking", len(questions) * (len(ks) + len(retrievers) - 1)) as advance:
            study = ask(questions, pipelines, retrievers, ks, concurrency=at_once, on_progress=advance)
        if options.compare_based_only_on:
            ask_based_only_on(study, pipelines, concurrency=at_once)
        if options.drop_closed_book:
            ask_closed_book(study, asker)
        if options.explain_declines:
            ask_reasons(study, asker)
        show_tables(out, tables(study, [name for name in options.data if name in DATASETS]))
        err.print(replies.summary)
    return 1 if study.stopped or study.failures else 0


if __name__ == "__main__":
    sys.exit(main())
