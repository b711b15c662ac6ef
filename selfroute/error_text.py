"""Says what went wrong in one line, in the provider's own words, and never with a key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_SECRET = re.compile(r"\b(?:(?:sk|pk|gsk|xai)[-_][\w*-]{8,}|AIza[\w*-]{12,})|(?<=Bearer )[\w.~+/*=-]+")
_LONGEST_MESSAGE = 300
_SHORTEST_SECRET = 8


def one_line(error: BaseException) -> str:
    """Say in one line what went wrong: the provider's own message, and never a key."""
    chain = list(_chain(error))
    text = next(filter(None, map(_message, chain)), str(error))
    root = chain[-1]
    if isinstance(root, OSError) and str(root) not in text:
        text = f"{text.rstrip('.')}: {root}"
    text = " ".join(without_secrets(text).split())
    text = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def without_secrets(text: str) -> str:
    """A text with stars for keys: those in the environment, and what looks like one."""
    for name, value in os.environ.items():
        if KEY_VARIABLE.fullmatch(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return _SECRET.sub("***", text)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error:
        yield error
        error = error.__cause__ or error.__context__


def _message(error: BaseException) -> str | None:
    """What the provider said, where its client tells it from the rest: OpenAI's in `body`, Google's in `message`."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else getattr(error, "message", None)
    return message if isinstance(message, str) else None
