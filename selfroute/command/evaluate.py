"""Performs `selfroute evaluate`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rich.console import Console

from selfroute.calls.settings import Settings
from selfroute.command.estimates import estimate
from selfroute.command.evaluate_choices import Choices
from selfroute.command.evaluate_models import JudgeModel, load_answering, load_judge
from selfroute.command.evaluate_recorded import evaluate_recording, uses_recording
from selfroute.command.evaluation_options import Evaluate
from selfroute.command.models import Models
from selfroute.command.terminal import open_console, stage
from selfroute.demo import corpus
from selfroute.errors import InputError
from selfroute.evaluation import datasets
from selfroute.evaluation.asking.found import Retriever
from selfroute.evaluation.asking.from_documents import DocumentsPipeline
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.retrieval import INDEXED, first_sentences, load_retriever
from selfroute.evaluation.asking.runner import measure, tasks_of
from selfroute.evaluation.asking.strategies import settings_of
from selfroute.evaluation.asking.with_langchain import asker_with
from selfroute.evaluation.grades import load_grades
from selfroute.evaluation.questions import Question
from selfroute.evaluation.reporting.papers.retrievers import beside
from selfroute.evaluation.reporting.show import show_summary, show_tables
from selfroute.evaluation.results import Evaluation
from selfroute.evaluation.table import Table
from selfroute.usage.prices import PricedModel, cost_of

_ONLY_IN_FILES = {
    "intervals", "differences", "comparisons_by_dataset", "intervals_own_metric", "comparisons_own_metric",
    "judged_sample", "frontier",
}  # fmt: skip
"""Tables that are too long for a terminal."""


def evaluate(options: Evaluate) -> bool:
    """Run an evaluation and save the results.

    Returns:
        Whether all questions were asked and none failed.
    """
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    choices = Choices.of(options)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        questions = [question for name in options.data for question in _questions(name, options)]
    for note in notes:
        err.print(str(note.message))
    cap = None if options.max_cost is None else Decimal(str(options.max_cost))
    if uses_recording(options):
        made = evaluate_recording(options, questions, strategies=choices.strategies, err=err)
        if made is None:
            return True
        evaluation, replies = made
    else:
        models = load_answering(options, err)
        usually = _pipeline(options, models, replies=Replies()).priced_models["long_context"]
        judge = load_judge(options, models, usually=usually)
        others = load_grades(options.grades, model=options.model) if options.grades else []
        if options.dry_run:
            show_tables(out, [_estimate(choices, models, questions, judge)])
            return True
        with Replies(options.out, max_cost=cap) as replies:
            evaluation = _ask(choices, models, questions, replies=replies, judge=judge, err=err)
        evaluation = replace(evaluation, other_grades=tuple(others))
    evaluation.save(options.out)
    _show(evaluation, options, out=out, err=err, replies=replies)
    return not evaluation.failures and not evaluation.stopped


def _ask(  # noqa: PLR0913 - each is another part of the run
    choices: Choices,
    models: Models,
    questions: Sequence[Question],
    *,
    replies: Replies,
    judge: JudgeModel | None,
    err: Console,
) -> Evaluation:
    options = choices.options
    # all of them first: one that cannot be loaded is an error before anything is paid
    found: list[Retriever | None] = [_retriever(name, options, models, replies, err) for name in choices.searching]
    asked = judge.asked_through(replies) if judge else None
    first, *others = [_pipeline(options, models, replies=replies, retriever=one) for one in found or [None]]
    tasks: dict[str, Any] = {
        "strategies": choices.strategies,
        "ks": choices.ks,
        "closed_book": options.drop_closed_book,
        "based_only_on": options.compare_based_only_on,
    }
    ask = partial(
        measure,
        questions=questions,
        concurrency=options.concurrency if models.is_language_model else models.at_once,
        settings=_settings(choices, models),
    )
    try:
        total = sum(len(tasks_of(question, **tasks)) + bool(judge) for question in questions)
        with stage(err, "Asking", total) as advance:
            more: dict[str, Any] = {"explain_declines": options.explain_declines, "judge": asked}
            record = ask(first, on_progress=advance, **more, **tasks)
        for name, other in zip(choices.retrievers[1:], others, strict=True):
            with stage(err, f"Asking with {name}", len(questions)) as advance:
                beside_it = ask(other, strategies=["rag"], ks=choices.ks[:1], on_progress=advance)
            record = beside(record, beside_it, retriever=name)
    except KeyboardInterrupt:
        kept = replies.kept + replies.asked
        err.print(f"{kept} replies are kept in {options.out}: run the same command again to go on.")
        raise
    return Evaluation.of(record)


def _retriever(name: str, options: Evaluate, models: Models, replies: Replies, err: Console) -> Retriever:
    summarize: Callable[[str], str] = first_sentences
    if models.is_language_model:
        priced_as = PricedModel.parse("--priced-as", options.priced_as) if options.priced_as else None
        asker = asker_with(models.llm, replies, priced_as=priced_as)

        def summarize(prompt: str) -> str:
            reply, _ = asker.ask(prompt, "index")
            return reply.text_of("index")

    folder = options.out / "vectors"
    with stage(err, f"Loading the retriever {name}"):
        return load_retriever(name, folder=folder, embeddings=options.embeddings, replies=replies, summarize=summarize)


def _pipeline(
    options: Evaluate, models: Models, *, replies: Replies, retriever: Retriever | None = None
) -> DocumentsPipeline:
    return DocumentsPipeline(
        models.llm,
        replies=replies,
        retriever=retriever,
        long_context_llm=models.long_context_llm,
        order=options.order,
        window=options.window,
        priced_as=options.priced_as,
        long_context_priced_as=options.long_context_priced_as,
    )


def _questions(name: str, options: Evaluate) -> list[Question]:
    questions = corpus.spread(datasets.resolve(name, folder=options.data_folder), options.limit)
    bare = next((question for question in questions if question.document is None), None)
    if bare:
        msg = f"question {bare.id!r} of {name} has no document: add document or document_file"
        raise InputError(msg)
    return questions


def _estimate(choices: Choices, models: Models, questions: Sequence[Question], judge: JudgeModel | None) -> Table:
    pipeline = _pipeline(choices.options, models, replies=Replies())
    priced = pipeline.priced_models
    return estimate(
        questions,
        choices,
        whole=lambda question: pipeline.whole(question)[0],
        prices=(partial(cost_of, priced["rag"]), partial(cost_of, priced["long_context"])),
        judge=judge.asked_through(Replies()).price if judge else None,
        with_model=models.is_language_model,
    )


def _settings(choices: Choices, models: Models) -> dict[str, Any]:
    options, parts = choices.options, urlsplit(choices.options.base_url or "")
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))  # without credentials
    return {
        "data": list(options.data),
        "model": models.name,
        "language_model": models.is_language_model,
        "base_url": address or None,
        "temperature": options.temperature,
        "retriever": choices.retrievers[0],
        "retrievers": choices.retrievers,
        "embeddings": options.embeddings if set(INDEXED) & set(choices.retrievers) else None,
        "order": options.order,
        "window": options.window,
        "limit": options.limit,
        **settings_of(choices.strategies, Settings()),
    }


def _show(evaluation: Evaluation, options: Evaluate, *, out: Console, err: Console, replies: Replies) -> None:
    tables = evaluation.tables()
    if options.as_json:
        record = {
            "settings": dict(evaluation.settings),
            "recommendation": evaluation.recommendation().data(),
            "summary": evaluation.summary(),
            "tables": [asdict(table) for table in tables],
        }
        sys.stdout.write(json.dumps(record) + "\n")
    else:
        show_summary(out, evaluation.recommendation().lines)
        show_summary(out, evaluation.summary())
        show_tables(out, [table for table in tables if table.name not in _ONLY_IN_FILES])
    if replies.asked or replies.kept:
        err.print(replies.summary)
    err.print(f"Everything is in {options.out}: report.html, results.json, questions.csv, tables, plots.")
    if failed := len(evaluation.failures):
        err.print(f"{failed} tasks failed and are not scored; run the same command again to retry them.")
    if evaluation.stopped:
        err.print(f"The run ended early: {evaluation.stopped}.")
