"""What a question cost in tokens, by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from selfroute.flow import Route


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its characters, rounded up.

    It costs nothing, loads no tokenizer and is meant for budgets and for what no provider counted.
    """
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The tokens of one step; `+` adds the calls of a step up.

    Attributes:
        input_tokens: Tokens of the prompt, cached ones included.
        output_tokens: Tokens of the reply.
        cached_tokens: Those of the prompt that the provider read from its cache.
        estimated: Whether any of these is not the provider's own count.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: StepUsage) -> StepUsage:
        return StepUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
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


NOTHING = StepUsage(0, 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of both steps; `+` adds questions, or the calls of one question, up.

    Attributes:
        rag: The first step, None if it did not run.
        long_context: The second step, None if it did not run.
    """

    rag: StepUsage | None = None
    long_context: StepUsage | None = None

    @classmethod
    def of(cls, step: Route, counts: StepUsage) -> Usage:
        """The usage of one call."""
        return cls(rag=counts) if step == "rag" else cls(long_context=counts)

    def __add__(self, other: Usage) -> Usage:
        return Usage(_sum(self.rag, other.rag), _sum(self.long_context, other.long_context))

    @property
    def total_tokens(self) -> int:
        """Input and output tokens of all steps that ran."""
        return (self.rag or NOTHING).total_tokens + (self.long_context or NOTHING).total_tokens

    @property
    def estimated(self) -> bool:
        """Whether any count is not the provider's own."""
        return (self.rag or NOTHING).estimated or (self.long_context or NOTHING).estimated

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON: `rag`, `long_context` (counts or None), `total_tokens`, `estimated`."""
        rag, long_context = self.rag, self.long_context
        return {
            "rag": rag and rag.as_dict(),
            "long_context": long_context and long_context.as_dict(),
            "total_tokens": self.total_tokens,
            "estimated": self.estimated,
        }


def _sum(left: StepUsage | None, right: StepUsage | None) -> StepUsage | None:
    if left is None or right is None:
        return left or right
    return left + right
