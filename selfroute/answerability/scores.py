"""Read the numbers that a graded reply begins with, while it is still arriving."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HIGHEST = 100
_LONGEST = 80  # characters of a first line that may still be numbers
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]+")
_OF_ALL = re.compile(rf"(?:/|\b(?:out )?of\b)\s*{_HIGHEST}\b", re.IGNORECASE)  # 80/100, 42 out of 100
_SPACES = re.compile(r"\s*")
_LABELS = ("prospect", "confidence", "first", "second", "number", "numbers", "and", "of", "out")
# What may stand around the numbers: Markdown, brackets, percent signs, separators.
_DECORATION = re.compile(r"[\s*_`~#>|()\[\]{}<\"'\u2018-\u201f%\uff05.,:;/=\u2010-\u2015\uff0c\u3001\uff0f-]*")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a graded reply, each from 0 to 100.

    Attributes:
        prospect: How likely the whole text holds an answer; None if there is only one number.
        confidence: How likely somebody who reads the whole text would give the same answer. The only number is the
            prospect instead if the refusal follows.
    """

    prospect: int | None
    confidence: int

    def __str__(self) -> str:
        """Return the numbers as the model was asked to write them."""
        return f"{self.confidence}" if self.prospect is None else f"{self.prospect} {self.confidence}"


class NumbersReader:
    r"""Reads the first line of a reply, which may come in pieces.

    Numbers are those of a graded reply only if text follows them. A reply that is nothing more, such as "12 and 15", is
    an answer, so nothing is certain before the text begins or the reply ends.

    Where one number is enough, two are read, too.

    Examples:
        >>> reader = NumbersReader()
        >>> reader.feed("**80"), reader.feed(" 42**\n"), reader.feed("\nParis"), str(reader.numbers)
        ('', '', 'Paris', '80 42')
        >>> numbers_of("12 and 15\n")
        (None, '12 and 15\n')
        >>> numbers_of("62%\nParis", least=1)
        (Numbers(prospect=None, confidence=62), 'Paris')

    Attributes:
        numbers: The numbers; None if the reply has no numbers, or while that is uncertain.
    """

    __slots__ = ("_at", "_fence", "_found", "_least", "_over", "_seen", "_text", "numbers")

    def __init__(self, least: int = 2) -> None:
        """Start before the first piece.

        Args:
            least: How many numbers the line has at least: 2, or 1.
        """
        self.numbers: Numbers | None = None
        self._least = least
        self._text = ""
        self._found: Numbers | None = None  # in the first line, with no text after it so far
        self._at = 0  # where that line begins; then where the text may begin
        self._seen = 0  # where white space after the numbers ends
        self._fence = ""  # what opens above them
        self._over = False  # whether the text has begun

    def feed(self, piece: str) -> str:
        """Take the next piece; return the text that follows the numbers, or all text if it has no numbers."""
        if self._over:
            return piece
        self._text += piece
        return self._next(final=False)

    def end(self, *, cut: bool = False) -> str:
        """Finish, now that the reply has ended; return the text that was still held back.

        Args:
            cut: Whether it was cut off, so that text would have followed the line of the numbers.
        """
        if cut and self._found and not self._over:
            self._over, self.numbers = True, self._found
        return "" if self._over else self._next(final=True)

    @property
    def begun(self) -> bool:
        """Whether there is a number in a first line that is not complete."""
        return not (self._over or self._found) and _NUMBER.search(self._text) is not None

    def _next(self, *, final: bool) -> str:
        if not self._found:
            self._read(final=final)
        if self._found:
            self._skip()
        self._over = self._over or final
        if not self._over:
            return ""
        text, self._text = self._text[self._at if self.numbers else 0 :], ""
        return text

    def _read(self, *, final: bool) -> None:
        """Look for numbers in the first line that is not decoration."""
        text = self._text
        while (end := text.find("\n", self._at)) >= 0 and _is_decoration(text[self._at : end]):
            self._at = end + 1
        line = text[self._at :] if end < 0 else text[self._at : end]
        if end < 0 and _may_be_numbers(line) and not final:
            return
        self._found = _numbers_in(line, self._least) if end >= 0 else None
        self._over = self._found is None
        self._fence, self._at = text[: self._at].strip(), end + 1

    def _skip(self) -> None:
        """Pass over empty lines between the numbers and the text, and over the end of a fence around the numbers."""
        text = self._text
        while (end := text.find("\n", self._at)) >= 0 and text[self._at : end].strip() in ("", self._fence):
            self._at = end + 1
        self._seen = _SPACES.match(text, max(self._at, self._seen)).end()  # type: ignore[union-attr]
        if not self._fence.startswith(text[self._seen :].rstrip()):
            self._over, self.numbers = True, self._found


def numbers_of(reply: str, least: int = 2) -> tuple[Numbers | None, str]:
    """Return the numbers that a whole reply begins with, None if it has none, and the text after them."""
    reader = NumbersReader(least)
    text = reader.feed(reply) + reader.end()
    return reader.numbers, text


def score_of(value: object) -> int | None:
    """Return a number from 0 to 100 as a whole number; None if it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _HIGHEST:
        return None
    return round(value)


def _is_decoration(line: str) -> bool:
    found = _DECORATION.match(line)
    return found is not None and found.end() == len(line)


def _may_be_numbers(line: str) -> bool:
    """Return whether a line that is not complete may still become numbers."""
    if len(line) > _LONGEST or len(_NUMBER.findall(line)) > 4:  # noqa: PLR2004 - 80/100 42/100
        return False
    words = _WORD.findall(line.lower())
    last = words.pop() if words and line[-1:].isalpha() else ""
    return all(word in _LABELS for word in words) and any(label.startswith(last) for label in _LABELS)


def _numbers_in(line: str, least: int) -> Numbers | None:
    for candidate in (_OF_ALL.sub(" ", line), line):
        words = _WORD.findall(candidate.lower())
        rest = _WORD.sub("", _NUMBER.sub("", candidate))
        if len(line) > _LONGEST or not all(word in _LABELS for word in words) or not _is_decoration(rest):
            continue
        scores = [score_of(float(number)) for number in _NUMBER.findall(candidate)]
        known = [score for score in scores if score is not None]
        if len(scores) == len(known) and least <= len(known) <= 2:  # noqa: PLR2004
            return Numbers(known[0] if len(known) > 1 else None, known[-1])
    return None
