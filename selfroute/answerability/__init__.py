"""Does a reply decline? `declines` judges a whole reply, the `Gate` a stream; both give the same `Verdict`."""

from selfroute.answerability.gate import Gate, declines
from selfroute.answerability.verdict import ANSWERED, EMPTY, NO_PASSAGES, Signal, Verdict

__all__ = ["ANSWERED", "EMPTY", "NO_PASSAGES", "Gate", "Signal", "Verdict", "declines"]
