"""Run the study of the papers.

    python -m benchmarks.paper [DATA...] [--data-folder DIR] [--model PROVIDER:NAME] [--k 5,1,10] [--retriever A,B] ...

DATA are data sets by name (narrativeqa, ..., en.qa, passkey and its variants, demo) or JSONL files, by default demo.
Without --model, recorded replies of a language model answer and are judged, which are there for demo alone. Every other
reply is kept in --out: after an interruption, run the same command again to go on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.command.models import load_model
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.demo import corpus
from selfroute_workbench.demo.recorded import LABEL
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.show import show_tables
from selfroute_workbench.evaluation.with_langchain import asker_with

from .datasets import DATASETS, DEMO, resolve
from .recorded import FOLDER as RECORDING
from .recorded import RecordedStudy
from .retrieval import load_retriever
from .study import Experiment
from .tables import tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study and print its tables; the exit code is 1 if it ended early, and 2 for a wrong option."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=[DEMO])
    parser.add_argument("--data-folder", type=Path, help="the folder with LongBench and InfiniteBench")
    parser.add_argument("--model", help="provider:name; without it recorded replies answer the questions of demo")
    parser.add_argument("--base-url")
    parser.add_argument("--judge", help="provider:name of a model that grades answers by meaning, beside the metrics")
    parser.add_argument("--priced-as")
    parser.add_argument("--window", type=_positive, help="the model's window in tokens, if it does not say")
    parser.add_argument("--cut", choices=("back", "middle"), default="back", help="where a longer document loses text")
    parser.add_argument(
        "--sequel-prompts", action="store_true", help="ask by the sequel's prompt, which invites no decline"
    )
    parser.add_argument("--k", type=_numbers, default=[5], help="how many passages; several numbers give a curve")
    parser.add_argument("--retriever", default="all-MiniLM-L6-v2", help="see docs/paper.md; several with commas")
    parser.add_argument("--embeddings", default="all-MiniLM-L6-v2", help="what window and raptor compare by")
    parser.add_argument("--limit", type=_positive)
    parser.add_argument("--out", type=Path, default=Path("paper"))
    parser.add_argument("--figures", type=_folder, help="the folder to draw the papers' figures in")
    parser.add_argument("--max-cost", type=_dollars)
    parser.add_argument("--concurrency", type=_positive, default=4)
    parser.add_argument("--drop-closed-book", action="store_true", help="Table 5; the sequel's tables")
    parser.add_argument("--explain-declines", action="store_true", help="Figure 4")
    parser.add_argument("--compare-based-only-on", action="store_true", help="Table 4")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (ConfigurationError, InputError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2


def _positive(text: str) -> int:
    if not text.strip().isdecimal() or not int(text):
        msg = f"{text!r} is not a number from 1"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _dollars(text: str) -> Decimal:
    _positive(text.replace(".", "", 1))
    return Decimal(text)


def _folder(text: str) -> Path:
    try:
        Path(text).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{text} is no folder, and cannot be made: {error.strerror}"
        raise argparse.ArgumentTypeError(msg) from error
    return Path(text)


def _numbers(text: str) -> list[int]:
    return list(dict.fromkeys(_positive(each) for each in text.split(",")))


def _run(options: argparse.Namespace) -> int:
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    if options.sequel_prompts and options.compare_based_only_on:
        msg = "--compare-based-only-on is about the paper's prompts: leave out --sequel-prompts"
        raise ConfigurationError(msg)
    if not options.model and options.data != [DEMO]:
        msg = f"recorded replies answer the questions of {DEMO} alone: name a model with --model provider:name"
        raise ConfigurationError(msg)
    loaded = [resolve(name, options.data_folder) for name in options.data]
    questions = [question for some in loaded for question in corpus.spread(some, options.limit)]
    llm = load_model(options.model, base_url=options.base_url) if options.model else RecordedStudy()
    names = [name.strip() for name in options.retriever.split(",") if name.strip()] or ["all-MiniLM-L6-v2"]
    steps = len(options.k) + len(names) + options.compare_based_only_on + options.drop_closed_book
    with Replies(options.out if options.model else None, max_cost=options.max_cost) as replies:
        judge = load_model(options.judge) if options.judge else None if options.model else llm
        experiment = Experiment(
            llm=llm,
            replies=replies,
            judge=ModelJudge(asker_with(judge, replies)) if judge else None,
            priced_as=options.priced_as,
            window=options.window,
            cut=options.cut,
            of_sequel=options.sequel_prompts,
            concurrency=options.concurrency,
        )
        load = partial(load_retriever, embeddings=options.embeddings, replies=replies)
        with stage(err, "Loading the retrievers"):
            retrievers = {name: load(name, summarize=partial(experiment.answer, name)) for name in names}
        with stage(err, "Asking", len(questions) * steps) as experiment.on_progress:
            study = experiment.ask(questions, retrievers, options.k)
            for is_asked, ask in (
                (options.compare_based_only_on, experiment.ask_without),
                (options.drop_closed_book, experiment.ask_closed_book),
                (options.explain_declines, experiment.ask_reasons),
            ):
                if is_asked and not study.stopped:
                    ask(study)
        made = tables(study, [name for name in options.data if name in DATASETS and not options.sequel_prompts])
        show_tables(out, made)
        if options.figures:
            from .figures import draw  # noqa: PLC0415 - it needs matplotlib and scikit-learn

            for path in draw(study, made, options.figures, options.model or LABEL):
                err.print(f"written: {path}")
        err.print(replies.summary if options.model else f"Recorded replies: {RECORDING / 'README.md'} says how.")
    return 1 if study.stopped or study.failures else 0


if __name__ == "__main__":
    sys.exit(main())
