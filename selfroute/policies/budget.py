"""A budget for reading documents: what a question, an hour or a day may cost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_UP, Decimal, InvalidOperation
from functools import partial
from math import ceil
from threading import Lock
from typing import Any, Literal
from weakref import ref

from selfroute.errors import ConfigurationError
from selfroute.policies.case import Case, Estimate, Ruling
from selfroute.policies.policy import Policy, Spent

Per = Literal["question", "hour", "day"] | timedelta
_SECONDS = {"hour": 3600.0, "day": 86400.0}
_ZERO, _ONE, _HUNDREDTH = Decimal(0), Decimal(1), Decimal("0.01")
_LEARNED = 100  # steps


@dataclass(slots=True, eq=False)
class _Step:
    """What a step took, or, while it is in flight, what it is estimated to take."""

    at: float
    tokens: int
    usd: Decimal
    of: ref[Case] | None = None  # while it is in flight


class Budget(Policy):
    """Limits what the steps after the draft may cost, in dollars, in tokens, or in both.

    A step is refused if its estimate does not fit into what is left. Threads and tasks can share one budget: it
    reserves the estimates of the steps in progress, times the factor by which the worst of the last hundred estimates
    was too low. `"hour"` and `"day"` mean the last 60 minutes and the last 24 hours. With `"question"` the budget
    includes the draft. A budget counts only in its own process.

    Example:
        >>> from selfroute.policies import Budget
        >>> Budget(usd=5, per="day").left["usd"]
        Decimal('5')
    """

    name = "budget"

    def __init__(
        self,
        *,
        usd: Decimal | float | str | None = None,
        tokens: int | None = None,
        per: Per = "question",
        spent: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limit dollars, tokens, or both.

        Args:
            usd: The dollars that may be spent; None for no limit.
            tokens: The tokens that may be read and written; None for no limit.
            per: `"question"`, `"hour"` (the last hour), `"day"` (the last 24), or a timedelta.
            spent: What was spent before a restart: the `spent` of the earlier budget.
            clock: Returns the time in seconds.

        Raises:
            ConfigurationError: There is no limit, or a value is not valid.
        """
        if usd is None and tokens is None:
            msg = "a Budget needs a limit: usd=, tokens=, or both"
            raise ConfigurationError(msg)
        self._usd = None if usd is None else _dollars_of("usd", usd)
        self._tokens = None if tokens is None else _count_of("tokens", tokens)
        self._per, self._window = per, _seconds_of(per)
        self._clock, self._lock = clock, Lock()
        self._steps: deque[_Step] = deque()  # in the window, in the order of time
        self._over: deque[tuple[_Step, Spent]] = deque()  # to be settled by who holds the lock next
        self._used, self._flying = _Sum(), _Sum()
        self._errors: deque[tuple[Decimal, Decimal]] = deque(maxlen=_LEARNED)  # what was taken, over its estimate
        self.needs_price, self.counts_draft = usd is not None, self._window is None
        if spent is not None:
            if self._window is None:
                msg = "a Budget per question takes no spent=: each question starts at zero"
                raise ConfigurationError(msg)
            if not isinstance(spent, Mapping):
                msg = f"spent must be the `spent` of a Budget: a dict with 'usd' and 'tokens'; it is {spent!r}"
                raise ConfigurationError(msg)
            tokens, dollars = _count_of("spent", spent.get("tokens", 0)), _dollars_of("spent", spent.get("usd", 0))
            self._steps.append(_Step(clock(), tokens, dollars))
            self._used.add(tokens, dollars)

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        """Return the budget itself: copies of a chain share it."""
        return self

    def __reduce__(self) -> Any:
        """Refuse to be pickled, unless the budget is per question."""
        if self._window is not None:
            msg = "a Budget counts in its own process: build the chain in each process, with its share of the budget"
            raise TypeError(msg)
        return partial(Budget, usd=self._usd, tokens=self._tokens), ()

    def __repr__(self) -> str:
        """Return the limits."""
        limits = {"usd": self._usd, "tokens": self._tokens}
        given = [f"{name}={value}" for name, value in limits.items() if value is not None]
        return f"<{type(self).__name__}({', '.join(given)}) per {self._per}>"

    @property
    def spent(self) -> dict[str, Any]:
        """What was spent or is reserved in the window: `usd` (a decimal string) and `tokens`."""
        tokens, usd = self._in_window()
        return {"usd": str(usd), "tokens": tokens}

    @property
    def left(self) -> dict[str, Any]:
        """What is left of each limit: `usd` (a Decimal) and `tokens`; None if there is no limit."""
        tokens, usd = self._in_window()
        return {
            "usd": None if self._usd is None else self._usd - usd,
            "tokens": None if self._tokens is None else self._tokens - tokens,
        }

    def __call__(self, case: Case) -> Ruling:
        """Reserve the step's estimate, if it fits."""
        ruling = self._at_once(case)
        return self._rule(case, case.estimate()) if ruling is None else ruling

    async def acall(self, case: Case) -> Ruling:
        """The async twin of `__call__`."""
        ruling = self._at_once(case)
        return self._rule(case, await case.aestimate()) if ruling is None else ruling

    def settle(self, case: Case, spent: Spent) -> None:
        """Replace the reserved estimate by what the step took."""
        # The garbage collector may close a stream here while this very thread holds the lock.
        step = case.held.pop(self, None)
        if step is not None:
            self._over.append((step, spent))

    def _at_once(self, case: Case) -> Ruling | None:
        """Return what is known without an estimate, for which documents may have to be read; None if nothing is."""
        if self in case.held:  # a policy that holds this budget twice asks it twice
            return Ruling(go=True, by=self.name)
        tokens, usd = self._in_window() if self._window is not None else _of_question(case)
        if self._tokens is not None and tokens >= self._tokens:
            return self._no(f"the {self._tokens:,} tokens are used up")
        if self._usd is not None and usd is not None and usd >= self._usd:
            return self._no(f"the ${self._usd} are used up")
        return None

    def _rule(self, case: Case, estimate: Estimate) -> Ruling:
        if self._usd is not None and estimate.cost is None:
            return self._no(f"the price is not known: {estimate.cost_unknown or 'the model has no known price'}")
        with self._lock:
            tokens, usd = self._catch_up() if self._window is not None else _of_question(case)
            cost = estimate.cost or _ZERO
            if self._usd is not None and usd is None:
                return self._no(f"the price of the draft is not known: {case.usage.get('cost_unknown')}")
            if self._tokens is not None and tokens + estimate.tokens > self._tokens:
                return self._no(f"{estimate.tokens:,} tokens do not fit in what is left of {self._tokens:,}")
            if self._usd is not None and usd is not None and usd + cost > self._usd:
                return self._no(f"${cost:.4f} does not fit in what is left of ${self._usd}")
            if self._window is not None:
                step = _Step(self._clock(), estimate.tokens, cost, ref(case))
                self._steps.append(step)
                self._flying.add(step.tokens, step.usd)
                case.held[self] = step
        return Ruling(go=True, by=self.name)

    def _no(self, reason: str) -> Ruling:
        return Ruling(go=False, by=self.name, reason=reason)

    def _in_window(self) -> tuple[int, Decimal]:
        with self._lock:
            return self._catch_up()

    def _catch_up(self) -> tuple[int, Decimal]:
        """Return what is spent and reserved within the window, once what is over is settled."""
        with suppress(IndexError):
            while True:
                self._settle(*self._over.popleft())
        before = self._clock() - (self._window or 0)
        while self._steps and self._steps[0].at < before:
            step = self._steps.popleft()
            if step.of and step.of():  # it counts until it is over
                step.at = self._clock()
                self._steps.append(step)
            else:
                (self._flying if step.of else self._used).add(-step.tokens, -step.usd)
                step.tokens, step.usd = 0, _ZERO
        tokens, usd = self._used.tokens, self._used.usd
        if self._flying.tokens:
            factors = [max([_ONE, *errors]) for errors in zip(*self._errors, strict=True)] or [_ONE, _ONE]
            tokens += ceil(self._flying.tokens * factors[0])
            usd += self._flying.usd * factors[1].quantize(_HUNDREDTH, ROUND_UP)
        return tokens, usd

    def _settle(self, step: _Step, spent: Spent) -> None:
        self._flying.add(-step.tokens, -step.usd)
        usd = step.usd if spent.cost is None else spent.cost  # what cannot be priced costs what was estimated
        if spent.tokens and step.tokens:
            self._errors.append((Decimal(spent.tokens) / step.tokens, usd / step.usd if step.usd else _ONE))
        step.tokens, step.usd, step.of = spent.tokens, usd, None
        self._used.add(step.tokens, step.usd)


@dataclass(slots=True)
class _Sum:
    """A sum of tokens and dollars."""

    tokens: int = 0
    usd: Decimal = _ZERO

    def add(self, tokens: int, usd: Decimal) -> None:
        """Add to both."""
        self.tokens += tokens
        self.usd += usd


def _of_question(case: Case) -> tuple[int, Decimal | None]:
    """Return what a question has taken so far; None for a price that is not known."""
    usd = case.usage.get("cost")
    return case.usage.get("total_tokens") or 0, None if usd is None else Decimal(usd)


def _seconds_of(per: Any) -> float | None:
    """Return the length of the window that a limit holds for, in seconds; None if it holds for each question."""
    if isinstance(per, timedelta) and per > timedelta(0):
        return per.total_seconds()
    if per == "question":
        return None
    if isinstance(per, str) and per in _SECONDS:
        return _SECONDS[per]
    msg = f"per must be 'question', 'hour', 'day' or a positive timedelta, not {per!r}"
    raise ConfigurationError(msg)


def _dollars_of(name: str, value: Any) -> Decimal:
    """Return an amount of dollars, checked."""
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        dollars = Decimal("NaN")
    if isinstance(value, bool) or not dollars.is_finite() or dollars < 0:
        msg = f"{name} must be a number of dollars, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return dollars


def _count_of(name: str, value: Any) -> int:
    """Return a number of tokens, checked."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"{name} must be a number of tokens, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return value
