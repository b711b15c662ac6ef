"""Performs `selfroute demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console

from selfroute.errors import ConfigurationError
from selfroute_workbench.command import demo_answers, demo_screen, models
from selfroute_workbench.command.answers import show_reader
from selfroute_workbench.command.asking import index, load_vectors, print_json
from selfroute_workbench.command.demo_answers import Compared, DemoAnswer
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text
from selfroute_workbench.command.vectors import VectorLibrary
from selfroute_workbench.demo import corpus, recorded
from selfroute_workbench.demo.vectors import ShippedVectors
from selfroute_workbench.demo.weights import DEFAULT_EMBEDDINGS

STORY = "minutes-04"
"""The question that is told in full: its answer stands far from its nearest passages."""
STRATEGIES: dict[str, dict[str, Any]] = {
    "RAG alone": {"max_documents": 0},
    "RAG, then sections": {"answerability": "graded", "sections": recorded.SECTIONS_TOKENS, "max_documents": 0},
    "Self-Route": {},
    "Self-Route, graded": {"answerability": "graded"},
    "long context alone": {"start": "long_context"},
}
"""The options of the chain by which the recording is asked, to compare."""


def demo(options: Options) -> None:
    """Route the shipped questions over the shipped documents."""
    answering = _choose_models(options)
    if answering and answering.recording:
        options = replace(options, priced_as=options.priced_as or recorded.PRICED_AS)
    texts = [Text(name, text) for name, text in corpus.load_documents().items()]
    questions = corpus.spread(corpus.load_questions(), options.limit)
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    progress = out if out.is_terminal and not options.as_json else err
    seconds: dict[str, float] = {}
    if options.as_json:
        show_reader(err, answering)
    else:
        demo_screen.show_opening(out, options, texts=texts, questions=len(questions), models=answering)
    with _timed(seconds, "index"):
        library = _open_library(texts, options, progress=progress)
    answering = answering or models.Models.extractive()
    session, answers = Session(library, answering, options, options.chain), list[DemoAnswer]()
    if answering.recording and not options.as_json:
        telling = Session(library, answering, options, STRATEGIES["RAG, then sections"])
        demo_screen.show_story(out, telling.ask(corpus.question_of(STORY)), library.texts)
    if not options.as_json:
        demo_screen.show_header(out)
    with _timed(seconds, "answers"), stage(progress, "Answering", len(questions)) as advance:
        for answer in demo_answers.answer_all(session, questions, models=answering):
            answers.append(answer)
            if not options.as_json:
                demo_screen.show_demo_answer(out, answer)
            advance(1)
    compared = _compare(library, answering, options, questions) if answering.recording else {}
    if options.as_json:
        print_json(demo_answers.as_json(answers, session.ledger, compared, models=answering, seconds=seconds))
    elif answering.recording:
        demo_screen.show_comparison(out, compared, questions=len(questions))
        whole = sum(seconds.values())
        demo_screen.show_recording(out, answering, answers, priced_as=options.priced_as, seconds=whole)
    else:
        totals = demo_answers.totals(answers, session.ledger.to_dict())
        demo_screen.show_totals(out, totals, session.ledger, models=answering, seconds=seconds)


def _open_library(texts: Sequence[Text], options: Options, *, progress: Console) -> VectorLibrary:
    """Index the texts in memory: by the vectors that come with the package, or by a model that the options name."""
    if options.embeddings:
        library = load_vectors(texts, options.embeddings, folder=None, progress=progress)
    else:
        library = VectorLibrary(texts, embeddings=ShippedVectors(), embeddings_name=DEFAULT_EMBEDDINGS)
    index(library, library.missing(), progress=progress)
    return library


def _choose_models(options: Options) -> models.Models | None:
    """Return the model or the recording; None for the extractive reader."""
    named = models.load_models(options)
    if options.reader and named:
        msg = "--reader and --model exclude each other: one of them answers"
        raise ConfigurationError(msg)
    if named or options.reader:
        return named
    check_recorded(options)
    return models.Models.recorded()


def check_recorded(options: Options) -> None:
    """Check that the options do not change the prompts that were recorded."""
    for name in ("k", "sections", "embeddings"):
        if getattr(options, name) != getattr(Options, name):
            msg = (
                f"--{name} changes the prompts, and the recorded replies are to {recorded.K} passages found by "
                "all-MiniLM-L6-v2, or to whole documents: name a model with --model, or pass --reader"
            )
            raise ConfigurationError(msg)


def _compare(
    library: Library, answering: models.Models, options: Options, questions: Sequence[corpus.DemoQuestion]
) -> dict[str, Compared]:
    """Ask the questions by each strategy, through the same chain."""
    compared = {}
    for name, chain_options in STRATEGIES.items():
        session = Session(library, answering, options, chain_options)
        answers = list(demo_answers.answer_all(session, questions, models=answering))
        compared[name] = Compared.of(answers, session.ledger)
    return compared


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started
