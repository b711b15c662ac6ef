"""The text and the token counts of one model call, as they come in."""

from __future__ import annotations

from collections.abc import Callable

from selfroute.usage.counts import NOTHING, StepUsage
from selfroute.usage.prices import PricedModel


class Tally:
    """Collect the text and the token counts of one model call.

    Attributes:
        text: The pieces of the reply that came.
        counts: The provider's own counts so far, None if it sent none.
        whole: Whether the reply came to its end, so that the provider's counts are final.
        left: Whether the caller was cancelled while the model was asked.
    """

    __slots__ = ("counts", "left", "text", "whole")

    def __init__(self, *, whole: bool) -> None:
        """Start.

        Args:
            whole: Whether the reply comes at once, so that it cannot be cut short.
        """
        self.text: list[str] = []
        self.counts: StepUsage | None = None
        self.whole = whole
        self.left = False

    def usage(self, prompt: Callable[[], str], *, count: Callable[[str], int]) -> StepUsage | None:
        """Return what the call took; None if it failed before anything came, for which no provider charges.

        Args:
            prompt: Returns the prompt's text; called only where it has to be counted here.
            count: Counts the tokens of a text.
        """
        if not (self.text or self.left):
            return None
        if self.whole and self.counts and self.counts.input_tokens:
            return self.counts
        return (self.counts or NOTHING).filled_in(prompt=prompt(), reply="".join(self.text), count=count)

    def model(self, configured: PricedModel) -> PricedModel:
        """Return the model that answered: maybe a fallback, or a dated version of the one that was asked.

        Args:
            configured: The model that was asked.
        """
        return configured
