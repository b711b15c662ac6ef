"""Judge the last reply, which is shown as it comes, even if it says that the documents do not tell.

Nothing follows it that could answer, so its own words are worth more to people than the refusal: "The report covers
2024 only." Only the refusal itself is held back, and what it leaves behind.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import ANSWERED, Kind
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.reply_gate import ReplyGate
from selfroute.languages.words import UNSPACED, compile_refusal

_WINDOW = 200  # characters, within which a refusal has to end, and own words have to begin
# Closing tags; the second is one that has not ended.
_TAG = re.compile(r"<[a-zA-Z/|!?][^<>]{0,80}>")
_OPEN_TAG = re.compile(r"<(?:[a-zA-Z/|!?][^<>]{0,80})?\Z")
# What is no word of the model's own: where it read something, how sure it is, and the keys of a report.
_LABEL = (
    r"(?i:sources?|references?|citations?|pages?|documents?|files?|passages?|confidence|prospect|score|metadata|answerable"
    r"|quellen?|belege?|seiten?|fuentes?|p[a\u00e1]ginas?|r[e\u00e9]f[e\u00e9]rences?|\u6765\u6e90|\u4f86\u6e90|\u51fa\u5178)"
)
_LEFT_OVER = re.compile(rf"{_LABEL}(?: [^\W\d]+)?[*_\"]*\s*[:\uff1a]")
_LISTED = re.compile(r"(?:\n\s*(?:[-*\u2022]|\d+[.)]|\[).*)*")  # lines that go on from it
_OPENS = re.compile(r"(?:(?:\A|(?<=\s))[\"'\u201c\u2018\u00ab*_`(\[\u3010]{1,8})?\Z")  # before the first word
_MAY_BE_LABEL = re.compile(rf"{_LABEL}(?: [^\W\d]*)?[*_\"]*\s*\Z")
_IN_BRACKETS = re.compile(
    rf"[\[(\u3010]\s*(?:\^?\w{{0,12}}\d[^\s\])\u3011]*|{_LABEL}[^\n\])\u3011]{{0,120}}|[\w-]+\.\w{{2,5}})\s*[\])\u3011]"
)
_MAY_BE_BRACKET = re.compile(r"[\[(\u3010][^\n\])\u3011]{0,120}\Z")
_OWN = re.compile(
    rf"(?<![^\W\d_])[^\W\d_]+[^\w\n]{{0,40}}\s[^\n]{{0,100}}?[^\W\d_]|[{UNSPACED}]{{4}}|[^\W\d_\x00-\x7f]{{8}}"
)
_REASON = re.compile(r"\"(?:reason|explanation|note|comment)\w*\"\s*:\s*(\"(?:[^\"\\]|\\.)*\")")


class LastGate(ReplyGate):
    """A gate for a reply after which no document is read: another gate judges it, and its own words are shown.

    What `feed`, `end` and `resume` return adds up to the reply, without its numbers and without a refusal at its
    beginning. What a refusal leaves behind is not shown: the rest of a report, sources, marks of citations, a number.

    Examples:
        >>> gate = LastGate(Gate(phrases=False))
        >>> gate.feed("Unanswerable. The report"), gate.feed(" covers 2024 only."), gate.verdict.signal
        ('The report', ' covers 2024 only.', 'sentinel')
        >>> gate = LastGate(GradedGate(doubt_below=50, numbers=1))
        >>> gate.feed("Unanswerable."), gate.feed(" It covers 2024."), gate.verdict.signal
        ('', 'It covers 2024.', 'sentinel')

    Attributes:
        verdict: The verdict of the other gate; None while it is not certain, or while there is nothing to show.
    """

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
        self._words: _OwnWords | None = None  # from when the gate says that the reply declines

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        if self.verdict is ANSWERED:
            return text
        if self._words is None:
            return self._judged(self._gate.read(text))
        text = self._words.read(text)
        if self._words.begun:
            self.verdict = self._gate.verdict
        return text

    def finish(self, kind: Kind) -> str:
        """Finish the verdict; return the text that was still held back."""
        if self.verdict is ANSWERED:
            return ""
        text = "" if self._words else self._judged(self._gate.finish(kind))
        if self._words:
            text += self._words.finish(kind)
            self.verdict = self._gate.verdict
        return text

    def resume(self) -> str:
        """Take a reply in doubt for the answer, if it is one; return the text that may be shown now."""
        self.verdict = None
        return self._judged(self._gate.resume())

    def _judged(self, text: str) -> str:
        """Adopt the verdict of the gate; if it is that the reply declines, return its own words."""
        if self._gate.verdict:
            self._words = _OwnWords(self._refusal)
            return self.read(self._gate.text)
        self.verdict = self._gate.verdict
        return text


class _OwnWords:
    """Reads a reply that declines, and returns its own words: all but a refusal at its beginning.

    Attributes:
        begun: Whether there is something to show.
    """

    def __init__(self, refusal: str) -> None:
        """Start before the first text of a reply that writes `refusal` if it declines."""
        self.begun = False
        self._gate = Gate(refusal, phrases=False)
        self._refusal = compile_refusal(refusal)
        self._limit = max(_WINDOW, 2 * len(self._refusal.core))
        self._after = ""  # what came after the refusal, and may be left over from it

    def read(self, text: str) -> str:
        """Take the next text; return what may be shown now."""
        if self.begun:
            return text
        if not self._gate.verdict:
            text = self._gate.read(text)
            if not self._gate.verdict:
                self.begun = self._gate.verdict is not None
                return text
            text = self._gate.after_refusal
        return self._behind_refusal(text)

    def finish(self, kind: Kind) -> str:
        """Return what is left to show, now that the reply has ended."""
        if self.begun:
            return ""
        self.begun, after = True, ""
        if not self._gate.verdict:
            text = self._gate.finish(kind)
            if not self._gate.verdict:
                return text
            after = self._gate.after_refusal
        return self._behind_refusal(after, final=True)

    def _behind_refusal(self, piece: str, *, final: bool = False) -> str:
        """Return the words of its own that a model writes after the refusal; empty if none have come yet.

        What cannot be words of its own is dropped at once, so that all pieces together take linear time.
        """
        self._after += piece
        if self._gate.in_report:
            return _reason_in(self._after) if final else ""
        text, self._after = self._after, ""
        at = 0
        while True:
            at, start = self._skip(text, at)
            begins = at + len(text[at:start]) - len(_OPENS.search(text[at:start])[0])  # type: ignore[index]
            if start == len(text) or (text[start] == "<" and _OPEN_TAG.match(text, start) and not final):
                self._after = text[begins:]
                return ""
            end = self._refusal.end_in(text[start : start + self._limit], 0)
            if end and end > 0:
                at = start + end
                continue
            stop = text.find("\n", start)
            short = not final and stop < 0 and len(text) - start <= self._limit
            if left := _LEFT_OVER.match(text, start):
                if stop < 0:
                    self._after = text[start : left.end()]
                    return ""
                at = _LISTED.match(text, stop).end()  # type: ignore[union-attr]
                continue
            waits = short and (end is None or _MAY_BE_LABEL.match(text, start) or _MAY_BE_BRACKET.match(text, begins))
            if not waits and (
                _OWN.search(text, start, len(text) if stop < 0 else stop) or (not final and stop < 0 and not short)
            ):
                self.begun = True
                return text[begins:]
            if stop < 0:
                self._after = "" if final else text[begins:]
                return ""
            at = stop

    def _skip(self, text: str, at: int) -> tuple[int, int]:
        """Return where what is no word ends, tags and marks of citations, and where the next word begins."""
        while True:
            visible = self._refusal.visible.search(text, at)
            start = visible.start() if visible else len(text)
            tag = text.rfind("<", at, start)
            if tag >= 0 and (skipped := _TAG.match(text, tag)):
                at = skipped.end()
            elif tag >= 0 and _OPEN_TAG.match(text, tag):
                return tag, tag
            elif skipped := _IN_BRACKETS.search(text, at, start + _WINDOW):
                if skipped.start() > start:
                    return at, start
                at = skipped.end()
            else:
                return at, start


def _reason_in(report: str) -> str:
    """Return the reason that the rest of a report gives; empty if it gives none."""
    with suppress(ValueError):
        return str(json.loads(found[1], strict=False)) if (found := _REASON.search(report)) else ""
    return ""
