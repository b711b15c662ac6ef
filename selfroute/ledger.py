"""Adds up what questions took, and what that saved."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from textwrap import fill
from typing import Any

from selfroute.account import Entry
from selfroute.sums import Sums

_WIDTH = 100  # characters of a printed line
_ROUTES = ("rag", "long_context")


class Ledger:
    """Adds up what questions took; safe under threads, tasks and streams.

    It keeps sums, and of the times the last 100,000 of each kind and route: its size is bounded.
    """

    def __init__(self) -> None:
        # The garbage collector closes a stream that was dropped at any moment, also within `add`: it must not wait.
        self._new: deque[Entry] = deque()
        self._lock = threading.Lock()
        self._sums = _empty()

    def add(self, entry: Entry) -> None:
        """Add a question that is over."""
        self._new.append(entry)
        if self._lock.acquire(blocking=False):  # else whoever has it, or comes next, adds it
            try:
                self._add_new()
            finally:
                self._lock.release()

    def reset(self) -> None:
        """Begin anew."""
        with self._lock:
            self._new.clear()
            self._sums = _empty()

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON.

        A failed attempt is no query, since a retry or a fallback may answer it; what it took is counted all the same.

        Returns:
            `queries`: those that did not fail, of which the first step `declined`, none could answer (`unanswerable`),
                or the reader `left`; by `routes` those whose route is known. `failed`: attempts, also by their type
                of `errors`.
            `tokens`: of everything that was paid for, by step, and `total_tokens`; `estimated_tokens` are those of
                them, input and output, that no provider counted.
            `savings`: of the `queries` that were answered and whose `long_context_only` is known, this, their
                `input_tokens`, and `token_ratio`, the quotient of both sums (None if there is nothing).
            `money`: decimal strings in US dollars. `cost`: of everything that was paid for, as far as it is known
                (None if nothing is); `unpriced` counts by reason what is missing from it. `compared`: of the `queries`
                that were answered and for which both are known, their `cost`, `cost_long_context_only` and what was
                `saved` (negative if it cost more).
            `seconds`: by route, `first_text` and `end`, the latter of what was answered: `median` and `p95`, the 95th
                percentile, interpolated as numpy's are (None if there is nothing).
        """
        sums = self._snapshot()
        figures = sums["all"]
        return {
            "queries": figures["queries"],
            "routes": {route: sums[route]["queries"] for route in _ROUTES},
            **figures,
            "seconds": {route: sums[route]["seconds"] for route in _ROUTES},
        }

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
        return _table(self._snapshot())

    def _add_new(self) -> None:
        while self._new:
            entry = self._new.popleft()
            self._sums["all"].add(entry)
            if entry.route:
                self._sums[entry.route].add(entry)

    def _snapshot(self) -> dict[str, dict[str, Any]]:
        """The figures by route and of all, taken at one moment."""
        with self._lock:
            self._add_new()
            sums = deepcopy(self._sums)
        return {name: some.as_dict() for name, some in sums.items()}


def _empty() -> dict[str, Sums]:
    return {name: Sums() for name in (*_ROUTES, "all")}


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


def _table(sums: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay the figures out: first by the route of a query, then by the step that was paid for."""
    tokens, by_route = sums["all"]["tokens"], [sums[name] for name in (*_ROUTES, "all")]
    steps = [tokens[step] for step in _ROUTES]
    rows = [["by route", "rag", "long context", "all"]]
    rows += [[f"  {name}", *(f"{one[name]:,}" for one in by_route)] for name in ("queries", "unanswerable", "left")]
    rows += [["  failed attempts", *(f"{one['failed']:,}" for one in by_route)]]
    for kind, name in (("first_text", "first text"), ("end", "end")):
        for share, label in (("median", "median"), ("p95", "95 % within")):
            times = [one["seconds"][kind][share] for one in by_route]
            rows.append([f"  seconds to {name}, {label}", *("-" if time is None else f"{time:,.3f}" for time in times)])
    rows += [["by step", "rag", "long context", "all"]]
    for name in ("input", "cached", "output", "estimated"):
        counts = [step[f"{name}_tokens"] for step in steps]
        rows.append([f"  {name} tokens", *(f"{count:,}" for count in [*counts, sum(counts)])])
    lines = [*_aligned(rows), *(fill(line, _WIDTH, subsequent_indent="  ") for line in _sentences(sums["all"]))]
    return "\n".join(lines)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        yield "  ".join(
            [first.ljust(widths[0]), *(cell.rjust(max(12, w)) for cell, w in zip(rest, widths[1:], strict=True))]
        )


def _sentences(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the table has no columns for."""
    savings, money = figures["savings"], figures["money"]
    compared = money["compared"]
    if figures["errors"]:
        yield "errors: " + ", ".join(f"{name} {count:,}" for name, count in figures["errors"].items())
    if savings["token_ratio"] is not None:
        read, only = savings["input_tokens"], savings["long_context_only"]
        share = f"{savings['token_ratio']:.1%} of the long context alone"
        yield f"tokens read: {share} ({read:,} of {only:,}; queries: {savings['queries']:,})"
    if money["cost"] is not None:
        yield f"cost: {_dollars(money['cost'])}" + (", and what has no price" if money["unpriced"] else "")
    if compared["queries"]:
        paid, only = _dollars(compared["cost"]), _dollars(compared["cost_long_context_only"])
        yield f"saved: {_dollars(compared['saved'])} ({paid} instead of {only}; queries: {compared['queries']:,})"
    for reason, count in money["unpriced"].items():
        yield f"no price for {count:,}: {reason}"


def _dollars(text: str) -> str:
    amount = float(text)
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{4 if abs(amount) >= 1 else 6}f}"
