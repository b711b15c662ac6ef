"""Finds files by their names, in folders and by wildcards."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

STANDARD_INPUT = Path("-")
_HIDDEN = (".", "~$")  # the latter are Office's own, beside a file that is open


@dataclass(slots=True)
class Found:
    """Files that were found.

    Attributes:
        files: The files, each once, and whether the user named it itself; `-` is the standard input.
        hidden: How many hidden files and folders were passed over.
        unreadable: What could not be looked into, with the reason.
    """

    files: dict[Path, bool] = field(default_factory=dict)
    hidden: int = 0
    unreadable: list[str] = field(default_factory=list)


def find(names: Iterable[Path]) -> Found:
    """Find the files that are meant: named ones, all in a folder and those below it, or those that a wildcard fits.

    Hidden files are found only if they are named. Links to folders are not followed.

    Args:
        names: Files, folders, wildcards such as `reports/**/*.pdf`, or `-`.
    """
    found, seen = Found(), set[Path]()
    for name in names:
        for path, named in _meant(name, found):
            real = path if path == STANDARD_INPUT else path.resolve()
            if real not in seen:
                seen.add(real)
                found.files[path] = named
    return found


def _meant(name: Path, found: Found) -> Iterator[tuple[Path, bool]]:
    if name.is_dir():
        yield from ((path, False) for path in _below(name, found))
    elif name.exists() or name == STANDARD_INPUT or not glob.has_magic(str(name)):
        yield name, True
    else:
        fitting = [path for path in map(Path, sorted(glob.glob(str(name), recursive=True))) if path.is_file()]  # noqa: PTH207 - Path's own fits hidden files, too
        yield from ((path, False) for path in fitting)
        if not fitting:
            found.unreadable.append(f"{name}: no file fits this")


def _below(folder: Path, found: Found) -> Iterator[Path]:
    def note(error: OSError) -> None:
        found.unreadable.append(f"{error.filename}: it cannot be opened: {error.strerror}")

    for where, folders, files in os.walk(folder, onerror=note):
        found.hidden += sum(name.startswith(_HIDDEN) for name in (*folders, *files))
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
        paths = (Path(where, name) for name in sorted(files) if not name.startswith(_HIDDEN))
        yield from (path for path in paths if path.is_file())  # a pipe would never end
