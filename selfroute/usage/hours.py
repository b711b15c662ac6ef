"""Counts the queries of each minute of a day, for a ledger."""

from __future__ import annotations

from collections import Counter

from selfroute.usage.counts import STEPS
from selfroute.usage.entry import Entry

MOST_HOURS = 24
_MINUTE, _HOUR = 60, 60  # seconds, minutes
_COUNTED = ("queries", *STEPS, "declined", "failed")


class Hours:
    """The number of queries in each minute, for a day."""

    def __init__(self) -> None:
        self._minutes: dict[int, Counter[str]] = {}

    def add(self, entry: Entry, at: float) -> None:
        """Count an entry that was over at a time, in seconds since 1970."""
        minute = int(at // _MINUTE)
        if minute not in self._minutes:
            self._forget(max([minute, *self._minutes]))
        counts = self._minutes.setdefault(minute, Counter())
        if entry.outcome == "failed":
            counts["failed"] += 1
        elif entry.outcome != "open":
            counts["queries"] += 1
            counts["declined"] += bool(entry.declined)
            if entry.route:
                counts[entry.route] += 1

    def last(self, hours: int, *, until: float) -> list[dict[str, int]]:
        """Return the counts of the last hours, the earliest first; `Ledger.by_hour` explains them."""
        hours, end = min(hours, MOST_HOURS), int(until // _MINUTE)
        found = [dict.fromkeys(_COUNTED, 0) for _ in range(hours)]
        for minute, counts in self._minutes.items():
            ago = (end - minute) // _HOUR
            if 0 <= ago < hours:
                for name, number in counts.items():
                    found[hours - 1 - ago][name] += number
        return found

    def _forget(self, latest: int) -> None:
        """Forget what is more than a day before a minute."""
        for minute in [each for each in self._minutes if each <= latest - MOST_HOURS * _HOUR]:
            del self._minutes[minute]
