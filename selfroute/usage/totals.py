"""The totals that a ledger keeps."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from selfroute.effects import Route
from selfroute.usage.counts import NOTHING, STEPS, Cost, Entry, StepUsage, Usage, prompts_of

_MAX_TIMES = 100_000  # of each kind
_MAX_MODELS = 100
_OTHERS = "others"


def _representative(known: int, answered: int) -> bool:
    """Return whether the known queries represent all answered ones: at most a tenth is unknown."""
    return known > 0 and (answered - known) * 10 <= answered


class _Times:
    """A ring buffer of the last times of one kind, in seconds, at eight bytes each."""

    def __init__(self) -> None:
        self._times, self._next = array("d"), 0

    def add(self, seconds: float) -> None:
        if len(self._times) < _MAX_TIMES:
            self._times.append(seconds)
        else:
            self._times[self._next] = seconds
            self._next = (self._next + 1) % _MAX_TIMES

    def as_dict(self) -> dict[str, float | None]:
        from statistics import quantiles  # noqa: PLC0415 - only reports need it

        if not self._times:
            return {"median": None, "p95": None}
        times = self._times if len(self._times) > 1 else self._times * 2  # `quantiles` needs two
        twentieths = quantiles(times, n=20, method="inclusive")
        return {"median": twentieths[9], "p95": twentieths[18]}


@dataclass(slots=True)
class _Tokens:
    """The token counts of one step, over all queries."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def add(self, step: StepUsage) -> None:
        self.input_tokens += step.input_tokens
        self.output_tokens += step.output_tokens
        self.cached_tokens += step.cached_tokens
        self.estimated_tokens += step.total_tokens if step.estimated else 0

    def as_dict(self) -> dict[str, int]:
        return {**asdict(self), "total_tokens": self.total_tokens}


@dataclass(slots=True)
class _Savings:
    """Input tokens, and those of always reading the documents, of the queries for which both are known."""

    queries: int = 0
    input_tokens: int = 0
    long_context_only: int = 0

    def add(self, usage: Usage) -> None:
        self.queries += 1
        self.input_tokens += usage.input_tokens
        self.long_context_only += usage.long_context_only or 0

    def as_dict(self, answered: int) -> dict[str, Any]:
        shown = self.long_context_only and _representative(self.queries, answered)
        ratio = self.input_tokens / self.long_context_only if shown else None
        return {**asdict(self), "token_ratio": ratio, "unknown": answered - self.queries}


@dataclass(slots=True)
class _Money:
    """The cost of all queries and, of those for which it is known, that of always reading the documents."""

    cost: Decimal | None = None
    unpriced: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    compared_cost: Decimal = Decimal(0)
    compared_only: Decimal = Decimal(0)
    compared_cold: Decimal = Decimal(0)
    compared_warm: Decimal = Decimal(0)

    def add(self, usage: Usage) -> None:
        for step in usage.steps.values():  # the cost may be known for one and not for the other
            if step.cost.dollars is not None:
                self.cost = step.cost.dollars if self.cost is None else self.cost + step.cost.dollars
        if usage.cost.dollars is None:
            self.unpriced[str(usage.cost.unknown)] += 1

    def compare(self, usage: Usage) -> None:
        cost, only = usage.cost.dollars, usage.cost_long_context_only.dollars
        if cost is not None and only is not None:
            self.compared += 1
            self.compared_cost += cost
            self.compared_only += only
            self.compared_cold += only if usage.cost_cold.dollars is None else usage.cost_cold.dollars
            self.compared_warm += only if usage.cost_warm.dollars is None else usage.cost_warm.dollars

    def as_dict(self, answered: int) -> dict[str, Any]:
        cost = Decimal(0) if self.cost is None and not self.unpriced else self.cost
        shown = _representative(self.compared, answered)

        def saved(only: Decimal) -> str | None:
            return Cost(only - self.compared_cost).as_text() if shown else None

        return {
            "cost": Cost(cost).as_text(),
            "unpriced": dict(sorted(self.unpriced.items())),
            "compared": {
                "queries": self.compared,
                "cost": Cost(self.compared_cost).as_text(),
                "cost_long_context_only": Cost(self.compared_only).as_text(),
                "saved": saved(self.compared_only),
                "saved_range": {
                    "nothing_cached": saved(self.compared_cold),
                    "all_warm": saved(self.compared_warm),
                },
            },
        }


@dataclass(slots=True)
class Totals:
    """The totals over some entries; `Ledger.to_dict` explains the figures."""

    queries: int = 0
    declined: int = 0
    doubted: int = 0
    unanswerable: int = 0
    stopped: int = 0
    left: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    tokens: dict[Route, _Tokens] = field(default_factory=lambda: {step: _Tokens() for step in STEPS})
    savings: _Savings = field(default_factory=_Savings)
    money: _Money = field(default_factory=_Money)
    models: dict[str, StepUsage] = field(default_factory=dict)
    first_text: _Times = field(default_factory=_Times)
    end: _Times = field(default_factory=_Times)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        answered = entry.outcome == "answered"
        new = entry.new_usage
        for step, counts in new.steps.items():
            self.tokens[step].add(counts)
        self.money.add(new)
        for name, counts in entry.models.items():
            known = name if name in self.models or len(self.models) < _MAX_MODELS else _OTHERS
            self.models[known] = self.models.get(known, NOTHING) + counts
        if entry.outcome == "failed":
            self.errors[str(entry.error)] += 1
            return
        if entry.outcome == "open":
            return
        self.queries += 1
        self.declined += bool(entry.declined)
        self.doubted += bool(entry.doubted)
        self.unanswerable += answered and entry.answerable is False and not entry.stopped
        self.stopped += bool(entry.stopped)
        self.left += entry.outcome == "left"
        if entry.seconds_to_first_text is not None:
            self.first_text.add(entry.seconds_to_first_text)
        if answered:
            self.compare(entry.usage)
            if entry.seconds is not None:
                self.end.add(entry.seconds)

    def compare(self, usage: Usage) -> None:
        """Compare an answered query with always reading the documents, if the tokens of that are known."""
        if usage.long_context_only is not None:
            self.savings.add(usage)
            self.money.compare(usage)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON."""
        answered = self.queries - self.left
        return {
            "queries": self.queries,
            "declined": self.declined,
            "doubted": self.doubted,
            "unanswerable": self.unanswerable,
            "stopped": self.stopped,
            "left": self.left,
            "failed": sum(self.errors.values()),
            "errors": dict(sorted(self.errors.items())),
            "tokens": {
                **{step: tokens.as_dict() for step, tokens in self.tokens.items()},
                "total_tokens": sum(tokens.total_tokens for tokens in self.tokens.values()),
            },
            "models": {name: prompts_of(counts) for name, counts in sorted(self.models.items())},
            "savings": self.savings.as_dict(answered),
            "money": self.money.as_dict(answered),
            "seconds": {"first_text": self.first_text.as_dict(), "end": self.end.as_dict()},
        }
