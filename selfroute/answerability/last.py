"""Show the own words of a reply that declines, where nothing may follow it that could answer.

Such a reply is judged as any other that is not read whole documents: by its opening.
"""

from __future__ import annotations

from selfroute.answerability.ending import Kind, Verdict
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate


class LastGate:
    """A gate for a reply after which no document is read.

    What `feed`, `end` and `resume` return adds up to the reply, without its numbers and without a refusal at its
    beginning.

    Examples:
        >>> gate = LastGate(GradedGate(doubt_below=50, numbers=1))
        >>> gate.feed("Unanswerable."), gate.feed(" It covers 2024."), gate.verdict.signal
        ('', 'It covers 2024.', 'sentinel')

    Attributes:
        verdict: The verdict of the other gate; None while it is not certain, or while there is nothing to show.
    """

    __slots__ = ("_final", "_gate", "verdict")

    def __init__(self, gate: Gate | GradedGate, refusal: str = "unanswerable") -> None:
        """Prepare for one reply.

        Args:
            gate: Judges it.
            refusal: The text that the prompt asks the model to write if it cannot answer.
        """
        self.verdict: Verdict | None = None
        self._gate, self._final = gate, FinalGate(refusal)

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        if self._gate.verdict:
            return self._own_words(self._final.feed(piece))
        return self._judged(self._gate.feed(piece))

    def end(self, kind: Kind = "complete") -> str:
        """Finish the verdict, now that the reply has ended; `kind` is as for `Gate.end`."""
        text = "" if self._gate.verdict else self._judged(self._gate.end(kind))
        if self._gate.verdict:
            text += self._final.end(kind)
            self.verdict = self._gate.verdict
        return text

    def resume(self) -> str:
        """Take a reply in doubt for the answer, if it is one; return the text that may be shown now."""
        self.verdict = None
        return self._judged(self._gate.resume() if isinstance(self._gate, GradedGate) else "")

    def _judged(self, text: str) -> str:
        """Adopt the verdict of the gate; if it is that the reply declines, return its own words."""
        if self.verdict is None and self._gate.verdict:
            return self._own_words(self._final.feed(self._gate.text))
        self.verdict = self._gate.verdict
        return text

    def _own_words(self, text: str) -> str:
        if self._final.verdict is not None:
            self.verdict = self._gate.verdict
        return text
