"""Sends prompts to a model, and keeps its replies like all others of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from selfroute.evaluation.asking.replies import Replies, Reply
from selfroute.usage.account import Tally
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import count_tokens

Call = Callable[[str], Tally]
"""Sends a prompt to a model, and returns the tally of its reply."""


class Asker:
    """A model whose replies are kept. Threads may share it.

    Attributes:
        configured: The model's own name.
    """

    def __init__(
        self,
        call: Call,
        replies: Replies,
        *,
        configured: PricedModel,
        identity: Any,
        priced_as: PricedModel | None = None,
    ) -> None:
        """Take a model.

        Args:
            call: Asks the model.
            replies: Keeps its replies.
            configured: The model's own name.
            identity: What its kept replies are found by, as plain JSON.
            priced_as: The model that it is priced as, if not as itself.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known.
        """
        self._call, self._replies = call, replies
        self.configured, self._priced_as = configured, priced_as
        self._identity = [identity, astuple(configured)]
        self._used: list[Reply] = []
        replies.budget.check(lambda output: self.price(StepUsage(1, output)))

    @property
    def calls(self) -> int:
        """How many replies were used."""
        return len(self._used)

    @property
    def used(self) -> StepUsage:
        """The tokens and the cost of all replies that were used, as if kept ones were asked for again."""
        return sum((reply.usage() for reply in self._used), StepUsage(0, 0, cost=FREE))

    def ask(self, prompt: str, step: str, *, attempt: int = 0) -> tuple[Reply, bool]:
        """Return the kept reply to a prompt, or a new one, and whether it is new.

        Args:
            prompt: The prompt.
            step: The kind of prompt: replies of one kind are about equally long.
            attempt: A number from 0: another one gets another reply to the same prompt.

        Raises:
            CostCapError: As in `Replies.get`.
        """
        new: list[Reply] = []

        def ask() -> Reply:
            tally = self._call(prompt)
            counts = tally.usage(lambda: prompt, count=count_tokens) or StepUsage(0, 0)
            model = tally.model(self.configured)
            priced = counts.with_cost(cost_of(self._priced_as or model, counts))
            new.append(Reply.of("".join(tally.text), priced, model, ending=tally.ending()))
            return new[0]

        tokens = count_tokens(prompt)
        reply = self._replies.get(
            {"model": self._identity, step: attempt, "prompt": prompt},
            ask,
            step=step,
            price=lambda output: self.price(StepUsage(tokens, output)),
        )
        reply = reply.priced(self._priced_as)
        self._used.append(reply)
        return reply, bool(new)

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a reply."""
        return cost_of(self._priced_as or self.configured, counts)
