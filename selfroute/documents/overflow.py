"""Recognise that a model refused a prompt as too long, and decide how much less to send."""

from __future__ import annotations

import re

# Patterns are compiled when an error is first looked at.
_TOO_LONG = (
    r"(?i)context[_ ](?:length|window|size)[^.]{0,40}exceed|exceed\w*[^.]{0,60}context"
    r"|maximum context|max_model_len|(?:prompt|input|request|message)s? (?:is |are )?too long"
    r"|token count[^.]{0,40}exceed|exceed[^.]{0,60}(?:number of|input|prompt) tokens|input tokens exceed"
    r"|too many (?:input |prompt )?tokens|reduce the length of the (?:messages|input|prompt)"
    r"|`inputs` (?:tokens|must have)[^.]{0,60}(?:<=|less than)"
    r"|token count is \d+ but|longer than the (?:model's |maximum )*(?:context|model|input|prompt) length"
    r"|exceeds? the maximum (?:allowed )?(?:input|prompt|context|model) length"
)
_RATE_LIMIT = r"(?i)rate.?limit|throttl|quota|per (?:minute|min|hour|day)\b|wait before trying|try again (?:later|in)\b"
_NUMBER = r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d{3,})(?!\w)"
_LIMIT_AFTER = (
    r"(?i)(?:maximum|max_\w+|limit|at most|cannot exceed|less than|<=|>|window of|context size)\D{0,60}?" + _NUMBER
)
_LIMIT_BEFORE = "(?i)" + _NUMBER + r"\D{0,20}(?:maximum|limit)"
_OTHER_ERRORS = frozenset({401, 403, 404, 408, 429})


def is_too_long(error: Exception) -> bool:
    """Return whether a provider's error says that the prompt was too long for the model's window.

    Many servers say so only in the text of the message. A rate limit on tokens does not count.
    """
    codes = {getattr(error, "code", None), getattr(error, "status_code", None)}
    if "context_length_exceeded" in codes:
        return True
    message = str(error)
    return (
        codes.isdisjoint(_OTHER_ERRORS) and bool(re.search(_TOO_LONG, message)) and not re.search(_RATE_LIMIT, message)
    )


def read_less(error: Exception, *, sent: int) -> int:
    """Return how many tokens of documents to send after the model refused `sent` of them as too long.

    Args:
        error: The provider's error; its message may name the limit and the size of the prompt.
        sent: The tokens of documents in the refused prompt, by our own count.

    Returns:
        As much as fits the limit that the error names, or half if it names none; always less than `sent`.
    """
    message = str(error)
    named = re.search(_LIMIT_AFTER, message) or re.search(_LIMIT_BEFORE, message)
    if not named:
        return sent // 2
    limit = _int(named[1])
    largest = max(_int(number) for number in re.findall(_NUMBER, message))  # the prompt's size, if the error names it
    # A fifth less: the instruction and the answer need room, and our count differs from the provider's.
    if largest > limit:
        return sent * limit * 4 // (largest * 5)
    return limit * 4 // 5 if limit < sent else sent // 2


def _int(digits: str) -> int:
    return int(digits.replace(",", ""))
