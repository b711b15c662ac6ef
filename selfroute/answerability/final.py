"""Judge the reply of the last step, which is shown as it comes, even if it says that the documents do not tell.

Nothing follows it that could answer, so its own words are worth more to people than the refusal: "The report covers
2024 only." Only the refusal itself is held back. Whether the reply answers is judged on all of it, once it has ended.
"""

from __future__ import annotations

import re

from selfroute.answerability.ending import Kind
from selfroute.answerability.gate import Gate
from selfroute.answerability.refusal import compile_refusal
from selfroute.answerability.verdict import Verdict

_TAGS = re.compile(r"<[^<>]*(?:>|\Z)")  # closing tags, and special tokens of the model


class FinalGate:
    """A gate that holds back only the refusal at the beginning of a streamed reply, and shows what follows.

    What `feed` and `end` return adds up to the reply without a refusal at its beginning.

    Examples:
        >>> gate = FinalGate()
        >>> gate.feed("Unanswerable. The"), gate.feed(" report covers 2024 only."), gate.verdict.signal
        ('The', ' report covers 2024 only.', 'sentinel')

    Attributes:
        verdict: The verdict as far as the refusal decides it; None while there is nothing to show.
    """

    __slots__ = ("_after", "_gate", "_refusal", "verdict")

    def __init__(self, refusal: str = "unanswerable") -> None:
        """Prepare for one reply of a model that was asked to write `refusal` if it cannot answer."""
        self.verdict: Verdict | None = None
        self._gate = Gate(refusal, phrases=False)
        self._refusal = compile_refusal(refusal)
        self._after = ""  # what came after the refusal, until there are words to show

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        if self.verdict is not None:
            return piece
        if self._gate.verdict:
            self._after += piece
            return self._own_words()
        text = self._gate.feed(piece)
        if self._gate.verdict:
            self._after = self._gate.after_refusal
            return self._own_words()
        self.verdict = self._gate.verdict
        return text

    def end(self, kind: Kind = "complete") -> str:
        """Finish the verdict, now that the reply has ended; `kind` is as for `Gate.end`."""
        if self.verdict is not None:
            return ""
        if not self._gate.verdict:
            text = self._gate.end(kind)
            self._after = self._gate.after_refusal
            if not self._gate.verdict:
                self.verdict = self._gate.verdict
                return text
        text = self._own_words(final=kind == "complete")
        self.verdict = self._gate.verdict
        return text

    def _own_words(self, *, final: bool = False) -> str:
        """Return the words after the refusal, which a model may write more than once; empty if there are none yet."""
        text = _TAGS.sub("", self._after)
        while visible := self._refusal.visible.search(text):
            text = text[visible.start() :]
            end = self._refusal.end_in(text, 0)
            if end == -1 or (end is None and final):
                self.verdict = self._gate.verdict
                return text
            if not end:
                break
            text = text[end:]
        return ""
