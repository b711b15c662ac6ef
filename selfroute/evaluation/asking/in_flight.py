"""Notes which calls have not ended yet, so that those of a run that was killed are counted as paid."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from selfroute.errors import InputError
from selfroute.kept import make, parse
from selfroute.private import make_folder, write
from selfroute.usage.counts import Cost
from selfroute.usage.values import WRONG, amount

_logger = logging.getLogger(__name__)
_ASIDE = "what this call cost is not counted, and the note is kept as"


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
        make_folder(self._folder)
        path, part = (self._folder / f"{key}{suffix}" for suffix in (".json", ".part"))
        write(part, json.dumps(Call(key, step, f"{expected.dollars:f}")._asdict()))
        part.replace(path)  # a run that is killed while it writes has not asked yet, and leaves no note
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def take(self) -> Iterator[Call]:
        """Yield the calls that earlier runs left behind, and forget each once it has been dealt with.

        A note that is damaged is set aside under another name, and logged: it may be all that is known of a call that
        was paid.
        """
        for path in self._folder.glob("*.part"):
            path.unlink()
        for path in sorted(self._folder.glob("*.json")):
            aside = path.with_suffix(".damaged")
            if call := _read(path, todo=f"{_ASIDE} {aside.name}"):
                yield call
                path.unlink()
            else:
                path.replace(aside)


def _read(path: Path, *, todo: str) -> Call | None:
    try:
        call = make(Call, parse(path.read_bytes(), str(path), todo=todo), str(path), todo=todo)
        amount(call.cost)
    except InputError as error:
        _logger.warning("%s", error)
    except (OSError, *WRONG):
        _logger.warning("%s is no note of a call; %s", path, todo)
    else:
        return call
    return None
