"""Performs `selfroute evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from rich.console import Console

from langchain_selfroute import SelfRouteChain
from selfroute.errors import ConfigurationError, InputError
from selfroute.usage.prices import PricedModel
from selfroute_workbench.command import asking, models
from selfroute_workbench.command.estimates import estimate
from selfroute_workbench.command.evaluation_options import Evaluate
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text
from selfroute_workbench.demo import corpus, recorded
from selfroute_workbench.demo.vectors import demo_store
from selfroute_workbench.demo.with_langchain import RecordedModel
from selfroute_workbench.evaluation import looking, runs
from selfroute_workbench.evaluation.evaluating import COMPARED
from selfroute_workbench.evaluation.grades import load_grades
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looks import STRATEGIES, Strategy
from selfroute_workbench.evaluation.questions import Question, load_questions
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.show import show_summary, show_tables
from selfroute_workbench.evaluation.with_langchain import ChainPipeline, asker_with

PipelineOf = Callable[[Question], ChainPipeline]
_RECORDED: tuple[Strategy, ...] = ("rag", "self_route", "graded", "long_context")
"""The strategies whose replies were recorded."""
_NEED_MODEL = ("k", "embeddings", "sections", "judge", "priced_as", "temperature", "base_url", "long_context_model")
"""The options that need other replies than those of the recording."""


def evaluate(options: Evaluate) -> bool:
    """Run an evaluation and save the results.

    Returns:
        Whether all questions were asked and none failed.
    """
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    is_recorded = [str(each) for each in options.questions] == [corpus.NAME] and not (options.model or options.reader)
    strategies = _strategies(options, _RECORDED if is_recorded else COMPARED)
    if is_recorded:
        _check_recorded(options, strategies)
    questions = [question for name in options.questions for question in _questions(name, options)]
    others = tuple(load_grades(options.grades, model=options.model)) if options.grades else ()
    if is_recorded and options.dry_run:
        err.print("The recorded replies cost nothing.")
        return True
    answering = models.Models.recorded() if is_recorded else _answering(options)
    judge = None if is_recorded else _judge(options, answering)
    cap = None if options.max_cost is None else Decimal(str(options.max_cost))
    steps = looking.steps_of(strategies)
    if options.dry_run:
        pipeline = _bare_pipeline(answering, options)
        judged = judge(Replies(), pipeline) if judge else None
        show_tables(out, [estimate(questions, steps, options, prices=pipeline.priced(), judge=judged)])
        return True
    with Replies(options.out, max_cost=cap) as replies:
        looking.check(_bare_pipeline(answering, options, replies), steps)
        pipeline_of = _recorded(replies) if is_recorded else _pipelines(questions, answering, options, replies, err)
        first = pipeline_of(questions[0])
        asked = first.judge() if is_recorded else judge(replies, first) if judge else None
        found = _ask(pipeline_of, questions, steps, judge=asked, options=options, answering=answering, err=err)
        settings = {
            **_settings(options, answering, strategies),
            **looking.settings_of(first, strategies),
            "model": answering.name,
            **({"judge": asked.settings} if asked else {}),
        }
    made = Evaluation(questions, found.looks, found.failures, settings, found.stopped, others)
    made.save(options.out)
    _show(made, options, out=out, err=err, replies=replies)
    return not made.failures and not made.stopped


def _ask(  # noqa: PLR0913 - each is another part of the run
    pipeline_of: PipelineOf,
    questions: Sequence[Question],
    steps: Sequence[Any],
    *,
    judge: ModelJudge | None,
    options: Evaluate,
    answering: Models,
    err: Console,
) -> runs.Asked:
    at_once = options.concurrency if answering.is_language_model else answering.at_once
    try:
        with stage(err, "Asking", len(questions)) as advance:
            return runs.ask_looks(pipeline_of, questions, steps, judge=judge, concurrency=at_once, on_progress=advance)
    except KeyboardInterrupt:
        err.print(f"The replies so far are kept in {options.out}: run the same command again to go on.")
        raise


def _strategies(options: Evaluate, usual: Sequence[Strategy]) -> list[Strategy]:
    if options.strategies is None:
        return list(usual)
    asked = [part.strip() for part in options.strategies.split(",")]
    if asked == ["all"]:
        return list(STRATEGIES)
    unknown = [part for part in asked if part not in STRATEGIES]
    if unknown:
        names = ", ".join(STRATEGIES)
        msg = f"--strategies takes all, or {names}, separated by commas; not {', '.join(map(repr, unknown))}"
        raise ConfigurationError(msg)
    return [one for one in STRATEGIES if one in asked]


def _questions(name: Path, options: Evaluate) -> list[Question]:
    if str(name) == corpus.NAME:
        documents = corpus.load_documents()
        found = [
            Question(corpus.NAME, one.id, one.question, one.answers, document=documents[one.document], kind=one.kind)
            for one in corpus.load_questions()
        ]
    else:
        found = load_questions(name)
    questions = corpus.spread(found, options.limit)
    bare = next((question for question in questions if question.document is None), None)
    if bare:
        msg = f"question {bare.id!r} of {name} has no document: add document or document_file"
        raise InputError(msg)
    return questions


def _answering(options: Evaluate) -> Models:
    """Make the models that answer, with the temperature that the options say."""
    answering = models.load_models(
        options.model, long_context_model=options.long_context_model, base_url=options.base_url
    )
    if answering is None:
        return Models.extractive()
    if options.temperature is None:
        return answering
    chosen = (answering.llm, answering.long_context_llm)
    llm, second = (one and one.bind(temperature=options.temperature) for one in chosen)
    return replace(answering, llm=llm, long_context_llm=second)


def _judge(options: Evaluate, answering: Models) -> Callable[[Replies, ChainPipeline], ModelJudge] | None:
    """Return what makes the judge: the model that `--judge` names, or without a name the one for whole documents.

    Raises:
        ConfigurationError: It cannot be made, is no language model, or an option is given that needs `--judge`.
        MissingPackageError: The provider's package is not installed.
    """
    judge, given = options.judge, options.judge_priced_as
    needing = {
        "--judge-base-url": None if judge else options.judge_base_url,
        "--judge-priced-as": given if judge is None else None,
        "--grades": options.grades if judge is None else None,
    }
    for option, value in needing.items():
        if value is not None:
            msg = f"{option} needs --judge too, for example --judge openai:gpt-4o"
            raise ConfigurationError(msg)
    if judge is None:
        return None
    priced_as = PricedModel.parse("--judge-priced-as", given) if given else None
    if judge:
        same_provider = judge.partition(":")[0] == (options.model or "").partition(":")[0]
        base_url = options.judge_base_url or (options.base_url if same_provider else None)
        llm = models.load_model(judge, base_url=base_url)
        return lambda replies, _: ModelJudge(asker_with(llm, replies, priced_as=priced_as), title=judge)
    if not answering.is_language_model:
        msg = f"{answering.name} cannot judge: name a model, for example --judge openai:gpt-4o"
        raise ConfigurationError(msg)
    title = options.long_context_model or options.model
    return lambda _, pipeline: pipeline.judge(priced_as, title=title)


def _chain_options(options: Evaluate) -> dict[str, Any]:
    named = {"llm": options.priced_as, "long_context_llm": options.long_context_priced_as}
    return {
        "sections": options.sections,
        "priced_as": {step: name for step, name in named.items() if name} or None,
    }


def _name(options: Evaluate, answering: Models) -> str | None:
    """Return the name under which replies are kept; with a temperature of its own, a model is another one."""
    if options.temperature is None:
        return None if answering.is_language_model else answering.name
    return f"{answering.name}, temperature {options.temperature}"


def _bare_pipeline(answering: Models, options: Evaluate, replies: Replies | None = None) -> ChainPipeline:
    """Return a pipeline without documents, to check the models before anything is loaded."""
    chain = SelfRouteChain(
        retriever=RunnableLambda(lambda _: []),
        llm=answering.llm,
        long_context_llm=answering.long_context_llm,
        documents=[Document("...")],
        **_chain_options(options),
    )
    return ChainPipeline(chain, replies or Replies(), name=_name(options, answering))


def _pipelines(
    questions: Sequence[Question], answering: Models, options: Evaluate, replies: Replies, err: Console
) -> PipelineOf:
    """Return what makes the pipeline of a question: that of `selfroute ask` over its document."""
    # Each has a folder of its own, since a newer text of one source takes the place of the older one.
    texts = {one.document_id: Text(f"{one.document_id}/document", one.document or "") for one in questions}
    library = Library([*texts.values()])
    if options.embeddings:
        folder = options.out / "index"
        library = asking.load_vectors([*texts.values()], options.embeddings, folder=folder, progress=err)
        if missing := library.missing():
            asking.index(library, missing, progress=err, where=f", kept in {folder}")

    @cache
    def pipeline_of(document: str) -> ChainPipeline:
        session = Session(
            library.only(texts[document]), answering, k=options.k, citations=False, **_chain_options(options)
        )
        return ChainPipeline(session.chain, replies, name=_name(options, answering))

    return lambda question: pipeline_of(question.document_id)


def _check_recorded(options: Evaluate, strategies: Sequence[Strategy]) -> None:
    """Check that the recording answers what is asked for.

    Raises:
        ConfigurationError: Other replies are needed.
    """
    given = [name for name in _NEED_MODEL if getattr(options, name) != getattr(Evaluate, name)]
    others = [f"--{name.replace('_', '-')}" for name in given]
    others += [f"--strategies {one}" for one in strategies if one not in _RECORDED]
    if others:
        msg = (
            f"{others[0]} needs replies that were not recorded for {corpus.NAME}: name a model with --model, or pass "
            "--reader"
        )
        raise ConfigurationError(msg)


def _recorded(replies: Replies) -> PipelineOf:
    """Return the pipeline of the demo's recording."""
    chain = SelfRouteChain.from_vectorstore(demo_store(), RecordedModel(), k=recorded.K, priced_as=recorded.PRICED_AS)
    pipeline = ChainPipeline(chain, replies)
    return lambda _: pipeline


def _settings(options: Evaluate, answering: Models, strategies: Sequence[Strategy]) -> Mapping[str, Any]:
    parts = urlsplit(options.base_url or "")
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))  # without credentials
    return {
        "questions": [str(name) for name in options.questions],
        "strategies": list(strategies),
        "language_model": answering.is_language_model,
        "base_url": address or None,
        "temperature": options.temperature,
        "k": options.k,
        "embeddings": options.embeddings,
        "limit": options.limit,
    }


def _show(made: Evaluation, options: Evaluate, *, out: Console, err: Console, replies: Replies) -> None:
    verdict, tables = made.verdict(), made.tables()
    if options.as_json:
        record = {"settings": dict(made.settings), "verdict": verdict.data(), "tables": [asdict(one) for one in tables]}
        sys.stdout.write(json.dumps(record) + "\n")
    else:
        show_summary(out, verdict.lines)
        shown = tables if options.tables else [replace(one, notes=()) for one in tables if one.name == "main"]
        show_tables(out, shown)
        out.print(f"{options.out / 'report.html'}: the report, with each question, the tables and how sure this is")
    if replies.asked or replies.kept:
        err.print(replies.summary)
    if failed := len(made.failures):
        err.print(f"{failed} steps failed and are not scored; run the same command again to retry them.")
    if made.stopped:
        err.print(f"The run ended early: {made.stopped}.")
