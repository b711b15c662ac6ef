"""The account of one question: what it took, how long, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import TracebackType

from selfroute.flow import Answer, Decided, Effect, Route
from selfroute.usage import prices, telemetry
from selfroute.usage.counts import StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel

_AT_ONCE = nullcontext()


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

    def add_call(self, step: Route, counts: StepUsage, model: PricedModel) -> None:
        """Add a call of a model, and price it."""
        self.usage += Usage.of(step, counts.priced(prices.cost_of(model, counts)))
        if self._trace:
            self._trace.add_call(step, counts, model)

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
