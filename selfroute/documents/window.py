"""Fit documents into a model's window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Count = Callable[[str], int]
Document = TypeVar("Document")
_STEPS = 8  # of the grid in one stretch: so much of it may lie off the middle
_SIZES = 50  # of the room in a window, so that not every question has one of its own
_SHORT = 250  # tokens of an instruction and a question, for which each limit has room
_WORD, _BEGINNING = 40, 60  # characters
ENDS_OF_CONTEXTS = ("\n\n", "\n", ". ")
"""What ends the sentences on the context of a chunk that contextual retrieval writes before it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one document that is given to the model.

    Attributes:
        index: The document's index in the list.
        text: The whole text, or the part around the passages.
        trimmed: Whether it is only a part.
        start: Where the part begins in the document.
    """

    index: int
    text: str
    trimmed: bool
    start: int = 0


def fit(texts: Sequence[str], *, passages: Sequence[str], budget: int | None, count: Count) -> list[Part]:
    """Take documents, best first, until the budget is full; trim the one that does not fit.

    Args:
        texts: The texts of the documents, best first.
        passages: The texts of the retrieved passages, best first; a trimmed document keeps the text around them.
        budget: The limit for all texts together, in tokens; None for no limit.
        count: Counts the tokens of a text.

    Returns:
        The parts, together at most `budget` tokens. Documents after the trimmed one are left out.
    """
    if budget is None:
        return [Part(index, text, False) for index, text in enumerate(texts)]
    parts: list[Part] = []
    room = budget
    for index, text in enumerate(texts):
        size = count(text)
        if size > room:
            start, end = _trimmed(text, passages=passages, budget=room, count=count)
            return [*parts, Part(index, text[start:end], True, start)] if end > start else parts
        parts.append(Part(index, text, False))
        room -= size
    return parts


def fit_documents(  # noqa: PLR0913 - what `fit` takes, and how to read and cut a framework's documents
    documents: Sequence[Document],
    *,
    passages: Sequence[str],
    budget: int | None,
    count: Count,
    text_of: Callable[[Document], str],
    trimmed: Callable[..., Document],
) -> list[Document]:
    """Take a framework's documents, best first, until the budget is full; trim the one that does not fit.

    Args:
        documents: The documents, best first.
        passages: The texts of the retrieved passages, as in `fit`.
        budget: The limit for all documents together, in tokens; None for no limit.
        count: Counts the tokens of a text.
        text_of: Returns a document's text.
        trimmed: Returns a copy of a document with less text. It is called with the document, the text, and what to say
            of it as keywords: `trimmed=True` and `read=[start, end]`, the stretch of the document that the text is.

    Returns:
        The documents that fit; empty if there is no text at all.
    """
    parts = fit([text_of(document) for document in documents], passages=passages, budget=budget, count=count)
    if not any(part.text and not part.text.isspace() for part in parts):
        return []
    return [
        trimmed(documents[part.index], part.text, trimmed=True, read=[part.start, part.start + len(part.text)])
        if part.trimmed
        else documents[part.index]
        for part in parts
    ]


def fit_passages(
    passages: Sequence[Document], *, budget: int, size: Callable[[Sequence[Document]], int]
) -> Sequence[Document]:
    """Take a framework's passages, best first, until the budget is full; none is trimmed.

    Args:
        passages: The passages, best first.
        budget: The limit for all passages together, in tokens.
        size: Returns the tokens of some passages as the model reads them, which grow with each.
    """
    fits, too_many = 0, len(passages) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if size(passages[:middle]) <= budget:
            fits = middle
        else:
            too_many = middle
    return passages[:fits]


def prompt_limit(window: int) -> int:
    """Return how many tokens a prompt may take, given the window that a model advertises, in tokens.

    A tenth is reserved because token counts are estimates, and 750 tokens for the answer; at least three quarters of
    the window remain.
    """
    return max(window * 9 // 10 - 750, window * 3 // 4)


def room_in(window: int, *, around: int = 0) -> int:
    """Return the token budget for documents, given the window that a model advertises, in tokens.

    A tenth is reserved because token counts are estimates, and 1,000 tokens for the instruction, the question and the
    answer; at least half of the window remains. A long question or history takes its place from that, down to a tenth
    of the window; in steps, so that documents which are trimmed for one question are trimmed alike for most others.

    Args:
        window: The window.
        around: The tokens of the prompt without documents.
    """
    return _beside(around, room=max(window * 9 // 10 - 1_000, window // 2), limit=prompt_limit(window), size=window)


def room_of(limit: int, *, around: int) -> int:
    """Return the token budget for documents, given the limit that a user sets for their text, in tokens.

    The limit leaves room for the instruction and a short question. What else a question brings along, such as a
    history, takes its place from that, as in `room_in`, down to a tenth of the limit.

    Args:
        limit: The limit.
        around: The tokens of the prompt without documents.
    """
    return _beside(around, room=limit, limit=limit + _SHORT, size=limit)


def _beside(around: int, *, room: int, limit: int, size: int) -> int:
    """Return which part of a room is left by the rest of a prompt that has a limit: at least a tenth of a size."""
    step = max(size // _SIZES, 1)
    missing = max(around + room - limit, 0)
    return max(room - -(-missing // step) * step, size // 10)


def trim(text: str, *, passages: Sequence[str], budget: int, count: Count) -> str:
    """Cut a document down to one stretch of text around its passages.

    Args:
        text: The document's text.
        passages: The texts of the retrieved passages, best first; those that do not occur in the text are ignored.
        budget: The limit for the stretch, in tokens.
        count: Counts the tokens of a text.

    Returns:
        The stretch that contains the best passage and as many of the others as fit, cut at white space; the whole
        text if it fits; empty if there is no room for anything.
    """
    return text[slice(*_trimmed(text, passages=passages, budget=budget, count=count))]


def _trimmed(text: str, *, passages: Sequence[str], budget: int, count: Count) -> tuple[int, int]:
    """Return the start and the end of what `trim` returns.

    Stretches begin at the steps of a grid, and their ends depend on their beginnings alone. So questions whose passages
    are near one another read the same stretch, which the provider's prompt cache then holds.
    """
    size = count(text)
    if size <= budget:
        return 0, len(text)
    hits = [at[1:] for passage in passages if (at := find_passage(passage, [text]))] or [(0, 0)]
    length = len(text) * budget // size
    step = max(length // _STEPS, 1)
    if hits[0][1] - hits[0][0] <= length - step:
        low, high = _together(hits, length - step)
        nearest = max(round((low + high - length) / 2 / step), 0)
        for place in (nearest, nearest + 1, max(nearest - 1, 0)):
            start, end = _from(place * step, text, length=length, budget=budget, count=count)
            if start <= low and high <= end:
                return start, end
    return _around(text, hits, length=length, budget=budget, count=count)


def _from(start: int, text: str, *, length: int, budget: int, count: Count) -> tuple[int, int]:
    """Return the start and the end of the stretch from a step of the grid on."""
    last = start + length > len(text)  # of the text: it ends where the text does
    while length > 0:
        first = len(text) - length if last else start
        found = _at_white_space(text, first, first + length)
        size = count(text[slice(*found)])
        if size <= budget:
            return found
        length = min(length * budget // size, length - 1)
    return start, start


def _around(text: str, hits: Sequence[tuple[int, int]], *, length: int, budget: int, count: Count) -> tuple[int, int]:
    """Return the start and the end of a stretch with the best passage in its middle, or with as much of it as fits."""
    low, high = hits[0]
    least = (low, min(high, len(text))) if count(text[low:high]) <= budget else (low, low)
    start, end, size = 0, len(text), budget + 1
    while size > budget:  # tokens per character vary within a text, so count again after each cut
        if length <= least[1] - least[0]:
            return least
        start, end = _stretch(text, hits, length)
        size = count(text[start:end])
        length = min(length * budget // max(size, 1), length - 1)
    return start, end


def find_passage(passage: str, texts: Sequence[str]) -> tuple[int, int, int] | None:
    """Find the text that a passage stands in, whole or else with its beginning.

    Args:
        passage: The passage; white space at its ends is not looked for.
        texts: The texts.

    Returns:
        The number of the text, and where the passage begins and ends there; None if it stands in none of them.
    """
    passage = passage.strip()
    rests = [(rest, rest) for rest in _without_context(passage)]
    for wanted, beginning in [(passage, passage), (passage, passage[:_BEGINNING]), *rests]:
        for number, text in enumerate(texts if beginning else ()):
            if (at := text.find(beginning)) >= 0:
                return number, at, at + len(text[at : at + len(wanted)].rstrip())
    return None


def stands_in(passage: str, text: str) -> bool:
    """Return whether a passage stands in a text, or all of it but what a model wrote on its context before it."""
    passage = passage.strip()
    return passage in text or any(rest in text for rest in _without_context(passage))


def _without_context(passage: str) -> list[str]:
    rests = [passage.partition(end)[2].strip() for end in ENDS_OF_CONTEXTS]
    return [rest for rest in rests if len(rest) * 2 > len(passage)]


def _together(hits: Sequence[tuple[int, int]], length: int) -> tuple[int, int]:
    """Return where the best passage begins, and where it ends, with as many of the others as fit."""
    low, high = hits[0][0], min(hits[0][1], hits[0][0] + length)
    for start, end in hits[1:]:
        if max(high, end) - min(low, start) <= length:
            low, high = min(low, start), max(high, end)
    return low, high


def _stretch(text: str, hits: Sequence[tuple[int, int]], length: int) -> tuple[int, int]:
    low, high = _together(hits, length)
    start = max(0, min(low - (length - (high - low)) // 2, len(text) - length))
    return _at_white_space(text, start, start + length, low=low, high=high)


def _at_white_space(
    text: str, start: int, end: int, *, low: int | None = None, high: int | None = None
) -> tuple[int, int]:
    """Return a stretch without parts of words at its ends; it always keeps what is between two places."""
    low, high = end if low is None else low, start if high is None else high
    if start > 0 and not text[start - 1].isspace():
        start = next((i for i in range(start, min(start + _WORD, low)) if text[i].isspace()), start)
    if end < len(text) and not text[end].isspace():
        end = next((i for i in range(end, max(end - _WORD, high), -1) if text[i - 1].isspace()), end)
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())
