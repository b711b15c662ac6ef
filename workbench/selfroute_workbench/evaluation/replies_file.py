"""The file in which a run keeps its replies, one JSON object to a line; a crash costs at most the last line."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.evaluation.reply import Money, Reply, Text
from selfroute_workbench.kept import parse
from selfroute_workbench.private import make_folder, open_file

FILE = "looks.jsonl"
_AGAIN = "its prompt is asked again, and what it cost before is not counted"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Note:
    """What a line says of a reply: its key and step, and that it is asked for, at which cost at most, or failed."""

    key: Text
    step: Text
    asked: Money | None = None
    failed: Text | None = None


Row = tuple[str, str, Reply | Note]
"""A key, a step, and a reply, or a note that one was asked for or failed."""
_ABOUT, _REPLY = TypeAdapter(Note), TypeAdapter(Reply)


class RepliesFile:
    """The file of a folder, locked against other runs. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be, and lock it.

        Raises:
            ConfigurationError: The folder cannot be used, or another run uses it.
        """
        from filelock import FileLock, Timeout  # noqa: PLC0415

        self._path, self._writing = folder / FILE, threading.Lock()
        try:
            make_folder(folder)
            self._lock = FileLock(folder / f"{FILE}.lock", timeout=0, mode=0o600, thread_local=False)
            self._lock.acquire()
        except Timeout as error:
            msg = f"another run keeps its replies in {folder}: wait for it to end, or use another folder"
            raise ConfigurationError(msg) from error
        except OSError as error:
            msg = f"the replies cannot be kept in {folder}: {error.strerror or error}"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Release the folder."""
        self._lock.release()

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a line, which is on the disk when this returns."""
        with self._writing, open_file(self._path, "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def rows(self) -> Iterator[Row]:
        """Yield what earlier runs kept; a last line that is half written is cut off, so that the next stands alone."""
        if self._path.exists():
            self._end_last_line()
            yield from _rows(self._path)

    def _end_last_line(self) -> None:
        content = self._path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end == len(content):
            return
        with self._path.open("r+b") as file:
            try:
                _read(content[end:], str(self._path))
            except InputError:
                file.truncate(end)
            else:  # an editor has dropped the end of the line
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def _rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _read(line, f"{path}:{number}")
            except InputError as error:  # noqa: PERF203 - what stands on the other lines is not lost
                _logger.warning("%s", error)


def _read(line: bytes, where: str) -> Row:
    row = parse(line, where, todo=_AGAIN)
    try:
        about = _ABOUT.validate_python(row)
        return about.key, about.step, about if {"asked", "failed"} & row.keys() else _REPLY.validate_python(row)
    except (ValidationError, RecursionError) as error:
        fields = {str(one["loc"][0]) for one in error.errors()} if isinstance(error, ValidationError) else set()
        msg = f"{where} is damaged, in {', '.join(sorted(fields))}; {_AGAIN}"
        raise InputError(msg) from error
