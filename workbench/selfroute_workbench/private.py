"""Makes files and folders that hold people's text: for nobody but the user, whatever the umask is.

What exists keeps its permissions, so that a user may share it. Windows knows no such permissions, and ignores these.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_FILE, _FOLDER, _OTHERS = 0o600, 0o700, 0o077


def make_folder(path: Path, *, ours: bool = False) -> Path:
    """Make a folder, and those above it that are missing.

    Raises:
        OSError: It cannot be made.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(_FOLDER, exist_ok=True)
    if ours:
        path.chmod(_FOLDER)
    return path


def open_file(path: Path, mode: str, *, errors: str = "strict") -> IO[Any]:
    """Open a file to write it: text in UTF-8 with newlines alone at the ends of lines, or bytes.

    Raises:
        OSError: It cannot be written.
    """
    text = {} if "b" in mode else {"encoding": "utf-8", "errors": errors, "newline": ""}
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, _FILE), **text)  # type: ignore[call-overload,no-any-return]


def write(path: Path, content: str | bytes, *, errors: str = "strict") -> None:
    """Write a file at once.

    Raises:
        OSError: It cannot be written.
    """
    with open_file(path, "wb" if isinstance(content, bytes) else "w", errors=errors) as file:
        file.write(content)


@contextmanager
def umask() -> Iterator[None]:
    """Make private what others' code writes meanwhile; this holds for the whole process, so it is for commands only."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)
