"""Rebuild a document from its chunks, and say how complete the result is.

Chunks may overlap, lack offsets or numbers, be stored twice, or be missing. `rebuild` takes three steps:

1. `deduplicate` drops chunks that were stored again, as when a document is indexed twice.
2. `sort_by_place` sorts the rest by page and chunk number, if all chunks have such numbers, and numbers them anew: the
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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from selfroute.documents.chunks import Chunk
from selfroute.documents.offsets import Gap, OffsetJoin
from selfroute.documents.ordering import UnknownOrderError, deduplicate, fixed_order, sort_by_place
from selfroute.documents.repetition import fits_further_on
from selfroute.documents.white_space import ALWAYS

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
    """

    text: str
    method: Literal["offsets", "order"]
    chunks: int
    gaps: tuple[Gap, ...] = ()

    def label(self) -> dict[str, Any]:
        """Return how the document was assembled, as plain JSON for its metadata."""
        gaps = [list(gap) for gap in self.gaps]
        return {"method": self.method, "chunks": self.chunks, "gaps": gaps, "trimmed": False}


def original_label() -> dict[str, Any]:
    """Return the label of a document that was available as a whole."""
    return {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}


def labelled_with(known: Mapping[str, Any], label: Mapping[str, Any]) -> dict[str, Any]:
    """Return the label of a document, or of a part of it.

    Args:
        known: Its label so far.
        label: What to add. If that has a method of its own, nothing but the pages of the document is kept.
    """
    if "method" in label:
        return {**label, **{key: known[key] for key in ("pages",) if key in known}}
    return {**original_label(), **known, **label}


def rebuild(chunks: Iterable[Chunk], *, doubtful: bool = False, ordered: bool = True) -> RebuiltDocument:
    """Rebuild a document from all of its chunks.

    The chunks are joined by their offsets, if these can be trusted. They are not trusted if they contradict the texts
    or the places of the chunks, or if two neighbours overlap by more than half a chunk. Splitters find a chunk's offset
    by searching for its text, so in a repetitive document many chunks get the offset of an earlier occurrence, and
    joining by these offsets would lose most of it. The chunks are then joined in the order of their places, or in the
    order given if they have none, and what two neighbours share is written once.

    A splitter finds a chunk at its own place or, in a repetitive text, before it. So what is joined by offsets is right
    as far as it goes, and text may be missing only where a chunk could stand further on as well. If the chunks belong
    to two versions of a document their offsets do not meet, unless every change kept the length of what it replaced.

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
    listed, certain = sort_by_place(distinct), certain and not doubtful
    distinct.clear()
    count = len(listed)
    joined = OffsetJoin.of(listed, certain=certain, copies=copies, ordered=ordered)
    if not joined:
        return _join_in_order(listed, certain=certain and not copies, ordered=ordered)
    listed.clear()  # otherwise the text would be in memory three times
    return RebuiltDocument("".join(joined.pieces()), "offsets", count, tuple(joined.gaps))


def _join_in_order(chunks: Sequence[Chunk], *, certain: bool, ordered: bool) -> RebuiltDocument:
    pieces: list[str] = []
    gaps: list[Gap] = []
    at, last_place, last_text = 0, (0,) if chunks and chunks[0].place else tuple[int, ...](), ""
    for place, text, text_gaps, length in _sections(chunks, ordered=ordered):
        shared = 0
        if last_place and place[0] - last_place[0] > 1:
            gaps.append((at, at))
        else:
            shared = _overlap(last_text, text)
        if pieces and not shared:
            pieces.append("\n")
            at += 1
        gaps += [(at + start - shared, at + end - shared) for start, end in text_gaps]
        pieces.append(text[shared:])
        at, last_place, last_text = at + length - shared, place, text
    if not certain:
        gaps.append((at, at))
    return RebuiltDocument("".join(pieces), "order", len(chunks), tuple(gaps))


def _sections(chunks: Sequence[Chunk], *, ordered: bool) -> Iterator[tuple[tuple[int, ...], str, list[Gap], int]]:
    """Yield what to join in order: pages, if the offsets of each page join its chunks, and single chunks otherwise.

    Yields:
        The place, text and gaps of each section, and its length with the gaps.
    """
    runs: list[list[Chunk]] = []  # of one place, with rising offsets
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        if last and last.place == chunk.place and (last.start or 0) <= (chunk.start or 0):
            runs[-1].append(chunk)
        else:  # the next page; without numbers, falling offsets show where it starts
            runs.append([chunk])
    starts = [chunk.start or 0 for chunk in chunks]
    paged = len({chunk.place for chunk in chunks}) < len(chunks) and starts != sorted(starts)
    for run in runs:
        # Without numbers, chunks that do not start at the top of a page may belong to any page.
        joined = OffsetJoin.of(run) if paged and (run[0].place or (run[0].start or 0) <= ALWAYS) else None
        if joined:
            yield run[0].place, "".join(joined.pieces()), joined.gaps, joined.end
        elif not ordered and len(set(run)) > 1:
            raise UnknownOrderError
        else:
            yield from ((chunk.place, chunk.text, [], len(chunk.text)) for chunk in run)


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
