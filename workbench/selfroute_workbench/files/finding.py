"""Finds files by their names, in folders and by wildcards."""

from __future__ import annotations

import glob
import os
import re
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

    Hidden files are found only if they are named. Links to folders are not followed, nor links out of a folder.
    """
    found, seen = Found(), set[Path]()
    for name in names:
        for path, named in _meant(name, found):
            real = path if path == STANDARD_INPUT else Path(os.path.realpath(path))
            if real not in seen:
                seen.add(real)
                found.files[path] = named
    return found


def _meant(name: Path, found: Found) -> Iterator[tuple[Path, bool]]:
    # The functions of `os.path` take what cannot be looked at for missing; those of `Path` raise errors.
    if os.path.isdir(name):  # noqa: PTH112
        yield from ((path, False) for path in _below(name, found))
    elif os.path.exists(name) or name == STANDARD_INPUT or not glob.has_magic(str(name)):  # noqa: PTH110
        yield name, True
    else:
        fitting = _fitting(name, found)
        yield from ((path, False) for path in fitting)
        if not fitting:
            found.unreadable.append(f"{name}: no file fits this")


def _fitting(wildcard: Path, found: Found) -> list[Path]:
    """Return the files that a wildcard fits; `**` follows no links, which may lead back to where they are."""
    parts = wildcard.parts
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    folder, wild = Path(*parts[:first]), [part if part == "**" else re.sub(r"\*+", "*", part) for part in parts[first:]]
    if wild[-1] == "**":
        wild.append("*")
    if not os.path.isdir(folder):  # noqa: PTH112
        return []
    paths: Iterable[Path] = sorted(folder.glob(os.path.join(*wild)))  # noqa: PTH118
    if not any(part.startswith(_HIDDEN) for part in wild):
        paths = [path for path in paths if not any(part.startswith(_HIDDEN) for part in path.parts[first:])]
    return list(_files_in(folder, paths, found))


def _files_in(folder: Path, paths: Iterable[Path], found: Found) -> Iterator[Path]:
    """Yield the files among some paths, but not those that a link leads to from a folder to elsewhere."""
    real = Path(os.path.realpath(folder))
    for path in paths:
        if not os.path.isfile(path):  # noqa: PTH113
            continue  # a pipe, for one, would never end
        if Path(os.path.realpath(path)).is_relative_to(real):
            yield path
        else:
            found.unreadable.append(f"{path}: this is a link out of the folder: to have it read, name it")


def _below(folder: Path, found: Found) -> Iterator[Path]:
    def note(error: OSError) -> None:
        found.unreadable.append(f"{error.filename}: it cannot be opened: {error.strerror}")

    for where, folders, files in os.walk(folder, onerror=note):
        found.hidden += sum(name.startswith(_HIDDEN) for name in (*folders, *files))
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
        paths = (Path(where, name) for name in sorted(files) if not name.startswith(_HIDDEN))
        yield from _files_in(folder, paths, found)
