"""The chunks of a document, and where in it each of them stands according to its metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from selfroute.documents.metadata import ORDER_KEYS
from selfroute.documents.pages import Page, page_of

Passage = TypeVar("Passage")
_MAX_DIGITS = 19  # a longer number is not a position


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, as a splitter cut it.

    Attributes:
        text: The text of the chunk.
        start: Its offset in the document, or on its page, in characters; None if that is not known.
        place: Its numbers, the coarsest first, such as its page and its number on that page; -1 for one it lacks.
        page: The page that it begins on, as its metadata name it; None if that is not known.
    """

    text: str
    start: int | None = None
    place: tuple[int, ...] = ()
    page: Page | None = None


def chunks_of(rows: Iterable[tuple[str, Mapping[str, Any]]], *, start_key: str) -> Iterator[Chunk]:
    """Yield chunks made from texts and their metadata.

    The rows are consumed one at a time and not stored. The first row decides which of `ORDER_KEYS` number the chunks.

    Args:
        rows: The text and metadata of each chunk.
        start_key: The key of the offset in the metadata.
    """
    keys: Sequence[str] | None = None
    for text, metadata in rows:
        if keys is None:
            keys = [key for key in ORDER_KEYS if key in metadata]
        numbers = [offset(metadata.get(key)) for key in keys] if keys else ()
        place = tuple([-1 if number is None else number for number in numbers])
        yield Chunk(text, offset(metadata.get(start_key)), place, page_of(metadata))


def offset(value: Any) -> int | None:
    """Return a value of the metadata as an offset or number; None if it is neither.

    Splitters write -1 if they do not find a chunk in the document. Some stores return numbers as floats or strings.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
