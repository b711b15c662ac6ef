"""The verdict on a reply: does it decline, and what shows it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Signal = Literal["sentinel", "phrase", "empty", "no_passages", "answered"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say whether a reply declines, and what shows it; truthy when it does.

    Attributes:
        declined: Whether the reply declines.
        signal: What shows it: the refusal itself, a phrase of the model's own, an empty reply, no passages to ask from.
        evidence: The words that settled it, as the reply has them; empty for an answer.
    """

    declined: bool
    signal: Signal
    evidence: str = ""

    def __bool__(self) -> bool:
        """Tell whether the reply declines."""
        return self.declined

    def as_dict(self) -> dict[str, bool | str]:
        """Return the verdict as plain JSON."""
        return {"declined": self.declined, "signal": self.signal, "evidence": self.evidence}


ANSWERED = Verdict(declined=False, signal="answered")
EMPTY = Verdict(declined=True, signal="empty")
NO_PASSAGES = Verdict(declined=True, signal="no_passages")
