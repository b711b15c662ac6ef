"""What is known of a reply once it is over: the verdict on it, and how it ended, in the provider's own word.

Every provider has its own words for an ending, in a place that others lack: `finish_reason`, `stop_reason` and more. An
adapter hands over its framework's report, and everything that depends on a word is here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from selfroute.errors import NoReplyError

Signal = Literal["sentinel", "phrase", "empty", "no_passages", "answered", "doubt", "start"]
Kind = Literal["complete", "cut", "tool call", "refused", "broken off"]

# Part of a provider's word, in lower case. Any other word, such as "stop" or "end_turn", means that the model was done.
_WORDS: tuple[tuple[Kind, str], ...] = (
    ("tool call", "tool|function|pause_turn"),
    ("cut", "length|max|limit|context_window|truncat"),
    ("refused", "filter|safe|refus|block|prohib|recit|guard|spii|armor|sensitive|moderat|toxic|language|image"),
    (
        "broken off",
        "error|fail|broken|abort|cancel|timeout|malformed|missing|insufficient|incomplete|compact|other|unspec",
    ),
)
_WHY: Mapping[Kind, str] = {
    "tool call": "the model called a tool instead of writing an answer: use a model without tools",
    "cut": "the model ran out of tokens first: allow it more output tokens, or less reasoning",
    "refused": "the provider or the model refused: ask another model, or rephrase the question",
    "broken off": "the provider broke it off: ask again",
}
_TOLD = (
    ("refusal",),
    ("stop_details", "explanation"),
    ("delta", "stop_details", "explanation"),
    ("prompt_feedback", "block_reason_message"),
)
_ELSEWHERE = (
    ("incomplete_details", "reason"),
    ("prompt_feedback", "block_reason"),
    ("block_reason",),
    ("status",),
)
_FILTERED = "Azure has not provided the response due to a content filter"  # LangChain's own words
# OpenAI's client raises these for structured replies that ended early.
_ERRORS = {"LengthFinishReasonError": "length", "ContentFilterFinishReasonError": "content_filter"}
_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_GUARDRAIL = "amazon-bedrock-guardrailAction"
_PLACES = frozenset((_GUARDRAIL, "choices", "delta", "response", *_KEYS, *(place[0] for place in _ELSEWHERE)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one reply: whether it declines, and how that was recognised. Truthy if it declines.

    Attributes:
        declined: Whether the reply declines.
        signal: How that was recognised: `sentinel` (the reply is the refusal), `phrase` (it declines in its own words),
            `empty` (it has no content), `no_passages` (the model was not asked, since nothing was retrieved),
            `answered` (it does not decline), `doubt` (it answers, but with little confidence), or `start` (the model
            was not asked, since the question starts with the documents).
        evidence: The words of the reply that decided it; empty for an answer.
        prospect: How likely the whole text holds an answer, from 0 to 100, as a graded draft says; None if it does not.
        confidence: How likely the answer would stay the same if all of the text were read, as a graded reply says;
            None if it does not.
        ruling: What was ruled on going on, as plain JSON: by a policy, or by a prospect that is too low; None if
            nothing was.
    """

    declined: bool
    signal: Signal
    evidence: str = ""
    prospect: int | None = None
    confidence: int | None = None
    ruling: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        """Return whether the reply declines."""
        return self.declined

    @property
    def escalates(self) -> bool:
        """Whether the question should go on to the next step."""
        return self.signal != "answered" and self.ruling is None

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON, with the numbers that there are."""
        ruling = None if self.ruling is None else dict(self.ruling)
        verdict = {"declined": self.declined, "signal": self.signal, "evidence": self.evidence, "ruling": ruling}
        numbers = {"prospect": self.prospect, "confidence": self.confidence}
        return verdict | {name: number for name, number in numbers.items() if number is not None}


ANSWERED = Verdict(declined=False, signal="answered")
EMPTY = Verdict(declined=True, signal="empty")
NO_PASSAGES = Verdict(declined=True, signal="no_passages")
STARTED = Verdict(declined=False, signal="start")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended, in the words of the provider.

    Attributes:
        reason: The provider's own word, such as `"stop"` or `"max_tokens"`; None if it says nothing.
        refusal: The text by which the provider or the model refused, if it comes apart from the reply.
        calls_tool: Whether the model called a tool.
        reported: Whether the model filled in a report that it was asked for: then the reply is complete, whatever the
            word, since a report may come as a tool call.
        silent: Whether nothing came at all, not even an end.
    """

    reason: str | None = None
    refusal: str = ""
    calls_tool: bool = False
    reported: bool = False
    silent: bool = False

    @property
    def kind(self) -> Kind:
        """What the word means; `"complete"` if the model was done."""
        if self.reported:
            return "complete"
        if self.refusal:
            return "refused"
        if self.silent:
            return "broken off"
        kind = _kind_of(self.reason) if self.reason else "complete"
        return "tool call" if kind == "complete" and self.calls_tool else kind

    def error(self, step: str) -> NoReplyError:
        """Return the error that a step ended without a reply."""
        reason = f" (finish_reason: {self.reason})" if self.reason else ""
        said = f"; it said: {self.refusal}" if self.refusal else ""
        why = _WHY.get(self.kind, "the reply ended early")
        msg = f"the {step} step got no reply that could be judged, since {why}{reason}{said}"
        return NoReplyError(msg, step=step, finish_reason=self.reason, refusal=self.refusal)


DONE = Ending()
REPORTED = Ending(reported=True)


@lru_cache(maxsize=256)
def _kind_of(reason: str) -> Kind:
    word = reason.lower()
    return next((kind for kind, parts in _WORDS if re.search(parts, word)), "complete")


def reason_in(report: Any) -> str | None:
    """Return the word for how a reply ended, from a provider's report; None if it has none.

    Args:
        report: A mapping or an object: a whole reply, a piece of a stream, or the metadata of a message.
    """
    if report is None or (type(report) is dict and _PLACES.isdisjoint(report)):  # the common cases, at once
        return None
    choices = _look(report, "choices")
    if choices is not None:  # OpenAI's protocol
        return _first(choices[0]) if choices else None
    if _look(report, _GUARDRAIL) == "INTERVENED":  # beside an ordinary word
        return "guardrail_intervened"
    delta = _look(report, "delta")
    if word := _first(report) or (_first(delta) if delta else None):
        return word
    about = _look(report, "response") or report
    return next(filter(None, (_word(_look(about, *place)) for place in _ELSEWHERE)), None)


def reason_of(error: Exception) -> str | None:
    """Return how a reply ended, if that is all that an error tells; None for any other error."""
    if word := _ERRORS.get(type(error).__name__):
        return word
    told = type(error) is ValueError and str(error).startswith(_FILTERED)
    of_provider = hasattr(error, "request") or hasattr(error, "status_code")
    return "content_filter" if told or (of_provider and getattr(error, "code", None) == "content_filter") else None


def was_refused(error: Exception) -> bool:
    """Return whether the provider refused the prompt itself, with an HTTP error, and so charges nothing."""
    return getattr(error, "status_code", None) is not None


def refusal_in(report: Any) -> str:
    """Return the text by which a provider or a model refused, as a report like those of `reason_in` has it."""
    choices = _look(report, "choices")
    if choices:
        report = _look(choices[0], "message") or _look(choices[0], "delta")
    for place in _TOLD:
        told = _look(report, *place)
        if told and isinstance(told, str):
            return told
    return ""


def _first(report: Any) -> str | None:
    for name in _KEYS:
        if word := _word(_look(report, name)):
            return word
    return None


def _word(value: Any) -> str | None:
    if value is None:
        return None
    value = getattr(value, "value", value)  # of an enumeration
    return value if isinstance(value, str) and value else None


def _look(value: Any, *names: str) -> Any:
    for name in names:
        if value is None:
            return None
        if type(value) is dict or isinstance(value, Mapping):
            value = value.get(name)
        else:  # an attribute that pydantic's models lack takes long to miss
            fields = getattr(value, "__dict__", None)
            value = fields.get(name) if fields else getattr(value, name, None)
    return value
