"""The report that a model fills in where it is asked for structure, told as a model that writes text would tell it.

So everything behind it, the verdict first of all, is the same for both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from selfroute.errors import ConfigurationError

Answerability = Literal["text", "structured"]

# What a model is told of the fields `answerable` and `answer`, where it fills a report in.
ANSWERABLE = "True if the question can be answered from the text that was given, false if it can not."
ANSWER = "The answer, as briefly as a complete answer allows; empty if the question can not be answered."


def answerability_of(value: Any) -> Answerability:
    """How models tell whether they can answer.

    Raises:
        ConfigurationError: It is neither way.
    """
    if value in ("text", "structured"):
        return value  # type: ignore[no-any-return]
    msg = f"answerability must be 'text' or 'structured', not {value!r}"
    raise ConfigurationError(msg)


def report_in(candidates: Iterable[Any]) -> Mapping[str, Any] | None:
    """The first that is a report, None if none is."""
    for candidate in candidates:
        if isinstance(candidate, Mapping) and isinstance(candidate.get("answerable"), bool):
            return candidate
    return None


def as_text(report: Mapping[str, Any], *, refusal: str) -> str:
    """What a report says, as a model that writes text would: the answer, or the refusal."""
    answer = report.get("answer")
    return answer if report["answerable"] and isinstance(answer, str) and answer.strip() else refusal


def json_in(text: str) -> Any:
    """The JSON object in a text, None if there is none."""
    try:
        return json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
