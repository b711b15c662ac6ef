"""Read the numbers that a graded reply begins with, while it is still arriving.

They are read as models write them: on one line or two, before the text on the same line, with labels, as a share, in a
range, in Markdown or a fence, in other digits. Numbers with nothing behind them are an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from selfroute.answerability.number_lines import (
    AROUND,
    COUNTED,
    HIGHEST,
    LABEL,
    LINE,
    LONGEST,
    NAMES,
    NUMBER,
    WORD,
    Pairs,
    is_around,
    leads,
    may_be_numbers,
    pairs_in,
)
from selfroute.languages.words import WITHIN

_MOST = 1_000  # characters in which the numbers have to come
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|<br ?/?>|\\n")
_RULE = re.compile(r"\s*(?:\|[|\s:-]*|[-=_*\u2014]{3,}\s*)?")  # nothing, a line of a table, or one that separates
_PART_OF_RULE = re.compile(r"[-=_*\u2014]{1,2}")
_KEY = re.compile(rf"\s*(?:{LINE}|(?:\d[.)]\s+)?\W{{0,2}}(?i:answer)\W{{0,2}}:)[*_]{{0,2}}\s*")  # before the text
_PART_OF_KEY = re.compile(r"\W*(?:\d[.)]?\s*)?\W*(?:a|an|ans|answ|answe|answer|l|li|lin|line|line \d?)?\W*")
_FENCE = re.compile(r"\s*```[\w+-]{0,20}\s*")
_ONE = (
    r"(?!0\d)\d{1,3}(?:\.\d+)?(?:[-\u2010-\u2015]\d{1,3})?"
    rf"(?:\s*[%\uff05]|\s*/\s*{HIGHEST}|\s+(?:out )?of {HIGHEST})?"
)
_THEN = r"[)\]}>*_`|]*(?:\s*[:;|\u2010-\u2015-]+\s*|[.,]\s+|\s+)"
_INLINE = re.compile(
    rf"{AROUND}*{_ONE}[)\]>*_`]*[\s{WITHIN}]*[,;/|]?[\s{WITHIN}]+[(\[<*_`~\u2248]*{_ONE}{_THEN}(?=[^\W\d_]|[*\"`(])"
    rf"|{AROUND}*(?P<label>{LABEL})\W{{1,4}}{_ONE}(?:[,;|\s]+(?:{LABEL})\W{{1,4}}{_ONE})?{_THEN}(?=[^\s\d])",
    re.IGNORECASE,
)
_BETWEEN = " \t\n:;|-\u2010\u2011\u2012\u2013\u2014\u2015"  # numbers and the text on the same line
_JUNK = re.compile(rf"(?:{AROUND}|\d|n/a\b)*", re.IGNORECASE)
# Behind two numbers on a line, these tell that the numbers count something.
_COUNTING = frozenset(
    "and or to of are is was were per percent degrees by x und oder bis et ou y o people years times out chance".split()  # noqa: SIM905
)
_MAY_COUNT = frozenset(word[:end] for word in _COUNTING for end in range(len(word) + 1))


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a graded reply, each from 0 to 100, or None where no number can be read.

    Attributes:
        prospect: How likely the whole text holds an answer.
        confidence: How likely somebody who reads the whole text would give the same answer. The only number without a
            label is the prospect instead if the refusal follows.
    """

    prospect: int | None
    confidence: int | None

    def __str__(self) -> str:
        """Return the numbers as the model was asked to write them."""
        return " ".join(str(number) for number in (self.prospect, self.confidence) if number is not None)


class NumbersReader:
    r"""Reads the beginning of a reply, which may come in pieces.

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
        behind: Where a refusal may stand behind something that is no number of its own, in the text that is returned;
            None if nowhere.
        fenced: Whether a code fence around the numbers is still open.
    """

    def __init__(self, least: int = 2) -> None:
        """Start before the first piece.

        Args:
            least: How many numbers were asked for: 2, or 1.
        """
        self.numbers: Numbers | None = None
        self.behind: int | None = None
        self.fenced = False
        self._least = least
        self._space, self._text = "", ""  # white space at the beginning, and what follows it
        self._over = False  # whether the text has begun

    def feed(self, piece: str) -> str:
        """Take the next piece; return the text that follows the numbers, or all text if it has no numbers."""
        if self._over:
            return piece
        if not self._text:
            begun = piece.lstrip()
            self._space += piece[: len(piece) - len(begun)]
            piece = begun
        self._text += piece
        return "" if not piece or piece.isspace() else self._next(final=len(self._text) > _MOST)

    def end(self, *, cut: bool = False) -> str:
        """Finish, now that the reply has ended; return the text that was still held back.

        Args:
            cut: Whether it was cut off, so that text would have followed the numbers.
        """
        return "" if self._over else self._next(final=True, cut=cut)

    @property
    def begun(self) -> bool:
        """Whether there is a number in a first line that is not complete."""
        if self._over or not NUMBER.search(self._text):
            return False
        beginning = _beginning_of(self._text, self._least, final=False)
        return not (beginning.certain or beginning.numbers) and may_be_numbers(self._text[beginning.at :])

    def _next(self, *, final: bool, cut: bool = False) -> str:
        beginning = _beginning_of(self._text, self._least, final=final)
        if not (final or beginning.certain):
            return ""
        self._over = True
        self.behind = beginning.behind
        if beginning.numbers and (beginning.certain or cut):
            self.numbers, self.fenced = beginning.numbers, beginning.fenced
            return self._text[beginning.at :]
        if self.behind is not None:
            self.behind += len(self._space)
        return self._space + self._text


def numbers_of(reply: str, least: int = 2) -> tuple[Numbers | None, str]:
    """Return the numbers that a whole reply begins with, None if it has none, and the text after them."""
    reader = NumbersReader(least)
    text = reader.feed(reply) + reader.end()
    return reader.numbers, text


class _Beginning(NamedTuple):
    """What the beginning of a text is, to the extent that it has come.

    Attributes:
        certain: Whether nothing that comes can change the rest.
        numbers: The numbers, if there are any.
        at: Where the text after them begins.
        fenced: Whether a fence around them is open.
        behind: Where a refusal may stand behind something else: in all of the text if there are no numbers, else in
            the text after them; None if nowhere.
    """

    certain: bool
    numbers: Numbers | None = None
    at: int = 0
    fenced: bool = False
    behind: int | None = None


def _beginning_of(text: str, least: int, *, final: bool) -> _Beginning:
    pairs: Pairs = []
    at, fenced = 0, False
    while stop := _BREAK.search(text, at):
        line = text[at : stop.start()]
        if _FENCE.fullmatch(line) and (fenced or not pairs):
            fenced = not pairs
        elif not (_RULE.fullmatch(line) if pairs else leads(line)):
            more = pairs_in(line) or []
            if not more or not _belongs(more, pairs, least):
                break
            pairs += more
        at = stop.end()
    line = text[at : stop.start() if stop else len(text)]
    if not pairs:
        return _inline(text, at, line, fenced=fenced, final=final)
    labelled = any(label for label, _ in pairs)
    counted = COUNTED.match(text)
    keyed = labelled or (counted is not None and counted[0].endswith(":"))
    words = line.strip().lower()
    certain = stop is not None or not (
        _RULE.fullmatch(line)
        or (not final and _PART_OF_RULE.fullmatch(words))
        or (fenced and "```".startswith(words))
        or (len(pairs) == 1 and (least > 1 or labelled) and (pairs_in(line) if final else may_be_numbers(line)))
        or (keyed and not final and _PART_OF_KEY.fullmatch(words))
    )
    if certain and keyed and (key := _KEY.match(text, at)):
        at = key.end()
    behind = None
    if len(pairs) == least == 1 and (junk := _JUNK.match(text, at)):
        certain = certain and (final or not "n/a".startswith(text[junk.end() :].lower()))
        behind = junk.end() - at if any(map(str.isdigit, junk[0])) else None
    return _Beginning(certain, _assigned(pairs), at, fenced, behind)


def _belongs(more: Pairs, pairs: Pairs, least: int) -> bool:
    """Return whether the numbers of a line are the first, or go on from those of the line before."""
    both_named = bool(pairs and pairs[0][0] and more[0][0])
    return not pairs or (len(pairs) == len(more) == 1 and (least > 1 or both_named))


def _assigned(pairs: Pairs) -> Numbers:
    named = {label: number for label, number in pairs if label}
    others = [number for label, number in pairs if not label]
    names = ["confidence"] if len(pairs) == 1 else [name for name in NAMES if name not in named]
    named |= dict(zip(names, others, strict=False))
    return Numbers(named.get("prospect"), named.get("confidence"))


def _inline(text: str, at: int, line: str, *, fenced: bool, final: bool) -> _Beginning:
    """Return numbers that stand on a line with the text; or where a refusal may stand behind something else.

    Args:
        text: The text.
        at: Where the line begins.
        line: The line, which is complete if the text goes on after it.
        fenced: Whether a fence is open.
        final: Whether the text is complete.
    """
    stop = at + len(line) < len(text)
    if not stop and (len(line) <= LONGEST and is_around(line) if final else may_be_numbers(line)):
        return _Beginning(certain=False, at=at)
    found = _INLINE.match(line)
    if found and (numbered := _numbered(text, at, found, growing=not (stop or final))):
        return numbered._replace(fenced=fenced)
    junk = _JUNK.match(text).end()  # type: ignore[union-attr]
    if not final and junk <= LONGEST and "n/a".startswith(text[junk:].lower()):
        return _Beginning(certain=False)
    if any(one.isalnum() for one in text[:junk]):
        return _Beginning(certain=True, behind=junk)
    return _Beginning(certain=True)


def _numbered(text: str, at: int, found: re.Match[str], *, growing: bool) -> _Beginning | None:
    """Return the numbers that were found before the text on a line; None if they count something."""
    end = at + found.end()
    word = WORD.match(text, end)
    begun = word[0].lower() if word else "-"
    partly = word is not None and word.end() == len(text) and begun in _MAY_COUNT
    named = found["label"] is not None
    if growing and (partly or (named and _PART_OF_KEY.fullmatch(text[end:].lower()))):
        return _Beginning(certain=False)
    pairs = None if begun in _COUNTING else pairs_in(found[0].rstrip(_BETWEEN))
    if not pairs or not (named or len(pairs) == 2):  # noqa: PLR2004
        return None
    key = _KEY.match(text, end) if named else None
    return _Beginning(True, _assigned(pairs), key.end() if key else end)
