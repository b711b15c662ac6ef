"""The words and marks of a reply, as the rules of a language see them."""

# ruff: noqa: RUF001 (models write curly quotes, dashes and full-width marks)

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

# What may stand around a word without bearing on it, as a class of characters.
NOISE = (
    r"\s\\\"'`*_#>~|=+.…,:;!?()\[\]{}<«»„“”‘’‚‹›「」『』＂＇（）［］【】、。，：；！？¡¿•·/–—\-"
    "\ufeff\u200b-\u200f\u2060"
)
# Scripts that put no space between words are read character by character.
_UNSPACED_RANGES = (
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\uff66", "\uff9f"),
)
_UNSPACED = "".join(f"{first}-{last}" for first, last in _UNSPACED_RANGES)
_ACCENTS = r"\u0300-\u036f"
_WORD = rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_ACCENTS}])*"
NAMES = frozenset(["May", "Can", "Will"])  # when they stand inside a sentence
ATTRIBUTIVE = frozenset("的之なの")  # Chinese and Japanese, between an attribute and its noun
_STOP = re.compile(r"[!.?](?=\W)|[!.?]$|[。！．？]")
_ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "inc", "ltd", "corp", "co", "vs", "jr", "sr", "m"])
_NUMBERED = frozenset(["no", "nr"])  # "No. 7"


@cache
def word_pattern() -> re.Pattern[str]:
    """Find words. It is made when it is first needed: that takes longer than any module here to import."""
    return re.compile(_WORD)


@lru_cache(maxsize=1024)
def fold(character: str) -> str:
    """Return a character as it is compared: without case, accent and width."""
    if character in "‘’":
        return "'"
    if character.isspace() or character in "_\\":
        return " "
    parts = unicodedata.normalize("NFKD", character)
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()


def folded(word: str) -> str:
    """Return a word as it is compared."""
    return "".join(map(fold, word))


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are compared.

    Examples:
        >>> words_of("It DOESN'T say: \u672c\u6587.")
        ['it', 'doesn', 't', 'say', '\u672c', '\u6587']
    """
    return [folded(word) for word in word_pattern().findall(text)]


def mark_of(gap: str, *, last: str, following: str, final: bool) -> str:
    """Return the mark between the word `last` and the first letters of the next one.

    Args:
        gap: What stands between them, or what there is of it yet.
        last: The word before, as it is compared.
        following: The first letters of the next word; empty if there is none yet.
        final: Whether no more text comes.

    Returns:
        `,` also for dashes, brackets and semicolons, `:` also for the end of a tag, `.` for the end of a sentence or
        line, `?` where more follows, or nothing: no mark, or none that more text could not change.
    """
    first = gap.lstrip(" \"'*_`”’)]）］」』")[:1]
    if (first and first in ",;—–([，、；（［【「『《") or gap.startswith((" - ", " -- ")):
        return ","
    if first and first in ":：{":  # LaTeX's `boxed{` labels what follows
        return ":"
    if not following and not final:
        return ""
    if following and ("?" in gap or "？" in gap):
        return "?"
    number = following[:1].isdigit() and (gap == "." or last in _NUMBERED)
    goes_on = number or following[:1].islower() or last in _ABBREVIATIONS
    return "." if (_STOP.search(gap) and not goes_on) or "\n" in gap else ""


def is_spaced(word: str) -> bool:
    """Tell whether a word is of a script that puts spaces between words."""
    return word < "\u3005" or not any(first <= word[0] <= last for first, last in _UNSPACED_RANGES)
