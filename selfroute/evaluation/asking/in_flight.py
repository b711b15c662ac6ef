"""Notes which calls have not ended yet, so that those of a run that was killed are counted as paid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from selfroute.usage.counts import Cost


class Call(NamedTuple):
    """A call of a model that did not end.

    Attributes:
        key: What the reply would have been kept under.
        step: The kind of prompt.
        cost: What it was expected to cost in US dollars, a decimal string.
    """

    key: str
    step: str
    cost: str


class InFlight:
    """The calls that have not ended: a small file for each, which only a run that is killed leaves behind."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which need not exist yet."""
        self._folder = folder

    @contextmanager
    def noted(self, key: str, step: str, expected: Cost) -> Iterator[None]:
        """Note a call until it has ended, also by an error; one whose price is not known, or nothing, is not noted."""
        if not expected.dollars:
            yield
            return
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{key}.json"
        path.write_text(json.dumps(Call(key, step, f"{expected.dollars:f}")._asdict()), encoding="utf-8")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def take(self) -> Iterator[Call]:
        """Yield the calls that earlier runs left behind, and forget each once it has been dealt with."""
        for path in sorted(self._folder.glob("*.json")):
            with suppress(ValueError, TypeError):  # it was killed while it wrote this, before it asked
                yield Call(**json.loads(path.read_text(encoding="utf-8")))
            path.unlink()
