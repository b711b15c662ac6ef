"""Describe an error in one line, in the provider's own words and without API keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_SECRET = re.compile(r"\b(?:(?:sk|pk|gsk|xai)[-_][\w*-]{8,}|AIza[\w*-]{12,})|(?<=Bearer )[\w.~+/*=-]+")
_MAX_LENGTH = 300  # characters of a message
_MIN_SECRET_LENGTH = 8  # shorter values of variables may be ordinary words


def one_line(error: BaseException) -> str:
    """Return what went wrong in one line: the provider's message if there is one, and the error's type."""
    chain = list(_chain(error))
    text = next(filter(None, map(_provider_message, chain)), str(error))
    root = chain[-1]  # such as "connection refused"
    if isinstance(root, OSError) and str(root) not in text:
        text = f"{text.rstrip('.')}: {root}"
    text = " ".join(without_secrets(text).split())
    text = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its type if it has no message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def without_secrets(text: str) -> str:
    """Return the text with API keys replaced by stars: those in the environment, and whatever looks like one."""
    for name, value in os.environ.items():
        if KEY_VARIABLE.fullmatch(name) and len(value) >= _MIN_SECRET_LENGTH:
            text = text.replace(value, "***")
    return _SECRET.sub("***", text)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, its cause, the cause of that, and so on."""
    while error:
        yield error
        error = error.__cause__ or error.__context__


def _provider_message(error: BaseException) -> str | None:
    """Return the provider's own message if its client keeps it apart: OpenAI's in `body`, Google's in `message`."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else getattr(error, "message", None)
    return message if isinstance(message, str) else None
