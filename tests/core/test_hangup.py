"""Laws of leaving a model in the middle of its reply, over streams like those that frameworks wrap."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from selfroute.hangup import LoopTurned, ahang_up, cancelled_once, hang_up, stop_when_left


class Request:
    """A provider's stream: it counts what it sends, and refers to itself so that only a collection frees it."""

    def __init__(self, *, come: int = 1, waits: bool = True) -> None:
        self.come, self.waits = come, waits
        self.sent, self.ended = 0, "open"
        self.itself: object = self

    def pieces(self) -> Generator[str, None, None]:
        try:
            while True:
                self.sent += 1
                yield "word "
        finally:
            self.ended = "closed"

    async def apieces(self) -> AsyncGenerator[str, None]:
        try:
            while True:
                if self.waits and self.sent % self.come == 0:
                    await asyncio.sleep(0.001)
                self.sent += 1
                yield "word "
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        except GeneratorExit:
            self.ended = "closed"
            raise


async def wrapped(request: Request, kept: list[AsyncGenerator[str, None]]) -> AsyncGenerator[str, None]:
    """What frameworks do: hand the pieces on, and leave the stream open when they are closed."""
    kept.append(request.apieces())
    async for piece in kept[0]:
        yield piece


async def left(request: Request, *, after: int, most: int = 1) -> list[AsyncGenerator[str, None]]:
    kept: list[AsyncGenerator[str, None]] = []
    pieces, waiting = wrapped(request, kept), LoopTurned()
    for _ in range(after):
        await anext(pieces)
    await ahang_up(pieces, waited=waiting.done, most=most)
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)
    return kept


async def test_ahang_up_ends_the_request_behind_a_wrapper() -> None:
    """Pieces that have come already are read over; a model that never waits is asked for nothing more."""
    for after, come, most, sent in ((1, 1, 1, 1), (30, 1, 1, 30), (1, 2, 20, 2), (1, 9, 20, 9)):
        request = Request(come=come)
        await left(request, after=after, most=most)
        assert (request.sent, request.ended) == (sent, "cancelled")
    request = Request(waits=False)
    await left(request, after=2)
    assert request.sent == 2


async def test_ahang_up_leaves_alone_what_cannot_be_closed() -> None:
    class Bare:
        def __aiter__(self) -> AsyncIterator[str]:
            return self

        async def __anext__(self) -> str:
            return "word"

    for waited in (True, False):
        await ahang_up(Bare(), waited=waited)


async def test_ahang_up_though_who_waits_is_cancelled() -> None:
    for turns in range(8):
        request, kept = Request(), []
        pieces = wrapped(request, kept)
        await anext(pieces)
        leaving = asyncio.create_task(ahang_up(pieces, waited=True))
        for _ in range(turns):
            await asyncio.sleep(0)
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving
        for _ in range(9):
            await asyncio.sleep(0)
        assert request.ended == ("cancelled" if turns else "open")  # it had not begun


@pytest.mark.parametrize("times", [1, 5])
async def test_cancelled_once_cleans_up_before_it_ends(times: int) -> None:
    done: list[str] = []

    async def asking() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            done.append("closed")

    caller = asyncio.ensure_future(cancelled_once(asking()))
    await asyncio.sleep(0)
    for _ in range(times):
        caller.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done == ["closed"]


async def test_cancelled_once_returns_and_fails_as_ever() -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    assert await cancelled_once(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ZeroDivisionError):
        await cancelled_once(failing())


def test_hang_up_closes_generators_however_old() -> None:
    def pieces(request: Request) -> Generator[str, None, None]:
        inner = request.pieces()
        request.itself = map(str.upper, inner)  # as openai's stream holds its own iterator
        for piece in request.itself:  # noqa: UP028 - `yield from` would close it
            yield piece

    request = Request()
    stream = pieces(request)
    next(stream)
    gc.freeze()  # as if it were too old for a collection
    hang_up(stream)
    assert request.ended == "closed"


def test_hang_up_collects_what_is_behind_another_object() -> None:
    def pieces(request: Request) -> Generator[str, None, None]:
        request.itself = inner = request.pieces()
        for piece in iter(lambda: next(inner), None):  # noqa: UP028
            yield piece

    request = Request()
    gone = weakref.ref(request)
    stream = pieces(request)
    del request
    gc.disable()
    try:
        next(stream)
        stream.close()
        assert gone()
        hang_up(stream)
        assert not gone()
    finally:
        gc.enable()


def test_hang_up_beside_another_thread_and_an_error() -> None:
    def pieces(request: Request, pumped: Generator[None, None, None]) -> Generator[str, None, None]:
        held, ended = request.pieces(), False
        try:
            for piece in map(str.upper, held):  # noqa: UP028 - as above
                yield piece
        finally:
            del pumped
            raise OSError(ended)

    def pump() -> Generator[None, None, None]:
        running.set()
        yield leaving.wait(10)

    request, running, leaving = Request(), threading.Event(), threading.Event()
    pumped = pump()
    thread = threading.Thread(target=next, args=[pumped])
    thread.start()
    running.wait(10)
    stream = pieces(request, pumped)
    next(stream)
    with pytest.raises(OSError, match="False"):
        hang_up(stream)
    assert request.ended == "closed"
    leaving.set()
    thread.join()


async def test_cancelled_once_leaves_no_error_unread() -> None:
    async def failing() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ZeroDivisionError

    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    caller = asyncio.ensure_future(cancelled_once(failing()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gc.collect()
    await asyncio.sleep(0)
    assert heard == []


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("way", ["cancelled", "closed", "dropped"])
async def test_stop_when_left_closes_the_stream(way: str, turns: int) -> None:  # noqa: C901
    """Whether its reader is cancelled at any turn, also as a piece comes, or busy with something else."""
    ended: list[str] = []
    held: list[Any] = []  # so that no garbage collection closes the stream

    async def writing() -> AsyncGenerator[int, None]:
        try:
            for number in range(1000):
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)
            ended.append("closed")

    def stopping() -> AsyncGenerator[int, None]:
        held.append(writing())
        return stop_when_left(held[-1])

    async def reading() -> None:
        async for number in stopping():
            if way != "cancelled" and number == turns:
                await asyncio.sleep(60)

    async def closing() -> None:
        async with aclosing(stopping()) as pieces:
            async for number in pieces:
                if number == turns:
                    await asyncio.sleep(60)

    reader = asyncio.ensure_future(closing() if way == "closed" else reading())
    for _ in range(turns + 40 * (way != "cancelled")):
        await asyncio.sleep(0)
    for _ in range(4):
        reader.cancel()
        await asyncio.sleep(0)
    with suppress(asyncio.CancelledError):
        await reader
    del reader
    gc.collect()
    for _ in range(20):
        await asyncio.sleep(0)
    assert ended == (["closed"] if turns or way != "cancelled" else [])


async def test_stop_when_left_yields_and_fails_as_ever() -> None:
    async def failing() -> AsyncGenerator[int, None]:
        yield 1
        raise ZeroDivisionError

    pieces = stop_when_left(failing())
    assert await anext(pieces) == 1
    with pytest.raises(ZeroDivisionError):
        await anext(pieces)
