"""Turn a structured reply (`answerable`, `answer`) into the text that a model would have written instead.

So everything that follows, such as the verdict, is the same for both kinds of replies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol

from selfroute.answerability.ending import REPORTED, Ending
from selfroute.answerability.scores import score_of

Answerability = Literal["text", "graded", "structured"]

ANSWERABLE = "True if the question can be answered from the text that was given, false if it cannot."
ANSWER = "The answer, as briefly as a complete answer allows; empty if the question cannot be answered."

PROSPECT = "From 0 to 100: how likely it is that the longer text, read as a whole, holds an answer to the question."
CONFIDENCE = (
    "From 0 to 100: how likely it is that somebody who reads the whole longer text would give the same answer as you "
    "give from these passages; 0 if you give none."
)

_SCORES = {"prospect": (int, PROSPECT), "confidence": (int, CONFIDENCE)}


class Form(NamedTuple):
    """The report that a model is asked to fill in.

    Attributes:
        graded: Whether it has two numbers, prospect and confidence.
    """

    graded: bool = False

    @property
    def name(self) -> str:
        """The name of its schema."""
        return "GradedReport" if self.graded else "Report"

    @property
    def description(self) -> str:
        """What its schema says of it."""
        numbers = ", with two numbers that say how sure that is" if self.graded else ""
        return f"The answer to the question, or that it cannot be answered{numbers}."

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of its numbers."""
        return tuple(_SCORES) if self.graded else ()

    @property
    def fields(self) -> Mapping[str, tuple[Any, str]]:
        """The type and the description of each field, in the order in which models fill them in."""
        return {
            **{name: _SCORES[name] for name in self.scores},
            "answerable": (bool, ANSWERABLE),
            "answer": (str, ANSWER),
        }


@cache
def report_of(form: Form, pydantic: Any) -> Any:
    """Return the class of pydantic that a model fills in.

    Args:
        form: What it has.
        pydantic: The package, which the core does not import.
    """
    fields = {name: (kind, pydantic.Field(description=about)) for name, (kind, about) in form.fields.items()}
    config = pydantic.ConfigDict(defer_build=True)
    return pydantic.create_model(form.name, __config__=config, __doc__=form.description, __module__=__name__, **fields)


@cache
def length_of(form: Form, pydantic: Any) -> int:
    """Return the approximate length of the schema in a prompt, in characters; providers render it differently."""
    return len(json.dumps(report_of(form, pydantic).model_json_schema()))


def report_in(candidates: Iterable[Any]) -> Mapping[str, Any] | None:
    """Return the first candidate that is a report; None if no candidate is."""
    for candidate in candidates:
        if isinstance(candidate, Mapping) and isinstance(candidate.get("answerable"), bool):
            return candidate
    return None


class _Received(Protocol):
    text: list[str]
    ended: Ending
    report: str | None

    def ending(self) -> Ending:
        """Return how the reply ended."""


def text_of(candidates: Iterable[Any], raw: str, *, tally: _Received, refusal: str, form: Form) -> str:
    """Return a report as the text that a model would have written: its answer; or the refusal, and what else it says.

    Args:
        candidates: What may be the report, best first.
        raw: The text of the reply, which stands for a missing report.
        tally: What was received of the reply.
        refusal: The word that declines.
        form: What the report was to have; its numbers come first.
    """
    report = report_in(candidates)
    text = _text_of(report, raw, tally=tally, refusal=refusal)
    scores = [score_of(report.get(name)) for name in form.scores] if report else []
    tally.report = text if None in scores or not (scores and text) else f"{' '.join(map(str, scores))}\n{text}"
    if not raw:
        tally.text.append(tally.report)  # so that it is counted if the provider does not report counts
    return tally.report


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
    with suppress(ValueError, RecursionError):
        return json.loads(text[text.find("{") : text.rfind("}") + 1])
    return None
