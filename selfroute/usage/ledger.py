"""Adds up what questions took, and what that saved."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from selfroute.usage.entry import Entry
from selfroute.usage.ledger_text import table
from selfroute.usage.totals import Totals

_MOST_WAITING = 1_000  # queries whose documents' lengths may become known later
_ROUTES = ("rag", "long_context")


class Ledger:
    """Adds up what questions took; safe under threads, tasks and streams.

    It keeps sums, of the times the last 100,000 of each kind and route, and the last 1,000 queries whose documents'
    lengths are not known yet: its size is bounded.
    """

    def __init__(self) -> None:
        # The garbage collector closes a stream that was dropped at any moment, also within `add`: it must not wait.
        self._new: deque[Entry] = deque()
        self._lock = threading.Lock()
        self._sums = _empty()
        self._waiting: deque[Entry] = deque()

    def add(self, entry: Entry) -> None:
        """Add a question that is over."""
        self._new.append(entry)
        if self._lock.acquire(blocking=False):  # else whoever has it, or comes next, adds it
            try:
                self._add_new()
            finally:
                self._lock.release()

    def reset(self) -> dict[str, Any]:
        """Begin anew.

        Returns:
            What `to_dict` would have: each question is either in it or in what is begun.
        """
        with self._lock:
            self._catch_up()
            sums, self._sums = self._sums, _empty()
            self._waiting.clear()
        return _figures({name: some.as_dict() for name, some in sums.items()})

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON.

        A failed attempt is no query, since a retry or a fallback may answer it; what it took is counted all the same.

        What a query saved is known once the length of its documents is, often some moments after its answer: whenever
        figures are taken, those that became known are added. Queries that read the documents always know, others may
        never; so where more than a tenth of the answered queries is not known, there is no `token_ratio` and nothing
        `saved`: those that are known would not stand for all.

        Returns:
            `queries`: those that did not fail, of which the first step `declined`, none could answer (`unanswerable`),
                or the reader `left`; by `routes` those whose route is known. `failed`: attempts, also by their type
                of `errors`.
            `tokens`: of everything that was paid for, by step, and `total_tokens`; `estimated_tokens` are those of
                them, input and output, that no provider counted.
            `savings`: of the `queries` that were answered and whose `long_context_only` is known, this, their
                `input_tokens`, and `token_ratio`, the quotient of both sums (None if there is nothing, or too much is
                not known); `unknown` is how many answered queries are not in it.
            `money`: decimal strings in US dollars. `cost`: of everything that was paid for, as far as it is known
                (None if nothing is); `unpriced` counts by reason what is missing from it. `compared`: of those
                `queries` of `savings` for which both are known, their `cost`, `cost_long_context_only` and what was
                `saved` (negative if it cost more; None as `token_ratio`).
            `seconds`: by route, `first_text` and `end`, the latter of what was answered: `median` and `p95`, the 95th
                percentile, interpolated as numpy's are (None if there is nothing).
        """
        return _figures(self._snapshot())

    def to_dataframe(self) -> Any:
        """The figures as a pandas DataFrame.

        Returns:
            One row for the queries of each route and one for `all`, among which are those that ended before their route
            was known. The columns are those of `to_dict`, joined by `_`; `money_unpriced` is a number, and money a
            float.

        Raises:
            ImportError: There is no pandas.
        """
        try:
            import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415
        except ModuleNotFoundError as error:
            msg = "a data frame needs pandas: pip install pandas"
            raise ImportError(msg) from error
        sums = self._snapshot()
        rows = [dict(_flat(figures)) for figures in sums.values()]
        return pd.DataFrame(rows, index=pd.Index(sums, name="route"))

    def __str__(self) -> str:
        return table(self._snapshot())

    def _snapshot(self) -> dict[str, dict[str, Any]]:
        """The figures by route and of all, taken at one moment."""
        with self._lock:
            self._catch_up()
            sums = deepcopy(self._sums)
        return {name: some.as_dict() for name, some in sums.items()}

    def _catch_up(self) -> None:
        self._add_new()
        for _ in range(len(self._waiting)):
            entry = self._waiting.popleft()
            if not self._completes(entry):
                self._waiting.append(entry)

    def _add_new(self) -> None:
        while self._new:
            entry = self._new.popleft()
            for sums in self._of(entry):
                sums.add(entry)
            if entry.outcome == "answered" and entry.usage.long_context_only is None and entry.later:
                if len(self._waiting) >= _MOST_WAITING:
                    self._completes(self._waiting.popleft())
                self._waiting.append(entry)

    def _completes(self, entry: Entry) -> bool:
        """Compare a query whose documents' lengths were not known, if they are now."""
        usage = entry.later() if entry.later else None
        if usage is None:
            return False
        for sums in self._of(entry):
            sums.compare(usage)
        return True

    def _of(self, entry: Entry) -> list[Totals]:
        return [self._sums[name] for name in ("all", entry.route) if name]


def _empty() -> dict[str, Totals]:
    return {name: Totals() for name in (*_ROUTES, "all")}


def _figures(sums: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "queries": sums["all"]["queries"],
        "routes": {route: sums[route]["queries"] for route in _ROUTES},
        **sums["all"],
        "seconds": {route: sums[route]["seconds"] for route in _ROUTES},
    }


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if name == "unpriced":
            yield prefix + name, sum(value.values())
        elif name == "errors":
            continue  # they are counted by `failed`
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}_")
        elif value is None:
            yield prefix + name, float("nan")
        else:
            yield prefix + name, float(value) if isinstance(value, str) else value
