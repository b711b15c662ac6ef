"""The verdict on a reply: whether it declines, and how that was recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Signal = Literal["sentinel", "phrase", "empty", "no_passages", "answered", "doubt", "start"]


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
        """Whether the question should go on to the next step, as far as the model is concerned."""
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
