"""Turn a structured reply (`answerable`, `answer`) into the text that a model would have written instead.

So everything that follows, such as the verdict, is the same for both kinds of replies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from selfroute.errors import ConfigurationError

Answerability = Literal["text", "structured"]

ANSWERABLE = "True if the question can be answered from the text that was given, false if it cannot."
ANSWER = "The answer, as briefly as a complete answer allows; empty if the question cannot be answered."


def answerability_of(value: Any) -> Answerability:
    """Return the value of the option `answerability`, checked.

    Raises:
        ConfigurationError: It is neither `"text"` nor `"structured"`.
    """
    if value in ("text", "structured"):
        return value  # type: ignore[no-any-return]
    msg = f"answerability must be 'text' or 'structured', not {value!r}"
    raise ConfigurationError(msg)


def report_in(candidates: Iterable[Any]) -> Mapping[str, Any] | None:
    """Return the first candidate that is a report; None if no candidate is."""
    for candidate in candidates:
        if isinstance(candidate, Mapping) and isinstance(candidate.get("answerable"), bool):
            return candidate
    return None


def as_text(report: Mapping[str, Any], *, refusal: str) -> str:
    """Return a report as text: its answer; or the refusal, and what else it says."""
    answer = report.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        return refusal
    return answer if report["answerable"] else f"{refusal}. {answer}"


def json_in(text: str) -> Any:
    """Return the JSON object in a text; None if the text contains none."""
    try:
        return json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
