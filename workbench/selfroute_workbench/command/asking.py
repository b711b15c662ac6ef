"""Performs `selfroute ask` and `selfroute check`, and opens the user's files for other commands."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from langchain_core.documents import Document
from rich.console import Console

from selfroute.calls.host import check_question
from selfroute.errors import ConfigurationError
from selfroute_workbench.command import answers, models
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.reading import files_of, read_files
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text, named_shortly
from selfroute_workbench.demo.with_langchain import load_embeddings
from selfroute_workbench.private import make_folder

if TYPE_CHECKING:
    from selfroute_workbench.command.vectors import VectorLibrary


def ask(options: Options) -> None:
    """Route questions over the user's own files."""
    out = open_console(sys.stdout)
    options = _with_question(options)
    questions = options.question or []
    session, _, answering = open_files(options, questions=questions)
    for question in questions:
        if options.as_json:
            print_json(answers.as_json(session.ask(question)))
            continue
        answers.show_field(out, "Question", question)
        output = answers.show_answer(out, partial(session.stream, question))
        answers.show_reasons(out, output, models=answering)
        out.print()
    if not options.as_json and len(questions) > 1:
        answers.show_ledger(out, session.ledger, models=answering)


def _with_question(options: Options) -> Options:
    """Take the last argument as the question, where there is no other."""
    if options.question:
        return options
    *files, last = options.files
    asked = str(last)
    if not files or last.exists() or not re.search(r"[\s?\uff1f]", asked):
        msg = 'there is no question: write it last, selfroute ask FILE... "When does it end?"'
        raise ConfigurationError(msg)
    return replace(options, files=files, question=[asked])


def check(options: Options) -> bool:
    """Try what `ask` would use on a question, and print what was found."""
    session, _, _ = open_files(options, questions=[options.tried])
    findings = session.chain.check(options.tried)
    if options.as_json:
        print_json({"ok": findings.ok, "findings": [finding.as_dict() for finding in findings]})
    else:
        answers.show_findings(open_console(sys.stdout), findings)
    return findings.ok


def open_files(
    options: Options, *, questions: Sequence[str] = (), short_names: bool = False, told: TextIO | None = None
) -> tuple[Session, Library, models.Models]:
    """Index the user's own files where that is not done yet, say which model answers, and open a session over them.

    With `short_names` files are named by their paths below the folders that the user gave. `told` is the stream that
    the model is named on; by default the standard output, or with `--json` the standard error.
    """
    check_questions(questions)
    answering = models.load_models(options) or models.Models.extractive()  # before files are read, which may take long
    texts = read_files(options.files)
    texts = named_shortly(texts, options.files) if short_names else texts
    library = open_library(texts, embeddings=options.embeddings, store=options.store)
    answers.show_reader(open_console(told or (sys.stderr if options.as_json else sys.stdout)), answering)
    return Session(library, answering, options, options.chain), library, answering


def check_questions(questions: Sequence[str]) -> None:
    """Check that questions can be asked."""
    if not all(question.strip() for question in questions):
        msg = 'a question is empty: write --question "..."'
        raise ConfigurationError(msg)
    for question in questions:
        check_question(question)


def load_vectors(texts: Sequence[Text], name: str, *, folder: Path | None, progress: Console) -> VectorLibrary:
    """Load an embedding model, and open the index of texts in a folder; None for memory."""
    from selfroute_workbench.command.vectors import VectorLibrary  # noqa: PLC0415 - Chroma

    with stage(progress, "Loading the embedding model"):
        embeddings = load_embeddings(name)
    return VectorLibrary(texts, embeddings=embeddings, embeddings_name=name, folder=folder)


def open_library(texts: Sequence[Text], *, embeddings: str | None, store: Path | None) -> Library:
    """Open the user's files: to search them by words or, with the name of embeddings, by vectors.

    Vectors are kept in a folder, by default in the cache folder; what is not there is indexed.
    """
    progress = open_console(sys.stderr)
    if embeddings is None:
        if store is not None:
            progress.print("Without --embeddings files are searched by words, which keeps nothing in --store")
        return Library(texts)
    folder = store or _default_store()
    library = load_vectors(texts, embeddings, folder=folder, progress=progress)
    if missing := library.missing():
        index(library, missing, progress=progress, where=f", kept in {folder}")
    else:
        progress.print(f"The index kept in {folder} is up to date")
    return library


def index(library: VectorLibrary, missing: Sequence[Document], *, progress: Console, where: str = "") -> None:
    """Index passages of a library that it does not hold yet, and show the progress and where it is kept."""
    files = files_of(len({passage.metadata["source"] for passage in missing}))
    title = f"Indexing {files} with {library.characters_of(missing):,} characters{where}"
    with stage(progress, title, len(missing)) as advance:
        library.index(missing, on_progress=advance)


def _default_store() -> Path:
    """Return the user's cache folder for indexes, which is for nobody else."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    folder = (Path(given) if given else Path.home() / ".cache") / "selfroute"
    with suppress(OSError):  # where it cannot be made, the index says so
        make_folder(folder, ours=True)
    return folder


def print_json(record: object) -> None:
    """Print a record as one line of JSON."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
