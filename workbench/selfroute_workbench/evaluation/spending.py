"""What replies cost, and a cap on it that is checked before each of them is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal

from selfroute.errors import ConfigurationError, SelfRouteError
from selfroute.usage.counts import Cost
from selfroute_workbench.evaluation.reply import Reply

OUTPUT_TOKENS = 200
"""The number of tokens that a reply is expected to have at least."""
Price = Callable[[int], Cost]
"""Returns the cost of a reply of so many tokens."""


class CostCapError(SelfRouteError, RuntimeError):
    """The next reply could cost more than is left of the cap."""


class Spending:
    """What replies cost, perhaps under a cap. Threads may share it.

    The cost of a reply is known only afterwards. Under a cap, money is set aside for as many tokens as the longest
    reply of its step had so far; the first of a step is asked for alone, so that there is one to go by.

    Attributes:
        spent: What all replies with a known price cost in US dollars.
        unpriced: How many replies have no known price.
        lost: The expected costs of those that were on their way when earlier runs were killed; part of `spent`.
    """

    def __init__(self, max_cost: Decimal | None) -> None:
        """Begin with nothing."""
        self.spent, self.unpriced, self.lost = Decimal(0), 0, list[Decimal]()
        self._most, self._pending = max_cost, Decimal(0)
        self._longest: dict[str, int] = {}
        self._lock, self._first = threading.Lock(), threading.Lock()

    def __str__(self) -> str:
        """Return the costs in words."""
        if self.unpriced:
            return "their cost is not known"
        if not self.lost:
            return f"${self.spent:.4f} in all"
        on_their_way = f"${sum(self.lost):.4f} of it expected for {len(self.lost):,} on their way"
        return f"${self.spent:.4f} in all, {on_their_way} when a run was killed"

    def check(self, price: Price) -> None:
        """Check that replies with such a price can be asked for at all.

        Raises:
            ConfigurationError: There is a cap, and no price is known.
        """
        if self._most is not None:
            _known(price(OUTPUT_TOKENS))

    def book(self, step: str, reply: Reply, *, lost: bool = False) -> None:
        """Add the cost of a reply."""
        with self._lock:
            self._longest[step] = max(self._longest.get(step, 0), reply.output_tokens)
            if reply.cost is None:
                self.unpriced += 1
            else:
                self.spent += Decimal(reply.cost)
            if lost:
                self.lost.append(Decimal(reply.cost or 0))

    @contextmanager
    def reserved(self, step: str, price: Price) -> Iterator[Cost]:
        """Set aside the probable cost of a reply while it is asked for.

        Raises:
            CostCapError: It could cost more than is left of the cap, or it is not known how much was spent.
            ConfigurationError: There is a cap, and no price is known.
        """
        if self._most is None:
            yield self._expected(step, price)
            return
        with ExitStack() as first:
            if step not in self._longest:
                first.enter_context(self._first)
                if step in self._longest:  # another thread was the first
                    first.close()
            with self._lock:
                cost = self._expected(step, price)
                dollars = _known(cost)
                self._check_room(dollars, self._most)
                self._pending += dollars
            try:
                yield cost
            finally:
                with self._lock:
                    self._pending -= dollars

    def _expected(self, step: str, price: Price) -> Cost:
        return price(max(OUTPUT_TOKENS, self._longest.get(step, 0)))

    def _check_room(self, dollars: Decimal, most: Decimal) -> None:
        if self.unpriced:
            msg = f"the cap cannot be kept: no price is known for {self.unpriced} of the replies so far"
            raise CostCapError(msg)
        if dollars > most - self.spent - self._pending:
            msg = f"the next reply could pass the cap of ${most}, which earlier runs count towards"
            raise CostCapError(msg)


def _known(cost: Cost) -> Decimal:
    if cost.dollars is None:
        msg = f"the cap cannot be kept, because no price is known: {cost.unknown}"
        raise ConfigurationError(msg)
    return cost.dollars
