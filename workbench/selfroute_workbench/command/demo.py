"""Performs `selfroute demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console

from selfroute import PAPER
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

STORY = "minutes-03"
"""The question that is told in full: its answer stands far from its nearest passages."""
_RAG = {"answerability": "text", "sections": None, "max_documents": 0}
STRATEGIES: dict[str, tuple[int, Mapping[str, Any]]] = {
    "Self-Route": (recorded.K, {}),
    "RAG": (recorded.K, _RAG),
    "RAG, 20 passages": (20, _RAG),
    "the paper's rule": (recorded.K, PAPER),
    "long context": (recorded.K, {"start": "long_context"}),
}
"""How many passages the recording is asked with, and the options of the chain, to compare."""


def demo(options: Options) -> None:
    """Ask the shipped questions about the shipped document."""
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
        library = open_library(texts, options, progress=progress)
    answering = answering or models.Models.extractive()
    session, answers = Session(library, answering, options, options.chain), list[DemoAnswer]()
    if answering.recording and not (options.chain or options.as_json):
        telling = Session(library, answering, options, {})
        demo_screen.show_story(out, telling.ask(corpus.question_of(STORY)), library.texts)
    if not options.as_json:
        demo_screen.show_header(out)
    with _timed(seconds, "answers"), stage(progress, "Answering", len(questions)) as advance:
        for answer in demo_answers.answer_all(session, questions, models=answering):
            answers.append(answer)
            if not options.as_json:
                demo_screen.show_demo_answer(out, answer)
            advance(1)
    compared = dict[str, Compared]()
    if answering.recording:
        with _timed(seconds, "strategies"):
            compared = _compare(library, answering, options, questions, Compared.of(answers, session.ledger))
    if options.as_json:
        print_json(demo_answers.as_json(answers, session.ledger, compared, models=answering, seconds=seconds))
    elif answering.recording:
        demo_screen.show_comparison(out, compared, questions=len(questions))
        whole = sum(seconds.values())
        demo_screen.show_recording(out, answering, answers, priced_as=options.priced_as, seconds=whole)
    else:
        totals = demo_answers.totals(answers, session.ledger.to_dict())
        demo_screen.show_totals(out, totals, session.ledger, models=answering, seconds=seconds)


def open_library(texts: Sequence[Text], options: Options, *, progress: Console) -> VectorLibrary:
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
                "all-MiniLM-L6-v2, and to what the default reads on: name a model with --model, or pass --reader"
            )
            raise ConfigurationError(msg)


def _compare(
    library: Library,
    answering: models.Models,
    options: Options,
    questions: Sequence[corpus.DemoQuestion],
    asked: Compared,
) -> dict[str, Compared]:
    """Ask the questions by each strategy, through the same chain, but not again by the one that was asked."""
    compared = {}
    for name, (k, chain_options) in STRATEGIES.items():
        compared[name] = asked
        if chain_options != options.chain:
            session = Session(library, answering, replace(options, k=k), chain_options)
            answers = list(demo_answers.answer_all(session, questions, models=answering))
            compared[name] = Compared.of(answers, session.ledger)
    return compared


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started
