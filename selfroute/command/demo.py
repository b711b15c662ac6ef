"""The body of `selfroute demo`; heavy, so imported only when it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from selfroute.command import run, screen
from selfroute.command.answers import show_reader
from selfroute.command.asking import Options, index, open_session, print_json
from selfroute.command.library import Library
from selfroute.command.steering import Steering
from selfroute.command.terminal import open_console, stage
from selfroute.command.texts import Text
from selfroute.demo import corpus, recorded
from selfroute.errors import ConfigurationError

STRATEGIES = {
    "RAG alone": Steering(max_documents=0),
    "Self-Route": Steering(),
    "Self-Route, graded": Steering(graded=True),
    "long context alone": Steering(start="long_context"),
}
"""What the recording is asked by, to compare."""


def demo(options: Options, *, limit: int | None, reader: bool) -> None:
    """Route the shipped questions over the shipped documents.

    Args:
        options: The options.
        limit: How many questions to ask; None for all.
        reader: Whether the extractive reader answers, not the recording.
    """
    options.steering.check(model=options.model)
    models = options.load_models()
    if reader and models:
        msg = "--reader and --model exclude each other: one of them answers"
        raise ConfigurationError(msg)
    if models is None and not reader:
        check_recorded(options)
        models = run.recorded_model(options.framework)
        options = replace(options, priced_as=options.priced_as or recorded.PRICED_AS)
    with ThreadPoolExecutor(1) as background:  # the model takes seconds to load, and the opening as long to read
        loading = background.submit(options.framework.load_embeddings, options.embeddings)
        texts = [Text(name, text) for name, text in corpus.load_documents().items()]
        questions = corpus.spread(corpus.load_questions(), limit)
        out, err = open_console(sys.stdout), open_console(sys.stderr)
        progress = out if out.is_terminal and not options.as_json else err
        seconds: dict[str, float] = {}
        if options.as_json:
            show_reader(err, models)
        else:
            screen.show_opening(out, options, texts=texts, questions=len(questions), models=models)
        with _timed(seconds, "embedding model"), stage(progress, "Loading the embedding model"):
            embeddings = loading.result()
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
        for answer in run.answer_all(session, questions, models=models):
            answers.append(answer)
            if not options.as_json:
                screen.show_demo_answer(out, answer)
            advance(1)
    compared = _compare(library, models, options, questions) if models.recording else {}
    ledger = session.ledger
    if options.as_json:
        record = run.demo_as_json(answers, ledger, framework=options.framework, models=models, seconds=seconds)
        print_json({**record, "strategies": run.comparison_as_json(compared)})
        return
    if models.recording:
        screen.show_comparison(out, compared, options, questions=len(questions))
        screen.show_recording(out, models, options, answers, seconds=sum(seconds.values()))
    else:
        totals = run.totals(answers, ledger.to_dict())
        screen.show_totals(out, totals, ledger, models=models, seconds=seconds)
    if not models.is_language_model:
        screen.show_warning(out)


def check_recorded(options: Options) -> None:
    """Check that the options do not change the prompts that were recorded.

    Raises:
        ConfigurationError: One does.
    """
    others = {
        "--k": options.k != recorded.K,
        "--sections": options.steering.sections is not None,
        "--embeddings": options.embeddings is not None,
    }
    for option, given in others.items():
        if given:
            msg = (
                f"{option} changes the prompts, and the recorded replies are to {recorded.K} passages found by "
                "all-MiniLM-L6-v2, or to whole documents: name a model with --model, or pass --reader"
            )
            raise ConfigurationError(msg)


def _compare(
    library: Library, models: run.Models, options: Options, questions: Sequence[corpus.DemoQuestion]
) -> dict[str, run.Compared]:
    """Ask the questions by each strategy, through the same chain or engine."""
    compared = {}
    for name, steering in STRATEGIES.items():
        with open_session(library, models, replace(options, steering=steering)) as session:
            answers = list(run.answer_all(session, questions, models=models))
        compared[name] = run.Compared.of(answers, session.ledger)
    return compared


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started
