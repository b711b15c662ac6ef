"""Chunks -> whole documents, and an honest word on how whole they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from selfroute.documents.chunks import Chunk

_STRIPPED = 4  # a gap up to so many characters counts as white space between two chunks
_MOST_LOST = 10  # the part of a text, a tenth, that may be lost because it repeats itself
_TRIES = 1_000  # at finding out whether a chunk repeats itself
_LEAST_STEP = 20  # back, that a splitter of the tiniest chunks does not take
_LEAST_OVERLAP = 9  # shorter ones may be chance
_MOST_OVERLAP = 8_000

Gap = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RebuiltDocument:
    """A document put together from its chunks.

    Attributes:
        text: Its text. By offsets and without gaps it is the document's, but for the amount of white space.
        method: By what the chunks were put together: their offsets, or only the order in which they come.
        chunks: From how many, each counted once.
        gaps: Stretches that no chunk holds, in characters from the beginning, best known where the offsets are. An
            empty stretch marks where something is missing, or may be, of unknown length; at the end, if it may be
            anywhere.
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


def rebuild(chunks: Iterable[Chunk], *, doubtful: bool = False) -> RebuiltDocument:
    """Put a document together from all of its chunks.

    By their offsets, if these can be trusted. Offsets that contradict the texts or the chunks' places can not, nor
    can those by which neighbours overlap by more than half a chunk: a repetitive text gets such offsets, since
    splitters look their chunks up, and would lose most of itself. Then the chunks are joined in the order of their
    places, or of `chunks` if they have none, and what two neighbours share is written once.

    A splitter finds a chunk at its own place or, in a text that repeats itself, before it. So what offsets put together
    is right as far as it goes; something may be missing only if a chunk could stand further on as well. Chunks of two
    versions of a document show by offsets that do not meet, unless all that was changed kept its length.

    Args:
        chunks: The chunks, as the store hands them over.
        doubtful: Whether the caller knows that something is wrong with them.

    Returns:
        The document; what is not known of it stands in `method` and `gaps`.
    """
    kept, sure = _once(list(chunks))
    held, sure = _placed(kept), sure and not doubtful
    kept.clear()
    count = len(held)
    run = _Run.of(held, sure=sure)
    if not run:
        return _in_order(held, sure=sure)
    held.clear()  # or the text would be there three times over
    return RebuiltDocument("".join(run.pieces()), "offsets", count, tuple(run.gaps))


def _once(chunks: list[Chunk]) -> tuple[list[Chunk], bool]:
    """Leave out what was stored again: documents are indexed twice, or by half once more.

    Returns:
        What is left, and whether it is certain that nothing else was left out: the lines of a refrain look the same
        if the splitter found all of them at the first place.
    """
    times = Counter(chunks)
    first = list(times)
    if len(first) == len(chunks):
        return chunks, True
    known = all(chunk.start is not None for chunk in first)
    if len({chunk.place for chunk in first}) == len(first) > 1:
        return first, known
    if not known or len(first) == 1:
        passes = chunks == first * times[first[0]]
        refrain = all(_repeats(one.text, within=len(one.text) * 2 // 3) for one in first)
        return (first, False) if passes and not refrain else (chunks, True)
    if len(set(times.values())) > 1 and len(first) * 2 <= len(chunks):
        return chunks, True
    return first, _begins_anew(chunks)


def _begins_anew(chunks: Sequence[Chunk]) -> bool:
    """Whether what is there again comes after a step back that no splitter takes, which looks back by its overlap."""
    far = max(2 * max(len(chunk.text) for chunk in chunks), _LEAST_STEP)
    seen = set[Chunk]()
    last, end, again = 0, 0, False
    for chunk in chunks:
        start = chunk.start or 0
        if chunk.text.isspace():
            continue
        goes_on, again = again and start > last, chunk in seen
        if again and not goes_on and end - start <= far:
            return False
        seen.add(chunk)
        last, end = start, start + len(chunk.text)
    return True


def _placed(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Put chunks in the order of their places, by what all of them are numbered by, and leave out empty ones.

    Returns:
        The chunks, numbered anew: the next place is one further on, or two if one is missing in between.
    """
    columns = list(zip(*(chunk.place for chunk in chunks), strict=False))
    usable = [index for index, column in enumerate(columns) if -1 not in column]
    if not usable:
        return [Chunk(chunk.text, chunk.start) if chunk.place else chunk for chunk in chunks if chunk.text]
    rows = [(tuple(chunk.place[index] for index in usable), chunk) for chunk in chunks]
    rows.sort(key=lambda row: (row[0], row[1].start or 0))
    placed: list[Chunk] = []
    number, before, step = 0, rows[0][0], 2 * (min(rows[0][0]) > 1)
    for place, chunk in rows:
        if place != before:
            missing = all(right - left != 1 for left, right in zip(before, place, strict=True))
            before, step = place, 2 if missing else max(step, 1)
        if chunk.text:
            number, step = number + step, 0
            placed.append(Chunk(chunk.text, chunk.start, (number,)))
    return placed


class _Run:
    """Chunks that their offsets put together."""

    def __init__(self, ordered: list[Chunk], cuts: list[int], gaps: list[Gap], end: int) -> None:
        self._ordered, self._cuts, self.gaps, self.end = ordered, cuts, gaps, end

    @classmethod
    def of(cls, chunks: Sequence[Chunk], *, sure: bool = True) -> _Run | None:
        """Look at the offsets; None if they can not be trusted.

        Args:
            chunks: The chunks, in the order of their places, or of the store.
            sure: Whether nothing else speaks against them.
        """
        starts = [chunk.start for chunk in chunks if chunk.start is not None]
        in_order = starts == sorted(starts)
        if not chunks or len(starts) < len(chunks) or (chunks[0].place and not in_order):
            return None
        ordered = sorted(chunks, key=lambda chunk: (chunk.start or 0, -len(chunk.text)))
        cuts: list[int] = []
        gaps: list[Gap] = []
        begin, end, last, before, movable = 0, 0, "", ordered[0].place, 0
        for chunk in ordered:
            start, text = chunk.start or 0, chunk.text
            shared = min(end - start, len(text))
            if shared > 0:
                if not last.startswith(text[:shared], start - begin) or shared * 2 > max(len(last), len(text)):
                    return None
                movable += shared * (_may_move(text, shared) and not text.isspace())
            missing = _missing(before, chunk.place)
            if -shared > _STRIPPED or (missing and shared < 0):
                gaps.append((end, start))
            elif missing:
                gaps.append((start, start))
            cuts.append(shared)
            before = chunk.place
            if start + len(text) > end:
                begin, end, last = start, start + len(text), text
        if in_order and movable * _MOST_LOST > end:
            return None
        sure = sure and not movable and (in_order or _each_adds(ordered))
        return cls(ordered, cuts, gaps if sure else [*gaps, (end, end)], end)

    def pieces(self) -> Iterator[str]:
        """Let go of the chunks and hand over what each adds."""
        self._ordered.reverse()
        for index, shared in enumerate(self._cuts):
            text = self._ordered.pop().text
            if shared < 0 and index:
                yield "\n" if shared == -1 else "\n\n"  # white space that the splitter stripped
            yield text[max(shared, 0) :]


def _each_adds(ordered: Sequence[Chunk]) -> bool:
    """Whether each chunk holds something that no other one does: else it may belong elsewhere, if no order tells."""
    held = [(chunk.start or 0, chunk.text) for chunk in ordered if not chunk.text.isspace()]
    end = 0
    for (start, text), following in zip_longest(held, held[1:]):
        if not text[max(end - start, 0) : following[0] - start if following else None].strip():
            return False
        end = max(end, start + len(text))
    return True


def _may_move(text: str, shared: int) -> bool:
    """Whether a chunk that overlaps what is before it could stand further on, and still follow it."""
    rest = text[shared:]
    stripped = len(rest) - len(rest.lstrip()) if rest == rest.rstrip() else 0  # in between, if the splitter does so
    return _repeats(text, within=shared + stripped)


def _repeats(text: str, *, within: int) -> bool:
    """Whether a text, moved by so many characters at most, fits upon itself."""
    if within >= len(text):
        return True
    probe, at = text[: len(text) - within], 0
    for _ in range(_TRIES):
        at = text.find(probe, at + 1)
        if at < 0:
            return False
        if text.startswith(text[at:]):
            return True
    return True  # for all that is known


def _missing(before: tuple[int, ...], place: tuple[int, ...]) -> bool:
    return bool(before) and place[0] - before[0] > 1


def _in_order(chunks: Sequence[Chunk], *, sure: bool) -> RebuiltDocument:
    pieces: list[str] = []
    gaps: list[Gap] = []
    at, before, last = 0, (0,) if chunks and chunks[0].place else tuple[int, ...](), ""
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
    if not sure:
        gaps.append((at, at))
    return RebuiltDocument("".join(pieces), "order", len(chunks), tuple(gaps))


def _stretches(chunks: Sequence[Chunk]) -> Iterator[tuple[tuple[int, ...], str, list[Gap], int]]:
    """What to join: pages and the like, put together by offsets of their own, or else single chunks."""
    runs: list[list[Chunk]] = []
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        if last and last.place == chunk.place and (last.start or 0) <= (chunk.start or 0):
            runs[-1].append(chunk)
        else:  # another page, or one that has no number: offsets begin again
            runs.append([chunk])
    starts = [chunk.start or 0 for chunk in chunks]
    paged = len({chunk.place for chunk in chunks}) < len(chunks) and starts != sorted(starts)
    for run in runs:
        # Without numbers, what does not begin at the beginning may be anything.
        joined = _Run.of(run) if paged and (run[0].place or (run[0].start or 0) <= _STRIPPED) else None
        if joined:
            yield run[0].place, "".join(joined.pieces()), joined.gaps, joined.end
        else:
            yield from ((chunk.place, chunk.text, [], len(chunk.text)) for chunk in run)


def _overlap(left: str, right: str) -> int:
    """How many characters the end of one text shares with the beginning of the next; 0 if there is a choice."""
    most = min(max(len(left), len(right)) // 2, len(right), _MOST_OVERLAP)
    tail, probe = left[-most:], right[:_LEAST_OVERLAP]
    sizes: list[int] = []
    at = tail.find(probe) if len(probe) == _LEAST_OVERLAP else -1
    while at >= 0 and len(sizes) < 2:  # noqa: PLR2004
        if right.startswith(tail[at:]):
            sizes.append(len(tail) - at)
        at = tail.find(probe, at + 1)
    return sizes[0] if len(sizes) == 1 and not _may_move(right, sizes[0]) else 0
