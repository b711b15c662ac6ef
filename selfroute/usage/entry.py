"""One question in the books: what it took, how long, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from selfroute.flow import Route
from selfroute.usage.counts import Usage

Outcome = Literal["answered", "left", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One closed account.

    Attributes:
        outcome: Answered to the end; left by a reader who closed the stream or cancelled; or failed with an error.
        usage: What it took, whatever the outcome.
        seconds: From its beginning to its end.
        seconds_to_first_text: From its beginning to the first text that was shown; None if none was.
        route: The route, None if it was not known yet.
        declined: Whether the first step declined, or had nothing to answer from; None as above.
        answerable: False if every step that ran declined; None if it was not answered to the end.
        error: The name of the error's type, if it failed.
        later: Completes the usage of a question that was answered before the length of its documents was known: the
            usage with what the long context alone would have taken, once that is known, else None. It never waits and
            never fails.
    """

    outcome: Outcome
    usage: Usage
    seconds: float
    seconds_to_first_text: float | None = None
    route: Route | None = None
    declined: bool | None = None
    answerable: bool | None = None
    error: str | None = None
    later: Callable[[], Usage | None] | None = field(default=None, repr=False, compare=False)
