"""The verdict on a reply: whether it declines, and how that was recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Signal = Literal["sentinel", "phrase", "empty", "no_passages", "answered"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one reply: whether it declines, and how that was recognised. Truthy if it declines.

    Attributes:
        declined: Whether the reply declines.
        signal: How that was recognised: `sentinel` (the reply is the refusal), `phrase` (it declines in its own words),
            `empty` (it has no content), `no_passages` (the model was not asked, since nothing was retrieved), or
            `answered` (it does not decline).
        evidence: The words of the reply that decided it; empty for an answer.
    """

    declined: bool
    signal: Signal
    evidence: str = ""

    def __bool__(self) -> bool:
        """Return whether the reply declines."""
        return self.declined

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON."""
        return {"declined": self.declined, "signal": self.signal, "evidence": self.evidence, "ruling": None}


ANSWERED = Verdict(declined=False, signal="answered")
EMPTY = Verdict(declined=True, signal="empty")
NO_PASSAGES = Verdict(declined=True, signal="no_passages")
