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

from selfroute.command import estimates, evaluate_recorded, judging, models
from selfroute.command.evaluate_choices import (
    chosen_ks,
    chosen_retrievers,
    chosen_strategies,
    needs_more,
    uses_recording,
)
from selfroute.command.evaluation_options import Evaluate
from selfroute.command.terminal import open_console, stage
from selfroute.demo import corpus
from selfroute.errors import ConfigurationError, InputError
from selfroute.evaluation import datasets
from selfroute.evaluation.asking.found import Retriever
from selfroute.evaluation.asking.from_documents import DocumentsPipeline
from selfroute.evaluation.asking.judge import ModelJudge
from selfroute.evaluation.asking.replies import Replies, count_kept
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
from selfroute.settings import Settings
from selfroute.usage.prices import PricedModel, cost_of

_ONLY_IN_FILES = frozenset(
    {
        "intervals",
        "differences",
        "comparisons_by_dataset",
        "intervals_own_metric",
        "comparisons_own_metric",
        "judged_sample",
        "frontier",
    }
)
"""Tables that are too long for a terminal."""


def evaluate(options: Evaluate) -> bool:
    """Run an evaluation and save the results.

    Returns:
        Whether all questions were asked and none failed.
    """
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    strategies, names, _ = (
        chosen_strategies(options),
        chosen_retrievers(options),
        chosen_ks(options),
    )  # errors before anything is loaded
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        questions = [question for name in options.data for question in _questions(name, options)]
    for note in notes:
        err.print(str(note.message))
    if uses_recording(options):
        return _evaluate_recorded(options, questions, out=out, err=err)
    answering = _models(options, err)
    judge = _judge(options, answering)
    others = load_grades(options.grades, model=options.model) if options.grades else []
    if options.dry_run:
        show_tables(out, [_estimate(options, answering, questions, judge)])
        return True
    cap = None if options.max_cost is None else Decimal(str(options.max_cost))
    with Replies(options.out, max_cost=cap) as replies:
        reading = names if set(strategies) - {"long_context"} else []
        # all of them first: one that cannot be loaded is an error before anything is paid
        retrievers: list[Retriever | None] = [_retriever(name, options, answering, replies, err) for name in reading]
        made = judge.asked_through(replies) if judge else None
        pipelines = [
            _pipeline(options, answering, replies=replies, retriever=retriever) for retriever in retrievers or [None]
        ]
        evaluation = _ask(options, pipelines, made, answering=answering, questions=questions, err=err)
    evaluation = replace(evaluation, other_grades=tuple(others))
    evaluation.save(options.out)
    _show(evaluation, options, out=out, err=err, replies=replies)
    return not evaluation.failures and not evaluation.stopped


def _evaluate_recorded(options: Evaluate, questions: list[Question], *, out: Console, err: Console) -> bool:
    evaluate_recorded.check_recorded(needs_more(options), chosen_strategies(options))
    if options.dry_run:
        err.print("The recorded replies cost nothing.")
        return True
    with Replies(options.out) as replies:
        evaluation = evaluate_recorded.evaluate(
            questions, strategies=chosen_strategies(options), replies=replies, err=err, limit=options.limit
        )
    evaluation.save(options.out)
    _show(evaluation, options, out=out, err=err, replies=replies)
    return not evaluation.failures


def _ask(  # noqa: PLR0913 - each is another part of the run
    options: Evaluate,
    pipelines: Sequence[DocumentsPipeline],
    judge: ModelJudge | None,
    *,
    answering: models.Models,
    questions: Sequence[Question],
    err: Console,
) -> Evaluation:
    pipeline, *others = pipelines
    chosen = partial(
        tasks_of,
        strategies=chosen_strategies(options),
        ks=chosen_ks(options),
        closed_book=options.drop_closed_book,
        based_only_on=options.compare_based_only_on,
    )
    ask = partial(
        measure,
        questions=questions,
        concurrency=options.concurrency if answering.is_language_model else answering.at_once,
        settings=_settings(options, answering),
    )
    try:
        total = sum(len(chosen(question)) + bool(judge) for question in questions)
        with stage(err, "Asking", total) as advance:
            record = ask(
                pipeline,
                explain_declines=options.explain_declines,
                judge=judge,
                on_progress=advance,
                **chosen.keywords,
            )
        for name, other in zip(chosen_retrievers(options)[1:], others, strict=True):
            with stage(err, f"Asking with {name}", len(questions)) as advance:
                found = ask(other, strategies=["rag"], ks=chosen_ks(options)[:1], on_progress=advance)
            record = beside(record, found, retriever=name)
    except KeyboardInterrupt:
        kept = pipeline.replies.kept + pipeline.replies.asked
        err.print(f"{kept} replies are kept in {options.out}: run the same command again to go on.")
        raise
    return Evaluation.of(record)


def _retriever(name: str, options: Evaluate, answering: models.Models, replies: Replies, err: Console) -> Retriever:
    summarize: Callable[[str], str] = first_sentences
    if answering.is_language_model:
        priced_as = PricedModel.parse("--priced-as", options.priced_as) if options.priced_as else None
        asker = asker_with(answering.llm, replies, priced_as=priced_as)

        def summarize(prompt: str) -> str:
            reply, _ = asker.ask(prompt, "index")
            return reply.text_of("index")

    with stage(err, f"Loading the retriever {name}"):
        return load_retriever(
            name,
            folder=options.out / "vectors",
            embeddings=options.embeddings,
            replies=replies,
            summarize=summarize,
        )


def _pipeline(
    options: Evaluate, answering: models.Models, *, replies: Replies, retriever: Retriever | None
) -> DocumentsPipeline:
    return DocumentsPipeline(
        answering.llm,
        replies=replies,
        retriever=retriever,
        long_context_llm=answering.long_context_llm,
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


def _models(options: Evaluate, err: Console) -> models.Models:
    answering = models.load_models(
        options.model, long_context_model=options.long_context_model, base_url=options.base_url
    )
    if answering is None:
        with stage(err, "Loading the extractive reader"):
            answering = models.Models.extractive(models.load_embeddings())
    if options.temperature is None or not answering.is_language_model:
        return answering
    chosen = (answering.llm, answering.long_context_llm)
    llm, second = (one and one.bind(temperature=options.temperature) for one in chosen)
    return replace(answering, llm=llm, long_context_llm=second)


def _judge(options: Evaluate, answering: models.Models) -> judging.JudgeModel | None:
    needing = {
        "--judge-base-url": None if options.judge else options.judge_base_url,
        "--judge-priced-as": options.judge_priced_as if options.judge is None else None,
        "--grades": options.grades if options.judge is None else None,
    }
    for option, value in needing.items():
        if value is not None:
            msg = f"{option} needs --judge too, for example --judge openai:gpt-4o"
            raise ConfigurationError(msg)
    if options.judge is None:
        return None
    if options.judge:
        same_provider = options.judge.partition(":")[0] == (options.model or "").partition(":")[0]
        base_url = options.judge_base_url or (options.base_url if same_provider else None)
        return judging.load_judge(options.judge, base_url=base_url, priced_as=options.judge_priced_as)
    return judging.judge_of(
        answering,
        name=options.long_context_model or options.model,
        priced_as=options.judge_priced_as,
        usually=_pipeline(options, answering, replies=Replies(), retriever=None).priced_models["long_context"],
    )


def _estimate(
    options: Evaluate, answering: models.Models, questions: Sequence[Question], judge: judging.JudgeModel | None
) -> Table:
    pipeline = _pipeline(options, answering, replies=Replies(), retriever=None)
    lengths = estimates.prompt_lengths(
        questions, ks=chosen_ks(options), whole=lambda question: pipeline.whole(question)[0]
    )
    priced = pipeline.priced_models
    names = chosen_retrievers(options) if set(chosen_strategies(options)) - {"long_context"} else []
    table = estimates.estimate(
        questions,
        lengths,
        strategies=chosen_strategies(options),
        closed_book=options.drop_closed_book,
        based_only_on=options.compare_based_only_on,
        explain_declines=options.explain_declines,
        prices=(partial(cost_of, priced["rag"]), partial(cost_of, priced["long_context"])),
        judge=judge.price if judge else None,
        retrievers=len(names),
        kept=count_kept(options.out),
    )
    notes = estimates.about_retrievers(names, embeddings=options.embeddings, with_model=answering.is_language_model)
    return replace(table, notes=(*table.notes, *notes))


def _settings(options: Evaluate, answering: models.Models) -> dict[str, Any]:
    return {
        "data": list(options.data),
        "model": answering.name,
        "language_model": answering.is_language_model,
        "base_url": options.base_url and _without_credentials(options.base_url),
        "temperature": options.temperature,
        "retriever": chosen_retrievers(options)[0],
        "retrievers": chosen_retrievers(options),
        "embeddings": options.embeddings if set(INDEXED) & set(chosen_retrievers(options)) else None,
        "order": options.order,
        "window": options.window,
        "limit": options.limit,
        **settings_of(chosen_strategies(options), Settings()),
    }


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


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
    if evaluation.failures:
        err.print(
            f"{len(evaluation.failures)} tasks failed and are not scored; run the same command again to retry them."
        )
    if evaluation.stopped:
        err.print(f"The run ended early: {evaluation.stopped}.")
