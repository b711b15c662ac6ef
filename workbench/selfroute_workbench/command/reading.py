"""Reads the files that the user names, and says what cannot be read."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from selfroute.errors import ConfigurationError
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text, read_text
from selfroute_workbench.evaluation.table import printable
from selfroute_workbench.files import STANDARD_INPUT, NotTextError, UnreadableFileError, find, read_bytes

_LISTED = 20
_PIPED = "standard input"


def read_files(files: Sequence[Path], *, without: Collection[Path] = ()) -> list[Text]:
    """Read files, folders, wildcards, or `-` for the standard input; what cannot be read is listed on stderr.

    Args:
        files: What the user named.
        without: Files that are no documents, even if they are in a folder of these.
    """
    found, err = find(files), open_console(sys.stderr)
    no_documents = {path.resolve() for path in without}
    for path in list(found.files):
        if path.resolve() in no_documents:
            del found.files[path]
    if not found.files and found.unreadable:
        raise ConfigurationError("; ".join(found.unreadable))
    texts, problems, others = list[Text](), list(found.unreadable), 0
    with stage(err, f"Reading {files_of(len(found.files))}", len(found.files)) as advance:
        for path, named in found.files.items():
            try:
                texts.append(_read(path))
            except NotTextError as error:
                problems += [str(error)] if named else []
                others += not named
            except UnreadableFileError as error:
                problems.append(str(error))
            advance(1)
    if len(problems) == 1 and not texts:
        raise ConfigurationError(problems[0])
    _list(problems, err)
    counts = ((found.hidden, "hidden"), (others, "not text"))
    if passed := ", ".join(f"{number:,} {kind}" for number, kind in counts if number):
        err.print(f"Passed over in folders: {passed}")
    if not texts:
        msg = "there is nothing to read: name PDF, docx, HTML, Markdown or text files, or a folder that holds some"
        raise ConfigurationError(msg)
    return texts


def _read(path: Path) -> Text:
    if path != STANDARD_INPUT:
        return read_text(path)
    data = sys.stdin.buffer.read()
    content = read_bytes(data, _PIPED)
    # By its content: the index replaces what another call has put there from the same path.
    return Text(_PIPED, content.text, f"{_PIPED} {hashlib.sha256(data).hexdigest()[:16]}", content.pages)


def files_of(number: int) -> str:
    """Return a number of files, in words."""
    return f"{number:,} {'file' if number == 1 else 'files'}"


def _list(problems: Sequence[str], err: Console) -> None:
    for problem in problems[:_LISTED]:
        err.print(f"Left out: {printable(' '.join(problem.split()))}", soft_wrap=True)
    if len(problems) > _LISTED:
        err.print(f"Left out: {len(problems) - _LISTED:,} more")
