"""Stop a sync stream of LlamaIndex, whose generators leave the provider's request open when they are closed.

LlamaIndex wraps the provider's own stream and does not close it. The request goes on until the garbage collector finds
the stream, which is often part of a cycle of references.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from contextlib import suppress
from types import GeneratorType
from typing import Any

_YOUNG = 1  # the oldest generation to collect; a full collection takes too long


def hang_up(pieces: Generator[Any, None, None]) -> None:
    """Stop a stream and all generators that it holds.

    Streams within other objects are left to a garbage collection, which this function runs. A generator that the stream
    merely has in a variable cannot be distinguished from one that it reads from, so it is closed as well.

    Args:
        pieces: The stream; it must be suspended.
    """
    held = _held_by(pieces)  # before closing: a closed generator refers to nothing
    try:
        pieces.close()
    finally:
        for generator in held:
            with suppress(Exception):  # one that runs in another thread, or raises, must not keep the others open
                generator.close()
        gc.collect(_YOUNG)


def _held_by(stream: Generator[Any, None, None]) -> list[GeneratorType[Any, None, None]]:
    """Return the generators that a suspended generator holds, directly or through others."""
    found: list[Any] = [stream]
    for iterator in found:
        frame = getattr(iterator, "gi_frame", None)  # in Python 3.10, the frame refers to what it loops over
        fields = getattr(iterator, "__dict__", {}).values()
        for thing in (*gc.get_referents(iterator, frame), *fields):
            if isinstance(thing, Iterator) and not any(thing is known for known in found):
                found.append(thing)
    return [one for one in found[1:] if isinstance(one, GeneratorType)]
