"""A reply of a model as it is kept: its text, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, InstanceOf

from selfroute.answerability.ending import Ending
from selfroute.usage.account import Tally
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of

Text = InstanceOf[str]  # models do send half of a character, which pydantic's own `str` refuses
Count = Annotated[int, Field(strict=True, ge=0, le=10**15)]
Flag = Annotated[bool, Field(strict=True)]
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
_COUNTS = (*_TOKENS, "estimated")
"""The fields that a reply and `StepUsage` share."""
Money = Annotated[str, Field(strict=True, pattern=r"^\d{1,15}(\.\d{1,60})?$")]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model, with its tokens, cost and time.

    `model`, `provider` and `url` say what it is priced as; `cost` is in US dollars, and None if no price was known when
    it was paid for. The last three say how it ended, if there is no text since the model was not done.
    """

    text: Text
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    cache_write_1h_tokens: Count = 0
    estimated: Flag = False
    model: Text | None = None
    provider: Text | None = None
    url: Text | None = None
    cost: Money | None = None
    seconds: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 0.0
    finish_reason: Text | None = None
    refusal: Text = ""
    calls_tool: Flag = False

    @classmethod
    def of(
        cls, text: str, tally: Tally, *, prompt: Callable[[], str], model: PricedModel, priced_as: PricedModel | None
    ) -> Reply:
        """Make one of what a model replied."""
        counts, stated, ending = tally.usage(prompt) or StepUsage(0, 0), tally.model(model), tally.ending()
        cost = cost_of(priced_as or stated, counts).as_text()
        said: dict[str, Any] = {name: getattr(counts, name) for name in _COUNTS}
        if ending.kind != "complete" and not text.strip():
            how = ending.reason or ending.kind
            said |= {"finish_reason": how, "refusal": ending.refusal, "calls_tool": ending.calls_tool}
        return cls(text, **said, model=stated.name, provider=stated.provider, url=stated.url, cost=cost)

    @property
    def ending(self) -> Ending:
        """How it ended: a reply with a text counts as complete."""
        return Ending(self.finish_reason, self.refusal, self.calls_tool)

    def text_of(self, step: str) -> str:
        """Return the text.

        Raises:
            NoReplyError: The reply has no text, since the model was not done.
        """
        if self.ending.kind != "complete":
            raise self.ending.error(step)
        return self.text

    def usage(self, priced_as: PricedModel | None = None) -> StepUsage:
        """Return its tokens and cost; at the price of today, if none was known when it was paid for."""
        counts = StepUsage(**{name: getattr(self, name) for name in _COUNTS})
        if self.cost is not None:
            return counts.with_cost(Cost(Decimal(self.cost)))
        return counts.with_cost(cost_of(priced_as or PricedModel(self.model, self.provider, self.url), counts))
