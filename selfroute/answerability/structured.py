"""Turn a structured reply (`answerable`, `answer`) into the text that a model would have written instead.

So everything that follows, such as the verdict, is the same for both kinds of replies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

from selfroute.answerability.ending import REPORTED, Ending
from selfroute.answerability.scores import score_of
from selfroute.errors import ConfigurationError

Answerability = Literal["text", "graded", "structured"]

ANSWERABLE = "True if the question can be answered from the text that was given, false if it cannot."
ANSWER = "The answer, as briefly as a complete answer allows; empty if the question cannot be answered."

PROSPECT = "From 0 to 100: how likely it is that the longer text, read as a whole, holds an answer to the question."
CONFIDENCE = (
    "From 0 to 100: how likely it is that somebody who reads the whole longer text would give the same answer as you "
    "give from these passages; 0 if you give none."
)


def answerability_of(value: Any) -> Answerability:
    """Return the value of the option `answerability`, checked.

    Raises:
        ConfigurationError: It is something else.
    """
    if value in ("text", "graded", "structured"):
        return value  # type: ignore[no-any-return]
    msg = f"answerability must be 'text', 'graded' or 'structured', not {value!r}"
    raise ConfigurationError(msg)


def report_in(candidates: Iterable[Any]) -> Mapping[str, Any] | None:
    """Return the first candidate that is a report; None if no candidate is."""
    for candidate in candidates:
        if isinstance(candidate, Mapping) and isinstance(candidate.get("answerable"), bool):
            return candidate
    return None


class _Received(Protocol):
    ended: Ending

    def ending(self) -> Ending:
        """Return how the reply ended."""


def text_of(report: Mapping[str, Any] | None, raw: str, *, tally: _Received, refusal: str, graded: bool = False) -> str:
    """Return a report as text: its answer; or the refusal, and what else it says.

    Args:
        report: The report; None if the model filled none in.
        raw: The text of the reply, which stands for the report if there is none.
        tally: What was received of the reply.
        refusal: The word that declines.
        graded: Whether the report was to have two numbers, which then come first.
    """
    text = _text_of(report, raw, tally=tally, refusal=refusal)
    scores = [score_of(report.get(name)) for name in ("prospect", "confidence")] if report and graded else [None]
    return text if None in scores or not text else "{} {}\n{}".format(*scores, text)


def _text_of(report: Mapping[str, Any] | None, raw: str, *, tally: _Received, refusal: str) -> str:
    answer = report.get("answer") if report else None
    said = isinstance(answer, str) and bool(answer.strip())
    if tally.ending().kind in ("complete", "tool call"):  # a call is what the model was asked for
        tally.ended = REPORTED
        if report is None:
            return raw
    elif report is None or (report["answerable"] and not said):
        return ""  # it was cut off before it had said anything
    if not said:
        return refusal
    return str(answer) if report["answerable"] else f"{refusal}. {answer}"


def json_in(text: str) -> Any:
    """Return the JSON object in a text; None if the text contains none."""
    try:
        return json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
