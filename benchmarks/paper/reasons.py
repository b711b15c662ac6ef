"""Reads why a model declined (Li et al., 2024, section 5.2 and Table 8)."""

from __future__ import annotations

import re

from selfroute.answerability.structured import json_in

LETTERS = {"A": "multi-step", "B": "general", "C": "long and complex", "D": "implicit", "E": "other"}
ANSWERED = "answerable"
UNREADABLE = "?"
_LETTER = re.compile(r"\b([A-E])(?=[.:)\s]|$)")


def letter_in(reply: str) -> str:
    """Read the reason that a model chose.

    Args:
        reply: The model's reply to the prompt of Table 8: JSON, perhaps with other text around it.

    Returns:
        A to E; `"answerable"` if the model did answer; `"?"` if there is no reason in it.
    """
    report = json_in(reply)
    if not isinstance(report, dict):
        found = _LETTER.findall(reply)
        return found[0] if len(set(found)) == 1 else UNREADABLE
    letter = str(report.get("reason") or "").strip()[:1].upper()
    if letter in LETTERS:
        return letter
    return ANSWERED if report.get("answerable") is True else UNREADABLE
