"""Read the numbers of one line as models write them: with labels, as shares, in ranges, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

HIGHEST = 100
LONGEST = 80  # characters of a line that may still be numbers
NAMES = {
    "prospect": """prospect p likelihood probability chance aussicht wahrscheinlichkeit probabilité probabilidad 可能性
        概率 確率""",
    "confidence": """confidence c certainty konfidenz sicherheit zuversicht vertrauen confiance certitude confianza
        certeza 置信度 信心 信頼度 確信度""",
    "": """first second number numbers score scores line and of out the two my your here are is sure okay ok certainly
        estimate estimates percent zahl zahlen answer final output response result reply assistant ai model high low
        medium very und et y e based on provided passages context text antwort réponse respuesta""",
}
_LABELS = {word: name for name, words in NAMES.items() for word in words.split()}
_UNREAD = frozenset(["n", "a", "na", "none", "null", "nan", "unknown", *"-?\u2010\u2011\u2012\u2013\u2014\u2015"])
_BEGINNINGS = frozenset(word[:end] for word in (*_LABELS, *_UNREAD, "answer") for end in range(len(word) + 1))
# What may stand around the numbers: anything but letters, digits and currencies.
AROUND = "(?:(?![$\u20ac\u00a3\u00a5\u20b9])[\\W_])"
_DECORATION = re.compile(rf"{AROUND}*")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(rf"(?P<number>{NUMBER.pattern})|(?P<word>[^\W\d_]+|(?<=\s)[-?\u2010-\u2015](?=\W*\Z))")
_PART_OF_BREAK = re.compile(r"(?:\\|<b?r?)\Z")
_OF_ALL = re.compile(rf"(?:/|\b(?:out )?of\b)\s*{HIGHEST}\b", re.IGNORECASE)  # 80/100, 42 out of 100
_RANGE = re.compile(r"(?<=\d)[-\u2010-\u2015]\d+(?:\.\d+)?")
_SCALE = re.compile(rf"\(\s*0\s*(?:[-\u2010-\u2015]|to)\s*{HIGHEST}\s*%?\s*\)")
LINE = r"\W{0,3}(?i:line|number|zeile|ligne) ?\d\W{0,2}:"
LABEL = "|".join(word for word in _LABELS if _LABELS[word])
COUNTED = re.compile(rf"\s*(?:[-*\u2022]\s+)?(?:\d[.)]\s+(?=\W{{0,4}}(?:\d|(?i:{LABEL})\b))|{LINE})")

Pairs = list[tuple[str, int | None]]
"""Labels, which may be empty, and numbers."""


def score_of(value: object) -> int | None:
    """Return a number from 0 to 100 as a whole number, also if it is written as text; None if it is something else."""
    if isinstance(value, str):
        pairs = pairs_in(value)
        value = pairs[0][1] if pairs and len(pairs) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= HIGHEST:
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
        return [None if value is None else round(float(str(value)) * HIGHEST) for value in values]
    return [score_of(float(value) if isinstance(value, str) else value) for value in values]


def leads(line: str) -> bool:
    """Return whether a line only leads to the numbers, or is empty."""
    return len(line) <= LONGEST and not NUMBER.search(line) and is_around(line)


def is_around(line: str) -> bool:
    """Return whether a line has nothing but labels, numbers, and what may stand around them."""
    words = [found["word"].lower() for found in _TOKEN.finditer(line) if found["word"]]
    known = all(word in _LABELS or word in _UNREAD for word in words)
    return known and _DECORATION.fullmatch(_TOKEN.sub("", line)) is not None


def may_be_numbers(line: str) -> bool:
    """Return whether a line that is not complete may still become numbers."""
    line = _PART_OF_BREAK.sub("", line)
    if len(line) > LONGEST or len(NUMBER.findall(line)) > 6:  # noqa: PLR2004 - 80-90/100 42-50/100
        return False
    last = WORD.findall(line.lower())[-1:] if line[-1:].isalpha() else []
    return is_around(line[: len(line) - len(last[0])] if last and last[0] in _BEGINNINGS else line)


def pairs_in(line: str) -> Pairs | None:
    """Return the numbers of a line, each with its label; None if the line has anything else, or more than two."""
    if len(line) > LONGEST:
        return None
    if counted := COUNTED.match(line):
        line = line[counted.end() :]
    line = _RANGE.sub("", _OF_ALL.sub(" ", _SCALE.sub(" ", line)))
    if not is_around(line):
        return None
    tokens = [(found["number"], (found["word"] or "").lower()) for found in _TOKEN.finditer(line)]
    pairs: Pairs = []
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
