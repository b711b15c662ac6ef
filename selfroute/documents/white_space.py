"""Tell white space that a splitter stripped from text that is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from statistics import median_low

from selfroute.documents.chunks import Chunk

ALWAYS = 4  # characters between two chunks that are always taken for white space
_NEAR = 2  # chunks on either side of a stretch
_TIMES = 2  # as long as the longest white space near the stretch: an empty row between two padded ones
_INDENT, _SHARE = 16, 10  # a line break and an indent; but at most a tenth of a chunk, or small chunks could be missing
_WHITE_SPACE = re.compile(r"\s{2,}")


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
