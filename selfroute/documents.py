"""Chunks -> whole documents, and an honest word on how whole they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from selfroute.metadata import ORDER_KEYS

_STRIPPED = 4  # a gap up to so many characters counts as white space between two chunks
_LEAST_OVERLAP = 9  # shorter ones may be chance
_MOST_OVERLAP = 8_000
_REPETITIVE = 3  # a text that overlaps itself in so many ways tells nothing by it

Gap = tuple[int, int]


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


@dataclass(frozen=True, slots=True)
class Whole:
    """A document put together from its chunks.

    Attributes:
        text: Its text. By offsets and without gaps it is the document's, but for the amount of white space.
        method: By what the chunks were put together: their offsets, or only the order in which they come.
        chunks: From how many, each counted once.
        gaps: Stretches that no chunk holds, in characters from the beginning, best known where the offsets are. An
            empty stretch marks where something is missing, or may be, of unknown length.
    """

    text: str
    method: Literal["offsets", "order"]
    chunks: int
    gaps: tuple[Gap, ...] = ()

    def label(self) -> dict[str, Any]:
        """What a document's metadata say of how it was come by: plain JSON."""
        gaps = [list(gap) for gap in self.gaps]
        return {"method": self.method, "chunks": self.chunks, "gaps": gaps, "trimmed": False}


def original_label() -> dict[str, Any]:
    """The label of a document that was there as a whole."""
    return {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}


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
        place = tuple(_number(metadata.get(key)) for key in keys)
        yield Chunk(text, offset(metadata.get(start_key)), place)


def offset(value: Any) -> int | None:
    """A usable offset, or None: splitters write -1 where they lost their way."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: Any) -> int:
    known = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else offset(value)
    return -1 if known is None else known


def rebuild(chunks: Iterable[Chunk]) -> Whole:
    """Put a document together from all of its chunks.

    By their offsets, if these can be trusted. Offsets that contradict the texts or the chunks' places can not, nor
    can those by which neighbours overlap by more than half a chunk: a repetitive text gets such offsets, since
    splitters look their chunks up, and would lose most of itself. Then the chunks are joined in the order of their
    places, or of `chunks` if they have none, and what two neighbours share is written once.

    Args:
        chunks: The chunks, as the store hands them over.

    Returns:
        The document; what is not known of it stands in `method` and `gaps`.
    """
    held = _placed(_once([chunk for chunk in chunks if chunk.text]))
    count = len(held)
    run = _Run.of(held)
    if run:
        held.clear()  # or the text would be there three times over
        return Whole("".join(run.pieces()), "offsets", count, tuple(run.gaps))
    return _in_order(held)


def _once(chunks: list[Chunk]) -> list[Chunk]:
    """Leave out what was stored again: documents are indexed twice, or by half once more."""
    times = Counter(chunks)
    if len(times) == len(chunks):
        return chunks
    passes, rest = divmod(len(chunks), len(times))
    if not rest and chunks == chunks[: len(times)] * passes:
        return chunks[: len(times)]
    # One chunk alone that comes again at the same offset was stored again, or it is one of a refrain that the splitter
    # looked up at the wrong place; it does so with short ones.
    long = max(len(chunk.text) for chunk in chunks) / 2
    seen: set[Chunk] = set()
    kept = []
    for chunk in chunks:
        if chunk not in seen or chunk.start is None or len(chunk.text) < long:
            kept.append(chunk)
        seen.add(chunk)
    return kept


def _placed(chunks: list[Chunk]) -> list[Chunk]:
    """Put chunks in the order of their places, by what all of them are numbered by."""
    columns = list(zip(*(chunk.place for chunk in chunks), strict=True))
    usable = [index for index, column in enumerate(columns) if -1 not in column]
    if len(usable) < len(columns):
        chunks = [Chunk(chunk.text, chunk.start, tuple(chunk.place[index] for index in usable)) for chunk in chunks]
    return sorted(chunks, key=lambda chunk: (chunk.place, chunk.start or 0)) if usable else chunks


class _Run:
    """Chunks that their offsets put together."""

    def __init__(self, ordered: list[Chunk], cuts: list[int], gaps: list[Gap], end: int) -> None:
        self._ordered, self._cuts, self.gaps, self.end = ordered, cuts, gaps, end

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> _Run | None:
        """Look at the offsets; None if they can not be trusted."""
        if not chunks or any(chunk.start is None for chunk in chunks):
            return None
        ordered = sorted(chunks, key=lambda chunk: (chunk.start, -len(chunk.text)))
        cuts, holes, redundant = [], [], False
        begin, end, last = 0, 0, ""
        for chunk in ordered:
            start, text = chunk.start or 0, chunk.text
            shared = min(end - start, len(text))
            if shared > 0:
                if not last.startswith(text[:shared], start - begin) or shared * 2 > max(len(last), len(text)):
                    return None
                redundant = redundant or shared == len(text)
            elif shared < 0:
                holes.append((end, start))
            cuts.append(shared)
            if start + len(text) > end:
                begin, end, last = start, start + len(text), text
        if not redundant:
            return cls(ordered, cuts, [hole for hole in holes if hole[1] - hole[0] > _STRIPPED], end)
        if any(left.place > right.place for left, right in pairwise(ordered)):
            return None
        # A chunk that adds nothing may belong elsewhere: then its own place is one of the holes, or at the end.
        return cls(ordered, cuts, [*holes, (end, end)], end)

    def pieces(self) -> Iterator[str]:
        """Let go of the chunks and hand over what each adds."""
        self._ordered.reverse()
        for index, shared in enumerate(self._cuts):
            text = self._ordered.pop().text
            if shared < 0 and index:
                yield "\n" if shared == -1 else "\n\n"  # white space that the splitter stripped
            yield text[max(shared, 0) :]


def _in_order(chunks: Sequence[Chunk]) -> Whole:
    pieces: list[str] = []
    gaps: list[Gap] = [(0, 0)] if chunks and chunks[0].place and min(chunks[0].place) > 1 else []
    at, before, last = 0, tuple[int, ...](), ""
    for place, text, holes, length in _stretches(chunks):
        shared = 0
        if _missing(before, place):
            gaps.append((at, at))
        else:
            shared = _overlap(last, text)
        if pieces and not shared:
            pieces.append("\n")
            at += 1
        gaps += [(at + start - shared, at + end - shared) for start, end in holes]
        pieces.append(text[shared:])
        at, before, last = at + length - shared, place, text
    return Whole("".join(pieces), "order", len(chunks), tuple(gaps))


def _stretches(chunks: Sequence[Chunk]) -> Iterator[tuple[tuple[int, ...], str, list[Gap], int]]:
    """What to join: pages and the like, put together by offsets of their own, or else single chunks."""
    runs: list[list[Chunk]] = []
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        if last and last.place == chunk.place and (last.start or 0) <= (chunk.start or 0):
            runs[-1].append(chunk)
        else:  # another page, or one that has no number: offsets begin again
            runs.append([chunk])
    for run in runs:
        joined = _Run.of(run) if len(run) > 1 else None
        if joined:
            yield run[0].place, "".join(joined.pieces()), joined.gaps, joined.end
        else:
            yield from ((chunk.place, chunk.text, [], len(chunk.text)) for chunk in run)


def _missing(before: tuple[int, ...], place: tuple[int, ...]) -> bool:
    return (
        bool(before) and before != place and all(right - left != 1 for left, right in zip(before, place, strict=True))
    )


def _overlap(left: str, right: str) -> int:
    """How many characters the end of one text shares with the beginning of the next."""
    tail = left[-min(max(len(left), len(right)) // 2, len(right), _MOST_OVERLAP) :]
    probe, sizes = right[:_LEAST_OVERLAP], []
    at = tail.find(probe) if len(probe) == _LEAST_OVERLAP else -1
    while at >= 0:
        if right.startswith(tail[at:]):
            sizes.append(len(tail) - at)
        at = tail.find(probe, at + 1)
    if not sizes:
        return 0
    return sizes[0] if len(sizes) < _REPETITIVE else sizes[-1]
