"""The record of one finished question: its outcome, its usage and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from selfroute.flow import Route
from selfroute.usage.counts import StepUsage, Usage

Outcome = Literal["answered", "left", "failed"]


@dataclass(frozen=True, slots=True)
class ModelTokens:
    """What one model was sent, and how much of it came from the provider's prompt cache. `+` adds two of them.

    Attributes:
        input_tokens: Tokens of prompts, including cached ones.
        cached_tokens: Those of them that were read from the cache.
        cache_write_tokens: Those of them that were written to it, if the provider charges for that.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def of(cls, counts: StepUsage) -> ModelTokens:
        """Return the tokens of one call."""
        return cls(counts.input_tokens, counts.cached_tokens, counts.cache_write_tokens)

    def __add__(self, other: ModelTokens) -> ModelTokens:
        return ModelTokens(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def as_dict(self) -> dict[str, int | float | None]:
        """Return the counts, and the share that came from the cache, as plain JSON."""
        rate = self.cached_tokens / self.input_tokens if self.input_tokens else None
        return {**asdict(self), "hit_rate": rate}


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one finished question.

    Attributes:
        outcome: `answered` to the end; `left` by a reader who closed or cancelled the stream; `failed` with an error.
        usage: The tokens and the cost, whatever the outcome.
        seconds: The time from start to end.
        seconds_to_first_text: The time from the start to the first text that was shown; None if none was.
        route: The route; None if the question ended before it was decided.
        declined: Whether the first step declined, or had no passages to answer from; None as for `route`.
        doubted: Whether the first step's answer was in doubt, so that another step read more; None as for `route`.
        stopped: Whether a policy kept the question from another step; None as for `route`.
        answerable: False if every step that ran declined; None if the question was not answered to the end.
        error: The name of the error's type if the question failed.
        complete_later: Returns the usage including `long_context_only` once the length of the documents is known, and
            None until then. It is only set if the length was unknown when the question was answered. It does not wait
            and does not raise.
        models: What each model was sent, by its name.
    """

    outcome: Outcome
    usage: Usage
    seconds: float
    seconds_to_first_text: float | None = None
    route: Route | None = None
    declined: bool | None = None
    doubted: bool | None = None
    stopped: bool | None = None
    answerable: bool | None = None
    error: str | None = None
    complete_later: Callable[[], Usage | None] | None = field(default=None, repr=False, compare=False)
    models: Mapping[str, ModelTokens] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON: the attributes but for `complete_later`, `usage` as `Usage.as_dict` does."""
        names = (one.name for one in fields(self) if one.name != "complete_later")
        models = {name: tokens.as_dict() for name, tokens in self.models.items()}
        return {**{name: getattr(self, name) for name in names}, "usage": self.usage.as_dict(), "models": models}
