"""Read the numbers that a graded reply begins with, while it is still arriving.

They are read as models write them: on one line or two, before the text on the same line, with labels, as a share, in a
range, in Markdown or a fence, in other digits. Numbers with nothing behind them are an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from selfroute.languages.words import WITHIN

_HIGHEST = 100
_LONGEST = 80  # characters of a line that may still be numbers
_MOST = 1_000  # characters in which the numbers have to come
_NAMES = {
    "prospect": """prospect p likelihood probability chance aussicht wahrscheinlichkeit probabilité probabilidad 可能性
        概率 確率""",
    "confidence": """confidence c certainty konfidenz sicherheit zuversicht vertrauen confiance certitude confianza
        certeza 置信度 信心 信頼度 確信度""",
    "": """first second number numbers score scores line and of out the two my your here are is sure okay ok certainly
        estimate estimates percent zahl zahlen answer final output response result reply assistant ai model high low
        medium very und et y e based on provided passages context text antwort réponse respuesta""",
}
_LABELS = {word: name for name, words in _NAMES.items() for word in words.split()}
_UNREAD = frozenset(["n", "a", "na", "none", "null", "nan", "unknown", *"-?\u2010\u2011\u2012\u2013\u2014\u2015"])
_BEGINNINGS = frozenset(word[:end] for word in (*_LABELS, *_UNREAD, "answer") for end in range(len(word) + 1))
# What may stand around the numbers: anything but letters, digits and currencies.
_AROUND = "(?:(?![$\u20ac\u00a3\u00a5\u20b9])[\\W_])"
_DECORATION = re.compile(rf"{_AROUND}*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(rf"(?P<number>{_NUMBER.pattern})|(?P<word>[^\W\d_]+|(?<=\s)[-?\u2010-\u2015](?=\W*\Z))")
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|<br ?/?>|\\n")
_PART_OF_BREAK = re.compile(r"(?:\\|<b?r?)\Z")
_OF_ALL = re.compile(rf"(?:/|\b(?:out )?of\b)\s*{_HIGHEST}\b", re.IGNORECASE)  # 80/100, 42 out of 100
_RANGE = re.compile(r"(?<=\d)[-\u2010-\u2015]\d+(?:\.\d+)?")
_SCALE = re.compile(rf"\(\s*0\s*(?:[-\u2010-\u2015]|to)\s*{_HIGHEST}\s*%?\s*\)")
_LINE = r"\W{0,3}(?i:line|number|zeile|ligne) ?\d\W{0,2}:"
_LABEL = "|".join(word for word in _LABELS if _LABELS[word])
_COUNTED = re.compile(rf"\s*(?:[-*\u2022]\s+)?(?:\d[.)]\s+(?=\W{{0,4}}(?:\d|(?i:{_LABEL})\b))|{_LINE})")
_RULE = re.compile(r"\s*(?:\|[|\s:-]*|[-=_*\u2014]{3,}\s*)?")  # nothing, a line of a table, or one that separates
_PART_OF_RULE = re.compile(r"[-=_*\u2014]{1,2}")
_KEY = re.compile(rf"\s*(?:{_LINE}|(?:\d[.)]\s+)?\W{{0,2}}(?i:answer)\W{{0,2}}:)[*_]{{0,2}}\s*")  # before the text
_PART_OF_KEY = re.compile(r"\W*(?:\d[.)]?\s*)?\W*(?:a|an|ans|answ|answe|answer|l|li|lin|line|line \d?)?\W*")
_FENCE = re.compile(r"\s*```[\w+-]{0,20}\s*")
_ONE = (
    r"(?!0\d)\d{1,3}(?:\.\d+)?(?:[-\u2010-\u2015]\d{1,3})?"
    rf"(?:\s*[%\uff05]|\s*/\s*{_HIGHEST}|\s+(?:out )?of {_HIGHEST})?"
)
_THEN = r"[)\]}>*_`|]*(?:\s*[:;|\u2010-\u2015-]+\s*|[.,]\s+|\s+)"
_INLINE = re.compile(
    rf"{_AROUND}*{_ONE}[)\]>*_`]*[\s{WITHIN}]*[,;/|]?[\s{WITHIN}]+[(\[<*_`~\u2248]*{_ONE}{_THEN}(?=[^\W\d_]|[*\"`(])"
    rf"|{_AROUND}*(?P<label>{_LABEL})\W{{1,4}}{_ONE}(?:[,;|\s]+(?:{_LABEL})\W{{1,4}}{_ONE})?{_THEN}(?=[^\s\d])",
    re.IGNORECASE,
)
_BETWEEN = " \t\n:;|-\u2010\u2011\u2012\u2013\u2014\u2015"  # numbers and the text on the same line
_JUNK = re.compile(rf"(?:{_AROUND}|\d|n/a\b)*", re.IGNORECASE)
# Behind two numbers on a line, these tell that the numbers count something.
_COUNTING = frozenset(
    "and or to of are is was were per percent degrees by x und oder bis et ou y o people years times out chance".split()  # noqa: SIM905
)
_MAY_COUNT = frozenset(word[:end] for word in _COUNTING for end in range(len(word) + 1))


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a graded reply, each from 0 to 100, or None where there is none that can be read.

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

    __slots__ = ("_least", "_over", "_space", "_text", "behind", "fenced", "numbers")

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
        if self._over or not _NUMBER.search(self._text):
            return False
        beginning = _beginning_of(self._text, self._least, final=False)
        return not (beginning.certain or beginning.numbers) and _may_be_numbers(self._text[beginning.at :])

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


def score_of(value: object) -> int | None:
    """Return a number from 0 to 100 as a whole number, also if it is written as text; None if it is something else."""
    if isinstance(value, str):
        pairs = _pairs_in(value)
        value = pairs[0][1] if pairs and len(pairs) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _HIGHEST:
        return None
    return round(value)


def scores_of(values: Sequence[object]) -> list[int | None]:
    """Return numbers as `score_of` does; if all are shares from 0 to 1, as percentages."""
    try:
        numbers = [float(str(value)) for value in values if value is not None]
    except ValueError:
        return list(map(score_of, values))
    shares = all(0 <= number <= 1 for number in numbers) and any(number % 1 for number in numbers)
    if shares:
        return [None if value is None else round(float(str(value)) * _HIGHEST) for value in values]
    return [score_of(float(value) if isinstance(value, str) else value) for value in values]


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


_Pairs = list[tuple[str, int | None]]  # labels, which may be empty, and numbers


def _beginning_of(text: str, least: int, *, final: bool) -> _Beginning:
    pairs: _Pairs = []
    at, fenced = 0, False
    while stop := _BREAK.search(text, at):
        line = text[at : stop.start()]
        if _FENCE.fullmatch(line) and (fenced or not pairs):
            fenced = not pairs
        elif not (_RULE.fullmatch(line) if pairs else _leads(line)):
            more = _pairs_in(line) or []
            if not more or not _belongs(more, pairs, least):
                break
            pairs += more
        at = stop.end()
    line = text[at : stop.start() if stop else len(text)]
    if not pairs:
        return _inline(text, at, stop=stop is not None, fenced=fenced, final=final)
    labelled = any(label for label, _ in pairs)
    counted = _COUNTED.match(text)
    keyed = labelled or (counted is not None and counted[0].endswith(":"))
    words = line.strip().lower()
    certain = stop is not None or not (
        _RULE.fullmatch(line)
        or (not final and _PART_OF_RULE.fullmatch(words))
        or (fenced and "```".startswith(words))
        or (len(pairs) == 1 and (least > 1 or labelled) and (_pairs_in(line) if final else _may_be_numbers(line)))
        or (keyed and not final and _PART_OF_KEY.fullmatch(words))
    )
    if certain and keyed and (key := _KEY.match(text, at)):
        at = key.end()
    behind = None
    if len(pairs) == least == 1 and (junk := _JUNK.match(text, at)):
        certain = certain and (final or not "n/a".startswith(text[junk.end() :].lower()))
        behind = junk.end() - at if any(map(str.isdigit, junk[0])) else None
    return _Beginning(certain, _assigned(pairs), at, fenced, behind)


def _belongs(more: _Pairs, pairs: _Pairs, least: int) -> bool:
    """Return whether the numbers of a line are the first, or go on from those of the line before."""
    both_named = bool(pairs and pairs[0][0] and more[0][0])
    return not pairs or (len(pairs) == len(more) == 1 and (least > 1 or both_named))


def _assigned(pairs: _Pairs) -> Numbers:
    named = {label: number for label, number in pairs if label}
    others = [number for label, number in pairs if not label]
    names = ["confidence"] if len(pairs) == 1 else [name for name in _NAMES if name not in named]
    named |= dict(zip(names, others, strict=False))
    return Numbers(named.get("prospect"), named.get("confidence"))


def _inline(text: str, at: int, *, stop: bool, fenced: bool, final: bool) -> _Beginning:
    """Return numbers that stand on a line with the text; or where a refusal may stand behind something else.

    Args:
        text: The text.
        at: Where the line begins, which is complete if `stop`.
        stop: Whether the line is complete.
        fenced: Whether a fence is open.
        final: Whether the text is.
    """
    line = text[at:] if not stop else text[at : _BREAK.search(text, at).start()]  # type: ignore[union-attr]
    if not stop and (len(line) <= _LONGEST and _is_around(line) if final else _may_be_numbers(line)):
        return _Beginning(certain=False, at=at)
    found = _INLINE.match(line)
    if found and (numbered := _numbered(text, at, found, growing=not (stop or final))):
        return numbered._replace(fenced=fenced)
    junk = _JUNK.match(text).end()  # type: ignore[union-attr]
    if not final and junk <= _LONGEST and "n/a".startswith(text[junk:].lower()):
        return _Beginning(certain=False)
    if any(one.isalnum() for one in text[:junk]):
        return _Beginning(certain=True, behind=junk)
    return _Beginning(certain=True)


def _numbered(text: str, at: int, found: re.Match[str], *, growing: bool) -> _Beginning | None:
    """Return the numbers that were found before the text on a line; None if they count something."""
    end = at + found.end()
    word = _WORD.match(text, end)
    begun = word[0].lower() if word else "-"
    partly = word is not None and word.end() == len(text) and begun in _MAY_COUNT
    named = found["label"] is not None
    if growing and (partly or (named and _PART_OF_KEY.fullmatch(text[end:].lower()))):
        return _Beginning(certain=False)
    pairs = None if begun in _COUNTING else _pairs_in(found[0].rstrip(_BETWEEN))
    if not pairs or not (named or len(pairs) == 2):  # noqa: PLR2004
        return None
    key = _KEY.match(text, end) if named else None
    return _Beginning(True, _assigned(pairs), key.end() if key else end)


def _leads(line: str) -> bool:
    """Return whether a line only leads to the numbers, or is empty."""
    return len(line) <= _LONGEST and not _NUMBER.search(line) and _is_around(line)


def _is_around(line: str) -> bool:
    """Return whether a line has nothing but labels, numbers, and what may stand around them."""
    words = [found["word"].lower() for found in _TOKEN.finditer(line) if found["word"]]
    known = all(word in _LABELS or word in _UNREAD for word in words)
    return known and _DECORATION.fullmatch(_TOKEN.sub("", line)) is not None


def _may_be_numbers(line: str) -> bool:
    """Return whether a line that is not complete may still become numbers."""
    line = _PART_OF_BREAK.sub("", line)
    if len(line) > _LONGEST or len(_NUMBER.findall(line)) > 6:  # noqa: PLR2004 - 80-90/100 42-50/100
        return False
    last = _WORD.findall(line.lower())[-1:] if line[-1:].isalpha() else []
    return _is_around(line[: len(line) - len(last[0])] if last and last[0] in _BEGINNINGS else line)


def _pairs_in(line: str) -> _Pairs | None:
    """Return the numbers of a line, each with its label; None if the line has anything else, or more than two."""
    if len(line) > _LONGEST:
        return None
    if counted := _COUNTED.match(line):
        line = line[counted.end() :]
    line = _RANGE.sub("", _OF_ALL.sub(" ", _SCALE.sub(" ", line)))
    if not _is_around(line):
        return None
    tokens = [(found["number"], (found["word"] or "").lower()) for found in _TOKEN.finditer(line)]
    pairs: _Pairs = []
    label = ""
    scores = iter(scores_of([number for number, _ in tokens if number]))
    for number, word in tokens:
        if number:
            if (score := next(scores)) is None:
                return None
            pairs.append((label, score))
            label = ""
        elif word in _UNREAD and pairs and pairs[-1][1] is not None:
            pairs.append((label, None))
            label = ""
        elif name := _LABELS.get(word, ""):
            if pairs and tokens[0][0] and not pairs[-1][0]:  # 80 (prospect)
                pairs[-1] = name, pairs[-1][1]
            else:
                label = name
    return pairs if 1 <= len(pairs) <= 2 else None  # noqa: PLR2004
