"""The body of `selfroute demo`; heavy, so imported only when it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console

from selfroute.command import run, screen
from selfroute.command.answers import show_reader
from selfroute.command.asking import Options, index, load_embeddings, open_session, print_json
from selfroute.command.library import Library
from selfroute.command.steering import Steering
from selfroute.command.terminal import open_console, stage
from selfroute.command.texts import Text
from selfroute.demo import corpus


def demo(options: Options, *, limit: int | None) -> None:
    """Route the shipped questions over the shipped documents."""
    options.steering.check(k=options.k, model=options.model)
    models = options.load_models()
    texts = [Text(name, text) for name, text in corpus.load_documents().items()]
    questions = corpus.spread(corpus.load_questions(), limit)
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    progress = out if out.is_terminal and not options.as_json else err
    seconds: dict[str, float] = {}
    if options.as_json:
        show_reader(err, models)
    else:
        screen.show_opening(
            out,
            texts=texts,
            questions=len(questions),
            k=options.k,
            framework=options.framework.NAME,
            models=models,
            steering=options.steering,
        )
    with _timed(seconds, "embedding model"):
        embeddings = load_embeddings(options, progress)
    with _timed(seconds, "index"):
        library = index(texts, options, embeddings=embeddings, progress=progress, folder=None)
    models = models or run.extractive_reader(options.framework, embeddings)
    answers: list[run.DemoAnswer] = []
    if not options.as_json:
        screen.show_header(out)
    with (
        _timed(seconds, "answers"),
        stage(progress, "Answering", len(questions)) as advance,
        open_session(library, models, options) as session,
    ):
        for answer in run.answer_all(session, questions, at_once=models.at_once):
            answers.append(answer)
            if not options.as_json:
                screen.show_demo_answer(out, answer)
            advance(1)
    ledger = session.ledger
    if options.as_json:
        print_json(run.demo_as_json(answers, ledger, framework=options.framework, models=models, seconds=seconds))
    else:
        totals = run.totals(answers, ledger.to_dict())
        screen.show_totals(out, totals, ledger, models=models, seconds=seconds)
        if not models.is_language_model:
            if not options.steering.is_on:
                _demo_steering(out, library, models, options)
            screen.show_warning(out)


def _demo_steering(out: Console, library: Library, models: run.Models, options: Options) -> None:
    """Ask two more questions, one for the wider look and one for the bound of the prospect."""
    steering = Steering(graded=True, widen=options.k + corpus.WIDER_BY)
    screen.show_steering(out, steering)
    with open_session(library, models, replace(options, steering=steering)) as session:
        for question in corpus.STEERED:
            screen.show_steered(out, session.ask(question), names={name: name for name in library.texts})


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started
