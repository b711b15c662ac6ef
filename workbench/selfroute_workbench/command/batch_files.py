"""Writes requests in the file formats of the providers' batch interfaces.

Nothing of a prompt is made here: a request holds the body that the provider's own client sends.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from selfroute.errors import ConfigurationError
from selfroute_workbench.private import make_folder, open_file

Json = dict[str, Any]
_MB = 1_000_000


@dataclass(frozen=True)
class Request:
    """What a client asks of a model, which is `provider:name`."""

    model: str
    url: str
    body: Json

    @property
    def path(self) -> str:
        """The address without the server."""
        return urlsplit(self.url).path

    @cached_property
    def digest(self) -> str:
        """What identifies the request, the same in every process."""
        asked = json.dumps([self.path, self.body], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:40]


class Format(NamedTuple):
    """The batch files of a provider: how much one may hold, and the line of a request, given its id."""

    max_requests: int
    max_bytes: int
    line: Callable[[str, Request], Json]


def _of_openai(name: str, asked: Request) -> Json:
    return {"custom_id": name, "method": "POST", "url": asked.path, "body": asked.body}


FORMATS: Mapping[str, Format] = {
    "openai": Format(50_000, 200 * _MB, _of_openai),
    "anthropic": Format(100_000, 256 * _MB, lambda name, asked: {"custom_id": name, "params": asked.body}),
    "google_genai": Format(100_000, 2_000 * _MB, lambda name, asked: {"key": name, "request": asked.body}),
}
"""By the name of the provider, as in `--model provider:name`."""


@dataclass(slots=True)
class RequestFile:
    """One file of requests, while it is written."""

    path: Path
    model: str
    endpoint: str
    lines: IO[str]
    requests: int = 0
    size: int = 0


class RequestFiles(ExitStack):
    """Writes files of requests: each to one model, and no longer than its provider takes.

    Use it as a context manager: the files have their names once it is left without an error.
    """

    def __init__(self, folder: Path, *, formats: Mapping[str, Format] = FORMATS) -> None:
        super().__init__()
        self._folder, self._formats = folder, formats
        self._names = set[str]()
        self._files = list[RequestFile]()
        self._current = dict[str, RequestFile]()

    def add(self, name: str, request: Request) -> None:
        """Write a request under an id, once."""
        if name in self._names:
            return
        self._names.add(name)
        limits = self._formats[request.model.partition(":")[0]]
        line = json.dumps(limits.line(name, request)) + "\n"
        file = self._current.get(request.model)
        if file is None or file.requests >= limits.max_requests or file.size + len(line) > limits.max_bytes:
            path = self._next()
            file = RequestFile(path, request.model, request.path, self.enter_context(replacing(path)))
            self._current[request.model] = file
            self._files.append(file)
        file.lines.write(line)
        file.requests += 1
        file.size += len(line)

    def written(self) -> list[Json]:
        """Return the name of each file, its model, its endpoint and the number of its requests."""
        return [
            {"file": str(one.path), "model": one.model, "endpoint": one.endpoint, "requests": one.requests}
            for one in self._files
        ]

    def _next(self) -> Path:
        taken = [*self._folder.glob("requests-*.jsonl"), *(file.path for file in self._files)]
        numbers = (re.fullmatch(r"requests-(\d+)", path.stem) for path in taken)
        return self._folder / f"requests-{max((int(found[1]) for found in numbers if found), default=0) + 1}.jsonl"


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Open a file that takes the place of another when it is left without an error: nobody ever reads half of it.

    Raises:
        ConfigurationError: The folder cannot be used.
    """
    part = path.with_suffix(".part")
    with _in_folder(path):
        make_folder(path.parent)
        file: IO[str] = open_file(part, "w")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink()
        raise
    with _in_folder(path):
        part.replace(path)


@contextmanager
def _in_folder(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"--job {path.parent}: {path.name} cannot be written there ({error.strerror})"
        raise ConfigurationError(msg) from error
