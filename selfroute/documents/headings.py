"""Write headings that a splitter moved into metadata into the text again, once where they change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import and_, eq, itemgetter

from selfroute.documents.chunks import Chunk, Title, rises

_KNOWN_BY = 60  # characters of a chunk, by which it is found again
_MARKS = "#*_= \t"
HeadingStart = tuple[int, tuple[str, ...]]
"""Where in a text the headings change, and the headings from there on."""


def headed(text: str, headings: Sequence[str], *, above: int = 0, standing: AbstractSet[str] = frozenset()) -> str:
    """Return a text below its headings, but for those that stand in its first lines.

    Args:
        text: The text.
        headings: The headings that it stands under, the highest first.
        above: How many of them it has in common with the text before it.
        standing: Others that stand there.
    """
    known = set(standing)
    for line in text.lstrip().split("\n", len(headings))[: len(headings)]:  # its own headings, one below the other
        if line.strip(_MARKS) not in headings:
            break
        known.add(line.strip(_MARKS))
    new = [(at, one) for at, one in enumerate(headings) if at >= above and one.strip(_MARKS) not in known]
    return "\n".join([*(f"{'#' * (at + 1)} {one}" for at, one in new), text])


def without_titles(headings: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the headings of some texts without the titles that all of them have: these may be the file's."""
    common = set.intersection(*({one for one in each if isinstance(one, Title)} for each in headings))
    return [tuple([one for one in each if one not in common]) for each in headings]


def with_headings(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks of a document, in order, with the headings that their texts lack where these change.

    One that stands in a chunk before, as a line with Markdown's mark, is not written again.
    """
    found = list[Chunk]()
    above, standing = tuple[str, ...](), set[str]()
    shift, last = 0, -1  # what is written moves the offsets behind it, up to where these start again
    for chunk in chunks:
        shift = shift if chunk.start is not None and chunk.start > last else 0
        start, last = chunk.start, -1 if chunk.start is None else chunk.start
        shared = sum(accumulate(map(eq, above, chunk.headings), and_))
        if shared < len(above):  # another part begins, which may have headings of the same name
            standing.clear()
        text = headed(chunk.text, chunk.headings, above=shared, standing=standing) if chunk.text else ""
        found.append(replace(chunk, text=text, start=None if start is None else start + shift))
        shift += len(text) - len(chunk.text)
        above = chunk.headings
        lines = [line.strip(_MARKS) for line in _without_code(chunk.text).split("\n") if line.startswith("#")]
        standing.update(part.strip() for line in lines for part in (line, *line.split("/")))  # LlamaIndex joins by it
    return found


def _without_code(text: str) -> str:
    return "".join(text.split("```")[::2])


def go_on_across(chunks: Sequence[Chunk]) -> bool:
    """Return whether chunks overlap across headings: then no splitter cut there, and the headings are in the text."""
    pairs = ((one, other) for one, other in pairwise(chunks) if one.headings != other.headings)
    ends = ((one.text[(other.start or 0) - (one.start or 0) :], other) for one, other in pairs if rises(one, other))
    return any(end and other.text.startswith(end) for end, other in ends)


def headings_in(text: str, chunks: Sequence[Chunk]) -> tuple[HeadingStart, ...]:
    """Return where in a text that was joined of chunks their headings change."""
    starts = list[HeadingStart]()
    at, above = 0, tuple[str, ...]()
    for chunk in chunks:
        if chunk.headings != above and (place := text.find(chunk.text[:_KNOWN_BY], at)) >= 0:
            at, above = place, chunk.headings
            starts.append((at, above))
    return tuple(starts)


def headings_at(starts: Sequence[HeadingStart], offset: int) -> tuple[str, ...]:
    """Return the headings that an offset of a text stands under."""
    before = bisect_right(starts, offset, key=itemgetter(0))
    return starts[before - 1][1] if before else ()
