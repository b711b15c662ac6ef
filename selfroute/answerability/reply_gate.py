"""What all gates share: they read what a reply says to the user, and hold back what they must."""

from __future__ import annotations

from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import Kind, Verdict
from selfroute.answerability.spoken import Spoken


class ReplyGate:
    """What all gates share: they judge what a reply says to the user, as it arrives, and hold back what they must.

    Attributes:
        shows_declines: Whether a reply that declines is shown, but for the refusal itself.
        verdict: The verdict; None while it is not certain.
    """

    shows_declines = False

    def __init__(self, sent: Sent | None = None) -> None:
        """Prepare for one reply.

        Args:
            sent: Returns the texts that the model may give back before its reply; None if it gives back none.
        """
        self._spoken = Spoken(sent)
        self.begin()

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        return self._take(self._spoken.feed(piece, held=self.verdict is None))

    def end(self, kind: Kind = "complete") -> str:
        """Finish the verdict, now that the reply has ended; return the text that was still held back.

        Args:
            kind: How it ended. If the model was not done, a reply that ended within the refusal declines. Where it
                could still have declined in its own words, it declines if it ran out of tokens; otherwise there is no
                verdict.
        """
        return self._take(self._spoken.end(held=self.verdict is None)) + self.finish(kind)

    def resume(self) -> str:
        """Take a reply in doubt for the answer; return what may be shown now. Only graded replies are in doubt."""
        return ""

    def _take(self, text: str) -> str:
        if self._spoken.anew:  # what was held back is reasoning
            self._spoken.anew = False
            self.begin()
        return self.read(text) if text else ""

    def begin(self) -> None:
        """Begin to judge a reply."""
        self.verdict: Verdict | None = None

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        raise NotImplementedError

    def finish(self, kind: Kind) -> str:
        """Finish the verdict; return the text that was still held back."""
        raise NotImplementedError
