"""Add up the usage of questions, and what was saved compared with always reading the whole documents."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from selfroute.usage.counts import STEPS
from selfroute.usage.entry import Entry
from selfroute.usage.ledger_text import table

if TYPE_CHECKING:
    from selfroute.usage.totals import Totals

L = TypeVar("L", bound="Ledger")


class _Read(Generic[L]):
    """The method `Ledger.read`, which also makes a ledger if it is called on the class."""

    def __get__(self, ledger: L | None, kind: type[L]) -> Callable[[Iterable[Mapping[str, Any]]], L]:
        return (lambda rows: _read(kind(), rows)) if ledger is None else partial(_read, ledger)


def _read(ledger: L, rows: Iterable[Mapping[str, Any]]) -> L:
    """Add the questions of rows.

    Args:
        ledger: The ledger.
        rows: Results of a chain, or the metadata of an engine's responses, as dicts or parsed JSON. A row with an
            `error` is a failed attempt. Times are known for rows with `seconds` and `seconds_to_first_text`.

    Returns:
        The ledger.

    Raises:
        InputError: A row is not as described.
    """
    from selfroute.usage.rows import entry_of  # noqa: PLC0415 - few read rows

    for entry in map(entry_of, rows):
        ledger.add(entry)
    return ledger


class Ledger:
    """A running total of the tokens, costs and times of questions; safe to use from threads and tasks.

    Its size is bounded: it keeps totals, and the last 100,000 times of each kind and route.

    A copy, also in another process, starts with the figures so far, and then counts independently. `read(rows)` adds up
    results from elsewhere; on the class, `Ledger.read(rows)` returns a new ledger.
    """

    read = _Read["Ledger"]()

    def __init__(self) -> None:
        # `add` must never wait for the lock: the garbage collector may close a dropped stream, and so call `add`, at
        # any moment, even while this thread holds the lock. So entries are queued first.
        self._new: deque[Entry] = deque()
        self._lock = threading.Lock()
        self._totals = _empty()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._add_new()
            return {
                **vars(self),
                "_totals": deepcopy(self._totals),
                "_lock": None,
                "_new": deque(),
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def add(self, entry: Entry) -> None:
        """Add the record of a finished question."""
        self._new.append(entry)
        if self._lock.acquire(blocking=False):  # otherwise the holder of the lock, or the next caller, adds the entry
            try:
                self._add_new()
            finally:
                self._lock.release()

    def reset(self) -> dict[str, Any]:
        """Set all figures to zero.

        Returns:
            The figures until now, as `to_dict` returns them. Each question is counted either in them or from now on.
        """
        with self._lock:
            self._add_new()
            totals, self._totals = self._totals, _empty()
        return _figures({name: total.as_dict() for name, total in totals.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON.

        A failed attempt is not a query, because a retry or a fallback may still answer the question. Its tokens and
        cost are counted all the same.

        The savings of a query are known if the length of its documents was when it ended: they were read, for this
        query or an earlier one, or given as a list. If it is unknown for more than a tenth of the answered queries,
        `token_ratio` and `saved` are None, because the rest would not be representative.

        Returns:
            `queries`: the number of queries that did not fail. Among them: `declined` by the first step; `doubted`,
                answered with so little confidence that another step read more; `stopped` by a policy; `unanswerable`,
                declined by every step and not stopped; and `left` by the reader. `routes` counts those with a known
                route. `failed` is the number of failed attempts; `errors` counts them by type.
            `tokens`: the tokens of all calls, by step, and `total_tokens`. `estimated_tokens` are the input and output
                tokens among them that no provider counted.
            `models`: for each model, as `provider:name`: the `input_tokens` of its prompts; the `cached_tokens` and
                `cache_write_tokens` among them, which were read from or written to the provider's prompt cache; and
                the `hit_rate`, the share that was read from it. From the 101st model on, all are `others`.
            `savings`: the number of answered `queries` whose `long_context_only` is known, the sums of this and of
                their `input_tokens`, and `token_ratio`: `input_tokens` divided by `long_context_only` (None if there
                are no such queries, or too many are unknown). `unknown` is the number of other answered queries.
            `money`: decimal strings in US dollars. `cost` is the known cost of all calls (None if no cost is known);
                `unpriced` counts the attempts with an unknown cost, by reason. `compared`
                covers the `queries` of `savings` for which both costs are known: their `cost`,
                `cost_long_context_only`, and the difference `saved` (negative if more was spent; None under the same
                conditions as `token_ratio`). `saved_range` is the difference if the provider's prompt cache had held
                nothing of the documents (`nothing_cached`), and if it had held all of each (`all_warm`).
            `seconds`: by route, and of `all`, the time to the `first_text`, and to the `end` of answered queries:
                `median` and `p95`, the 95th percentile, interpolated as in numpy (None without any).
        """
        return _figures(self._snapshot())

    def to_dataframe(self) -> Any:
        """Return the figures as a pandas DataFrame.

        Returns:
            One row for each route and one for `all`, which includes queries that ended before their route was decided.
            The columns are the keys of `to_dict`, joined by `_`. Money is a float, and `money_unpriced` a number.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415
        except ModuleNotFoundError as error:
            msg = "to_dataframe needs pandas: pip install pandas"
            raise ImportError(msg) from error
        snapshot = self._snapshot()
        rows = [dict(_flatten(figures)) for figures in snapshot.values()]
        return pd.DataFrame(rows, index=pd.Index(snapshot, name="route"))

    def __str__(self) -> str:
        return table(self._snapshot())

    def _snapshot(self) -> dict[str, dict[str, Any]]:
        """Return the figures of each route and of all queries, taken at one moment."""
        with self._lock:
            self._add_new()
            totals = deepcopy(self._totals)
        return {name: total.as_dict() for name, total in totals.items()}

    def _add_new(self) -> None:
        """Add the queued entries; the caller holds the lock."""
        while self._new:
            entry = self._new.popleft()
            for name in ("all", entry.route):
                if name:
                    self._totals[name].add(entry)


def _empty() -> dict[str, Totals]:
    from selfroute.usage.totals import Totals  # noqa: PLC0415 - only who keeps a ledger loads it

    return {name: Totals() for name in (*STEPS, "all")}


def _figures(snapshot: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "queries": snapshot["all"]["queries"],
        "routes": {route: snapshot[route]["queries"] for route in STEPS},
        **snapshot["all"],
        "seconds": {route: snapshot[route]["seconds"] for route in (*STEPS, "all")},
    }


def _flatten(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the columns of `Ledger.to_dataframe` and their values."""
    for name, value in figures.items():
        if name == "unpriced":
            yield prefix + name, sum(value.values())
        elif name in ("errors", "models"):
            continue  # `failed` counts the former; the latter are not known before
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}_")
        elif value is None:
            yield prefix + name, float("nan")
        else:
            yield prefix + name, float(value) if isinstance(value, str) else value
