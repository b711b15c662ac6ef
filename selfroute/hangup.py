"""Stops a model in the middle of its reply, so that its provider stops generating.

Closing a generator is not enough. Frameworks wrap the provider's own stream and leave it open when they are closed: it
is garbage then, often in a cycle of references, and its request goes on until a collection finds it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from types import GeneratorType
from typing import Any

_TURNS = 20  # of the event loop: each generator within another takes two or three to be closed
_YOUNG = 1  # the generation up to which is collected: a full collection takes too long


def hang_up(pieces: Generator[Any, None, None]) -> None:
    """Stop a stream, and all generators that it holds; a collection is for what hides behind other objects.

    What a stream reads from can not be told from what it has in a variable: that is closed with it, too.

    Args:
        pieces: The stream; nobody is reading it now.
    """
    held = _held_by(pieces)  # found while it is open: what is closed refers to nothing
    try:
        pieces.close()
    finally:
        for generator in held:
            with suppress(Exception):  # one that runs in another thread, or ends badly, must not keep the others open
                generator.close()
        gc.collect(_YOUNG)


def _held_by(stream: Generator[Any, None, None]) -> list[GeneratorType[Any, None, None]]:
    """The generators that a suspended one holds, then those that these hold, and so on."""
    found: list[Any] = [stream]
    for iterator in found:
        frame = getattr(iterator, "gi_frame", None)  # refers to what it loops over, in Python 3.10
        fields = getattr(iterator, "__dict__", {}).values()
        for thing in (*gc.get_referents(iterator, frame), *fields):
            if isinstance(thing, Iterator) and not any(thing is known for known in found):
                found.append(thing)
    return [one for one in found[1:] if isinstance(one, GeneratorType)]


async def ahang_up(pieces: AsyncIterator[Any], *, waited: bool, most: int = 1) -> None:
    """Stop an async stream, even if whoever waits for that is cancelled meanwhile.

    Args:
        pieces: The stream.
        waited: Whether it ever made the event loop wait; if not, there is no request to end.
        most: How many pieces that have already come are read over, in search of the one that has not.
    """
    if getattr(asyncio.get_running_loop(), "_asyncgens_shutdown_called", False):
        return  # the loop is closing every generator itself
    if not waited:
        await _aclose(pieces)
        return
    leaving = asyncio.ensure_future(_leave(pieces, most))
    _LEAVING.add(leaving)
    leaving.add_done_callback(_LEAVING.discard)
    await asyncio.shield(leaving)


_LEAVING: set[asyncio.Future[None]] = set()  # a loop alone would not keep them alive


async def _leave(pieces: AsyncIterator[Any], most: int) -> None:
    # Cancelling what waits for the next piece reaches the innermost `await`, which closing does not.
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
    for _ in range(_TURNS):  # as in `hang_up`, when all of its generators are closed
        await asyncio.sleep(0)
    gc.collect(_YOUNG)


async def _aclose(pieces: AsyncIterator[Any]) -> None:
    if hasattr(pieces, "aclose"):  # a generator, not just any iterator
        await pieces.aclose()


class LoopTurned:
    """Tells whether the event loop has turned since this was made."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        """Start, in a running loop."""
        self.done = False
        asyncio.get_running_loop().call_soon(self._turned)

    def _turned(self) -> None:
        self.done = True
