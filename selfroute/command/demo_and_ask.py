"""The bodies of `selfroute demo` and `selfroute ask`; heavy, so imported only when one of them runs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from selfroute.command import run, screen
from selfroute.command.framework import Framework, Session
from selfroute.command.library import Library
from selfroute.command.steering import Steering
from selfroute.command.texts import Text, read_text
from selfroute.demo import corpus
from selfroute.demo.weights import DEFAULT_EMBEDDINGS
from selfroute.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Options:
    """The options that both commands have.

    Attributes:
        framework: The framework that routes the questions.
        model: The model as `provider:name`; None for the extractive reader.
        long_context_model: The model of the second step; None for the same.
        base_url: The server to ask; None for the provider's own.
        k: How many passages to retrieve.
        embeddings: The embedding model; None for all-MiniLM-L6-v2.
        as_json: Whether to print JSON only.
        priced_as: The model as which it is priced, as `provider:name`; None to use its own name and address.
        steering: Which questions read more than their passages.
    """

    framework: Framework
    model: str | None
    long_context_model: str | None
    base_url: str | None
    k: int
    embeddings: str | None
    as_json: bool
    priced_as: str | None = None
    steering: Steering = field(default_factory=Steering)

    def load_models(self) -> run.Models | None:
        """Make the models that the user names; None for the extractive reader."""
        return run.load_models(self.framework, self.model, long_context=self.long_context_model, base_url=self.base_url)


def demo(options: Options, *, limit: int | None) -> None:
    """Route the shipped questions over the shipped documents."""
    options.steering.check(k=options.k, model=options.model)
    models = options.load_models()
    texts = [Text(name, text) for name, text in corpus.load_documents().items()]
    questions = corpus.spread(corpus.load_questions(), limit)
    out, err = screen.open_console(sys.stdout), screen.open_console(sys.stderr)
    progress = out if out.is_terminal and not options.as_json else err
    seconds: dict[str, float] = {}
    if options.as_json:
        screen.show_reader(err, models)
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
        embeddings = _load_embeddings(options, progress)
    with _timed(seconds, "index"):
        library = _index(texts, options, embeddings=embeddings, progress=progress, folder=None)
    models = models or run.extractive_reader(options.framework, embeddings)
    answers: list[run.DemoAnswer] = []
    if not options.as_json:
        screen.show_header(out)
    with (
        _timed(seconds, "answers"),
        screen.stage(progress, "Answering", len(questions)) as advance,
        _open_session(library, models, options) as session,
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
    with _open_session(library, models, replace(options, steering=steering)) as session:
        for question in corpus.STEERED:
            screen.show_steered(out, session.ask(question), names={name: name for name in library.texts})


def ask(
    options: Options, *, files: Sequence[Path], questions: Sequence[str], store: Path | None, passages: bool
) -> None:
    """Route questions over the user's own files."""
    names = {str(path.resolve()): str(path) for path in files}
    out = screen.open_console(sys.stdout)
    with open_files(options, files=files, questions=questions, store=store) as (session, library, models):
        for question in questions:
            if options.as_json:
                print_json(run.answer_as_json(session.ask(question), library.passages, names))
                continue
            screen.show_question(out, question)
            output = screen.show_answer(out, partial(session.stream, question))
            retrieved = [library.passages[name] for name in output.retrieved] if passages else None
            screen.show_reasons(out, output, models=models, names=names, passages=retrieved)
            out.print()
    if not options.as_json and len(questions) > 1:
        screen.show_ledger(out, session.ledger, models=models)


@contextmanager
def open_files(
    options: Options, *, files: Sequence[Path], questions: Sequence[str], store: Path | None
) -> Iterator[tuple[Session, Library, run.Models]]:
    """Index the user's own files where that is not done yet, say which model answers, and open a session over them."""
    options.steering.check(k=options.k, model=options.model)
    if not all(question.strip() for question in questions):
        msg = 'a question is empty: write --question "..."'
        raise ConfigurationError(msg)
    texts = {text.source: text for text in map(read_text, files)}
    models = options.load_models()
    out, err = screen.open_console(sys.stdout), screen.open_console(sys.stderr)
    embeddings = _load_embeddings(options, err)
    library = _index([*texts.values()], options, embeddings=embeddings, progress=err, folder=store or default_store())
    models = models or run.extractive_reader(options.framework, embeddings)
    screen.show_reader(err if options.as_json else out, models)
    with _open_session(library, models, options) as session:
        yield session, library, models


def _open_session(library: Library, models: run.Models, options: Options) -> AbstractContextManager[Session]:
    return library.open_session(
        models.llm,
        long_context_llm=models.long_context_llm,
        k=options.k,
        priced_as=options.priced_as,
        steering=options.steering,
    )


def default_store() -> Path:
    """Return the user's cache folder for indexes."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(folder) if folder else Path.home() / ".cache") / "selfroute"


def _load_embeddings(options: Options, progress: Console) -> Any:
    with screen.stage(progress, "Loading the embedding model"):
        return options.framework.load_embeddings(options.embeddings)


def _index(
    texts: Sequence[Text], options: Options, *, embeddings: Any, progress: Console, folder: Path | None
) -> Library:
    name = options.embeddings or DEFAULT_EMBEDDINGS
    library = Library(texts, framework=options.framework, embeddings=embeddings, embeddings_name=name, folder=folder)
    missing = library.missing()
    if missing:
        title = f"Indexing the passages, kept in {folder}" if folder else "Indexing the passages"
        with screen.stage(progress, title, len(missing)) as advance:
            library.index(missing, on_progress=advance)
    else:
        progress.print(f"The index kept in {folder} is up to date")
    return library


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started


def print_json(record: object) -> None:
    """Print a record as one line of JSON."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
