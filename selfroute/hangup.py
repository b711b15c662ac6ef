"""Stops a model in the middle of its reply, so that its provider stops generating.

Closing a generator is not enough. Frameworks wrap the provider's own stream and leave it open when they are closed: it
is garbage then, often in a cycle of references, and its request goes on until a collection finds it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

_TURNS = 20  # of the event loop: each generator within another takes two or three to be closed
_YOUNG = 1  # the generation up to which is collected: a full collection takes too long


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
