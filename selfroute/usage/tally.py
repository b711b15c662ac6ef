"""Collect the text and the token counts of one model call."""

from __future__ import annotations

from collections.abc import Callable

from selfroute.answerability.ending import DONE, Ending
from selfroute.usage.counts import NOTHING, StepUsage
from selfroute.usage.prices import PricedModel


class Tally:
    """Collect the text and the token counts of one model call.

    Attributes:
        text: The pieces of the reply so far.
        counts: The provider's own counts so far; None if it reported none.
        whole: Whether the reply is complete, so that the provider's counts are final.
        left: Whether the caller was cancelled during the call.
        ended: How the reply ended, as far as it is known.
        quotes: What the model quoted in a report.
        report: The text that a report stands for; None if the reply is no report.
    """

    __slots__ = ("counts", "ended", "left", "quotes", "report", "text", "whole")

    def __init__(self, *, whole: bool) -> None:
        """Start a tally.

        Args:
            whole: Whether the reply comes in one piece, so that it cannot be cut short.
        """
        self.text: list[str] = []
        self.counts: StepUsage | None = None
        self.whole = whole
        self.left = False
        self.ended = DONE
        self.quotes: list[str] = []
        self.report: str | None = None

    def usage(self, prompt: Callable[[], str], *, count: Callable[[str], int]) -> StepUsage | None:
        """Return the usage of the call; None if it failed before any text came, for which no provider charges.

        Args:
            prompt: Returns the text of the prompt; called only if its tokens have to be estimated.
            count: Counts the tokens of a text.
        """
        if not (self.text or self.left):
            return None
        if self.whole and self.counts and self.counts.input_tokens:
            return self.counts
        return (self.counts or NOTHING).with_estimates(prompt=prompt(), reply="".join(self.text), count=count)

    def ending(self) -> Ending:
        """Return how the reply ended; called once all of it has come."""
        return self.ended

    def ends_with(self, error: Exception) -> bool:  # noqa: ARG002
        """Return whether an error only says how a reply ended, as some clients do, and note that."""
        return False

    def model(self, configured: PricedModel) -> PricedModel:
        """Return the model that answered; it may be a fallback, or a dated version of the configured one.

        Args:
            configured: The model that was called.
        """
        return configured


class EarlierTally(Tally):
    """The tally of a reply that came before, perhaps in another process."""

    __slots__ = ("_stated",)

    def __init__(self, text: str, *, ended: Ending, quotes: list[str], stated: PricedModel) -> None:
        """Take the whole reply.

        Args:
            text: The reply.
            ended: How it ended.
            quotes: What the model quoted in a report.
            stated: The model that replied, as far as the reply states it.
        """
        super().__init__(whole=True)
        self.text.append(text)
        self.ended, self.quotes, self._stated = ended, quotes, stated

    def model(self, configured: PricedModel) -> PricedModel:
        """Return the model that answered."""
        return configured.replied(self._stated)
