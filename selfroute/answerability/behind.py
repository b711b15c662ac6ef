"""Look for the refusal of a graded reply behind what stands where its numbers should."""

from __future__ import annotations

import re

from selfroute.answerability.ending import Kind, Verdict
from selfroute.answerability.gate import Gate
from selfroute.answerability.scores import NumbersReader

# A first line that is numbers in words, which are not read: a refusal may stand behind it.
_NAMES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred none"""
_NAMED = f"(?:{'|'.join(_NAMES.split())})"
_BEGINNINGS = frozenset(name[:end] for name in _NAMES.split() for end in range(len(name) + 1))
_FIRST_LINE = re.compile(rf"\s*(?:{_NAMED}\b[^\w\n]*){{1,5}}\n", re.IGNORECASE)
_SHORT = re.compile(rf"\W*(?:{_NAMED}\b\W+){{0,5}}(?P<last>[A-Za-z]*)", re.IGNORECASE)
_HIGHEST = 100
_DIGITS = re.compile(r"\d{1,9}")
_WORDS = re.compile(r"[^\W\d_]{2,}")


class Behind:
    """Looks for the refusal behind what stands where the numbers should: other numbers, or numbers in words."""

    def __init__(self, refusal: str) -> None:
        """Start before the first text of a reply that writes `refusal` if it declines."""
        self._refusal = refusal
        self._line: str | None = ""  # the first line, while something may stand behind it
        self._gate: Gate | None = None  # judges what stands there

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, if the refusal stands there."""
        verdict = self._gate.verdict if self._gate else None
        return verdict if verdict and verdict.signal != "empty" else None

    @property
    def waits(self) -> bool:
        """Whether it may still come."""
        return self._line is not None or (self._gate is not None and self._gate.verdict is None)

    @property
    def text(self) -> str:
        """The text from there on that had been fed when the verdict became certain."""
        return self._gate.text if self._gate else ""

    def feed(self, text: str, numbers: NumbersReader) -> None:
        """Take the next text after the numbers that were read, or of a reply without numbers."""
        if self._line is not None and text:
            text = self._after_line(text, numbers)
        if self._gate:
            self._gate.read(text)

    def end(self, kind: Kind) -> None:
        """Finish, now that the reply has ended."""
        self._line = None
        if self._gate:
            self._gate.finish(kind)
            self._gate = self._gate if self._gate.verdict else None

    def _after_line(self, text: str, numbers: NumbersReader) -> str:
        """Return the text behind a number, or numbers in words, and begin to judge it; empty before that."""
        if numbers.behind is not None:
            before, after = text[: numbers.behind], text[numbers.behind :]
            grades = (
                not (numbers.numbers or _WORDS.search(before))
                and max(map(int, _DIGITS.findall(before)), default=0) <= _HIGHEST
            )
            self._gate, self._line = Gate(self._refusal, phrases=grades), None
            return after
        line = (self._line or "") + text
        first = None if numbers.numbers else _FIRST_LINE.match(line)
        if first:
            self._gate = Gate(self._refusal)
        short = None if first or numbers.numbers else _SHORT.fullmatch(line)
        self._line = line if short and short["last"].lower() in _BEGINNINGS else None
        return line[first.end() :] if first else ""
