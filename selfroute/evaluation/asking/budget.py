"""A cap on what replies may cost together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from selfroute.errors import ConfigurationError, SelfRouteError
from selfroute.usage.counts import Cost

OUTPUT_TOKENS = 200
"""What a reply is taken to have at least, before it is there."""

Price = Callable[[int], Cost]
"""What a reply of so many tokens would cost."""


class CostCapError(SelfRouteError, RuntimeError):
    """The next reply could cost more than is left of the cap."""


class Budget:
    """What was spent, and what may be; threads may share it.

    What a reply will cost is known only when it is there. Until then as much is set aside as it would cost with as many
    tokens as the longest of its kind so far; the first of a kind is asked for alone, so that there is one.

    Attributes:
        spent: What all replies cost together, as far as it is known.
        unpriced: How many of them have no known price.
    """

    def __init__(self, most: Decimal | None) -> None:
        """Begin.

        Args:
            most: What may be spent, in US dollars; None for no limit.
        """
        self._most = most
        self._pending = Decimal(0)
        self._longest: dict[str, int] = {}
        self._lock, self._first = threading.Lock(), threading.Lock()
        self.spent, self.unpriced = Decimal(0), 0

    def book(self, cost: str | None, *, kind: str, output_tokens: int) -> None:
        """Add a reply that was paid for."""
        with self._lock:
            self._longest[kind] = max(self._longest.get(kind, 0), output_tokens)
            if cost is None:
                self.unpriced += 1
            else:
                self.spent += Decimal(cost)

    @contextmanager
    def reserve(self, kind: str, price: Price) -> Iterator[None]:
        """Set aside what a reply will probably cost, while it is asked for.

        Args:
            kind: What it is asked for.
            price: What it would cost with so many tokens.

        Raises:
            CostCapError: It could cost more than is left, or nobody knows what was spent.
            ConfigurationError: There is a cap, and the price is not known.
        """
        if self._most is None:
            yield
            return
        alone = self._wait_for_the_first(kind)
        expected = Decimal(0)
        try:
            expected = self._set_aside(kind, price)
            yield
        finally:
            with self._lock:
                self._pending -= expected
            if alone:
                self._first.release()

    def _wait_for_the_first(self, kind: str) -> bool:
        """Whether this is the first of its kind, and keeps the others waiting."""
        if kind in self._longest:
            return False
        self._first.acquire()
        if kind not in self._longest:
            return True
        self._first.release()
        return False

    def _set_aside(self, kind: str, price: Price) -> Decimal:
        with self._lock:
            cost = price(max(OUTPUT_TOKENS, self._longest.get(kind, 0)))
            if cost.dollars is None:
                msg = f"the cap can not be held, because no price is known: {cost.unknown}"
                raise ConfigurationError(msg)
            if self.unpriced:
                msg = f"the cap can not be held: {self.unpriced} replies that are kept have no known price"
                raise CostCapError(msg)
            if cost.dollars > self._most_left():
                msg = f"the next reply could pass the cap of ${self._most}, which earlier runs count towards"
                raise CostCapError(msg)
            self._pending += cost.dollars
            return cost.dollars

    def _most_left(self) -> Decimal:
        return (self._most or Decimal(0)) - self.spent - self._pending
