"""Put the chunks of a document in order, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Any

from selfroute.documents.chunks import Chunk, chunks_of
from selfroute.documents.offsets import ALWAYS, repeats_itself
from selfroute.documents.pages import Page
from selfroute.errors import ConfigurationError

_FEW = 8  # numbers that may be left out, on average, where chunks are counted
_FURTHEST = 10_000  # from one number to the next, on average; offsets are as far apart as chunks are long
_MIN_STEP_BACK = 20  # characters; no splitter steps back further, however small its chunks


class UnknownOrderError(ConfigurationError):
    """A store lists the chunks of a document in no order, and they do not say where they stand either.

    Attributes:
        have_offsets: Whether all of them have offsets, which do not help.
    """

    def __init__(
        self,
        message: str = "they have neither offsets that fit together nor numbers",
        *,
        have_offsets: bool = False,
    ) -> None:
        """Take the message, and whether the chunks have offsets."""
        super().__init__(message)
        self.have_offsets = have_offsets


def numbered(rows: Iterable[tuple[str, Mapping[str, Any]]], *, start_key: str, order_key: str | None) -> list[Chunk]:
    """Return chunks as `chunks_of` yields them; if the user named the key of their numbers, they are counted by it.

    Raises:
        UnknownOrderError: One of them has no whole number there.
    """
    chunks = list(chunks_of(rows, start_key=start_key, order_key=order_key))
    if order_key is None:
        return chunks
    if any(chunk.place == (-1,) for chunk in chunks):
        msg = f"not each of them has a whole number as metadata[{order_key!r}], which order_key names"
        raise UnknownOrderError(msg)
    ranks = {place: (rank,) for rank, place in enumerate(sorted({chunk.place for chunk in chunks}))}
    return [replace(chunk, place=ranks[chunk.place]) for chunk in chunks]


def fixed_order(chunk: Chunk) -> tuple[tuple[int, ...], int, int, str]:
    """Return a key that sorts chunks in the same way, in any order of the list."""
    return chunk.place, -1 if chunk.start is None else chunk.start, -len(chunk.text), chunk.text


def deduplicate(chunks: list[Chunk], *, ordered: bool) -> tuple[list[Chunk], bool, list[Chunk]]:
    """Drop chunks that were stored again, because a document was indexed twice or an indexing was repeated in part.

    Args:
        chunks: The chunks, as the store lists them; in a fixed order if the store has none.
        ordered: Whether the store lists them in the order in which they were added.

    Returns:
        The chunks that remain, and whether it is certain that only copies were dropped: the lines of a refrain look
        alike too, if the splitter gave all of them the offset of the first. Where no order can tell, this depends on
        whether the document has room for them further on; then also these chunks.
    """
    times = Counter(chunks)
    distinct = list(times)
    if len(distinct) == len(chunks):
        return chunks, True, []
    have_offsets = all(chunk.start is not None for chunk in distinct)
    if len({chunk.place for chunk in distinct}) == len(distinct) > 1:  # numbered, so equal chunks are copies
        return distinct, have_offsets, []
    if not have_offsets or len(distinct) == 1:
        indexed_again = chunks == distinct * times[distinct[0]]  # the whole document, one time after the other
        refrain = all(repeats_itself(chunk.text, within=len(chunk.text) * 2 // 3) for chunk in distinct)
        return (distinct, False, []) if indexed_again and not refrain else (chunks, True, [])
    if len(set(times.values())) > 1 and len(distinct) * 2 <= len(chunks):
        return chunks, True, []
    if ordered:
        return distinct, _copies_start_over(chunks), []
    is_whole = len(set(times.values())) == 1  # the whole document was indexed again
    return distinct, True, [] if is_whole else [chunk for chunk in distinct if times[chunk] > 1]


def _copies_start_over(chunks: Sequence[Chunk]) -> bool:
    """Return whether copies follow a long step back: longer than a splitter takes, which only repeats its overlap.

    A step to another page is long, wherever the offsets count from.
    """
    longest_step = max(2 * max(len(chunk.text) for chunk in chunks), _MIN_STEP_BACK)
    seen = set[Chunk]()
    last_start, end, is_copy, page = 0, 0, False, chunks[0].page
    for chunk in chunks:
        start = chunk.start or 0
        if chunk.text.isspace():
            continue
        continues, is_copy = is_copy and start > last_start, chunk in seen
        if is_copy and not continues and page == chunk.page and end - start <= longest_step:
            return False
        seen.add(chunk)
        last_start, end, page = start, start + len(chunk.text), chunk.page
    return True


def sort_by_place(chunks: Sequence[Chunk], *, ordered: bool = True) -> list[Chunk]:
    """Sort chunks by those numbers in their places that all of them have, and drop empty chunks.

    Those with the same numbers are sorted by their offsets, unless these start again among them, as those of the
    elements of a page do: then they keep their order, if they have one.

    Returns:
        The chunks, with new numbers as their places: that of the next chunk is one higher, or two if one between them
        is missing. Without numbers that all chunks have, or if chunks of several pages have the same number, they keep
        their order and have no places.
    """
    columns = list(zip(*(chunk.place for chunk in chunks), strict=False))
    usable = [index for index, column in enumerate(columns) if orders(column)]
    rows = [(tuple(chunk.place[index] for index in usable), chunk) for chunk in chunks]
    pages: dict[tuple[int, ...], Page | None] = {}
    if (
        not usable
        or any(pages.setdefault(place, chunk.page) != chunk.page for place, chunk in rows)
        or (ordered and _restart(rows))
    ):
        return [replace(chunk, place=()) if chunk.place else chunk for chunk in chunks if chunk.text]
    rows.sort(key=itemgetter(0))
    groups = [[chunk for _, chunk in group] for _, group in groupby(rows, key=itemgetter(0))]
    for group in groups:
        if not (ordered and begin_anew(group)):
            group.sort(key=lambda chunk: chunk.start or 0)
    rows = [(place, chunk) for (place, _), chunk in zip(rows, chain.from_iterable(groups), strict=True)]
    placed: list[Chunk] = []
    number, last_place = 0, rows[0][0]
    step = 2 if min(last_place) > 1 else 0  # where numbers start at 2 or higher, the first chunks are missing
    counted = [at for at, index in enumerate(usable) if _is_counted(columns[index])]
    for place, chunk in rows:
        if place != last_place:
            steps = [place[at] - last_place[at] for at in counted]
            missing = any(steps) and 1 not in steps
            last_place, step = place, 2 if missing else max(step, 1)
        if chunk.text:
            number, step = number + step, 0
            placed.append(replace(chunk, place=(number,)))
    return placed


def _restart(rows: Sequence[tuple[tuple[int, ...], Chunk]]) -> bool:
    """Return whether numbers begin again, as in each chapter, for chunks that do not stand at one place."""
    falls = [place for (before, _), (place, _) in pairwise(rows) if place < before]
    if not falls or any(place != rows[0][0] for place in falls):
        return False
    groups: dict[tuple[int, ...], list[Chunk]] = {}
    for place, chunk in rows:
        groups.setdefault(place, []).append(chunk)
    return any(chunk.start is None for _, chunk in rows) or any(map(begin_anew, groups.values()))


def begin_anew(chunks: Sequence[Chunk]) -> bool:
    """Return whether several of some chunks stand at one offset, with texts that cannot both stand there."""
    at: dict[int, str] = {}
    for chunk in chunks:
        text = at.setdefault(chunk.start or 0, chunk.text)
        if not (text.startswith(chunk.text) or chunk.text.startswith(text)):
            return chunk.start is not None
    return False


def orders(column: Sequence[int]) -> bool:
    """Return whether numbers that all chunks have can be those of an order: hashes and times are not."""
    return -1 not in column and max(column) - min(column) <= _FURTHEST * len(column)


def _is_counted(column: Sequence[int]) -> bool:
    """Return whether numbers count chunks, so that one that is not there is missing; lines and characters do not."""
    return max(column) - min(column) <= _FEW * len(set(column))


def split_by_page(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Return the chunks of each page, if their offsets start again there; nothing if they count through the document.

    The top of a page, its lowest offset, is past that of the page before if they count through the document.
    """
    pages: dict[Page, list[Chunk]] = {}
    for chunk in chunks:
        if chunk.page is None or chunk.start is None:
            return []
        pages.setdefault(chunk.page, []).append(chunk)
    tops = [min(chunk.start or 0 for chunk in page) for page in pages.values()]
    is_anew = any(right <= left for left, right in pairwise(tops)) or all(top <= ALWAYS for top in tops)
    return list(pages.values()) if is_anew and len(pages) > 1 else []
