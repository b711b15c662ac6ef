"""Token counts and costs: of a step, of a question, and of reading the documents instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any, get_args

from selfroute.effects import Route

STEPS: tuple[Route, ...] = get_args(Route)  # in the order in which they run


def as_count(value: Any) -> int:
    """Return a count that a provider reported as an integer; 0 if it is missing, negative or not a number."""
    if not value:
        return 0
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def written_of(read: Any, written: Any, total: Any) -> int:
    """Return the tokens of a reply: the larger count, since some servers include reasoning only in the total."""
    counted, before = as_count(written), as_count(read)
    return max(counted, as_count(total) - before) if counted and before else counted


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount of money. `+` adds two of them; the sum is known only if both are.

    Attributes:
        dollars: The amount in US dollars; None if it is not known.
        unknown: Why the amount is not known; None if it is.
    """

    dollars: Decimal | None
    unknown: str | None = None

    def __add__(self, other: Cost) -> Cost:
        if self.dollars is None or other.dollars is None:
            reasons = filter(None, (self.unknown, other.unknown))
            return Cost(None, min(reasons))  # one of them, the same in any order
        return Cost(self.dollars + other.dollars)

    def as_text(self) -> str | None:
        """Return the dollars for JSON, as a decimal string without an exponent; None if they are not known."""
        return None if self.dollars is None else f"{self.dollars:f}"


FREE = Cost(Decimal(0))
UNPRICED = Cost(None, "it was not asked for")


@dataclass(frozen=True)
class StepUsage:
    """The token counts and the cost of one step. `+` adds those of several calls.

    Attributes:
        input_tokens: Tokens of the prompt, including cached ones.
        output_tokens: Tokens of the reply.
        cached_tokens: Tokens of the prompt that were read from a cache: the provider's, or one of whole replies.
        estimated: Whether any count is an estimate rather than the provider's own.
        cache_write_tokens: Tokens of the prompt that the provider wrote to its cache, if it charges for that.
        cost: The cost of the step.
        cache_write_1h_tokens: Those of the written tokens that are kept for an hour, which costs more.
        repeated: Whether the whole reply came from a cache of the framework, without a call of the model; such a reply
            is free. A sum is only if all replies are.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    estimated: bool = False
    cache_write_tokens: int = 0
    cost: Cost = UNPRICED
    cache_write_1h_tokens: int = 0
    repeated: bool = False

    def __add__(self, other: StepUsage) -> StepUsage:
        return StepUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost + other.cost,
            self.cache_write_1h_tokens + other.cache_write_1h_tokens,
            self.repeated and other.repeated,
        )

    def with_cost(self, cost: Cost) -> StepUsage:
        """Return the same counts with a cost."""
        return StepUsage(**vars(self) | {"cost": cost})  # `dataclasses.replace` takes much longer

    def with_estimates(self, *, prompt: str, reply: str, count: Callable[[str], int]) -> StepUsage:
        """Return the counts of a reply that was cut short: those that were reported by then, estimates for the rest."""
        read, written = self.input_tokens or count(prompt), max(self.output_tokens, count(reply))
        return StepUsage(**vars(self) | {"input_tokens": read, "output_tokens": written, "estimated": True})

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def as_dict(self) -> dict[str, int]:
        """Return the counts as plain JSON."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
        }


NOTHING = StepUsage(0, 0, cost=FREE)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and cost of a question, by step. `+` adds several questions, or several calls of one question.

    Attributes:
        rag: The usage of the first step; None if it did not run.
        sections: The usage of the step that reads sections; None if it did not run.
        long_context: The usage of the step that reads the documents; None if it did not run.
        long_context_only: The input tokens of always reading the whole documents, without any other step, which is what
            the paper compares with (Li et al., 2024, section 4.2). The provider's own count if the documents were read,
            an estimate otherwise; None if their length is not known.
        cost_long_context_only: What that would have cost, with a reply of the same length.
        cost_cold: The same if the provider's prompt cache had held nothing of it; only where somebody adds it up.
        cost_warm: The same if that had held all of it.
    """

    rag: StepUsage | None = None
    sections: StepUsage | None = None
    long_context: StepUsage | None = None
    long_context_only: int | None = None
    cost_long_context_only: Cost = UNPRICED
    cost_cold: Cost = UNPRICED
    cost_warm: Cost = UNPRICED

    @classmethod
    def of(cls, step: Route, counts: StepUsage) -> Usage:
        """Return the usage of one call."""
        of_step: dict[str, Any] = {step: counts}
        return cls(**of_step)

    def __add__(self, other: Usage) -> Usage:
        if not other:
            return self
        if not self:
            return other
        left, right = self.long_context_only, other.long_context_only
        return Usage(
            _sum(self.rag, other.rag),
            _sum(self.sections, other.sections),
            _sum(self.long_context, other.long_context),
            None if left is None or right is None else left + right,
            self.cost_long_context_only + other.cost_long_context_only,
            self.cost_cold + other.cost_cold,
            self.cost_warm + other.cost_warm,
        )

    def compared(self, only: int | None, cost: Cost, cold: Cost = UNPRICED, warm: Cost = UNPRICED) -> Usage:
        """Return the same steps with what the long context alone takes and costs."""
        return Usage(self.rag, self.sections, self.long_context, only, cost, cold, warm)

    def __bool__(self) -> bool:
        if self.rag is not None or self.sections is not None or self.long_context is not None:
            return True
        return self.long_context_only is not None or self.cost_long_context_only != UNPRICED

    @property
    def steps(self) -> dict[Route, StepUsage]:
        """The usage of each step that ran, in their order."""
        counts = (self.rag, self.sections, self.long_context)
        return {step: one for step, one in zip(STEPS, counts, strict=True) if one is not None}

    @property
    def _total(self) -> StepUsage:
        return reduce(add, self.steps.values()) if self.steps else NOTHING

    @property
    def input_tokens(self) -> int:
        """Input tokens of all steps that ran."""
        return self._total.input_tokens

    @property
    def total_tokens(self) -> int:
        """Input and output tokens of all steps that ran."""
        return self._total.total_tokens

    @property
    def token_ratio(self) -> float | None:
        """Input tokens divided by `long_context_only` (section 4.2); None if the latter is unknown or 0."""
        return self.input_tokens / self.long_context_only if self.long_context_only else None

    @property
    def estimated(self) -> bool:
        """Whether any count of the steps that ran is an estimate rather than the provider's own."""
        return self._total.estimated

    @property
    def cost(self) -> Cost:
        """Cost of all steps that ran."""
        return self._total.cost

    def as_dict(self, models: Mapping[str, StepUsage] | None = None) -> dict[str, Any]:
        """Return the usage as plain JSON, with what the calls of each model took.

        Returns:
            `rag`, `sections` and `long_context` (counts or None), `total_tokens`, `estimated`, `long_context_only`,
            `token_ratio`, `cost` and `cost_long_context_only` (decimal strings in US dollars, or None),
            `cost_unknown`: the reason why one of the two costs is None, and `ledger`: what else a ledger adds
            up. This is as brief as can be, since some pipelines show it to a model: `models` (the input, cached and
            written tokens of each), `cold` and `warm` (costs); `cost`, the known part of a cost that is None; and
            `estimated`, the steps whose tokens are, if others are not.
        """
        steps, alternative = self.steps, self.cost_long_context_only
        total = reduce(add, steps.values()) if steps else NOTHING
        return {
            **{step: steps[step].as_dict() if step in steps else None for step in STEPS},
            "total_tokens": total.total_tokens,
            "estimated": total.estimated,
            "long_context_only": self.long_context_only,
            "token_ratio": total.input_tokens / self.long_context_only if self.long_context_only else None,
            "cost": total.cost.as_text(),
            "cost_long_context_only": alternative.as_text(),
            "cost_unknown": total.cost.unknown or (None if alternative is UNPRICED else alternative.unknown),
            "ledger": self._for_ledger(steps, models or {}),
        }

    def _for_ledger(self, steps: Mapping[Route, StepUsage], models: Mapping[str, StepUsage]) -> dict[str, Any]:
        known = [counts.cost for counts in steps.values() if counts.cost.dollars is not None]
        estimated = [step for step, counts in steps.items() if counts.estimated]
        about = {
            "models": {
                name: [counts.input_tokens, counts.cached_tokens, counts.cache_write_tokens]
                for name, counts in models.items()
            },
            "cold": self.cost_cold.as_text(),
            "warm": self.cost_warm.as_text(),
            "cost": reduce(add, known).as_text() if 0 < len(known) < len(steps) else None,
            "estimated": estimated if len(estimated) < len(steps) else None,
        }
        return {name: value for name, value in about.items() if value}


NO_USAGE = Usage()


def _sum(left: StepUsage | None, right: StepUsage | None) -> StepUsage | None:
    if left is None or right is None:
        return left or right
    return left + right


def prompts_of(counts: StepUsage) -> dict[str, int | float | None]:
    """Return the tokens of a model's prompts, and the share of them that came from a cache, as plain JSON."""
    return {
        "input_tokens": counts.input_tokens,
        "cached_tokens": counts.cached_tokens,
        "cache_write_tokens": counts.cache_write_tokens,
        "hit_rate": counts.cached_tokens / counts.input_tokens if counts.input_tokens else None,
    }
