"""Join the chunks of a document by their offsets."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile, zip_longest
from statistics import median_low

from selfroute.documents.chunks import Chunk
from selfroute.documents.pages import Pages

_MAX_TRIES = 1_000  # to find out whether a text repeats itself
ALWAYS = 4  # characters between two chunks that are always taken for white space
_NEAR = 2  # chunks on either side of a stretch
_TIMES = 2  # as long as the longest white space near the stretch: an empty row between two padded ones
_INDENT, _SHARE = 16, 10  # a line break and an indent; but at most a tenth of a chunk, or small chunks could be missing
_WHITE_SPACE = re.compile(r"\s{2,}")


def fits_further_on(text: str, shared: int) -> bool:
    """Return whether a chunk that shares its first characters with the text before it could also start further on."""
    rest = text[shared:]
    stripped = len(rest) - len(rest.lstrip()) if rest == rest.rstrip() else 0  # if the splitter strips chunks
    return repeats_itself(text, within=shared + stripped)


def repeats_itself(text: str, *, within: int) -> bool:
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


class WhiteSpace:
    """The white space that a document's chunks hold, to judge the stretches between them by.

    A splitter that strips its chunks leaves stretches that no chunk holds, and only their lengths are known. Such a
    stretch is taken for white space if the document has white space of this length elsewhere, or the chunks around it
    have white space about half as long. This is no proof: a page number or a heading that is missing between two chunks
    may be as short. If a chunk begins or ends with white space, the splitter does not strip, and nothing is explained.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        """Take the chunks, by offset."""
        self._chunks = chunks
        self._longest: dict[int, int] = {}

    def explains(self, length: int, index: int) -> bool:
        """Return whether a stretch of `length` characters before the chunk at `index` may be stripped white space."""
        if length <= ALWAYS:
            return True
        if not self._is_stripped:
            return False
        near = range(max(index - _NEAR, 0), min(index + _NEAR, len(self._chunks)))
        spare = min(_INDENT, self._usual_length // _SHARE) if index else 0
        return length <= _TIMES * max(map(self._longest_in, near)) + spare or self.holds(length)

    def holds(self, length: int) -> bool:
        """Return whether a chunk holds white space of exactly this length."""
        return length in self._lengths

    def _longest_in(self, index: int) -> int:
        if index not in self._longest:
            self._longest[index] = max(_lengths(self._chunks[index].text), default=1)
        return self._longest[index]

    @cached_property
    def _is_stripped(self) -> bool:
        return not any(chunk.text[0].isspace() or chunk.text[-1].isspace() for chunk in self._chunks)

    @cached_property
    def _usual_length(self) -> int:
        return median_low(len(chunk.text) for chunk in self._chunks)

    @cached_property
    def _lengths(self) -> set[int]:
        return {length for chunk in self._chunks for length in _lengths(chunk.text)}


def _lengths(text: str) -> list[int]:
    return [found.end() - found.start() for found in _WHITE_SPACE.finditer(text)]


_TOLERATED_LOSS = 10  # at most a tenth of a text may depend on offsets that a repetition makes ambiguous

Gap = tuple[int, int]


class OffsetJoin:
    """Chunks that can be joined by their offsets.

    A splitter finds a chunk by searching for its text, so it may find a short one that comes again, such as a page
    number, within the chunk before it. Such a chunk is moved to the stretch that follows, if it fits there.

    Attributes:
        gaps: As in `RebuiltDocument`.
        end: Where the last chunk ends.
        pages: Where the pages begin in the text, once all of its pieces are written.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        """Take the chunks in any order; all have offsets."""
        self._ordered = sorted(chunks, key=lambda chunk: (chunk.start or 0, -len(chunk.text)))
        self._written: list[int] = []  # how many characters of each stand before it; less than 0 after a stretch
        self._white_space = WhiteSpace(self._ordered)
        places = {chunk.place for chunk in chunks}
        self._is_numbered = () not in places and len(places) == len(chunks)
        self._longest = max(len(chunk.text) for chunk in chunks)
        self._stretches: list[Gap] = []  # that no chunk holds, white space or not
        self._movable = 0  # characters that are lost if every ambiguous chunk really stands further on
        self._last = (self._ordered[0], 0)  # the chunk that ends at `end`, and the length of the stretch before it
        self._inside: list[int] = []  # chunks within that one, as long as nothing follows it
        self._repeated: list[int] = []  # those of them that may be no more than a splitter's overlap
        self._settled = set[int]()  # those of them whose places are certain
        self._ambiguous: int | None = None  # that chunk, if it shares text with those before it and fits further on
        self._overlap = 0  # the longest of two neighbours
        self.gaps: list[Gap] = []
        self.end = 0
        self.pages = Pages()

    @classmethod
    def of(
        cls, chunks: Sequence[Chunk], *, certain: bool = True, copies: Collection[Chunk] = (), ordered: bool = True
    ) -> OffsetJoin | None:
        """Return how the offsets join some chunks; None if they cannot be trusted.

        Args:
            chunks: The chunks, in the order of their places, or of the store.
            certain: Whether nothing else casts doubt on them.
            copies: Chunks that were dropped because the same are among the chunks, and may belong elsewhere.
            ordered: Whether the order of the chunks says anything.
        """
        starts = [chunk.start for chunk in chunks if chunk.start is not None]
        is_sorted = starts == sorted(starts)
        if not chunks or len(starts) < len(chunks) or (chunks[0].place and not is_sorted):
            return None
        join, in_order = cls(chunks), is_sorted and (ordered or bool(chunks[0].place))
        if not join._join():
            return None
        if (in_order or not ordered) and join._movable * _TOLERATED_LOSS > join.end:
            return None
        certain = certain and not join._movable and (in_order or join._each_has_its_place(ordered=ordered))
        if not certain or any(map(join._may_stand_further_on, copies)):
            join.gaps.append((join.end, join.end))
        return join

    def pieces(self) -> Iterator[str]:
        """Yield what each chunk adds to the text, and release the chunk; this works once."""
        self._ordered.reverse()
        at = 0
        for index, shared in enumerate(self._written):
            chunk, blank = self._ordered.pop(), ""
            if shared < 0 and index:
                blank = "\n" if shared == -1 else "\n\n"  # for the white space that the splitter stripped
            piece = blank + chunk.text[max(shared, 0) :]
            if piece:
                self.pages.note(at + len(blank) - max(shared, 0), chunk.page)
            at += len(piece)
            yield piece

    def _join(self) -> bool:
        """Find out how much of each chunk is written before it; return False if the chunks contradict each other."""
        for index, chunk in enumerate(self._ordered):
            start, text = chunk.start or 0, chunk.text
            is_inside = index > 0 and len(text) <= self.end - start
            if not is_inside:
                self._settle(index, start)
            shared = min(self.end - start, len(text))
            if shared > 0:
                last = self._last[0]
                contradicts = not last.text.startswith(text[:shared], start - (last.start or 0))
                is_most = shared * 2 > max(len(last.text), len(text))
                if contradicts or (is_most and fits_further_on(text, shared)):
                    return False
                if is_inside:
                    self._inside.append(index)
                else:
                    self._overlap = max(self._overlap, shared)
                    if fits_further_on(text, shared) and not text.isspace():
                        self._movable += shared
                        self._ambiguous = index
            self._written.append(shared)
            self._note_gap(index, start)
            if not is_inside:
                self._last, self.end = (chunk, max(-shared, 0)), start + len(text)
        self._settle(len(self._ordered), None)
        lengths = {number: len(self._ordered[number].text) for number in self._repeated}
        self._settled.update(number for number, length in lengths.items() if length <= self._overlap)
        self._movable += sum(length for length in lengths.values() if length > self._overlap)
        return True

    def _note_gap(self, index: int, start: int) -> None:
        stretch, place = start - self.end, self._ordered[index].place
        missing = bool(place and index) and place[0] - self._ordered[index - 1].place[0] > 1
        if stretch > 0:
            self._stretches.append((self.end, start))
        if missing:
            self.gaps.append((start - max(stretch, 0), start))
        elif stretch > 0 and not self._follows(index) and not self._white_space.explains(stretch, index):
            self.gaps.append((self.end, start))

    def _follows(self, index: int) -> bool:
        """Return whether the numbers say that nothing is missing before a chunk: 0 is that of the first one."""
        return self._is_numbered and (index > 0 or self._ordered[0].place[0] == 0)

    def _settle(self, index: int, start: int | None) -> None:
        """Decide where the chunks stand that lie within the one before.

        Args:
            index: The number of the chunk that follows.
            start: Where it starts; None if nothing follows.
        """
        room = 0 if start is None else start - self.end
        if self._ambiguous is not None:
            self._move_on(self._ambiguous, index, room)
            self._ambiguous = None
        for number in self._inside:
            chunk = self._ordered[number]
            length, room = len(chunk.text), 0 if start is None else start - self.end
            if chunk.text.isspace():
                continue
            if start is not None and self._may_repeat_the_end(chunk, index, room):
                self._repeated.append(number)
            elif length + 2 <= room and self._is_misplaced(chunk):  # with white space on either side
                self._written[number] = -min(room - length - 1, 2)
                self.end += length - self._written[number]
                self._settled.add(number)
            else:
                self._movable += length
        self._inside.clear()

    def _may_repeat_the_end(self, chunk: Chunk, index: int, room: int) -> bool:
        """Return whether a chunk within the last one is no more than the overlap that a splitter carries on.

        Had it stood in the stretch before the chunk at `index`, the splitter would have merged it with what it repeats.
        """
        length = len(chunk.text)
        if (chunk.start or 0) + length < self.end or _has_period(chunk.text):
            return False
        return room < length or (2 * length + room <= self._longest and self._white_space.explains(room, index))

    def _is_misplaced(self, chunk: Chunk) -> bool:
        """Return whether a chunk within the last one cannot belong there: it is no overlap with its neighbours."""
        last, room_before = self._last
        before = chunk.start == last.start and (
            chunk.place < last.place or room_before + len(last.text) > self._longest
        )
        return not before and not last.text.endswith(chunk.text)

    def _move_on(self, number: int, index: int, room: int) -> None:
        """Write a whole chunk that shares text with those before it, if that explains the stretch behind it better."""
        shared, length = self._written[number], len(self._ordered[number].text)
        white_space = self._white_space
        if room >= length - shared and white_space.explains(room, index) and not white_space.holds(room):
            self._written[number] = -2
            self.end += shared

    def _each_has_its_place(self, *, ordered: bool) -> bool:
        """Return whether each chunk holds text of its own: if not, and without any order, it may be misplaced.

        Args:
            ordered: Whether the chunks have an order, which then is not that of their offsets.
        """
        chunks = (chunk for index, chunk in enumerate(self._ordered) if index not in self._settled)
        shown = [chunk for chunk in chunks if not chunk.text.isspace()]
        end = 0
        for chunk, following in zip_longest(shown, shown[1:]):
            start = chunk.start or 0
            own = chunk.text[max(end - start, 0) : (following.start or 0) - start if following else None]
            if not own.strip() and (ordered or self._may_stand_further_on(chunk)):
                return False
            end = max(end, start + len(chunk.text))
        return True

    def _may_stand_further_on(self, chunk: Chunk) -> bool:
        """Return whether there is room for a chunk after the place where it was found."""
        length, start = len(chunk.text), chunk.start or 0
        if start + length == self.end or _has_period(chunk.text):
            return True
        reach = start + length + self._overlap  # the splitter searched from its overlap with the chunk before
        first = bisect_left(self._stretches, (start,))
        near = takewhile(lambda stretch: stretch[0] <= reach, islice(self._stretches, first, None))
        return any(end - begin >= length for begin, end in near)


def _has_period(text: str) -> bool:
    """Return whether the text could overlap with itself."""
    return repeats_itself(text, within=len(text) - 1)
