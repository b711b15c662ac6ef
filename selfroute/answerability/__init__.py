"""Does a reply decline? `declines` judges a whole reply, the `Gate` a stream; both give the same `Verdict`.

`declines_anywhere` judges a whole reply by the wider rule that holds for the second step.
"""

from selfroute.answerability.anywhere import declines_anywhere
from selfroute.answerability.gate import Gate, declines
from selfroute.answerability.verdict import ANSWERED, EMPTY, NO_PASSAGES, Signal, Verdict

__all__ = ["ANSWERED", "EMPTY", "NO_PASSAGES", "Gate", "Signal", "Verdict", "declines", "declines_anywhere"]
