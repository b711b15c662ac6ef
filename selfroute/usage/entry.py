"""The record of one finished question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from selfroute.effects import Route
from selfroute.usage.counts import StepUsage, Usage, prompts_of

Outcome = Literal["answered", "left", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one finished question.

    Attributes:
        outcome: `answered` to the end; `left` by a reader who closed or cancelled the stream; `failed` with an error.
        usage: The tokens and the cost, for any outcome.
        seconds: The time from start to end; None if it is not known.
        seconds_to_first_text: The time from the start to the first text that was shown; None if none was.
        route: The route; None if the question ended before it was decided.
        declined: Whether the first step declined, or had no passages to answer from; None as for `route`.
        doubted: Whether the first step's answer was in doubt, so that another step read more; None as for `route`.
        stopped: Whether a policy kept the question from another step; None as for `route`.
        answerable: False if every step that ran declined; None if the question was not answered to the end.
        error: The name of the error's type if the question failed.
        models: What the calls of each model took, by its name.
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
    models: Mapping[str, StepUsage] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON: the attributes, with `usage` as `Usage.as_dict` returns it."""
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "usage": self.usage.as_dict(),
            "models": {name: prompts_of(counts) for name, counts in self.models.items()},
        }
