"""Single flight: simultaneous questions on one document wait for the first piece of the first reply.

A provider can read a prefix from its cache as soon as the first reply to it begins, and not before. So of many
questions that are asked at once, each would pay for the whole document.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Hashable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from threading import Lock, get_ident

_LONGEST = 5.0  # seconds that a question waits for another one
_MOST = 10_000  # prefixes that are remembered
_OVER: Future[None] = Future()
_OVER.set_result(None)


class _Flight:
    """The first question on a prefix.

    Attributes:
        over: Done when the first piece has come, or never will.
        since: When the question was asked.
        thread: Where it is asked.
        warm_until: When the provider forgets the prefix; 0 if it does not know it.
    """

    __slots__ = ("over", "since", "thread", "warm_until")

    def __init__(self, since: float) -> None:
        self.over: Future[None] = Future()
        self.since = since
        self.thread = get_ident()
        self.warm_until = 0.0

    def end(self) -> None:
        over, self.over = self.over, _OVER  # the old one holds on to those who waited
        with suppress(InvalidStateError):  # it was over already
            over.set_result(None)


class Flights:
    """The questions that are being asked, by the prefix of their prompts; safe to use from threads and event loops."""

    def __init__(self, *, longest: float = _LONGEST, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with none.

        Args:
            longest: How many seconds a question waits for another one.
            clock: Returns the time in seconds.
        """
        self._flights: OrderedDict[Hashable, _Flight] = OrderedDict()
        self._lock = Lock()  # not held where a flight ends: the garbage collector may end one at any moment
        self._longest, self._clock = longest, clock

    def in_turn(self, key: Hashable, seconds: float, pieces: Generator[str, None, None]) -> Generator[str, None, None]:
        """Yield the pieces of a reply, after the first piece of a reply to the same prefix has come.

        Args:
            key: Identifies the model and the prefix of the prompt.
            seconds: For how long the provider keeps a prefix after its last use.
            pieces: The reply; the model is asked when the first piece is requested.
        """
        flight, first = self._join(key)
        arrived = False
        try:
            # An event loop of this thread that asked first cannot go on while the thread waits.
            if not first and flight.thread != get_ident() and (left := self._left(flight)) > 0:
                _wait(flight, left)
            for piece in pieces:
                if not arrived:
                    arrived = self._arrived(flight, seconds)
                yield piece
        finally:
            if first:
                flight.end()
            pieces.close()

    async def ain_turn(
        self, key: Hashable, seconds: float, pieces: AsyncGenerator[str, None]
    ) -> AsyncGenerator[str, None]:
        """The async twin of `in_turn`."""
        flight, first = self._join(key)
        arrived = False
        try:
            if not first and (left := self._left(flight)) > 0:
                await asyncio.wait([asyncio.wrap_future(flight.over)], timeout=left)
            async for piece in pieces:
                if not arrived:
                    arrived = self._arrived(flight, seconds)
                yield piece
        finally:
            if first:
                flight.end()
            await pieces.aclose()

    def _join(self, key: Hashable) -> tuple[_Flight, bool]:
        """Return the flight on a prefix, and whether it has just begun."""
        now = self._clock()
        with self._lock:
            flight = self._flights.get(key)
            if flight is None or now > max(
                flight.warm_until, 0 if flight.over.done() else flight.since + self._longest
            ):
                flight = self._flights[key] = _Flight(now)
                first = True
            else:
                first = False
            self._flights.move_to_end(key)
            while len(self._flights) > _MOST:
                self._flights.popitem(last=False)
        return flight, first

    def _left(self, flight: _Flight) -> float:
        return 0.0 if flight.over.done() else flight.since + self._longest - self._clock()

    def _arrived(self, flight: _Flight, seconds: float) -> bool:
        flight.warm_until = self._clock() + seconds
        flight.end()
        return True


def _wait(flight: _Flight, seconds: float) -> None:
    with suppress(TooLate):
        flight.over.result(seconds)
