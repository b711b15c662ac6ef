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

# Closing tags, and special tokens of the model; the second is one that has not ended.
_TAG = re.compile(r"<[a-zA-Z/|!?][^<>]{0,80}>")
_OPEN_TAG = re.compile(r"<(?:[a-zA-Z/|!?][^<>]{0,80})?\Z")
_WINDOW = 200  # characters, within which a refusal has to end


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

    __slots__ = ("_after", "_gate", "_limit", "_refusal", "verdict")

    def __init__(self, refusal: str = "unanswerable") -> None:
        """Prepare for one reply of a model that was asked to write `refusal` if it cannot answer."""
        self.verdict: Verdict | None = None
        self._gate = Gate(refusal, phrases=False)
        self._refusal = compile_refusal(refusal)
        self._limit = max(_WINDOW, 2 * len(self._refusal.core))
        self._after = ""  # what came after the refusal and may be the beginning of another one, or of a tag

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        if self.verdict is not None:
            return piece
        if self._gate.verdict:
            return self._own_words(piece)
        text = self._gate.feed(piece)
        if self._gate.verdict:
            return self._own_words(self._gate.after_refusal)
        self.verdict = self._gate.verdict
        return text

    def end(self, kind: Kind = "complete") -> str:
        """Finish the verdict, now that the reply has ended; `kind` is as for `Gate.end`."""
        if self.verdict is not None:
            return ""
        after = ""
        if not self._gate.verdict:
            text = self._gate.end(kind)
            after = self._gate.after_refusal
            if not self._gate.verdict:
                self.verdict = self._gate.verdict
                return text
        text = self._own_words(after, final=kind == "complete")
        self.verdict = self._gate.verdict
        return text

    def _own_words(self, piece: str, *, final: bool = False) -> str:
        """Return the words after the refusal, which a model may write more than once; empty if there are none yet.

        What cannot be words of its own is dropped at once, so that all pieces together take linear time.
        """
        text, at, self._after = self._after + piece, 0, ""
        while True:
            visible = self._refusal.visible.search(text, at)
            start = visible.start() if visible else len(text)
            tag = text.rfind("<", at, start)
            if tag >= 0 and (closed := _TAG.match(text, tag)):
                at = closed.end()
                continue
            if tag >= 0 and _OPEN_TAG.match(text, tag):
                self._after = text[tag:]
                return ""
            if not visible:
                return ""
            end = self._refusal.end_in(text[start : start + self._limit], 0)
            if end is None and not final and len(text) - start <= self._limit:
                self._after = text[start:]
                return ""
            if end is None or end <= 0:
                self.verdict = self._gate.verdict
                return text[start:]
            at = start + end
