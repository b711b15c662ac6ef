"""The chunks of a document, and where in it each of them stands according to its metadata."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands, as far as its metadata say.

    Attributes:
        source: Identifies its document.
        start: Its offset in the document, or on its page.
        metadata: Its metadata, which may number its page, or the chunk itself.
    """

    source: Hashable
    start: Any
    metadata: Mapping[str, Any]


def in_document_order(passages: Sequence[Passage], place_of: Callable[[Passage], Place]) -> list[Passage]:
    """Return passages as they follow one another in their documents, those of the best passage's document first.

    Passages of a document in which not all of them have a place keep their order.
    """
    documents: dict[Hashable, list[tuple[Place, Passage]]] = {}
    for passage in passages:
        place = place_of(passage)
        documents.setdefault(place.source, []).append((place, passage))
    return [passage for found in documents.values() for passage in _sorted(found)]


def _sorted(found: list[tuple[Place, Passage]]) -> list[Passage]:
    keys = [key for key in ORDER_KEYS if all(offset(place.metadata.get(key)) is not None for place, _ in found)]
    starts = [offset(place.start) for place, _ in found]
    if not keys and None in starts:
        return [passage for _, passage in found]
    numbers = [
        (*(offset(place.metadata[key]) or 0 for key in keys), start or 0)
        for (place, _), start in zip(found, starts, strict=True)
    ]
    order = sorted(range(len(found)), key=numbers.__getitem__)
    return [found[index][1] for index in order]


def offset(value: Any) -> int | None:
    """Return a value of the metadata as an offset or number; None if it is neither.

    Splitters write -1 if they do not find a chunk in the document. Some stores return numbers as floats or strings.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
