"""Split a reply into the words and punctuation marks that the rules of a language match."""

# ruff: noqa: RUF001 (models write curly quotes, dashes and full-width marks)

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

# Soft hyphens, characters without width and marks of direction: they may stand in a word, and nobody sees them.
_INVISIBLE = (
    "\u00ad\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
# The characters that may surround a word without changing its meaning, as the inside of a character class.
NOISE = r"\s\\\"'`*_#>~|=+.…,:;!?()\[\]{}<«»„“”‘’‚‹›「」『』＂＇（）［］【】、。，：；！？¡¿•·/–—\-" + _INVISIBLE
# In scripts that put no spaces between words, every character counts as a word.
_UNSPACED_RANGES = (
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\uff66", "\uff9f"),
)
UNSPACED = "".join(f"{first}-{last}" for first, last in _UNSPACED_RANGES)
_ACCENTS = r"\u0300-\u036f"
_IS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
WITHIN = _ACCENTS + _INVISIBLE  # what may stand inside a word besides letters and digits
_WORD = rf"[{UNSPACED}]|[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[{WITHIN}])*"
NAMES = frozenset(["May", "Can", "Will"])  # inside a sentence these are names, not verbs
ATTRIBUTIVE = frozenset("的之なの")  # Chinese and Japanese particles between an attribute and its noun
_STOP = re.compile(r"[!.?](?=\W)|[!.?]$|[。！．？]")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "inc", "ltd", "corp", "co", "vs", "jr", "sr", "m"])
NUMBERED = frozenset(["no", "nr"])  # "No. 7"


@cache
def word_pattern() -> re.Pattern[str]:
    """Return the pattern that finds words, compiled on first use: compiling takes longer than importing a module."""
    return re.compile(_WORD)


@lru_cache(maxsize=1024)
def fold_character(character: str) -> str:
    """Return a character as words are compared: without case, accents and width; nothing if it is invisible."""
    if character in "‘’":
        return "'"
    if character.isspace() or character in "_\\":
        return " "
    if _IS_INVISIBLE.match(character):
        return ""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()


def fold(text: str) -> str:
    """Return a text as words are compared: without case, accents and width."""
    return text.lower() if text.isascii() and text.isalnum() else "".join(map(fold_character, text))


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded.

    Examples:
        >>> words_of("It DOESN'T say: \u672c\u6587.")
        ['it', 'doesn', 't', 'say', '\u672c', '\u6587']
    """
    return [fold(word) for word in word_pattern().findall(text)]


def mark_of(gap: str, *, last: str, following: str, final: bool) -> str:
    """Return the punctuation mark between two words.

    Args:
        gap: The text between them, as far as it has arrived.
        last: The word before the gap, folded.
        following: The first letters of the word after the gap; empty if none have arrived.
        final: Whether the text is complete.

    Returns:
        `,` for a comma, dash, opening bracket or semicolon; `:` for a colon or the opening brace of a label; `.` for
        the end of a sentence or line; `?` for a question mark that text follows; empty if there is no mark, or if more
        text could still change which one it is.
    """
    first = gap.lstrip(" \"'*_`“”’)]）］」』")[:1]
    if (first and first in ",;—–([，、；（［【「『《") or gap.startswith((" - ", " -- ")):
        return ","
    if first and first in ":：{":  # in LaTeX, `\boxed{` introduces the answer
        return ":"
    if not following and not final:
        return ""
    if following and ("?" in gap or "？" in gap):
        return "?"
    is_number = following[:1].isdigit() and (gap == "." or last in NUMBERED)
    goes_on = is_number or following[:1].islower() or last in ABBREVIATIONS
    return "." if (_STOP.search(gap) and not goes_on) or _LINE_BREAK.search(gap) else ""


def is_spaced(word: str) -> bool:
    """Return whether a word belongs to a script that puts spaces between words."""
    return word < "\u3005" or not any(first <= word[0] <= last for first, last in _UNSPACED_RANGES)
