"""Show the own words of a reply that declines, where nothing may follow it that could answer.

Such a reply is judged as any other that is not read whole documents: by its opening.
"""

from __future__ import annotations

from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import Kind
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.reply_gate import ReplyGate


class LastGate(ReplyGate):
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

    __slots__ = ("_final", "_gate", "_refusal")
    shows_declines = True

    def __init__(self, gate: Gate | GradedGate, refusal: str = "unanswerable", *, sent: Sent | None = None) -> None:
        """Prepare for one reply.

        Args:
            gate: Judges it.
            refusal: The text that the prompt asks the model to write if it cannot answer.
            sent: As for all gates.
        """
        self._gate, self._refusal = gate, refusal
        super().__init__(sent)

    def begin(self) -> None:
        """Begin to judge a reply."""
        super().begin()
        self._gate.begin()
        self._final = FinalGate(self._refusal)

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        if self._gate.verdict:
            return self._own_words(self._final.read(text))
        return self._judged(self._gate.read(text))

    def finish(self, kind: Kind) -> str:
        """Finish the verdict; return the text that was still held back."""
        text = "" if self._gate.verdict else self._judged(self._gate.finish(kind))
        if self._gate.verdict:
            text += self._final.finish(kind)
            self.verdict = self._gate.verdict
        return text

    def resume(self) -> str:
        """Take a reply in doubt for the answer, if it is one; return the text that may be shown now."""
        self.verdict = None
        return self._judged(self._gate.resume())

    def _judged(self, text: str) -> str:
        """Adopt the verdict of the gate; if it is that the reply declines, return its own words."""
        if self.verdict is None and self._gate.verdict:
            return self._own_words(self._final.read(self._gate.text))
        self.verdict = self._gate.verdict
        return text

    def _own_words(self, text: str) -> str:
        if self._final.verdict is not None:
            self.verdict = self._gate.verdict
        return text
