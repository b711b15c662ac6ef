"""Rebuild a document from its chunks, and say how complete the result is.

Chunks may overlap, lack offsets or numbers, be stored twice, or be missing. `rebuild` takes three steps:

1. `deduplicate` drops chunks that were stored again, as when a document is indexed twice.
2. `sort_by_place` sorts the rest by page and chunk number, if all chunks have such numbers, and numbers them again: the
   next chunk gets the next number, or the one after it if a chunk between the two is missing.
3. `OffsetJoin.of` puts them where their offsets say, if the offsets can be trusted. Otherwise `_join_in_order` joins
   each chunk to the one before it, and writes an overlap of the two only once.

For example, take three chunks of at most 30 characters; the store holds the last two twice:

    name  start  place  text
    A         0   (0,)  "Dues are 40 crowns. Boats over"
    B        20   (1,)  "Boats over 9 m pay double."
    C        47   (2,)  "Visitors pay daily."

* `deduplicate([A, B, C, B, C])` keeps `[A, B, C]`, and is certain: each has its own number and offset, so the second B
  and C are copies. Without numbers it could not be certain; without offsets either, it would keep all five, since a
  text may well repeat two sentences.
* `sort_by_place` leaves the order as it is. If B were missing, A would get the number 0 and C the number 2.
* `OffsetJoin.of` computes how many characters of each chunk are already written: 0 of A; 10 of B, since A ends at 30
  and B starts at 20; -1 of C, since B ends at 46 and C starts at 47. It checks that the 10 shared characters are the
  same in A and B. One missing character is white space that the splitter stripped; longer stretches are judged by the
  white space in the chunks, and between consecutive numbers nothing is missing. So the text is A, B without its first
  10 characters, a line break and C, and there are no gaps. If B were missing there would be the gap (30, 47).
* If the splitter had written the offset 0 to all three chunks, B would contradict A, and `OffsetJoin.of` would return
  None. Then `_join_in_order` finds that A ends and B begins with "Boats over", writes that once, and C after a line
  break. This gives the same text.

If a loader made a document of each page, offsets start again on each. `split_by_page` recognises this by the chunks'
pages; then the chunks of each page are joined by their offsets, and the pages one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from selfroute.documents.chunks import Chunk
from selfroute.documents.headings import HeadingStart, go_on_across, headings_in, with_headings, without_titles
from selfroute.documents.label import Label
from selfroute.documents.offsets import ALWAYS, Gap, OffsetJoin, fits_further_on
from selfroute.documents.ordering import (
    UnknownOrderError,
    deduplicate,
    fixed_order,
    sort_by_place,
    split_by_page,
)
from selfroute.documents.pages import Pages, PageStart

_MIN_OVERLAP = 9  # characters; less may be a coincidence
_MAX_OVERLAP = 8_000


@dataclass(frozen=True, slots=True)
class RebuiltDocument:
    """A document that was rebuilt from its chunks.

    Attributes:
        text: The text. If it was joined by offsets and has no gaps it is the original text, except that white space may
            differ in amount, and that a missing chunk as short as the white space may have been taken for it.
        method: How the chunks were joined: by their offsets, or only in order.
        chunks: The number of chunks, each counted once.
        gaps: Stretches of text that no chunk holds: start and end, in characters from the beginning of the original
            document, and only approximate if the chunks were joined in order. An empty stretch marks a place where text
            of unknown length is, or may be, missing; at the end of the document, that it may be missing anywhere.
        pages: Where in the text each page begins, and the page, for the chunks that name theirs.
        headings: Where in the text headings change that a splitter had moved into metadata, and those from there on.
        texts: How many texts stand in the store under its name, of which it is one.
        doubtful: Whether it may be joined of several of them, which could not be told apart.
    """

    text: str
    method: Literal["offsets", "order"]
    chunks: int
    gaps: tuple[Gap, ...] = ()
    pages: tuple[PageStart, ...] = ()
    headings: tuple[HeadingStart, ...] = ()
    texts: int = 1
    doubtful: bool = False

    def label(self) -> Label:
        """Return how the document was assembled, as plain JSON for its metadata."""
        gaps = [list(gap) for gap in self.gaps]
        pages = {"pages": [list(start) for start in self.pages]} if self.pages else {}
        doubtful = {"doubtful": True} if self.doubtful else {}
        label = {"method": self.method, "chunks": self.chunks, "gaps": gaps, "trimmed": False, **pages, **doubtful}
        return Label(label, length=len(self.text), texts=self.texts, headings=self.headings)


def rebuild(chunks: Iterable[Chunk], *, doubtful: bool = False, ordered: bool = True) -> RebuiltDocument:
    """Rebuild a document from all of its chunks.

    The chunks are joined by their offsets, if these can be trusted. They are not trusted if they contradict the texts
    or the places of the chunks, or if two neighbours overlap by more than half a chunk that could stand further on as
    well. Splitters find a chunk's offset by searching for its text, so in a repetitive document many chunks get the
    offset of an earlier occurrence, and joining by these offsets would lose most of it. The chunks are then joined in
    the order of their places, or in the order given if they have none, and what two neighbours share is written once.

    A splitter finds a chunk at its own place or, in a repetitive text, before it. So text that is joined by offsets is
    right, and may lack something only where a chunk could stand further on as well. If the chunks belong to two
    versions of a document their offsets do not meet, unless every change kept the length of what it replaced.

    Args:
        chunks: The chunks, in the order in which the store returns them.
        doubtful: Whether the caller knows that something is wrong with the chunks.
        ordered: Whether the store returns them in the order in which they were added. If not, that order is ignored.

    Returns:
        The document. Its `method` and `gaps` say what is not known about it.

    Raises:
        UnknownOrderError: The chunks have no order: the store has none, their offsets cannot be trusted, and they have
            no numbers that tell them apart.

    Examples:
        >>> rebuild([Chunk("Dues are 40 crowns. Boats over", 0), Chunk("Boats over 9 m pay double.", 20)]).text
        'Dues are 40 crowns. Boats over 9 m pay double.'
    """
    listed = list(chunks) if ordered else sorted(chunks, key=fixed_order)
    distinct, certain, copies = deduplicate(listed, ordered=ordered)
    listed, certain = sort_by_place(distinct, ordered=ordered), certain and not doubtful
    distinct.clear()
    if any(headings := without_titles([chunk.headings for chunk in listed]) if listed else []):
        headed = [replace(chunk, headings=each) for chunk, each in zip(listed, headings, strict=True)]
        begin_anew = len({chunk.start for chunk in headed}) < len(headed)
        if not headed[0].place and not (ordered and begin_anew):
            headed.sort(key=lambda chunk: -1 if chunk.start is None else chunk.start)
        if begin_anew or not go_on_across(headed):
            return _headed(headed, certain=certain, copies=copies, ordered=ordered)
    return _joined(listed, certain=certain, copies=copies, ordered=ordered)


def _headed(listed: list[Chunk], *, certain: bool, copies: Sequence[Chunk], ordered: bool) -> RebuiltDocument:
    """Join chunks with the headings that they stand under."""
    chunks = with_headings(listed)
    document = _joined(list(chunks), certain=certain, copies=copies, ordered=ordered)
    return replace(document, headings=headings_in(document.text, chunks))


def _joined(listed: list[Chunk], *, certain: bool, copies: Sequence[Chunk], ordered: bool) -> RebuiltDocument:
    count = len(listed)
    pages = split_by_page(listed)
    if pages:
        if not (ordered or listed[0].place):
            raise UnknownOrderError(have_offsets=True)
        listed.clear()
    joined = None if pages else OffsetJoin.of(listed, certain=certain, copies=copies, ordered=ordered)
    if not joined:
        sections = _pages(pages, copies, ordered=ordered) if pages else _sections(listed, ordered=ordered)
        return _join_in_order(sections, count, certain=certain and (bool(pages) or not copies))
    listed.clear()  # otherwise the text would be in memory three times
    text = "".join(joined.pieces())
    return RebuiltDocument(text, "offsets", count, tuple(joined.gaps), tuple(joined.pages.starts))


class _Section(NamedTuple):
    """A piece of a document that is joined to the one before it.

    Attributes:
        first: The place of its first chunk.
        last: The place of its last chunk.
        text: Its text.
        length: Its length with the gaps.
        pages: Where in the text its pages begin.
        gaps: Its gaps.
        begins_page: Whether it begins a page, which shares nothing with the one before.
        exact: Whether it is a whole page that is joined by its offsets.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    text: str
    length: int
    pages: Sequence[PageStart]
    gaps: Sequence[Gap] = ()
    begins_page: bool = False
    exact: bool = False

    @classmethod
    def joined(cls, run: Sequence[Chunk], join: OffsetJoin, *, is_page: bool = False) -> _Section:
        text = "".join(join.pieces())
        places = (run[0].place, run[-1].place)
        return cls(*places, text, join.end, join.pages.starts, join.gaps, begins_page=is_page, exact=is_page)

    @classmethod
    def single(cls, chunk: Chunk, *, begins_page: bool = False) -> _Section:
        pages = [(0, chunk.page)]
        return cls(chunk.place, chunk.place, chunk.text, len(chunk.text), pages, begins_page=begins_page)


def _join_in_order(sections: Iterable[_Section], count: int, *, certain: bool) -> RebuiltDocument:
    pieces: list[str] = []
    gaps: list[Gap] = []
    pages = Pages()
    exact = bool(count)
    at, written, last = 0, 0, None  # offsets with and without the gaps
    for one in sections:
        exact, shared = exact and one.exact, 0
        if one.first and one.first[0] - (last.last[0] if last and last.last else 0) > 1:
            gaps.append((at, at))
        elif last and not one.begins_page:
            shared = _overlap(last.text, one.text)
        if pieces and not shared:
            pieces.append("\n")
            at, written = at + 1, written + 1
        gaps += [(at + start - shared, at + end - shared) for start, end in one.gaps]
        for start, page in one.pages:
            pages.note(written + start - shared, page)
        pieces.append(one.text[shared:])
        at, written, last = at + one.length - shared, written + len(pieces[-1]), one
    if not certain:
        gaps.append((at, at))
    method: Literal["offsets", "order"] = "offsets" if exact else "order"
    return RebuiltDocument("".join(pieces), method, count, tuple(gaps), tuple(pages.starts))


def _pages(pages: Iterable[list[Chunk]], copies: Sequence[Chunk], *, ordered: bool) -> Iterator[_Section]:
    """Yield pages whose offsets start again, and the chunks one by one of those whose offsets cannot be trusted."""
    for page in pages:
        again = [chunk for chunk in copies if chunk.page == page[0].page]
        if join := OffsetJoin.of(page, copies=again, ordered=ordered):
            yield _Section.joined(page, join, is_page=True)
            page.clear()
            continue
        if not ordered and len({chunk.place for chunk in page}) < len(page):
            raise UnknownOrderError(have_offsets=True)
        for number, run in enumerate(_rising(page, least=1)):
            if join := OffsetJoin.of(run) if 1 < len(run) < len(page) else None:  # an element of the page
                yield _Section.joined(run, join)._replace(begins_page=True)
            else:
                yield from (_Section.single(one, begins_page=not (number or at)) for at, one in enumerate(run))


def _sections(chunks: Sequence[Chunk], *, ordered: bool) -> Iterator[_Section]:
    """Yield pages that nothing names, if the offsets of each join its chunks, and single chunks otherwise."""
    runs = _rising(chunks)  # without numbers, falling offsets show where a page starts
    starts = [chunk.start or 0 for chunk in chunks]
    paged = len({chunk.place for chunk in chunks}) < len(chunks) and starts != sorted(starts)
    for run in runs:
        # Without numbers, chunks that do not start at the top of a page may belong to any page.
        joined = OffsetJoin.of(run) if paged and (run[0].place or (run[0].start or 0) <= ALWAYS) else None
        if joined:
            yield _Section.joined(run, joined)
        elif not ordered and len(set(run)) > 1:
            raise UnknownOrderError(have_offsets=all(chunk.start is not None for chunk in chunks))
        else:
            yield from map(_Section.single, run)


def _rising(chunks: Sequence[Chunk], *, least: int = 0) -> list[list[Chunk]]:
    """Split chunks where another place begins, or offsets do not rise by so much."""
    runs: list[list[Chunk]] = []
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        if last and last.place == chunk.place and (last.start or 0) + least <= (chunk.start or 0):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return runs


def _overlap(left: str, right: str) -> int:
    """Return how many characters the end of `left` shares with the beginning of `right`; 0 if that is ambiguous."""
    longest = min(max(len(left), len(right)) // 2, len(right), _MAX_OVERLAP)
    tail, probe = left[-longest:], right[:_MIN_OVERLAP]
    sizes: list[int] = []
    at = tail.find(probe) if len(probe) == _MIN_OVERLAP else -1
    while at >= 0 and len(sizes) < 2:  # noqa: PLR2004
        if right.startswith(tail[at:]):
            sizes.append(len(tail) - at)
        at = tail.find(probe, at + 1)
    return sizes[0] if len(sizes) == 1 and not fits_further_on(right, sizes[0]) else 0
