"""A budget for reading documents: what a question, an hour or a day may cost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from math import ceil
from threading import Lock
from typing import Any, Literal
from weakref import WeakKeyDictionary

from selfroute.errors import ConfigurationError
from selfroute.policies.case import Case, Estimate, Ruling
from selfroute.policies.policy import Policy, Spent

Per = Literal["question", "hour", "day"] | timedelta
_SECONDS = {"hour": 3600.0, "day": 86400.0}
_ZERO = Decimal(0)


@dataclass(slots=True)
class _Amount:
    """What a step took, or what is set aside for it until it is over."""

    at: float
    tokens: int
    usd: Decimal
    counted: bool = False  # in the sums of the budget


class Budget(Policy):
    """Limits what the steps after the draft may cost, in dollars, in tokens, or in both.

    What is in flight is set aside, so threads and tasks can share one budget. A step is refused if its estimate does
    not fit in what is left. Estimates are raised by the factor by which the worst of the last hundred was too low.
    `"hour"` and `"day"` are the last 60 minutes and the last 24 hours, not those of a calendar. With `"question"` the
    draft counts, too. A budget counts in its own process.

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
            per: For each question, for the last hour or day, or for the last so many hours.
            spent: What was spent before a restart: the `spent` of the budget before.
            clock: Returns the time in seconds.

        Raises:
            ConfigurationError: There is no limit, or a value is not valid.
        """
        if usd is None and tokens is None:
            msg = "a Budget needs a limit: usd=, tokens=, or both"
            raise ConfigurationError(msg)
        self._usd = None if usd is None else _dollars("usd", usd)
        self._tokens = None if tokens is None else _count("tokens", tokens)
        self._window = _window(per)
        self._clock, self._lock = clock, Lock()
        self._amounts: deque[_Amount] = deque()  # in the order of time
        self._reserved: WeakKeyDictionary[Case, tuple[_Amount, Estimate]] = WeakKeyDictionary()
        self._used_tokens, self._used_usd = 0, _ZERO
        self._factors: deque[float] = deque(maxlen=100)  # by which estimates were too low
        self.needs_price = usd is not None
        if spent is not None:
            if self._window is None:
                msg = "a Budget per question cannot be given what was spent before"
                raise ConfigurationError(msg)
            tokens, usd = _count("spent", spent.get("tokens", 0)), _dollars("spent", spent.get("usd", 0))
            self._add(_Amount(clock(), tokens, usd))

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        """Return the budget itself: a copy of a chain does not get a budget of its own."""
        return self

    def __reduce__(self) -> Any:
        """Refuse to be pickled, unless each question has a budget of its own."""
        if self._window is not None:
            msg = "a Budget counts in its own process: build the chain in each process, with its share of the budget"
            raise TypeError(msg)
        return _question_budget, (self._usd, self._tokens)

    @property
    def spent(self) -> dict[str, Any]:
        """What was spent in the window, with what is set aside: `usd` (a decimal string) and `tokens`."""
        with self._lock:
            self._expire()
            return {"usd": str(self._used_usd), "tokens": self._used_tokens}

    @property
    def left(self) -> dict[str, Any]:
        """What is left of each limit: `usd` (a Decimal) and `tokens`; None where there is no limit."""
        with self._lock:
            self._expire()
            return {
                "usd": None if self._usd is None else self._usd - self._used_usd,
                "tokens": None if self._tokens is None else self._tokens - self._used_tokens,
            }

    def __call__(self, case: Case) -> Ruling:
        """Set aside what the step is estimated to take, if it fits."""
        return self._rule(case, case.estimate())

    async def acall(self, case: Case) -> Ruling:
        """Do as `__call__` does, asynchronously."""
        return self._rule(case, await case.aestimate())

    def settle(self, case: Case, spent: Spent) -> None:
        """Replace what was set aside by what the step took."""
        with self._lock:
            reserved = self._reserved.pop(case, None)
            if reserved is None:
                return
            amount, estimate = reserved
            usd = amount.usd if spent.cost is None else spent.cost  # what cannot be priced costs what was estimated
            if amount.counted:
                self._used_tokens += spent.tokens - amount.tokens
                self._used_usd += usd - amount.usd
            amount.tokens, amount.usd = spent.tokens, usd
            if spent.tokens and estimate.tokens:
                dollars = float(usd / estimate.cost) if estimate.cost else 0.0
                self._factors.append(max(spent.tokens / estimate.tokens, dollars))

    def _rule(self, case: Case, estimate: Estimate) -> Ruling:
        if self._usd is not None and estimate.cost is None:
            return self._no(f"the price is not known: {estimate.cost_unknown or 'the model has no known price'}")
        with self._lock:
            self._expire()
            factor = max([1.0, *self._factors])
            cost = (estimate.cost or _ZERO) * Decimal(factor)
            asked = _Amount(self._clock(), ceil(estimate.tokens * factor), cost)
            used_tokens, used_usd = self._used_tokens, self._used_usd
            if self._window is None:
                used_tokens, usd = case.usage.get("total_tokens") or 0, case.usage.get("cost")
                if self._usd is not None and usd is None:
                    return self._no(f"the price of the draft is not known: {case.usage.get('cost_unknown')}")
                used_usd = Decimal(usd or 0)
            if self._tokens is not None and used_tokens + asked.tokens > self._tokens:
                return self._no(f"{asked.tokens:,} tokens do not fit in what is left of {self._tokens:,}")
            if self._usd is not None and used_usd + asked.usd > self._usd:
                return self._no(f"${asked.usd:.4f} does not fit in what is left of ${self._usd}")
            self._reserved[case] = (asked, estimate)
            if self._window is not None:
                self._add(asked)
        return Ruling(go=True, by=self.name)

    def _no(self, reason: str) -> Ruling:
        return Ruling(go=False, by=self.name, reason=reason)

    def _add(self, amount: _Amount) -> None:
        amount.counted = True
        self._amounts.append(amount)
        self._used_tokens += amount.tokens
        self._used_usd += amount.usd

    def _expire(self) -> None:
        """Forget what was spent before the window."""
        if self._window is None:
            return
        before = self._clock() - self._window
        while self._amounts and self._amounts[0].at < before:
            gone = self._amounts.popleft()
            gone.counted = False
            self._used_tokens -= gone.tokens
            self._used_usd -= gone.usd


def _question_budget(usd: Decimal | None, tokens: int | None) -> Budget:
    return Budget(usd=usd, tokens=tokens)


def _window(per: Any) -> float | None:
    if isinstance(per, timedelta) and per > timedelta(0):
        return per.total_seconds()
    if per == "question":
        return None
    if isinstance(per, str) and per in _SECONDS:
        return _SECONDS[per]
    msg = f"per must be 'question', 'hour', 'day' or a positive timedelta, not {per!r}"
    raise ConfigurationError(msg)


def _dollars(name: str, value: Any) -> Decimal:
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        dollars = Decimal("NaN")
    if isinstance(value, bool) or not dollars.is_finite() or dollars < 0:
        msg = f"{name} must be a number of dollars, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return dollars


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"{name} must be a number of tokens, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return value
