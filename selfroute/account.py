"""The account of one question: what it took, how long, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Literal

from selfroute import prices, telemetry
from selfroute.flow import Answer, Decided, Effect, Route
from selfroute.prices import Model
from selfroute.usage import StepUsage, Usage

Outcome = Literal["answered", "left", "failed"]
_AT_ONCE = nullcontext()


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


class Account:
    """Keeps the account of one question; as a context it is closed, once, when the question is over.

    Attributes:
        usage: What was paid for so far.
        later: As in `Entry`.
    """

    def __init__(self, book: Callable[[Entry], None] | None = None, *, retrieves: bool = True) -> None:
        """Open.

        Args:
            book: Is given the entry, if anybody wants it.
            retrieves: Whether retrieval is part of it.
        """
        self.usage = Usage()
        self.later: Callable[[], Usage | None] | None = None
        self._book = book
        self._decided: Decided | None = None
        self._first: float | None = None
        self._open = True
        self._retrieves = retrieves
        self._trace: telemetry.Trace | None = None
        self._started = perf_counter()

    def performing(self, effect: Effect) -> AbstractContextManager[object]:
        """The time in which an effect is performed; of a reply it goes on until the next, or the end."""
        return _AT_ONCE if self._trace is None else self._trace.step(effect)

    def paid(self, step: Route, counts: StepUsage, model: Model) -> None:
        """Add a call of a model, and price it."""
        self.usage += Usage.of(step, counts.priced(prices.cost_of(model, counts)))
        if self._trace:
            self._trace.paid(step, counts, model)

    def decided(self, effect: Decided) -> None:
        """Note the route."""
        self._decided = effect

    def shown(self) -> None:
        """Note that the first text comes."""
        self._first = perf_counter() - self._started

    def close(self, answer: Answer | None = None, error: BaseException | None = None) -> None:
        """Book it, unless that is done.

        Args:
            answer: The answer, if it came.
            error: What went wrong; what is no `Exception` is a reader who left.
        """
        if not self._open:
            return
        self._open = False
        if self._book is None and self._trace is None:
            return
        failed, decided = isinstance(error, Exception), self._decided
        entry = Entry(
            "answered" if answer else "failed" if failed else "left",
            self.usage,
            perf_counter() - self._started,
            self._first,
            decided.route if decided else None,
            decided.decision.declined if decided else None,
            answer.answerable if answer else None,
            type(error).__name__ if failed else None,
            self.later,
        )
        if self._trace:
            self._trace.end(entry, error)
        if self._book:
            self._book(entry)

    def __enter__(self) -> Account:  # noqa: PYI034 - typing.Self is of Python 3.11
        # Now, and not when it was made: an awaited stream may be read much later, or never.
        self._started = perf_counter()
        self._trace = telemetry.trace(retrieves=self._retrieves)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(error=error)
