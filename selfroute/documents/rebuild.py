"""Rebuild a document from its chunks, and say how complete the result is.

Chunks may overlap, lack offsets or numbers, be stored twice, or be missing. `rebuild` takes three steps:

1. `_deduplicate` drops chunks that were stored again, as when a document is indexed twice.
2. `_sort_by_place` sorts the rest by page and chunk number, if all chunks have such numbers, and numbers them anew: the
   next chunk gets the next number, or the one after it if a chunk between the two is missing.
3. `_OffsetJoin.of` puts them where their offsets say, if the offsets can be trusted. Otherwise `_join_in_order` joins
   each chunk to the one before it, and writes an overlap of the two only once.

For example, take three chunks of at most 30 characters; the store holds the last two twice:

    name  start  place  text
    A         0   (0,)  "Dues are 40 crowns. Boats over"
    B        20   (1,)  "Boats over 9 m pay double."
    C        47   (2,)  "Visitors pay daily."

* `_deduplicate([A, B, C, B, C])` returns `[A, B, C]`, and True: each has its own number and offset, so the second B and
  C are certainly copies. Without numbers it could not be certain; without offsets either, it would keep all five, since
  a text may well repeat two sentences.
* `_sort_by_place` leaves the order as it is. If B were missing, A would get the number 0 and C the number 2.
* `_OffsetJoin.of` computes how many characters of each chunk are already written: 0 of A; 10 of B, since A ends at 30
  and B starts at 20; -1 of C, since B ends at 46 and C starts at 47. It checks that the 10 shared characters are the
  same in A and B. One missing character counts as white space that the splitter stripped. So the text is A, B without
  its first 10 characters, a line break and C, and there are no gaps. If B were missing there would be the gap (30, 47).
* If the splitter had written the offset 0 to all three chunks, B would contradict A, and `_OffsetJoin.of` would return
  None. Then `_join_in_order` finds that A ends and B begins with "Boats over", writes that once, and C after a line
  break. This gives the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from selfroute.documents.chunks import Chunk

_MAX_STRIPPED = 4  # characters between two chunks that count as white space which the splitter stripped
_TOLERATED_LOSS = 10  # at most a tenth of a text may depend on offsets that a repetition makes ambiguous
_MAX_TRIES = 1_000  # to find out whether a text repeats itself
_MIN_STEP_BACK = 20  # characters; no splitter steps back further, however small its chunks
_MIN_OVERLAP = 9  # characters; less may be a coincidence
_MAX_OVERLAP = 8_000

Gap = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RebuiltDocument:
    """A document that was rebuilt from its chunks.

    Attributes:
        text: The text. If it was joined by offsets and has no gaps it is the original text, except that white space may
            differ in amount.
        method: How the chunks were joined: by their offsets, or only in order.
        chunks: The number of chunks, each counted once.
        gaps: Stretches that no chunk holds: start and end, in characters from the beginning of the original document,
            and only approximate if the chunks were joined in order. An empty stretch marks a place where text of
            unknown length is, or may be, missing; at the end of the document, that it may be missing anywhere.
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


def rebuild(chunks: Iterable[Chunk], *, doubtful: bool = False) -> RebuiltDocument:
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

    Returns:
        The document. Its `method` and `gaps` say what is not known about it.

    Examples:
        >>> rebuild([Chunk("Dues are 40 crowns. Boats over", 0), Chunk("Boats over 9 m pay double.", 20)]).text
        'Dues are 40 crowns. Boats over 9 m pay double.'
    """
    distinct, certain = _deduplicate(list(chunks))
    ordered, certain = _sort_by_place(distinct), certain and not doubtful
    distinct.clear()
    count = len(ordered)
    joined = _OffsetJoin.of(ordered, certain=certain)
    if not joined:
        return _join_in_order(ordered, certain=certain)
    ordered.clear()  # otherwise the text would be in memory three times
    return RebuiltDocument("".join(joined.pieces()), "offsets", count, tuple(joined.gaps))


def _deduplicate(chunks: list[Chunk]) -> tuple[list[Chunk], bool]:
    """Drop chunks that were stored again, because a document was indexed twice or an indexing was repeated in part.

    Returns:
        The chunks that remain, and whether it is certain that only copies were dropped: the lines of a refrain look
        alike too, if the splitter gave all of them the offset of the first.
    """
    times = Counter(chunks)
    distinct = list(times)
    if len(distinct) == len(chunks):
        return chunks, True
    have_offsets = all(chunk.start is not None for chunk in distinct)
    if len({chunk.place for chunk in distinct}) == len(distinct) > 1:  # numbered, so equal chunks are copies
        return distinct, have_offsets
    if not have_offsets or len(distinct) == 1:
        indexed_again = chunks == distinct * times[distinct[0]]  # the whole document, one time after the other
        refrain = all(_repeats_itself(chunk.text, within=len(chunk.text) * 2 // 3) for chunk in distinct)
        return (distinct, False) if indexed_again and not refrain else (chunks, True)
    if len(set(times.values())) > 1 and len(distinct) * 2 <= len(chunks):
        return chunks, True
    return distinct, _copies_start_over(chunks)


def _copies_start_over(chunks: Sequence[Chunk]) -> bool:
    """Return whether copies follow a long step back: longer than a splitter takes, which only repeats its overlap."""
    longest_step = max(2 * max(len(chunk.text) for chunk in chunks), _MIN_STEP_BACK)
    seen = set[Chunk]()
    last_start, end, is_copy = 0, 0, False
    for chunk in chunks:
        start = chunk.start or 0
        if chunk.text.isspace():
            continue
        continues, is_copy = is_copy and start > last_start, chunk in seen
        if is_copy and not continues and end - start <= longest_step:
            return False
        seen.add(chunk)
        last_start, end = start, start + len(chunk.text)
    return True


def _sort_by_place(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Sort chunks by those numbers in their places that all of them have, and drop empty chunks.

    Returns:
        The chunks, with new numbers as their places: that of the next chunk is one higher, or two if one between them
        is missing. Without numbers that all chunks have, they keep their order and have no places.
    """
    columns = list(zip(*(chunk.place for chunk in chunks), strict=False))
    usable = [index for index, column in enumerate(columns) if -1 not in column]
    if not usable:
        return [Chunk(chunk.text, chunk.start) if chunk.place else chunk for chunk in chunks if chunk.text]
    rows = [(tuple(chunk.place[index] for index in usable), chunk) for chunk in chunks]
    rows.sort(key=lambda row: (row[0], row[1].start or 0))
    placed: list[Chunk] = []
    number, last_place = 0, rows[0][0]
    step = 2 if min(last_place) > 1 else 0  # where numbers start at 2 or higher, the first chunks are missing
    for place, chunk in rows:
        if place != last_place:
            missing = all(right - left != 1 for left, right in zip(last_place, place, strict=True))
            last_place, step = place, 2 if missing else max(step, 1)
        if chunk.text:
            number, step = number + step, 0
            placed.append(Chunk(chunk.text, chunk.start, (number,)))
    return placed


class _OffsetJoin:
    """Chunks that can be joined by their offsets.

    Attributes:
        gaps: As in `RebuiltDocument`.
        end: Where the last chunk ends.
    """

    def __init__(self, ordered: list[Chunk], written: list[int], gaps: list[Gap], end: int) -> None:
        """Take the chunks by offset, and how much of each is written before it; less than 0 if text is missing."""
        self._ordered, self._written, self.gaps, self.end = ordered, written, gaps, end

    @classmethod
    def of(cls, chunks: Sequence[Chunk], *, certain: bool = True) -> _OffsetJoin | None:
        """Return how the offsets join some chunks; None if they cannot be trusted.

        Args:
            chunks: The chunks, in the order of their places, or of the store.
            certain: Whether nothing else casts doubt on them.
        """
        starts = [chunk.start for chunk in chunks if chunk.start is not None]
        in_order = starts == sorted(starts)
        if not chunks or len(starts) < len(chunks) or (chunks[0].place and not in_order):
            return None
        ordered = sorted(chunks, key=lambda chunk: (chunk.start or 0, -len(chunk.text)))
        written: list[int] = []
        gaps: list[Gap] = []
        last_start, end, last_text, last_place = 0, 0, "", ordered[0].place  # `last_text` is the one that ends at `end`
        movable = 0  # characters that are lost if every ambiguous chunk really stands further on
        for chunk in ordered:
            start, text = chunk.start or 0, chunk.text
            shared = min(end - start, len(text))
            if shared > 0:
                contradicts = not last_text.startswith(text[:shared], start - last_start)
                if contradicts or shared * 2 > max(len(last_text), len(text)):
                    return None
                if _fits_further_on(text, shared) and not text.isspace():
                    movable += shared
            missing = _chunk_missing(last_place, chunk.place)
            if -shared > _MAX_STRIPPED or (missing and shared < 0):
                gaps.append((end, start))
            elif missing:
                gaps.append((start, start))
            written.append(shared)
            last_place = chunk.place
            if start + len(text) > end:
                last_start, end, last_text = start, start + len(text), text
        if in_order and movable * _TOLERATED_LOSS > end:
            return None
        certain = certain and not movable and (in_order or _each_adds_text(ordered))
        return cls(ordered, written, gaps if certain else [*gaps, (end, end)], end)

    def pieces(self) -> Iterator[str]:
        """Yield what each chunk adds to the text, and release the chunk; this works once."""
        self._ordered.reverse()
        for index, shared in enumerate(self._written):
            text = self._ordered.pop().text
            if shared < 0 and index:
                yield "\n" if shared == -1 else "\n\n"  # for the white space that the splitter stripped
            yield text[max(shared, 0) :]


def _each_adds_text(ordered: Sequence[Chunk]) -> bool:
    """Return whether each chunk holds text of its own: without it, and without any order, a chunk may be misplaced."""
    stretches = [(chunk.start or 0, chunk.text) for chunk in ordered if not chunk.text.isspace()]
    end = 0
    for (start, text), following in zip_longest(stretches, stretches[1:]):
        if not text[max(end - start, 0) : following[0] - start if following else None].strip():
            return False
        end = max(end, start + len(text))
    return True


def _fits_further_on(text: str, shared: int) -> bool:
    """Return whether a chunk that shares its first characters with the text before it could also start further on."""
    rest = text[shared:]
    stripped = len(rest) - len(rest.lstrip()) if rest == rest.rstrip() else 0  # if the splitter strips chunks
    return _repeats_itself(text, within=shared + stripped)


def _repeats_itself(text: str, *, within: int) -> bool:
    """Return whether a text, moved by at most `within` characters, matches itself where both overlap."""
    if within >= len(text):
        return True
    probe, at = text[: len(text) - within], 0
    for _ in range(_MAX_TRIES):
        at = text.find(probe, at + 1)
        if at < 0:
            return False
        if text.startswith(text[at:]):
            return True
    return True  # undecided: assume the worse


def _chunk_missing(last_place: tuple[int, ...], place: tuple[int, ...]) -> bool:
    return bool(last_place) and place[0] - last_place[0] > 1


def _join_in_order(chunks: Sequence[Chunk], *, certain: bool) -> RebuiltDocument:
    pieces: list[str] = []
    gaps: list[Gap] = []
    at, last_place, last_text = 0, (0,) if chunks and chunks[0].place else tuple[int, ...](), ""
    for place, text, text_gaps, length in _sections(chunks):
        shared = 0
        if _chunk_missing(last_place, place):
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


def _sections(chunks: Sequence[Chunk]) -> Iterator[tuple[tuple[int, ...], str, list[Gap], int]]:
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
        joined = _OffsetJoin.of(run) if paged and (run[0].place or (run[0].start or 0) <= _MAX_STRIPPED) else None
        if joined:
            yield run[0].place, "".join(joined.pieces()), joined.gaps, joined.end
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
    return sizes[0] if len(sizes) == 1 and not _fits_further_on(right, sizes[0]) else 0
