"""The body of `selfroute ask`, and what other commands share with it; heavy, so imported only when one of them runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from selfroute.calls.checks import check_question
from selfroute.command import answers, run
from selfroute.command.framework import Framework, Session
from selfroute.command.library import Library
from selfroute.command.reading import Sources, files_of
from selfroute.command.steering import Steering
from selfroute.command.terminal import open_console, stage
from selfroute.command.texts import Text
from selfroute.demo.weights import DEFAULT_EMBEDDINGS
from selfroute.errors import ConfigurationError
from selfroute.private import make_folder


@dataclass(frozen=True, slots=True)
class Options:
    """The options that the commands share.

    Attributes:
        framework: The framework that routes the questions.
        model: The model as `provider:name`; None for the extractive reader.
        long_context_model: The model of the second step; None for the same.
        base_url: The server to ask; None for the provider's own.
        k: How many passages the draft reads.
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


def ask(options: Options, *, sources: Sources, questions: Sequence[str], passages: bool) -> None:
    """Route questions over the user's own files."""
    out = open_console(sys.stdout)
    with open_files(options, sources, questions=questions) as (session, library, models):
        for question in questions:
            if options.as_json:
                print_json(run.answer_as_json(session.ask(question), library.passages, library.names))
                continue
            answers.show_question(out, question)
            output = answers.show_answer(out, partial(session.stream, question))
            retrieved = [library.passages[name] for name in output.retrieved] if passages else None
            answers.show_reasons(out, output, models=models, names=library.names, passages=retrieved)
            out.print()
    if not options.as_json and len(questions) > 1:
        answers.show_ledger(out, session.ledger, models=models)


@contextmanager
def open_files(
    options: Options, sources: Sources, *, questions: Sequence[str] = ()
) -> Iterator[tuple[Session, Library, run.Models]]:
    """Index the user's own files where that is not done yet, say which model answers, and open a session over them."""
    options.steering.check(model=options.model)
    if not all(question.strip() for question in questions):
        msg = 'a question is empty: write --question "..."'
        raise ConfigurationError(msg)
    for question in questions:
        check_question(question)
    texts = sources.read()
    models = options.load_models()
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    embeddings = load_embeddings(options, err)
    folder = sources.store or default_store()
    library = index(texts, options, embeddings=embeddings, progress=err, folder=folder, check=sources.check_characters)
    models = models or run.extractive_reader(options.framework, embeddings)
    answers.show_reader(err if options.as_json else out, models)
    with open_session(library, models, options) as session:
        yield session, library, models


def open_session(library: Library, models: run.Models, options: Options) -> AbstractContextManager[Session]:
    """Open a session over a library with the models and the options."""
    return library.open_session(
        models.llm,
        long_context_llm=models.long_context_llm,
        k=options.k,
        priced_as=options.priced_as,
        steering=options.steering,
    )


def default_store() -> Path:
    """Return the user's cache folder for indexes, which is for nobody else."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    folder = (Path(given) if given else Path.home() / ".cache") / "selfroute"
    with suppress(OSError):  # where it cannot be made, the index says so
        make_folder(folder, ours=True)
    return folder


def load_embeddings(options: Options, progress: Console) -> Any:
    """Load the embedding model that the options name."""
    with stage(progress, "Loading the embedding model"):
        return options.framework.load_embeddings(options.embeddings)


def index(  # noqa: PLR0913 - what an index needs
    texts: Sequence[Text],
    options: Options,
    *,
    embeddings: Any,
    progress: Console,
    folder: Path | None,
    check: Callable[[int], None] = lambda _characters: None,
) -> Library:
    """Index texts where that is not done yet; without a folder, in memory.

    Args:
        texts: The texts.
        options: The options.
        embeddings: The embeddings.
        progress: The console for the progress.
        folder: The folder to keep the index in; None for memory.
        check: Called with the number of characters that are to be indexed; raises if they are too many.
    """
    name = options.embeddings or DEFAULT_EMBEDDINGS
    library = Library(texts, framework=options.framework, embeddings=embeddings, embeddings_name=name, folder=folder)
    missing = library.missing()
    if missing:
        files = {passage.source for passage in missing}
        characters = sum(len(library.texts[name].text) for name in files)
        check(characters)
        title = f"Indexing {files_of(len(files))} with {characters:,} characters"
        title += f", kept in {folder}" if folder else ""
        with stage(progress, title, len(missing)) as advance:
            library.index(missing, on_progress=advance)
    else:
        progress.print(f"The index kept in {folder} is up to date")
    return library


def print_json(record: object) -> None:
    """Print a record as one line of JSON."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
