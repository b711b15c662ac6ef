"""Read a reply as the rules of a language do: its words and marks, also as they arrive, and the refusal in it."""

# ruff: noqa: RUF001 (models write curly quotes, dashes and full-width marks)

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator
from functools import cache, lru_cache
from typing import Protocol

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
# The combining classes of what is no accent or point: letters and vowel signs, and the marks that join consonants. The
# last ones are the places of vowels and tones in Telugu, Thai, Lao and Tibetan.
_SPELT = frozenset([0, 9, *range(84, 133)])
_IS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
WITHIN = _ACCENTS + _INVISIBLE  # what may stand inside a word besides letters and digits
_WORD = rf"[{UNSPACED}]|[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[{WITHIN}])*"
_LONG = 10  # letters of a refusal that may be misspelt
NAMES = frozenset(["May", "Can", "Will"])  # inside a sentence these are names, not verbs
ATTRIBUTIVE = frozenset("的之なの")  # Chinese and Japanese particles between an attribute and its noun
_STOP = re.compile(r"[!.?](?=\W)|[!.?]$|[。！．？]")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "inc", "ltd", "corp", "co", "vs", "jr", "sr", "m"])
NUMBERED = frozenset(["no", "nr"])  # "No. 7"
# The first mark after a refusal that is a reply of its own: a full stop, or a symbol such as an emoji or an arrow.
_ENDING = re.compile(
    r"[^\w?\uff1f.!\u2026\u3002\uff01\uff0e]*"
    r"(?:[.!\u2026\u3002\uff01\uff0e](?!\w)|[\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff])"
)


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
    return "".join(part for part in parts if unicodedata.combining(part) in _SPELT).casefold()


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
        gap: The text between them that has arrived.
        last: The word before the gap, folded.
        following: The first letters of the word after the gap; empty if none have arrived.
        final: Whether the text is complete.

    Returns:
        `,` for a comma, dash, opening bracket or semicolon; `:` for a colon or the opening brace of a label; `.` for
        the end of a sentence or line; `?` for a question mark that text follows; empty if there is no mark, or if more
        text could still change which one it is.
    """
    if gap == " ":  # between most words
        return ""
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


class _State(Protocol):
    def may_take(self, beginning: str) -> bool:
        """Return whether a word that begins like this may matter."""


class WordReader:
    """A reader that takes text which is still arriving apart, word by word.

    The caller sets `text` and `final` before it resumes a generator of this class. Such a generator yields whenever it
    needs more text than there is, and returns its result as soon as later text cannot change it.

    Attributes:
        text: The text so far.
        final: Whether the text is complete.
        at: Where the last word that was read ends.
    """

    __slots__ = ("_after_mark", "_last", "at", "final", "text")

    def __init__(self) -> None:
        """Start with no text."""
        self.text, self.final = "", False
        self.read_from(0)

    def read_from(self, at: int, *, last: str = "") -> None:
        """Continue reading at `at`, as if the word or mark `last` had just been read."""
        self.at, self._last, self._after_mark = at, last, last in {",", ":", ".", "?"}

    def find(self, pattern: re.Pattern[str], at: int) -> Generator[None, None, int | None]:
        """Return where a pattern next begins, searching from `at`; None if it does not occur."""
        while not (found := pattern.search(self.text, at)):
            if self.final:
                return None
            yield
        return found.start()

    def word(self, state: _State | None = None) -> Generator[None, None, str]:
        """Return the next word, folded, or the next punctuation mark; at the end of the text `.` and then `$`.

        A word is complete once a character follows it. There is no need to wait for that if none of the words that
        `state` could still take begins with the letters that have arrived: then those letters are returned.
        """
        while True:
            found = word_pattern().search(self.text, self.at)
            start, end = found.span() if found else (len(self.text), self.at)
            following = found[0] if found else ""
            gap = self.text[self.at : start]
            if not self._after_mark and (gap or self.final):
                mark = mark_of(gap, last=self._last, following=following, final=self.final)
                if mark:
                    self._last, self._after_mark = mark, True
                    return mark
            if following:
                word = "" if following in NAMES and self._last and not self._after_mark else fold(following)
                if self.final or end < len(self.text) or not is_spaced(following):
                    self.at, self._last, self._after_mark = end, word, False
                    return word
                if state and not state.may_take(word):
                    return word
            elif self.final:
                ended, self._last, self._after_mark = self._last == ".", ".", True
                return "$" if ended else "."
            yield


class Refusal:
    """A refusal, prepared for comparison with replies.

    Attributes:
        core: Its words, folded, without the quotes and punctuation around them.
        first: The first of its words, or nothing if it has none.
        visible: Finds the first character of a reply that is not noise such as white space, quotes or Markdown.
    """

    __slots__ = ("_forms", "core", "first", "visible")

    def __init__(self, refusal: str) -> None:
        """Prepare to find `refusal`."""
        bare = refusal.strip(" \t\r\n\"'`*_.!\u201c\u201d\u2018\u2019") or refusal.strip()
        self.core = " ".join(fold(bare).split())
        bracketed = re.fullmatch(r"[\[({]+ ?(\w.*\w) ?[\])}]+", self.core)
        self._forms = (self.core, bracketed[1]) if bracketed else (self.core,)  # models leave brackets out
        self.first = words_of(self.core)[:1]
        self.visible = re.compile(f"[^{NOISE}]" + (f"|{re.escape(bare[0])}" if bare else ""))

    def end_in(self, text: str, at: int) -> int | None:
        """Return where the refusal that begins at `at` ends: -1 if none begins, None if `text` is still too short.

        A long word may be misspelt by one letter, or have a hyphen or a space after "un".
        """
        ends = [_end_of(form, text, at, slips=len(form) >= _LONG and form.isalpha()) for form in self._forms]
        return None if None in ends else max(end for end in ends if end is not None)

    @staticmethod
    def ends_reply(text: str, at: int) -> bool:
        """Return whether the first mark after a refusal that ends at `at` ends it, whatever word comes next."""
        return _ENDING.match(text, at) is not None


def _end_of(form: str, text: str, at: int, *, slips: bool) -> int | None:
    """Do as `Refusal.end_in`, for one form of the refusal; with `slips`, it may be misspelt.

    White space may be repeated.
    """
    if text.startswith(form, at):
        return at + len(form)
    matched = 0
    while matched < len(form):
        if at == len(text):
            return None
        part = fold_character(text[at])
        if form.startswith(part, matched):
            matched += len(part)
        elif form[:matched] == "un" and part in {" ", "-"} and slips:
            pass
        elif part != " " or not matched or form[matched - 1] != " ":
            return _after_slip(form[matched:], text, at) if matched > 1 and slips else -1
        at += 1
    return at


def _after_slip(form: str, text: str, at: int) -> int | None:
    """Return where a word ends of which `form` is left, if one letter is too many, missing, wrong or misplaced."""
    swapped = form[1:2] + form[:1] + form[2:]
    ends = [
        _end_of(rest, text, start, slips=False) for rest, start in ((form, at + 1), (form[1:], at), (form[1:], at + 1))
    ]
    ends.append(_end_of(swapped, text, at, slips=False))
    return None if None in ends else max(end for end in ends if end is not None)


@lru_cache(maxsize=64)
def compile_refusal(refusal: str) -> Refusal:
    """Return a refusal, prepared for comparison; the last ones are cached."""
    return Refusal(refusal)
