"""Recognise that a model refused a prompt as too long, and decide how much less to send."""

from __future__ import annotations

import re

# Patterns are compiled when an error is first looked at.
_TOO_LONG = (
    r"(?i)context[_ ](?:length|window|size)[^.]{0,40}exceed|exceed\w*[^.]{0,60}context"
    r"|maximum (?:context|prompt)|max_model_len|context (?:the )?overflows"
    r"|(?:prompt|input|request|message|string)s? (?:is |are )?too long"
    r"|token count[^.]{0,40}exceed|exceed[^.]{0,60}(?:number of|input|prompt) tokens"
    r"|input tokens (?:exceed|\d+ cannot exceed)|exceed\w* (?:the )?(?:model )?token limit"
    r"|(?:prompt|input)(?: length)?(?: \(?\d+\)?)? exceeds? (?:the )?(?:max|limit)"
    r"|exceeds? the maximum (?:allowed )?(?:input|prompt|context|model) length"
    r"|too many (?:input |prompt )?tokens|reduce the length of the (?:messages|input|prompt)"
    r"|`inputs` (?:tokens|must have)[^.]{0,60}(?:<=|less than)|token count is \d+ but"
    r"|(?:longer|greater) than the (?:model's |maximum )*(?:context|model|input|prompt) length"
    r"|range of input length|expected maxlength|max_tokens must be at least 1, got -"
    r"|(?:request entity|payload|content|request body)(?: is)? too large|request_too_large"
    r"|(?:code|status|http|error)\W{0,12}413\b"
)
_RATE_LIMIT = (
    r"(?i)rate.?limit|throttl|quota(?!/limit)|per (?:minute|min|hour|day)\b|wait before trying|try again (?:later|in)\b"
)
_TYPED = frozenset({"context_length_exceeded", "string_above_max_length", "request_too_large", 413})
_OTHER_ERRORS = frozenset({401, 403, 404, 408, 429})

# The limit is the number that an error calls so, and what was asked for likewise: nothing but signs and small words may
# stand between. An error holds other numbers: a status, the date of a model, a time, the room for the answer.
_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d{2,})(?![\w-]|[.,]\d)"
_SIGNS = r"[\s'\"`:=(\[,]|"
_LIMIT = (
    r"(?i)(?:\bmax(?:imum)? (?:\w+ ){0,3}?(?:length|window|size|limit|tokens)|maximum (?:of|is)"
    r"|context[ _](?:length|window|size|limit)|\blimit|n_ctx|max_?length|max_model_len"
    r"|<=|\d(?: tokens)? >|less than|cannot exceed|supports (?:only )?up to|input length should be)"
    rf"(?:{_SIGNS}(?:is|of|only|allowed|tokens|1)\b){{0,12}}?{_NUMBER}"
)
_LIMIT_BEFORE = rf"(?i){_NUMBER}(?:[ -]tokens?)? (?:maximum|limit|context)"
_SUM = rf"(?i){_NUMBER} \+ {_NUMBER}(?: tokens)? > {_NUMBER}"  # the prompt, the room for the answer, the limit
_ASKED = (
    r"(?i)(?:request(?:ed)?|resulted in|received|given|actual|contains|has|total of|too long|length|count|prompt|input"
    r"|tokens|first)"
    rf"(?:{_SIGNS}(?:is|a|about|at least|input|length|tokens)\b){{0,12}}?{_NUMBER}"
)
_ASKED_BEFORE = rf"(?i){_NUMBER}(?: tokens)? >"
_LONGEST = 20_000  # characters of an error that are looked at; it may repeat the whole prompt


def is_too_long(error: Exception) -> bool:
    """Return whether a provider's error says that the prompt was too long for the model's window.

    Many servers say so only in the text of the message. A rate limit on tokens does not count.
    """
    codes = {getattr(error, name, None) for name in ("code", "status_code", "status")}
    message = str(error)[:_LONGEST]
    if "context_length_exceeded" in codes:
        return True
    if not codes.isdisjoint(_OTHER_ERRORS) or re.search(_RATE_LIMIT, message):
        return False
    return not codes.isdisjoint(_TYPED) or bool(re.search(_TOO_LONG, message))


def read_less(error: Exception, *, sent: int, around: int = 0) -> int:
    """Return how many tokens of documents to send after the model refused `sent` of them as too long.

    Args:
        error: The provider's error; its message may name the limit and the size of the prompt.
        sent: The tokens of documents in the refused prompt, by our own count.
        around: The tokens of the rest of the prompt, by our own count.

    Returns:
        As much as fits the limit that the error names, or half if it names none; always less than `sent`.
    """
    total = sent + around
    limit, asked = _named(str(error)[:_LONGEST], most=10 * total)
    # A fifth less: the answer needs room, and our count differs from the provider's.
    if limit and asked:
        less = total * limit * 4 // (asked * 5) - around
    elif limit and limit < total:
        less = limit * 4 // 5 - around
    else:
        less = 0
    return less if 0 < less < sent else sent // 2


def _named(message: str, *, most: int) -> tuple[int | None, int | None]:
    """Return the limit and the size of the prompt that an error names, in its own unit.

    Args:
        message: The text of the error.
        most: The largest size to believe.
    """
    added = re.search(_SUM, message)
    if added:
        prompt, answer, limit = map(_int, added.groups())
        return limit, prompt + answer
    named = re.search(_LIMIT, message) or re.search(_LIMIT_BEFORE, message)
    if not named:
        return None, None
    limit = _int(named[1])
    found = [_int(number) for pattern in (_ASKED, _ASKED_BEFORE) for number in re.findall(pattern, message)]
    # The prompt alone may be within the limit, and the room for the answer go beyond.
    return limit, max((asked for asked in found if limit // 2 < asked <= most and asked != limit), default=None)


def _int(digits: str) -> int:
    return int(digits.replace(",", ""))
