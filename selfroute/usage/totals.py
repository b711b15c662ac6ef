"""The totals that a ledger keeps."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from selfroute.effects import Route
from selfroute.usage.counts import NOTHING, STEPS, Cost, StepUsage, Usage, prompts_of
from selfroute.usage.entry import Entry

_MAX_TIMES = 100_000  # of each kind
_MAX_MODELS = 100
_OTHERS = "others"


def _times_of(latest: Sequence[float]) -> dict[str, float | None]:
    """Return the median and the 95th percentile of times, in seconds."""
    from statistics import quantiles  # noqa: PLC0415 - only reports need it

    if not latest:
        return {"median": None, "p95": None}
    times = list(latest) if len(latest) > 1 else [*latest] * 2  # `quantiles` needs two
    twentieths = quantiles(times, n=20, method="inclusive")
    return {"median": twentieths[9], "p95": twentieths[18]}


class Totals:
    """The totals over some entries; `Ledger.to_dict` explains the figures."""

    def __init__(self) -> None:
        self._queries = dict.fromkeys(("queries", "declined", "doubted", "unanswerable", "stopped", "left"), 0)
        self._errors: Counter[str] = Counter()
        kinds = ("input_tokens", "output_tokens", "cached_tokens", "estimated_tokens", "total_tokens")
        self._tokens: dict[Route, dict[str, int]] = {step: dict.fromkeys(kinds, 0) for step in STEPS}
        self._models: dict[str, StepUsage] = {}
        self._savings = dict.fromkeys(("queries", "input_tokens", "long_context_only"), 0)
        self._cost: Decimal | None = None  # the known part
        self._unpriced: Counter[str] = Counter()
        self._compared = 0  # queries for which the cost and that of the long context alone are known
        self._costs = dict.fromkeys(("paid", "only", "cold", "warm"), Decimal(0))  # theirs
        self._first_text, self._end = deque[float](maxlen=_MAX_TIMES), deque[float](maxlen=_MAX_TIMES)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self._add_usage(entry.usage)
        for name, counts in entry.models.items():
            known = name if name in self._models or len(self._models) < _MAX_MODELS else _OTHERS
            self._models[known] = self._models.get(known, NOTHING) + counts
        if entry.outcome == "failed":
            self._errors[str(entry.error)] += 1
            return
        answered, queries = entry.outcome == "answered", self._queries
        queries["queries"] += 1
        queries["declined"] += bool(entry.declined)
        queries["doubted"] += bool(entry.doubted)
        queries["unanswerable"] += answered and entry.answerable is False and not entry.stopped
        queries["stopped"] += bool(entry.stopped)
        queries["left"] += not answered
        if entry.seconds_to_first_text is not None:
            self._first_text.append(entry.seconds_to_first_text)
        if answered:
            self.compare(entry.usage)
            if entry.seconds is not None:
                self._end.append(entry.seconds)

    def _add_usage(self, usage: Usage) -> None:
        for step, counts in usage.steps.items():
            tokens, dollars = self._tokens[step], counts.cost.dollars
            tokens["input_tokens"] += counts.input_tokens
            tokens["output_tokens"] += counts.output_tokens
            tokens["cached_tokens"] += counts.cached_tokens
            tokens["estimated_tokens"] += counts.total_tokens if counts.estimated else 0
            tokens["total_tokens"] += counts.total_tokens
            if dollars is not None:  # the cost may be known for one step and not for the other
                self._cost = dollars if self._cost is None else self._cost + dollars
        if usage.cost.dollars is None:
            self._unpriced[str(usage.cost.unknown)] += 1

    def compare(self, usage: Usage) -> None:
        """Compare an answered query with always reading the documents, if the tokens of that are known."""
        if usage.long_context_only is None:
            return
        self._savings["queries"] += 1
        self._savings["input_tokens"] += usage.input_tokens
        self._savings["long_context_only"] += usage.long_context_only
        paid, only = usage.cost.dollars, usage.cost_long_context_only.dollars
        cold, warm = usage.cost_cold.dollars, usage.cost_warm.dollars
        if paid is None or only is None:
            return
        self._compared += 1
        self._costs["paid"] += paid
        self._costs["only"] += only
        self._costs["cold"] += only if cold is None else cold
        self._costs["warm"] += only if warm is None else warm

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON."""
        answered, savings = self._queries["queries"] - self._queries["left"], self._savings
        shown = savings["long_context_only"] and _representative(savings["queries"], answered)
        return {
            **self._queries,
            "failed": sum(self._errors.values()),
            "errors": dict(sorted(self._errors.items())),
            "tokens": {
                **{step: dict(tokens) for step, tokens in self._tokens.items()},
                "total_tokens": sum(tokens["total_tokens"] for tokens in self._tokens.values()),
            },
            "models": {name: prompts_of(counts) for name, counts in sorted(self._models.items())},
            "savings": {
                **savings,
                "token_ratio": savings["input_tokens"] / savings["long_context_only"] if shown else None,
                "unknown": answered - savings["queries"],
            },
            "money": self._money(answered),
            "seconds": {"first_text": _times_of(self._first_text), "end": _times_of(self._end)},
        }

    def _money(self, answered: int) -> dict[str, Any]:
        cost = Decimal(0) if self._cost is None and not self._unpriced else self._cost
        shown, costs = _representative(self._compared, answered), self._costs
        only, cold, warm = (
            Cost(costs[kind] - costs["paid"]).as_text() if shown else None for kind in ("only", "cold", "warm")
        )
        return {
            "cost": Cost(cost).as_text(),
            "unpriced": dict(sorted(self._unpriced.items())),
            "compared": {
                "queries": self._compared,
                "cost": Cost(costs["paid"]).as_text(),
                "cost_long_context_only": Cost(costs["only"]).as_text(),
                "saved": only,
                "saved_range": {"nothing_cached": cold, "all_warm": warm},
            },
        }


def _representative(known: int, answered: int) -> bool:
    """Return whether the known queries represent all answered ones: at most a tenth is unknown."""
    return known > 0 and (answered - known) * 10 <= answered
