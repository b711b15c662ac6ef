"""Replies of models, kept as they come, so that nothing is asked, or paid for, twice."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation.replies_file import RepliesFile
from selfroute_workbench.evaluation.reply import Reply
from selfroute_workbench.evaluation.spending import Price, Spending

_LOST = "run aborted"


class Replies:
    """The replies of a run. Threads may share them: two that ask the same wait for one reply.

    With a folder, each is written to `looks.jsonl` before it is used, and before it is asked for a line says what it
    will cost at most. So a reply that was on its way when a run was killed counts as paid, since the provider bills it
    all the same. A folder serves one run at a time. A reply without a text that the model did not mean to give is a
    failure: it counts as paid, and the next run asks again.

    Attributes:
        spending: What they cost, with those of earlier runs.
        asked: How many were asked for in this run.
        kept: How many were kept by earlier runs.
    """

    def __init__(self, folder: Path | None = None, *, max_cost: Decimal | None = None) -> None:
        """Open the replies.

        Raises:
            ConfigurationError: The folder cannot be used, or another run uses it.
        """
        self._file = RepliesFile(folder) if folder else None
        self.spending = Spending(max_cost)
        self._replies: dict[str, Reply] = {}
        self._lock, self._asking = threading.Lock(), WeakValueDictionary[str, threading.Lock]()
        if self._file:
            self._read(self._file)
        self.asked, self.kept = 0, len(self._replies)

    def __enter__(self) -> Replies:  # noqa: PYI034 (typing.Self is of Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        if self._file:
            self._file.close()

    @property
    def summary(self) -> str:
        """How many replies there are, and what they cost, in a sentence."""
        return f"{self.asked} replies were asked for, {self.kept} were kept from earlier runs; {self.spending}."

    def identity(self, model: PricedModel, name: str | None, *, step: str) -> Any:
        """Return what a model's kept replies are found by, as plain JSON.

        Raises:
            ConfigurationError: Replies are kept in a folder, and the model has no name.
        """
        if self._file and not (name or model.name):
            msg = (
                f"the replies cannot be kept in a folder, because the model of the step {step} does not report its "
                "name: give the pipeline a name with name=..., or leave out folder="
            )
            raise ConfigurationError(msg)
        return name or astuple(model)

    def get(
        self,
        identity: object,
        ask: Callable[[], Reply],
        *,
        step: str,
        price: Price,
        question: tuple[str, str] | None = None,
    ) -> Reply:
        """Return the kept reply to a prompt, or ask for one and keep it.

        Raises:
            CostCapError: It could cost more than is left of `max_cost`, or it is not known how much was spent.
            ConfigurationError: There is a `max_cost`, and no price is known.
        """
        key = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode()).hexdigest()
        about = {"question": question, "step": step, "key": key}
        with self._lock:
            if key in self._replies:
                return self._replies[key]
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            if key in self._replies:  # another thread asked the same
                return self._replies[key]
            with self.spending.reserved(step, price) as expected:
                self._write({**about, "asked": expected.as_text()})
                started = time.monotonic()
                try:
                    reply = ask()
                except BaseException as error:
                    self._write({**about, "failed": one_line(error)})
                    raise
                reply = replace(reply, seconds=round(time.monotonic() - started, 3))
                self._write({**about, **asdict(reply)})
                self.spending.book(step, reply)
                with self._lock:
                    self.asked += 1
                    self._replies[key] = reply  # without a text, too: only the next run asks again
        return reply

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file:
            self._file.write(row)

    def _read(self, file: RepliesFile) -> None:
        """Take what earlier runs kept, and add up what they paid."""
        on_their_way: dict[str, tuple[str, str]] = {}
        for key, step, row in file.rows():
            on_their_way.pop(key, None)
            if isinstance(row, Reply):
                self.spending.book(step, row, lost=row.finish_reason == _LOST)
                if row.ending.kind == "complete":
                    self._replies[key] = row
            elif row.asked and Decimal(row.asked):  # where no price was known, nothing is
                on_their_way[key] = step, row.asked
        for key, (step, cost) in on_their_way.items():
            reply = Reply("", 0, 0, cost=cost, finish_reason=_LOST)
            file.write({"step": step, "key": key, **asdict(reply)})
            self.spending.book(step, reply, lost=True)
