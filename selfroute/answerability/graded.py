"""Judge a graded reply: numbers first, then the answer or the refusal.

A draft begins with two numbers, its prospect and its confidence. A reply to sections begins with one: an answer with
its confidence, the refusal with its prospect. The numbers come first, so a stream is judged after some six tokens: as
soon as the text after them begins. A reply that is its numbers and nothing more ("12 and 15") is judged as text,
however sure it seems and however it arrives. A reply whose answer is in doubt may still be taken: `resume` judges the
rest of it as text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from selfroute.answerability.behind import Behind
from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import ANSWERED, Kind, Verdict
from selfroute.answerability.gate import Gate
from selfroute.answerability.reply_gate import ReplyGate
from selfroute.answerability.scores import Numbers, NumbersReader
from selfroute.answerability.spoken import Opening
from selfroute.answerability.structured import ReportReader

_MANY = 10  # replies in a row
_FENCE_END = re.compile(r"\s*(?:`{1,2}|\n\s*```\s*)?\Z")
_logger = logging.getLogger(__name__)


class Ungraded:
    """Counts the graded replies in a row that lack their numbers, and logs once what to do about it."""

    def __init__(self) -> None:
        """Start with no reply."""
        self._lock = Lock()
        self._in_a_row, self._said = 0, False

    def note(self, *, graded: bool) -> None:
        """Note whether a reply has its numbers."""
        with self._lock:
            self._in_a_row = 0 if graded else self._in_a_row + 1
            if self._said or self._in_a_row < _MANY:
                return
            self._said = True
        _logger.warning(
            "The last %d graded replies do not begin with numbers, so they are judged as text. If you pass your own "
            "rag_prompt, have it ask for the numbers; otherwise this model does not write them: set answerability to "
            '"structured" or "text", or use a stronger model',
            _MANY,
        )


class GradedGate(ReplyGate):
    r"""A gate for a streamed reply that begins with its prospect and its confidence, or with one of them.

    A reply without these numbers is judged as text. The verdict carries the numbers; they are never shown.

    Examples:
        >>> gate = GradedGate(doubt_below=50, stop_below=20)
        >>> gate.feed("80 42\nPar"), gate.verdict.signal, gate.verdict.evidence
        ('', 'doubt', '80 42')
        >>> gate.resume(), gate.feed("is was founded by"), gate.verdict.confidence
        ('', 'Paris was founded by', 42)
        >>> gate = GradedGate(doubt_below=50, numbers=1)
        >>> gate.feed("42\nPar"), gate.verdict.signal, gate.verdict.evidence
        ('', 'doubt', '42')
        >>> gate = GradedGate(doubt_below=50, stop_below=50, numbers=1)
        >>> gate.feed("42\nunanswerable"), gate.end(), gate.verdict.prospect, gate.verdict.ruling["by"]
        ('', '', 42, 'prospect')

    Attributes:
        verdict: The verdict; None while it is not certain.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        refusal: str = "unanswerable",
        *,
        doubt_below: int = 0,
        stop_below: int = 0,
        numbers: int = 2,
        ungraded: Ungraded | None = None,
        sent: Sent | None = None,
    ) -> None:
        """Prepare for one reply.

        Args:
            refusal: The text that the prompt asks the model to write if it cannot answer.
            doubt_below: An answer with a lower confidence is in doubt.
            stop_below: A decline with a lower prospect ends the question; its verdict says so in `ruling`.
            numbers: How many numbers the model was asked for: 2, or 1, the confidence of an answer or the prospect of
                the refusal. Before a decline in the model's own words, one number may be either, and rules nothing.
            ungraded: Counts the replies without numbers, if anything does.
            sent: As for all gates.
        """
        self._refusal, self._two, self._ungraded = refusal, numbers > 1, ungraded
        self._doubt_below, self._stop_below = doubt_below, stop_below
        super().__init__(sent)

    def begin(self) -> None:
        """Begin to judge a reply."""
        super().begin()
        self._gate, self._reports = Gate(self._refusal), ReportReader(self._refusal)
        self._numbers = NumbersReader(2 if self._two else 1)
        self._refusing = None if self._two else Gate(self._refusal, phrases=False)
        self._opening: Opening | None = Opening()
        self._behind = Behind(self._refusal)
        self._waiting: list[str] = []  # text that waits for its verdict
        self._held: list[str] = []  # text of a reply that is in doubt
        self._fence = ""  # what may be the end of a fence around the numbers and the text

    @property
    def text(self) -> str:
        """The text after the numbers that had been fed when the verdict became certain."""
        return self._behind.text if self._behind.verdict else self._gate.text

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        if self.verdict is not None:
            return self._after(self._unfenced(self._behind_numbers(text)))
        return self._passed(self._behind_numbers(self._numbers.feed(self._reports.feed(text))))

    def _behind_numbers(self, text: str, *, final: bool = False) -> str:
        """Return a text without reasoning that stands behind the numbers."""
        if self._opening is None or not (self._numbers.numbers and (text or final)):
            return text
        said = self._opening.after(text, final=final)
        if said is not None:
            self._opening = None
        return said or ""

    def finish(self, kind: Kind) -> str:
        """Finish the verdict. A reply that was cut while it wrote its numbers has said nothing."""
        if self.verdict is not None:
            return self._after(self._unfenced(self._behind_numbers("", final=True), final=True))
        cut = kind != "complete"
        text = self._numbers.feed(self._reports.end(cut=cut))
        if not (cut and self._numbers.begun):
            text += self._numbers.end(cut=cut)
        return self._passed(self._behind_numbers(text, final=True), kind)

    def resume(self) -> str:
        """Accept the doubted reply as the answer, unless it declines after all; return what may be shown now."""
        self._doubt_below, self.verdict = 0, None
        held, self._held = "".join(self._held), []
        if self._gate.verdict is None:
            held = self._gate.read(held)
        return self._judged(held)

    def _passed(self, text: str, kind: Kind | None = None) -> str:
        """Judge the text after the numbers, which ends here if there is a kind; return what may be shown now."""
        text = self._unfenced(text, final=kind is not None)
        numbers = self._numbers.numbers
        self._behind.feed(text, self._numbers)
        doubted = numbers and (text or kind) and self._gate.verdict is None and self._is_doubted(numbers)
        behind = self._behind.verdict is not None or (self._behind.waits and not kind)
        if numbers and doubted and not (self._may_end(numbers, text) or behind):
            self.verdict = self._doubt(numbers)
            self._held.append("".join([*self._waiting, text]))
            return ""
        text = self._gate.read(text)
        if kind:
            self._behind.end(kind)
            text += self._gate.finish(kind)
        if self._behind.verdict:
            self.verdict = self._behind.verdict
            return self._noted("")
        if self._behind.waits and not self._gate.verdict:
            self._waiting.append(text)
            return ""
        text, self._waiting = "".join([*self._waiting, text]), []
        return self._noted(self._judged(text))

    def _unfenced(self, text: str, *, final: bool = False) -> str:
        """Return a text without the end of the fence that was opened before the numbers."""
        if not self._numbers.fenced:
            return text
        text, self._fence = self._fence + text, ""
        end = _FENCE_END.search(text)
        if end and not (final and "```" not in end[0]):
            self._fence = "" if final else end[0]
            text = text[: end.start()]
        return text

    def _noted(self, text: str) -> str:
        """Have it counted whether there are numbers, once there is a verdict; return the text."""
        if self._ungraded and self.verdict is not None:
            graded = self._numbers.numbers is not None
            if graded or not (self._refusing and self.verdict):
                self._ungraded.note(graded=graded)
            self._ungraded = None
        return text

    def _after(self, piece: str) -> str:
        if self.verdict is not None and self.verdict.signal == "doubt":
            self._held.append(piece)
            return ""
        return "" if self.verdict else piece

    def _judged(self, text: str) -> str:
        """Adopt the verdict on the text, with the numbers; return the text that may be shown."""
        verdict, numbers = self._gate.verdict, self._numbers.numbers
        if self.verdict is not None or verdict is None:
            return text
        if numbers is None:
            self.verdict = verdict
        elif not verdict and self._is_doubted(numbers):
            self.verdict = self._doubt(numbers)
            self._held.append(text)
            return ""
        else:
            prospect, confidence = numbers.prospect, numbers.confidence
            if prospect is None and verdict.signal == "sentinel" and not self._two:
                prospect, confidence = confidence, None
            ruling = self._ruling(verdict, prospect)
            self.verdict = replace(verdict, prospect=prospect, confidence=confidence, ruling=ruling)
        return text

    def _is_doubted(self, numbers: Numbers) -> bool:
        return numbers.confidence is not None and numbers.confidence < self._doubt_below

    def _is_hopeless(self, prospect: int | None) -> bool:
        return prospect is not None and prospect < self._stop_below

    def _may_end(self, numbers: Numbers, text: str) -> bool:
        """Return whether the reply has to be read on: a decline with these numbers would end there, or is likely.

        One number is the prospect if the refusal follows.
        """
        if self._refusing:
            self._refusing.read(text)
            if self._refusing.verdict is not ANSWERED:
                return True
        return self._is_hopeless(numbers.prospect) or not numbers.confidence

    def _ruling(self, verdict: Verdict, prospect: int | None) -> Mapping[str, Any] | None:
        """Return that a decline ends the question, if the whole text is unlikely to hold an answer.

        A reply that says nothing has not declined for that reason.
        """
        if not verdict or verdict.signal == "empty" or not self._is_hopeless(prospect):
            return None
        reason = f"the model gives the documents {prospect} of 100 to hold an answer, less than {self._stop_below}"
        return {"go": False, "by": "prospect", "reason": reason}

    @staticmethod
    def _doubt(numbers: Numbers) -> Verdict:
        prospect, confidence = numbers.prospect, numbers.confidence
        return Verdict(declined=False, signal="doubt", evidence=str(numbers), prospect=prospect, confidence=confidence)
