"""Put what a check found into words, on one line each and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from selfroute.error_text import one_line, without_secrets
from selfroute.errors import SelfRouteError
from selfroute.prompts import one_line as on_one_line

_MOST = 200  # characters of a name or a question
_LIKELY = (
    *("source", "file_path", "filepath", "path", "file_name", "filename", "file", "url", "uri"),
    *("doc_id", "document_id", "docid", "ref_doc_id", "parent_id", "document", "doc", "title", "name", "id"),
)
_SEPARATORS = re.compile(r"[\W_]+")


def plainly(text: str) -> str:
    """Return a text on one line, without secrets and control characters."""
    return on_one_line(" ".join(without_secrets(text).split()))


def message_of(error: Exception) -> str:
    """Return the message of an error: our own in full, others shortened and with their type."""
    return plainly(str(error)) if isinstance(error, SelfRouteError) else one_line(error)


def split_advice(text: str, advice: str) -> tuple[str, str]:
    """Return the message of an error without the advice that ends it, and the advice; empty if it does not."""
    message, found, rest = text.rpartition(" ".join(advice.split()))
    return (message.rstrip(" ;:,"), found) if found and message and not rest else (text, "")


def quoted(value: Any) -> str:
    """Return a name or a question as one short line in quotes, without secrets."""
    return repr(on_one_line(without_secrets(str(value)), most=_MOST))


def plural(number: int, what: str) -> str:
    """Return a number and what it counts."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def keys_of(metadata: Iterable[Mapping[str, Any]]) -> str:
    """Return the keys of some metadata, for people."""
    keys = sorted({str(key) for one in metadata for key in one})
    return ", ".join(map(quoted, keys)) if keys else "none"


def likely_key(metadata: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the key that most likely names the documents of some passages: all have it, with a text or a number."""
    shared = [key for key in metadata[0] if all(isinstance(one.get(key), str | int) for one in metadata)]
    plain = {_SEPARATORS.sub("_", str(key)).strip("_").lower(): str(key) for key in reversed(shared)}
    return next((plain[name] for name in _LIKELY if name in plain), None)
