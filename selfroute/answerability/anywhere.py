"""Judge a whole reply by the wider rule: a denial anywhere in it counts."""

from __future__ import annotations

import re

from selfroute.answerability.gate import declines
from selfroute.answerability.verdict import ANSWERED, Verdict

_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")


def declines_anywhere(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Return the verdict on a complete reply to whole documents: it declines if it denies anywhere that they tell.

    Args:
        reply: The reply of the model.
        refusal: The text that the prompt asks the model to write if it cannot answer.

    Examples:
        >>> declines_anywhere("Kew is a garden. The report does not mention its owner.").evidence
        'The report does not mention'
        >>> bool(declines_anywhere("We do not provide refunds after 30 days."))
        False
    """
    verdict = declines(reply, refusal)
    if verdict:
        return verdict
    verdicts = (declines(sentence) for sentence in _SENTENCE.split(reply) if sentence.strip())
    return next((verdict for verdict in verdicts if verdict.signal == "phrase"), ANSWERED)
