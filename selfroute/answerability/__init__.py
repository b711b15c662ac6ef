"""Does a reply decline? `declines` judges a whole reply, the `Gate` a stream; both give the same `Verdict`.

`declines_anywhere` judges a whole reply by the wider rule that holds for the last step.
"""

from selfroute.answerability.ending import Signal, Verdict
from selfroute.answerability.final import declines_anywhere
from selfroute.answerability.gate import Gate, declines

__all__ = ["Gate", "Signal", "Verdict", "declines", "declines_anywhere"]
