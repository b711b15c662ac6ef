"""The chunks of a document, as a splitter made them, and where each says that it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfroute.documents.metadata import ORDER_KEYS

_DIGITS = 19  # no number that means anything has more


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a document, as a splitter made it.

    Attributes:
        text: Its text.
        start: Where it begins in the document, or on its page, in characters; None if that is not known.
        place: By what it is numbered, the coarser first: its page, say, and its own number; -1 where it is not.
    """

    text: str
    start: int | None = None
    place: tuple[int, ...] = ()


def chunks_of(rows: Iterable[tuple[str, Mapping[str, Any]]], *, start_key: str) -> Iterator[Chunk]:
    """Make chunks of texts and their metadata, which are looked at one by one and not kept.

    Args:
        rows: Text and metadata of each chunk.
        start_key: The key of the offset.
    """
    keys: Sequence[str] | None = None
    for text, metadata in rows:
        if keys is None:
            keys = [key for key in ORDER_KEYS if key in metadata]
        numbers = [offset(metadata.get(key)) for key in keys] if keys else ()
        place = tuple([-1 if number is None else number for number in numbers])
        yield Chunk(text, offset(metadata.get(start_key)), place)


def offset(value: Any) -> int | None:
    """A usable number, or None: splitters write -1 where they lost their way, stores return floats or digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
