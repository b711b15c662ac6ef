"""Turn a structured reply (`answerable`, `answer`) into the text that a model would have written instead.

So everything that follows, such as the verdict, is the same for both kinds of replies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field, create_model

from selfroute.answerability.ending import REPORTED, Ending
from selfroute.answerability.number_lines import scores_of
from selfroute.answerability.scores import Numbers

Answerability = Literal["text", "graded", "structured"]

ANSWERABLE = "True if the question can be answered from the text that was given, false if it cannot."
ANSWER = "The answer, as briefly as a complete answer allows; empty if the question cannot be answered."

PROSPECT = "From 0 to 100: how likely it is that the longer text, read as a whole, holds an answer to the question."
CONFIDENCE = (
    "From 0 to 100: how likely it is that somebody who reads the whole longer text would give the same answer as you "
    "give from these passages; 0 if you give none."
)

KEYS = frozenset(["answerable", "answer", "prospect", "confidence"])
_DEEPEST, _MOST_OBJECTS = 3, 8
_WAS_TO_BE = re.compile(r"\s*(?:```\w*\s*)?(?:\[\s*)*[\[{](?!\w)")

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
def report_of(form: Form) -> type[BaseModel]:
    """Return the class that a model fills in."""
    fields: dict[str, Any] = {name: (kind, Field(description=about)) for name, (kind, about) in form.fields.items()}
    config = ConfigDict(defer_build=True)
    return create_model(form.name, __config__=config, __doc__=form.description, __module__=__name__, **fields)


@cache
def length_of(form: Form) -> int:
    """Return the approximate length of the schema in a prompt, in characters; providers render it differently."""
    return len(json.dumps(report_of(form).model_json_schema()))


class Report(NamedTuple):
    """What a report says, however it is written.

    Attributes:
        answerable: Whether the question can be answered; None if the report does not say so, or not in a way that can
            be read.
        answer: The answer, or what the report says in place of one; may be empty.
        prospect: From 0 to 100; None if no number can be read.
        confidence: From 0 to 100; None if no number can be read.
    """

    answerable: bool | None
    answer: str
    prospect: int | None
    confidence: int | None

    def text(self, refusal: str, *, graded: bool) -> str:
        """Return the report as the text that a model would have written: its numbers, and the answer or the refusal."""
        said = self.answer.strip()
        text = self.answer if self.answerable and said else f"{refusal}. {said}" if said else refusal
        numbers = Numbers(self.prospect, self.confidence)
        if not graded or (self.confidence is None and (self.prospect is None or text is self.answer)):
            return text
        return f"{'Prospect: ' if self.confidence is None else ''}{numbers}\n{text}"


NO_REPORT = Report(None, "", None, None)


def report_in(candidates: Iterable[Any]) -> Report | None:
    """Return what the reports among some candidates say; None if none is a report.

    Reports that differ say nothing: the question is not answered.
    """
    found = {report for candidate in candidates for report in _reports_in(candidate)}
    return None if not found else found.pop() if len(found) == 1 else NO_REPORT


def _reports_in(value: Any, depth: int = 0) -> Iterator[Report]:
    """Yield the reports within a value: it may be one, hold one under a single key, or list some."""
    if isinstance(value, list) and depth < _DEEPEST:
        for one in value:
            yield from _reports_in(one, depth + 1)
    elif isinstance(value, Mapping) and not KEYS.isdisjoint(value := _folded(value)):
        said = _as_text(value.get("answer"))
        # Without the key, the answer speaks for itself.
        answerable = _truth(value["answerable"]) if "answerable" in value else bool(said.strip()) or None
        report = Report(answerable, said, *scores_of([value.get("prospect"), value.get("confidence")]))
        if report != NO_REPORT:
            yield report
    elif isinstance(value, Mapping) and len(value) == 1 and depth < _DEEPEST:
        yield from _reports_in(next(iter(value.values())), depth + 1)


def _folded(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a report with its keys in lower case."""
    return {key.lower() if isinstance(key, str) else key: one for key, one in value.items()}


def _as_text(answer: Any) -> str:
    if answer is None or isinstance(answer, str):
        return answer or ""
    if isinstance(answer, list) and all(isinstance(one, str) for one in answer):
        return ", ".join(answer)
    return json.dumps(answer, ensure_ascii=False, default=str)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


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
    if tally.ending().kind in ("complete", "tool call"):  # a call is what the model was asked for
        tally.ended = REPORTED
        text = report.text(refusal, graded=form.graded) if report else refusal if is_unreadable(raw) else raw
    elif report is None or (report.answerable and not report.answer.strip()):
        text = ""  # it was cut off before it had said anything
    else:
        text = report.text(refusal, graded=form.graded)
    tally.report = text
    if not raw:
        tally.text.append(text)  # so that it is counted if the provider does not report counts
    return text


def is_unreadable(text: str) -> bool:
    """Return whether a text that is no report was to be one: nothing of it may be shown."""
    return _WAS_TO_BE.match(text) is not None or any(f'"{key}"' in text for key in KEYS)


def json_in(text: str) -> Any:
    """Return the JSON objects in a text, in a list if there are several; None if the text contains none."""
    found, at = [], 0
    for _ in range(_MOST_OBJECTS):
        if (start := text.find("{", at)) < 0:
            break
        try:
            value, at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
        else:
            found.append(value)
    return None if not found else found[0] if len(found) == 1 else found


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a key that is there twice, with two values, holds neither."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = None if key in found and found[key] != value else value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unambiguous, strict=False)


class ReportReader:
    """Reads a report that a model writes as text, and returns the text that it stands for once the reply has ended.

    Any other text is passed on, as soon as it begins otherwise.
    """

    def __init__(self, refusal: str) -> None:
        """Start before the first piece of a reply that was asked for numbers, and for `refusal` if it declines."""
        self._refusal, self._text = refusal, ""
        self._begun = self._over = False  # whether the text is a report; whether it is something else

    def feed(self, piece: str) -> str:
        """Take the next piece; return the text that is certain not to be a report."""
        if self._over:
            return piece
        self._text += piece
        if self._begun or (not self._text.strip() and len(self._text) < _LONGEST_START):
            return ""
        if begun := _BEGUN.match(self._text):
            self._begun = (begun[2] or begun[1]).lower() in KEYS
        if self._begun or (len(self._text) < _LONGEST_START and _MAY_BEGIN.match(self._text)):
            return ""
        self._over, text, self._text = True, self._text, ""
        return text

    def end(self, *, cut: bool = False) -> str:
        """Return the text that the reply stands for; `cut` if it was cut off."""
        text, self._text = self._text, ""
        if self._over or not self._begun:
            return text
        self._over = True
        report = report_in([json_in(text)])
        if report is None:
            return "" if cut else self._refusal
        behind = text.rpartition("}")[2].replace("```", "").strip()
        if behind and report == Report(None, "", report.prospect, report.confidence):  # it has only the numbers
            report = report._replace(answerable=True, answer=behind)
        return report.text(self._refusal, graded=True)


_LONGEST_START = 400  # characters
_NAME = r"[\"']?(\w+)[\"']?\s*:\s*"
_BEGUN = re.compile(rf"\s*(?:```\w*\s*)?(?:\[\s*)?\{{\s*{_NAME}(?:\{{\s*{_NAME})?(?=\S)(?!\{{)")
_MAY_BEGIN = re.compile(
    r"\s*(?:`{1,2}\Z|```\w{0,20}\s*)?(?:\[\s*)?"
    r"(?:\{\s*(?:[\"']?\w{0,40}[\"']?\s*(?::\s*(?:\{\s*(?:[\"']?\w{0,40}[\"']?\s*(?::\s*)?)?)?)?)?)?\Z"
)
