"""Stop a model in the middle of its reply, so that its provider stops generating.

Closing a generator is not enough. Frameworks wrap the provider's own stream and leave it open when their generator is
closed. The stream is garbage then, often in a cycle of references, and its request goes on until it is collected.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from contextlib import suppress
from types import GeneratorType
from typing import Any, TypeVar

Result = TypeVar("Result")

_AGAIN = 0.5  # seconds
_TURNS = 20  # of the event loop; closing takes two or three for each generator within another
_YOUNG = 1  # the oldest generation to collect; a full collection takes too long


def hang_up(pieces: Iterator[Any]) -> None:
    """Stop a sync stream and all generators that it holds.

    LlamaIndex and some clients of LangChain wrap the provider's own stream and do not close it. The request goes on
    until the garbage collector finds the stream, which is often part of a cycle of references; if that runs while the
    next request is begun, the client may deadlock.

    Streams within other objects are left to a garbage collection, which this function runs. A generator that the stream
    merely has in a variable cannot be distinguished from one that it reads from, so it is closed as well.

    Args:
        pieces: The stream; it must be suspended. One that cannot be closed is left alone.
    """
    if not hasattr(pieces, "close"):
        return
    held = _held_by(pieces)  # before closing: a closed generator refers to nothing
    try:
        pieces.close()
    finally:
        for generator in held:
            with suppress(Exception):  # one that runs in another thread, or raises, must not keep the others open
                generator.close()
        gc.collect(_YOUNG)


def _held_by(stream: Iterator[Any]) -> list[GeneratorType[Any, None, None]]:
    """Return the generators that a suspended generator holds, directly or through others."""
    found: list[Any] = [stream]
    for iterator in found:
        frame = getattr(iterator, "gi_frame", None)  # in Python 3.10, the frame refers to what it loops over
        fields = getattr(iterator, "__dict__", {}).values()
        for thing in (*gc.get_referents(iterator, frame), *fields):
            if isinstance(thing, Iterator) and not any(thing is known for known in found):
                found.append(thing)
    return [one for one in found[1:] if isinstance(one, GeneratorType)]


async def ahang_up(pieces: AsyncIterator[Any], *, waited: bool, most: int = 1) -> None:
    """Stop an async stream, even if the caller is cancelled meanwhile.

    Args:
        pieces: The stream.
        waited: Whether the event loop has turned since the stream was started; if not, there is no request to end.
        most: How many pieces to read until one has to be waited for; those that have already arrived are skipped.
    """
    if getattr(asyncio.get_running_loop(), "_asyncgens_shutdown_called", False):
        return  # the loop is closing every generator itself
    if not waited:
        await _aclose(pieces)
        return
    await _to_the_end(_leave(pieces, most))


_LEAVING: set[asyncio.Future[None]] = set()  # the event loop holds only weak references to them


async def cancelled_once(awaitable: Awaitable[Result]) -> Result:
    """Await something in a task that is cancelled once, however often the caller is, and again if it goes on.

    anyio, with which FastAPI drops the requests of clients who left, cancels a task again and again until it ends. The
    client that asks the model shields its clean-up from that, but not within a task of a task, which is how LangChain
    runs: there each further cancellation meets the clean-up itself, and the request stays open.

    Args:
        awaitable: What to await.

    Raises:
        asyncio.CancelledError: The caller was cancelled; the task has ended.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        now, again = asyncio.get_running_loop().time, 0.0
        while not task.done():
            if now() >= again:  # what runs in the task may swallow a cancellation
                again = now() + _AGAIN
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=_AGAIN)
        _ = task.cancelled() or task.exception()  # asyncio would report one that nobody looks at
        raise


async def stop_when_left(pieces: AsyncGenerator[Result, None]) -> AsyncGenerator[Result, None]:
    """Yield the pieces of a stream, which stops when its reader leaves a web service.

    Use it for LangGraph's streams in FastAPI, Starlette and other services on anyio. Each piece is read in a task of
    its own, so a scope or a timeout that the stream opens must close before the next piece.

    Example:
        ```python
        async with aclosing(stop_when_left(agent.astream(question, stream_mode="messages"))) as pieces:
            async for message, _ in pieces:
                yield message.text
        ```

    Args:
        pieces: The stream.
    """
    try:
        while True:
            try:
                piece = await cancelled_once(anext(pieces))
            except StopAsyncIteration:
                return
            yield piece
    finally:
        await _to_the_end(pieces.aclose())


async def _to_the_end(closing: Awaitable[None]) -> None:
    """Await something to its end, even if the caller is cancelled."""
    task = asyncio.ensure_future(closing)
    _LEAVING.add(task)
    task.add_done_callback(_LEAVING.discard)
    await asyncio.shield(task)


async def _leave(pieces: AsyncIterator[Any], most: int) -> None:
    # Cancelling a task that waits for the next piece reaches the innermost `await`; closing the stream does not.
    for _ in range(most):
        piece = asyncio.ensure_future(anext(pieces))
        try:
            await asyncio.sleep(0)
        finally:
            piece.cancel()
        await asyncio.wait([piece])
        if piece.cancelled() or piece.exception():
            await _aclose(pieces)
            return
    await _aclose(pieces)
    for _ in range(_TURNS):  # until the generators within are closed
        await asyncio.sleep(0)
    gc.collect(_YOUNG)


async def _aclose(pieces: AsyncIterator[Any]) -> None:
    if hasattr(pieces, "aclose"):  # a generator, not just any iterator
        await pieces.aclose()


class LoopTurned:
    """Notices whether the event loop has turned since this object was created."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        """Start to watch the running event loop."""
        self.done = False
        asyncio.get_running_loop().call_soon(self._turned)

    def _turned(self) -> None:
        self.done = True
