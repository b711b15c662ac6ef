"""The record of one finished question: its outcome, its usage and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from selfroute.effects import Route
from selfroute.usage.counts import StepUsage, Usage

Outcome = Literal["answered", "left", "failed", "open"]


def prompts_of(counts: StepUsage) -> dict[str, int | float | None]:
    """Return the tokens of a model's prompts, and the share of them that came from a cache, as plain JSON."""
    rate = counts.cached_tokens / counts.input_tokens if counts.input_tokens else None
    return {
        "input_tokens": counts.input_tokens,
        "cached_tokens": counts.cached_tokens,
        "cache_write_tokens": counts.cache_write_tokens,
        "hit_rate": rate,
    }


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one finished question.

    Attributes:
        outcome: `answered` to the end; `left` by a reader who closed or cancelled the stream; `failed` with an error;
            or `open`: only its first step ran, and the second is asked for later.
        usage: The tokens and the cost, whatever the outcome.
        seconds: The time from start to end; None if it is not known.
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
        models: What the calls of each model took, by its name.
        earlier: The steps whose usage the record of an `open` question has counted before.
    """

    outcome: Outcome
    usage: Usage
    seconds: float | None
    seconds_to_first_text: float | None = None
    route: Route | None = None
    declined: bool | None = None
    doubted: bool | None = None
    stopped: bool | None = None
    answerable: bool | None = None
    error: str | None = None
    complete_later: Callable[[], Usage | None] | None = field(default=None, repr=False, compare=False)
    models: Mapping[str, StepUsage] = field(default_factory=dict)
    earlier: Sequence[Route] = ()

    @property
    def new_usage(self) -> Usage:
        """The usage of the steps that no other record counts."""
        counted: dict[str, Any] = dict.fromkeys(self.earlier)
        return replace(self.usage, **counted) if counted else self.usage

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON: the attributes but for `complete_later`, `usage` as `Usage.as_dict` does."""
        names = (one.name for one in fields(self) if one.name != "complete_later")
        models = {name: prompts_of(counts) for name, counts in self.models.items()}
        return {
            **{name: getattr(self, name) for name in names},
            "usage": self.usage.as_dict(),
            "models": models,
            "earlier": list(self.earlier),
        }
