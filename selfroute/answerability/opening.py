"""The opening of a streamed reply: what comes before it, and its words as they come."""

from __future__ import annotations

import re
from collections.abc import Generator

from selfroute.languages.automaton import State
from selfroute.languages.words import NAMES, folded, is_spaced, mark_of, word_pattern

_TAGS = "<think>", "<thinking>", "<thought>", "<reasoning>", "</think>"  # the last where the prompt began it
_END_TAG = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_LONGEST = len("</reasoning>")


class ReasoningSplitter:
    """Set apart what a reasoning model thinks aloud before its reply: `<think> ... </think>`.

    Attributes:
        over: Whether the reply itself has begun.
    """

    __slots__ = ("_inside", "_text", "over")

    def __init__(self) -> None:
        """Start."""
        self.over = self._inside = False
        self._text = ""

    def split(self, piece: str, *, final: bool = False) -> tuple[str, str]:
        """Take the next piece; return what of the text is before the reply, and what is the reply.

        What may be either is kept for the next call, unless this is the last.
        """
        text, self._text = self._text + piece, ""
        if not self._inside:
            begins = text.lstrip()[:_LONGEST].lower()
            self._inside = begins.startswith(_TAGS)
            if not (self._inside or final) and any(tag.startswith(begins) for tag in _TAGS):
                if begins:
                    self._text, text = text, ""
                return text, ""
        end = _END_TAG.search(text) if self._inside else None
        self.over = bool(end) or not self._inside
        if not self.over:
            at = len(text) if final else max(0, len(text) - _LONGEST)
            self._text = text[at:]
            return text[:at], ""
        at = end.end() if end else 0
        return text[:at], text[at:]


class WordReader:
    """Read the opening of a reply word by word, while it comes.

    Attributes:
        text: What has come of it.
        final: Whether no more comes.
        at: Where the last word that was read ends.
    """

    __slots__ = ("_last", "_marked", "at", "final", "text")

    def __init__(self) -> None:
        """Start with nothing."""
        self.text, self.final = "", False
        self.read_from(0)

    def read_from(self, at: int, *, last: str = "") -> None:
        """Go on reading at a place, after a word or mark that was read before."""
        self.at, self._last, self._marked = at, last, last in {",", ":", "."}

    def find(self, pattern: re.Pattern[str], at: int) -> Generator[None, None, int | None]:
        """Return where a pattern is found next; None if it is not. Yield to wait for more."""
        while not (found := pattern.search(self.text, at)):
            if self.final:
                return None
            yield
        return found.start()

    def word(self, state: State | None = None) -> Generator[None, None, str]:
        """Read the next word or mark as rules know it; `.` and then `$` at the end. Yield to wait for more.

        Of a word that can not lead on from `state`, its first letters are enough.
        """
        while True:
            found = word_pattern().search(self.text, self.at)
            start, end = found.span() if found else (len(self.text), self.at)
            following = found[0] if found else ""
            gap = self.text[self.at : start]
            if not self._marked and (gap or self.final):
                mark = mark_of(gap, last=self._last, following=following, final=self.final)
                if mark:
                    self._last, self._marked = mark, True
                    return mark
            if following:
                word = "" if following in NAMES and self._last and not self._marked else folded(following)
                if self.final or end < len(self.text) or not is_spaced(following):
                    self.at, self._last, self._marked = end, word, False
                    return word
                if state and not state.may_take(word):
                    return word
            elif self.final:
                ended, self._last, self._marked = self._last == ".", ".", True
                return "$" if ended else "."
            yield
