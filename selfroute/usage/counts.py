"""What a question cost, in tokens and money, and what always reading the whole documents would have cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from selfroute.flow import Route


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its characters, rounded up.

    It costs nothing, loads no tokenizer and is meant for budgets and for what no provider counted.
    """
    return -(-len(text) // 4)


def reported(value: Any) -> int:
    """A count as some provider reports it: a number, or nothing."""
    if not value:
        return 0
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0


@dataclass(frozen=True, slots=True)
class Cost:
    """Money; `+` adds, and a sum is known only if all of it is.

    Attributes:
        dollars: US dollars; None if they are not known.
        unknown: Why they are not; None if they are.
    """

    dollars: Decimal | None
    unknown: str | None = None

    def __add__(self, other: Cost) -> Cost:
        if self.dollars is None or other.dollars is None:
            return Cost(None, min(cost.unknown for cost in (self, other) if cost.unknown))
        return Cost(self.dollars + other.dollars)

    def as_text(self) -> str | None:
        """The dollars as JSON has them, a decimal string without an exponent."""
        return None if self.dollars is None else f"{self.dollars:f}"


FREE = Cost(Decimal(0))
UNPRICED = Cost(None, "it was not asked for")


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The tokens of one step; `+` adds the calls of a step up.

    Attributes:
        input_tokens: Tokens of the prompt, cached ones included.
        output_tokens: Tokens of the reply.
        cached_tokens: Those of the prompt that the provider read from its cache.
        estimated: Whether any of these is not the provider's own count.
        cache_write_tokens: Those of the prompt that the provider wrote to its cache, where it charges for that.
        cost: What it cost.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    estimated: bool = False
    cache_write_tokens: int = 0
    cost: Cost = UNPRICED

    def __add__(self, other: StepUsage) -> StepUsage:
        return StepUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost + other.cost,
        )

    def priced(self, cost: Cost) -> StepUsage:
        """The same with what it cost."""
        return StepUsage(
            self.input_tokens, self.output_tokens, self.cached_tokens, self.estimated, self.cache_write_tokens, cost
        )

    def filled_in(self, *, prompt: str, reply: str, count: Callable[[str], int]) -> StepUsage:
        """The same for a reply that was cut short: what the provider had counted so far, the rest estimated."""
        return replace(
            self,
            input_tokens=self.input_tokens or count(prompt),
            output_tokens=max(self.output_tokens, count(reply)),
            estimated=True,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def as_dict(self) -> dict[str, int]:
        """The counts as plain JSON."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
        }


NOTHING = StepUsage(0, 0, cost=FREE)


@dataclass(frozen=True, slots=True)
class Usage:
    """What both steps took; `+` adds questions, or the calls of one question, up.

    Attributes:
        rag: The first step, None if it did not run.
        long_context: The second step, None if it did not run.
        long_context_only: The input tokens of the second step if it had been asked at once, without the first: the
            cost that the paper compares with (Li et al., 2024, section 4.2). The provider's own count where that step
            ran, an estimate otherwise; None where the size of the documents is not known.
        cost_long_context_only: What it would have cost with a reply of the same length.
    """

    rag: StepUsage | None = None
    long_context: StepUsage | None = None
    long_context_only: int | None = None
    cost_long_context_only: Cost = UNPRICED

    @classmethod
    def of(cls, step: Route, counts: StepUsage) -> Usage:
        """The usage of one call."""
        return cls(rag=counts) if step == "rag" else cls(long_context=counts)

    def __add__(self, other: Usage) -> Usage:
        if not other:
            return self
        if not self:
            return other
        rag, long_context = _sum(self.rag, other.rag), _sum(self.long_context, other.long_context)
        left, right = self.long_context_only, other.long_context_only
        return Usage(
            rag,
            long_context,
            None if left is None or right is None else left + right,
            self.cost_long_context_only + other.cost_long_context_only,
        )

    def __bool__(self) -> bool:
        known = self.rag or self.long_context or self.long_context_only is not None
        return bool(known) or self.cost_long_context_only != UNPRICED

    @property
    def input_tokens(self) -> int:
        """Input tokens of all steps that ran."""
        return (self.rag or NOTHING).input_tokens + (self.long_context or NOTHING).input_tokens

    @property
    def total_tokens(self) -> int:
        """Input and output tokens of all steps that ran."""
        return (self.rag or NOTHING).total_tokens + (self.long_context or NOTHING).total_tokens

    @property
    def token_ratio(self) -> float | None:
        """Input tokens over those of the long context alone (section 4.2); None where these are not known."""
        return self.input_tokens / self.long_context_only if self.long_context_only else None

    @property
    def estimated(self) -> bool:
        """Whether any count of what was paid is not the provider's own."""
        return (self.rag or NOTHING).estimated or (self.long_context or NOTHING).estimated

    @property
    def cost(self) -> Cost:
        """What all steps that ran cost."""
        return (self.rag or NOTHING).cost + (self.long_context or NOTHING).cost

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON.

        Returns:
            `rag` and `long_context` (counts or None), `total_tokens`, `estimated`, `long_context_only`, `token_ratio`,
            `cost` and `cost_long_context_only` (decimal strings in US dollars, or None), and `cost_unknown`: why one
            of these is None.
        """
        rag, long_context, cost, compared = self.rag, self.long_context, self.cost, self.cost_long_context_only
        return {
            "rag": rag and rag.as_dict(),
            "long_context": long_context and long_context.as_dict(),
            "total_tokens": self.total_tokens,
            "estimated": self.estimated,
            "long_context_only": self.long_context_only,
            "token_ratio": self.token_ratio,
            "cost": cost.as_text(),
            "cost_long_context_only": compared.as_text(),
            "cost_unknown": cost.unknown or (None if compared is UNPRICED else compared.unknown),
        }


def _sum(left: StepUsage | None, right: StepUsage | None) -> StepUsage | None:
    if left is None or right is None:
        return left or right
    return left + right
