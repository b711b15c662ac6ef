"""Stops a sync stream of LlamaIndex, whose generators leave the provider's request open when they are closed.

LlamaIndex wraps the provider's own stream and does not close it. The request goes on until a garbage collection finds
the stream, often within a cycle of references.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from contextlib import suppress
from types import GeneratorType
from typing import Any

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
