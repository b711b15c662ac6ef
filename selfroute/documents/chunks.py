"""The chunks of a document: what their metadata say of them, and where in it each of them stands."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar

from selfroute.documents.pages import PAGE_KEYS, Page, page_of

_CHUNKS = "chunk chunk_index chunk_idx chunk_number chunk_num chunk_no chunk_id split_id"
_ORDER = (
    f"{' '.join(PAGE_KEYS)} slide sheet section paragraph block row line seq_num seq sequence order index position "
    f"part part_number number {_CHUNKS} start start_char start_char_idx char_start start_offset offset split_idx_start"
)
ORDER_KEYS = {name.replace("_", ""): rank for rank, name in enumerate(_ORDER.split())}
"""The keys under which loaders and splitters number pages and chunks, without `_` and capitals, the coarsest first."""
PLACE_KEYS = frozenset({*PAGE_KEYS, "chunk", "chunk_index"})
"""The keys that only say where in its document a chunk stands. Filters are assumed not to use them."""

_VERSIONS = frozenset(
    {
        "last_modified",
        "last_modified_date",
        "modified",
        "moddate",
        "mtime",
        "file_size",
        "file_hash",
        "checksum",
        "etag",
    }
)
_OF_FILES = frozenset({"total_pages", "creationdate", "creator", "producer", "author", "keywords", "subject"})
_PATH = "header_path"
_LEVELS = {f"{name}{level}": level for name in ("h", "header", "heading") for level in range(1, 7)}
_TITLES = "title subtitle part year chapter article section clause subsection"
_TITLES_AT = {name: level for level, name in enumerate(_TITLES.split())}

_ABSENT = object()


def shared_items(shared: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of `shared` that `metadata` has too; `shared` itself if it has all of them."""
    if all(is_same_value(metadata.get(key, _ABSENT), value) for key, value in shared.items()):
        return shared
    return {key: value for key, value in shared.items() if is_same_value(metadata.get(key, _ABSENT), value)}


def is_same_value(one: Any, other: Any) -> bool:
    """Return whether two values of metadata are the same to a filter; `1`, `1.0` and True are three values."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(is_same_value(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same_value, one, other))
    if not isinstance(one, float):
        with suppress(Exception):  # an array has no truth value
            return bool(one == other)
    return repr(one) == repr(other)


def without_keys(metadata: Mapping[str, Any], keys: AbstractSet[str]) -> dict[str, Any]:
    """Return the metadata without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def differing_keys(
    metadata: Mapping[str, Any], passages: Iterable[Mapping[str, Any]], *, ignored_keys: AbstractSet[str]
) -> list[str]:
    """Return the keys in which a chunk differs from the retrieved passage that is most like it.

    A metadata filter that lets a passage through also lets through every chunk with the same metadata. So if there are
    no such keys, the retriever can see the chunk under any filter.

    Args:
        metadata: The metadata of the chunk.
        passages: The metadata of the passages, at least one.
        ignored_keys: Keys that only say where in the document a chunk stands; they are ignored.
    """
    compared = without_keys(metadata, ignored_keys)
    differences = [
        [key for key, value in compared.items() if not is_same_value(passage.get(key, _ABSENT), value)]
        for passage in passages
    ]
    return min(differences, key=len)


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
        version: What its metadata say of the version of its file, such as when that was modified; None if nothing.
        headings: The headings that it stands under, the highest first, which a splitter moved into its metadata.
        kind: What tells it from chunks with other metadata, apart from all of these.
    """

    text: str
    start: int | None = None
    place: tuple[int, ...] = ()
    page: Page | None = None
    version: Hashable | None = field(default=None, compare=False)
    headings: tuple[str, ...] = ()
    kind: Hashable | None = field(default=None, compare=False)


def rises(one: Chunk, other: Chunk) -> bool:
    """Return whether the offset of a chunk is past that of one before it."""
    return one.start is not None and other.start is not None and one.start < other.start


def chunks_of(
    rows: Iterable[tuple[str, Mapping[str, Any]]], *, start_key: str, order_key: str | None = None
) -> Iterator[Chunk]:
    """Yield chunks made from texts and their metadata.

    The first row decides which of `ORDER_KEYS` number the chunks.

    Args:
        rows: The text and metadata of each chunk.
        start_key: The key of the offset in the metadata.
        order_key: The only key that numbers the chunks; None for all of `ORDER_KEYS`.
    """
    keys: Sequence[str] | None = None
    for text, metadata in rows:
        if keys is None:
            keys = _numbers_in(metadata) if order_key is None else [order_key]
        numbers = [offset(metadata.get(key)) for key in keys] if keys else ()
        place = tuple([-1 if number is None else number for number in numbers])
        start, page = offset(metadata.get(start_key)), page_of(metadata)
        values = tuple([str(metadata[key]) for key in _telling(tuple(metadata), start_key)])
        yield Chunk(text, start, place, page, version_of(metadata), headings_of(metadata), values)


@lru_cache(1_000)
def _telling(keys: Sequence[Any], start_key: str) -> Sequence[Any]:
    """Return the keys that say something else of a chunk than where it stands, and in which version of a file."""
    places = {key for key in keys if isinstance(key, str) and key.replace("_", "").lower() in ORDER_KEYS}
    known = {start_key, *places, *_VERSIONS, *_OF_FILES, *(key for key, _ in _headings_among(keys))}
    return sorted((key for key in keys if key not in known), key=str)


def version_of(metadata: Mapping[str, Any]) -> Hashable | None:
    """Return what metadata say of the version of a file; None if they say nothing."""
    known = frozenset([(key, str(metadata[key])) for key in _VERSIONS & metadata.keys()])
    return known or None


class Title(str):
    """A heading under a key that loaders also use for the title of a file: it is one where it changes in a document."""

    __slots__ = ()


def headings_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the headings that a splitter moved out of a text into its metadata, the highest first.

    The keys that splitters of Markdown and HTML are given in the examples of their pages (`Header 1`, `h2`) are known,
    and names that people give them instead, such as `title` and `section`.
    """
    found = list[str]()
    for key, level in _headings_among(tuple(metadata)):
        value = metadata[key]
        if isinstance(value, str) and (value := value.strip()):
            if key == _PATH:  # of LlamaIndex: "/Report/2024/"
                found += [part for part in value.split("/") if part]
            elif "\n" not in value and not (
                value.isdigit() and key.lower() in ORDER_KEYS
            ):  # a number, such as a section
                found.append(value if level > 0 else Title(value))
    return tuple(found)


@lru_cache(1_000)
def _headings_among(keys: Sequence[Any]) -> Sequence[tuple[str, int]]:
    """Return the keys of headings, the highest first, and where these stand among others."""
    levels = dict[str, int]()
    for key in keys:
        name = key.replace("_", "").replace(" ", "").lower() if isinstance(key, str) else ""
        if key == _PATH:
            levels[key] = len(_LEVELS)
        elif name in _LEVELS:
            levels[key] = _LEVELS[name]
        elif name in _TITLES_AT:
            levels[key] = _TITLES_AT[name] - len(_TITLES_AT)
    return sorted(levels.items(), key=itemgetter(1))


def _numbers_in(metadata: Mapping[str, Any]) -> Sequence[str]:
    plain = {key: key.replace("_", "").lower() for key in metadata if isinstance(key, str)}
    return sorted((key for key, name in plain.items() if name in ORDER_KEYS), key=lambda key: ORDER_KEYS[plain[key]])


def offset(value: Any) -> int | None:
    """Return a value of the metadata as an offset or number; None if it is neither.

    Splitters write -1 if they do not find a chunk in the document. Some stores return numbers as floats or strings.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
