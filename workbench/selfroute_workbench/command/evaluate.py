"""Performs `selfroute evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rich.console import Console

from langchain_selfroute import SelfRouteChain
from selfroute.errors import ConfigurationError, InputError
from selfroute.usage.prices import PricedModel
from selfroute_workbench.command import asking, models
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.options import READING, Options
from selfroute_workbench.command.reading import read_files
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text
from selfroute_workbench.demo import corpus, recorded
from selfroute_workbench.demo.vectors import demo_store
from selfroute_workbench.demo.with_langchain import RecordedModel
from selfroute_workbench.evaluation import export
from selfroute_workbench.evaluation.evaluating import ask_all
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looking import Pipeline
from selfroute_workbench.evaluation.page import BETTER
from selfroute_workbench.evaluation.questions import Question, load_questions
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.replies_file import FILE as REPLIES
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.show import show_summary, show_tables
from selfroute_workbench.evaluation.with_langchain import ChainPipeline, asker_with

PipelineOf = Callable[[Question], ChainPipeline]
_NEED_MODEL = ("k", "embeddings", "judge", "base_url", "priced_as", "long_context_model", "paper", *READING)
"""The options that need other replies than those of the recording."""
_WRITTEN = (*export.FILES, REPLIES, f"{REPLIES}.lock")
_UNJUDGED = "F1 calls right answers in other words wrong: have a model compare the meaning, --judge openai:gpt-5-mini"


def evaluate(options: Options) -> bool:
    """Run an evaluation and save the results.

    Returns:
        Whether all questions were asked and none failed.
    """
    asked = [each for each in options.asked if each.suffix == ".jsonl" or str(each) == corpus.NAME]
    files = [each for each in options.asked if each not in asked]
    is_recorded = [*map(str, options.asked)] == [corpus.NAME] and not options.model
    if is_recorded:
        _check_recorded(options)
        if options.out == Options.out:  # so that what was recorded is not taken for what was paid
            options = replace(options, out=Path(f"{options.out}-{corpus.NAME}"))
    questions = _questions(asked, options.limit, in_files=bool(files))
    answering = Models.recorded() if is_recorded else models.load_models(options) or Models.extractive()
    judge = None if is_recorded else _judge(options, answering)
    cap = None if options.max_cost is None else Decimal(str(options.max_cost))
    err = open_console(sys.stderr)
    if not (is_recorded or judge) and any(question.metric != "choice" for question in questions):
        err.print(_UNJUDGED, soft_wrap=True)
    with Replies(None if is_recorded else options.out, max_cost=cap) as replies:
        if is_recorded:
            pipeline_of = _recorded(replies)
        elif files:
            texts = read_files(files, without=[*asked, *(options.out / name for name in _WRITTEN)])
            library = asking.open_library(texts, embeddings=options.embeddings, store=None)
            store = _pipeline(library, answering, options, replies)
            pipeline_of = lambda _: store  # noqa: E731
        else:
            pipeline_of = _pipelines(questions, answering, options, replies, err)
        try:
            with stage(err, "Asking", len(questions)) as advance:
                made = ask_all(
                    pipeline_of,
                    questions,
                    judge_of=Pipeline.judge if is_recorded else judge and partial(judge, replies),
                    about=_settings(options, answering),
                    concurrency=answering.at_once,
                    on_progress=advance,
                )
        except KeyboardInterrupt:
            err.print(f"The replies so far are kept in {options.out}: run the same command again to go on.")
            raise
    made.save(options.out)
    _show(made, options, err=err, replies=replies)
    return not made.failures and not made.stopped


def _questions(names: Sequence[Path], limit: int | None, *, in_files: bool) -> list[Question]:
    if not names:
        msg = "there are no questions: name a JSONL file of them, whose name ends in .jsonl, or demo"
        raise ConfigurationError(msg)
    found: list[Question] = []
    for name in names:
        if str(name) == corpus.NAME:
            documents = corpus.load_documents()
            some = [
                Question(
                    corpus.NAME, one.id, one.question, one.answers, document=documents[one.document], kind=one.kind
                )
                for one in corpus.load_questions()
            ]
        else:
            some = load_questions(name)
        found += corpus.spread(some, limit)
        bare = None if in_files else next((question for question in found if question.document is None), None)
        if bare:
            msg = (
                f"question {bare.id!r} of {name} has no document: add document_file or document, or name the files to "
                "ask, such as a folder"
            )
            raise InputError(msg)
    return found


def _judge(options: Options, answering: Models) -> Callable[[Replies, ChainPipeline], ModelJudge] | None:
    """Return what makes the judge: the model that `--judge` names, or without a name the one for whole documents."""
    judge = options.judge
    if judge is None:
        return None
    if judge:
        same_provider = judge.partition(":")[0] == (options.model or "").partition(":")[0]
        llm = models.load_model(judge, base_url=options.base_url if same_provider else None)
        priced_as = PricedModel.parse("--judge", judge)  # wherever it runs
        return lambda replies, _: ModelJudge(asker_with(llm, replies, priced_as=priced_as), title=judge)
    if not answering.is_language_model:
        msg = f"{answering.name} cannot judge: name a model, for example --judge openai:gpt-5"
        raise ConfigurationError(msg)
    return lambda _, pipeline: pipeline.judge(title=options.long_context_model or options.model)


def _name(answering: Models) -> str | None:
    """Return the name under which replies are kept, where the model has none of its own."""
    return None if answering.is_language_model else answering.name


def _pipelines(
    questions: Sequence[Question], answering: Models, options: Options, replies: Replies, err: Console
) -> PipelineOf:
    """Return what makes the pipeline of a question: that of `selfroute ask` over its document."""
    # Each has a folder of its own, since a newer text of one source takes the place of the older one.
    texts = {
        one.document_id: Text(f"{one.document_id}/document", one.document or "", f"{one.document_id}/document")
        for one in questions
    }
    library = Library([*texts.values()])
    if options.embeddings:
        folder = options.out / "index"
        library = asking.load_vectors([*texts.values()], options.embeddings, folder=folder, progress=err)
        if missing := library.missing():
            asking.index(library, missing, progress=err, where=f", kept in {folder}")

    @cache
    def pipeline_of(document: str) -> ChainPipeline:
        return _pipeline(library.only(texts[document]), answering, options, replies)

    return lambda question: pipeline_of(question.document_id)


def _pipeline(library: Library, answering: Models, options: Options, replies: Replies) -> ChainPipeline:
    session = Session(library, answering, options, {**options.chain, "citations": False})
    return ChainPipeline(session.chain, replies, name=_name(answering))


def _check_recorded(options: Options) -> None:
    """Check that the recording answers what is asked for."""
    given = [name for name in _NEED_MODEL if getattr(options, name) != getattr(Options, name)]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        msg = f"{option} needs replies that were not recorded for {corpus.NAME}: name a model with --model"
        raise ConfigurationError(msg)


def _recorded(replies: Replies) -> PipelineOf:
    """Return the pipeline of the demo's recording."""
    chain = SelfRouteChain.from_vectorstore(demo_store(), RecordedModel(), k=recorded.K, priced_as=recorded.PRICED_AS)
    pipeline = ChainPipeline(chain, replies)
    return lambda _: pipeline


def _settings(options: Options, answering: Models) -> Mapping[str, Any]:
    parts = urlsplit(options.base_url or "")
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))  # without credentials
    return {
        "questions": [str(name) for name in options.asked],
        "model": answering.name,
        "language_model": answering.is_language_model,
        "base_url": address or None,
        "k": options.k,
        "embeddings": options.embeddings,
        "limit": options.limit,
    }


def _show(made: Evaluation, options: Options, *, err: Console, replies: Replies) -> None:
    out, verdict, tables, advice = open_console(sys.stdout), made.verdict(), made.tables(), made.advice
    if options.as_json:
        asking.print_json(
            {
                "settings": dict(made.settings),
                "verdict": verdict.data(),
                "options": advice,
                "tables": [asdict(one) for one in tables],
            }
        )
    else:
        show_summary(out, verdict.lines)
        if advice:
            show_summary(out, [f"{BETTER}:", *advice.lines])
        show_tables(out, [replace(one, notes=()) for one in tables if one.name == "main"])
        out.print(f"{options.out / 'report.html'}: the report, with each question, the tables and how sure this is")
    if made.settings["questions"] != [corpus.NAME] or options.model:  # else nothing was asked
        err.print(replies.summary)
    if failed := len(made.failures):
        err.print(f"{failed} failed and are not scored; run the same command again to retry them.")
    if made.stopped:
        err.print(f"The run ended early: {made.stopped}.")
