"""Sends single prompts to a model, and keeps its replies: for judges, and for programs that write questions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from selfroute.languages.tokens import count_tokens
from selfroute.usage.account import Tally
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.reply import Reply


class Asker:
    """A model whose replies are kept. Threads may share it."""

    def __init__(
        self,
        call: Callable[[str], Tally],
        replies: Replies,
        *,
        model: PricedModel,
        name: str | None = None,
        priced_as: PricedModel | None = None,
    ) -> None:
        """Take a model."""
        self.model, self.calls, self.used = model, 0, StepUsage(0, 0, cost=FREE)
        self._call, self._replies, self._priced_as = call, replies, priced_as
        self._name = None if model.name else name
        self._lock = threading.Lock()

    def check(self, step: str) -> None:
        """Check, before anything is paid for, that the model can be asked.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known; or replies are kept in a
                folder, and the model has no name.
        """
        self._replies.identity(self.model, self._name, step=step)
        self._replies.spending.check(lambda output: self.price(StepUsage(1, output)))

    def ask(self, prompt: str, step: str, *, attempt: int = 0) -> tuple[Reply, bool]:
        """Return the kept reply to a prompt, or a new one, and whether it is new.

        Raises:
            CostCapError: As in `Replies.get`.
        """
        new: list[Reply] = []

        def ask() -> Reply:
            tally = self._call(prompt)
            text, priced_as = "".join(tally.text), self._priced_as
            new.append(Reply.of(text, tally, prompt=lambda: prompt, model=self.model, priced_as=priced_as))
            return new[0]

        tokens, model = count_tokens(prompt), self._replies.identity(self.model, self._name, step=step)
        reply = self._replies.get(
            {"model": model, step: attempt, "prompt": prompt},
            ask,
            step=step,
            price=lambda output: self.price(StepUsage(tokens, output)),
        )
        with self._lock:
            self.calls, self.used = self.calls + 1, self.used + reply.usage(self._priced_as)
        return reply, bool(new)

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a reply."""
        return cost_of(self._priced_as or self.model, counts)
