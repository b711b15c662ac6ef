"""A cap on the total cost of replies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from selfroute.errors import ConfigurationError, SelfRouteError
from selfroute.usage.counts import Cost

OUTPUT_TOKENS = 200
"""The number of tokens that a reply is expected to have at least."""

Price = Callable[[int], Cost]
"""Returns the cost of a reply of so many tokens."""


class CostCapError(SelfRouteError, RuntimeError):
    """The next reply could cost more than is left of the cap."""


class Budget:
    """The money that was spent and the most that may be spent; threads may share it.

    The cost of a reply is known only afterwards. Until then, money is set aside for as many tokens as the longest reply
    of its kind had so far. The first of a kind is asked for alone, so that there is one to go by.

    Attributes:
        spent: The cost of all replies whose price is known.
        unpriced: How many replies have no known price.
    """

    def __init__(self, most: Decimal | None) -> None:
        """Begin with nothing spent.

        Args:
            most: The most that may be spent, in US dollars; None for no limit.
        """
        self._most = most
        self._pending = Decimal(0)
        self._longest: dict[str, int] = {}
        self._lock, self._first = threading.Lock(), threading.Lock()
        self.spent, self.unpriced = Decimal(0), 0

    def check(self, price: Price) -> None:
        """Check that replies with such a price can be asked for at all.

        Raises:
            ConfigurationError: There is a cap, and no price is known.
        """
        if self._most is not None:
            _known(price(OUTPUT_TOKENS))

    def expected(self, kind: str, price: Price) -> Cost:
        """Return what a reply of a kind probably costs at most; see `reserve`."""
        return price(max(OUTPUT_TOKENS, self._longest.get(kind, 0)))

    def book(self, cost: str | None, *, kind: str, output_tokens: int) -> None:
        """Add the cost of a reply."""
        with self._lock:
            self._longest[kind] = max(self._longest.get(kind, 0), output_tokens)
            if cost is None:
                self.unpriced += 1
            else:
                self.spent += Decimal(cost)

    @contextmanager
    def reserve(self, kind: str, price: Price) -> Iterator[None]:
        """Set aside the probable cost of a reply while it is asked for.

        Args:
            kind: The kind of prompt: replies of one kind are about equally long.
            price: Returns the cost of a reply of so many tokens.

        Raises:
            CostCapError: It could cost more than is left, or it is not known how much was spent.
            ConfigurationError: There is a cap, and no price is known.
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
        """Return whether this is the first reply of its kind; if so, the others wait for it."""
        if kind in self._longest:
            return False
        self._first.acquire()
        if kind not in self._longest:
            return True
        self._first.release()
        return False

    def _set_aside(self, kind: str, price: Price) -> Decimal:
        with self._lock:
            dollars = _known(self.expected(kind, price))
            if self.unpriced:
                msg = f"the cap cannot be kept: no price is known for {self.unpriced} of the replies so far"
                raise CostCapError(msg)
            if dollars > self._most_left():
                msg = f"the next reply could pass the cap of ${self._most}, which earlier runs count towards"
                raise CostCapError(msg)
            self._pending += dollars
            return dollars

    def _most_left(self) -> Decimal:
        return (self._most or Decimal(0)) - self.spent - self._pending


def _known(cost: Cost) -> Decimal:
    if cost.dollars is None:
        msg = f"the cap cannot be kept, because no price is known: {cost.unknown}"
        raise ConfigurationError(msg)
    return cost.dollars
