"""Documents -> one context within a model's window; how much less to read when a model refused that."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Count = Callable[[str], int]

_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)[^.]{0,40}exceed|exceed\w*[^.]{0,60}context"
    r"|maximum context|max_model_len|(?:prompt|input|request|message)s? (?:is |are )?too long"
    r"|token count[^.]{0,40}exceed|exceed[^.]{0,60}(?:number of|input|prompt) tokens|input tokens exceed"
    r"|too many (?:input |prompt )?tokens|reduce the length of the (?:messages|input|prompt)"
    r"|`inputs` (?:tokens|must have)[^.]{0,60}(?:<=|less than)"
    r"|token count is \d+ but|longer than the (?:model's |maximum )*(?:context|model|input|prompt) length"
    r"|exceeds? the maximum (?:allowed )?(?:input|prompt|context|model) length",
    re.IGNORECASE,
)
_RATE_LIMIT = re.compile(
    r"rate.?limit|throttl|quota|per (?:minute|min|hour|day)\b|wait before trying|try again (?:later|in)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d{3,})(?!\w)"
_LIMIT_AFTER = re.compile(
    r"(?:maximum|max_\w+|limit|at most|cannot exceed|less than|<=|>|window of|context size)\D{0,60}?" + _NUMBER,
    re.IGNORECASE,
)
_LIMIT_BEFORE = re.compile(_NUMBER + r"\D{0,20}(?:maximum|limit)", re.IGNORECASE)
_OTHER_TROUBLE = frozenset({401, 403, 404, 408, 429})


@dataclass(frozen=True, slots=True)
class Part:
    """What is read of one document.

    Attributes:
        index: Which of the documents it is.
        text: All of it, or the part around its passages.
        trimmed: Whether it is a part.
    """

    index: int
    text: str
    trimmed: bool


def fit(texts: Sequence[str], *, passages: Sequence[str], budget: int | None, count: Count) -> list[Part]:
    """Take documents, best first, until the budget is full; trim the one that does not fit.

    Args:
        texts: The documents' texts, best first.
        passages: The texts that were retrieved, best first; a trimmed document keeps what is around them.
        budget: How many tokens the texts may have together; None for no limit.
        count: Counts the tokens of a text.

    Returns:
        The parts, together at most `budget` tokens; what comes after the trimmed one is left out.
    """
    if budget is None:
        return [Part(index, text, False) for index, text in enumerate(texts)]
    parts: list[Part] = []
    room = budget
    for index, text in enumerate(texts):
        size = count(text)
        if size > room:
            part = trim(text, passages=passages, budget=room, count=count)
            return [*parts, Part(index, part, True)] if part else parts
        parts.append(Part(index, text, False))
        room -= size
    return parts


def room_in(window: int) -> int:
    """How many tokens of documents a model takes that says its window to be `window` tokens.

    A tenth is kept for what a rough count misses, and room for the instruction, the question and the answer.
    """
    return max(window * 9 // 10 - 1_000, window // 2)


def trim(text: str, *, passages: Sequence[str], budget: int, count: Count) -> str:
    """Cut a document down to one stretch around its passages.

    Args:
        text: The document's text.
        passages: What was retrieved, best first; those that do not occur in the text are passed over.
        budget: How many tokens the stretch may have.
        count: Counts the tokens of a text.

    Returns:
        The stretch with the best passage in it and as many of the others as fit, from white space to
        white space; all of a text that fits; empty if there is no room for anything.
    """
    hits = [(at, at + len(passage)) for passage in passages if (at := _find(passage, text)) >= 0] or [(0, 0)]
    best = text[slice(*hits[0])]
    least = best if count(best) <= budget else ""
    part, length, size = text, len(text), count(text)
    while size > budget:  # the same tokens per character everywhere is a guess: look again
        length = min(length * budget // size, length - 1)
        if length <= len(least):
            return least
        part = _stretch(text, hits, length)
        size = count(part)
    return part


def _find(passage: str, text: str) -> int:
    passage = passage.strip()
    if not passage:
        return -1
    at = text.find(passage)
    return at if at >= 0 else text.find(passage[:60])


def _stretch(text: str, hits: Sequence[tuple[int, int]], length: int) -> str:
    low, high = hits[0][0], min(hits[0][1], hits[0][0] + length)
    for start, end in hits[1:]:
        if max(high, end) - min(low, start) <= length:
            low, high = min(low, start), max(high, end)
    start = max(0, min(low - (length - (high - low)) // 2, len(text) - length))
    end = start + length
    if start > 0 and not text[start - 1].isspace():
        start = next((i for i in range(start, min(start + 40, low)) if text[i].isspace()), start)
    if end < len(text) and not text[end].isspace():
        end = next((i for i in range(end, max(end - 40, high), -1) if text[i - 1].isspace()), end)
    return text[start:end].strip()


def is_too_long(error: Exception) -> bool:
    """Whether a provider's error says that the prompt was too long for the model's window.

    Many servers say so in words only. A rate limit that counts tokens is none.
    """
    codes = {getattr(error, "code", None), getattr(error, "status_code", None)}
    if "context_length_exceeded" in codes:
        return True
    message = str(error)
    return codes.isdisjoint(_OTHER_TROUBLE) and bool(_TOO_LONG.search(message)) and not _RATE_LIMIT.search(message)


def read_less(error: Exception, *, sent: int) -> int:
    """How many tokens of documents to send after the model refused `sent` of them as too long.

    Args:
        error: The provider's error; its words may name the limit, and what was asked for.
        sent: Tokens of documents in the refused prompt, by our own count.

    Returns:
        What stays within the limit that the error names, else half; always less than `sent`.
    """
    message = str(error)
    named = _LIMIT_AFTER.search(message) or _LIMIT_BEFORE.search(message)
    if not named:
        return sent // 2
    limit = _int(named[1])
    asked = max(_int(number) for number in re.findall(_NUMBER, message))
    # A fifth less: the prompt's own words and the answer need room, and our count is not the provider's.
    if asked > limit:
        return sent * limit * 4 // (asked * 5)
    return limit * 4 // 5 if limit < sent else sent // 2


def _int(digits: str) -> int:
    return int(digits.replace(",", ""))
