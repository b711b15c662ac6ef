"""Read the beginning of a streamed reply: skip a model's reasoning, then hand out its words as they arrive."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING

from selfroute.languages.words import NAMES, fold, is_spaced, mark_of, word_pattern

if TYPE_CHECKING:
    from selfroute.languages.automaton import State

# What a reasoning block starts with: an opening tag, or the closing tag of an empty block if the prompt opened it.
_TAGS = "<think>", "<thinking>", "<thought>", "<reasoning>", "</think>"
_END_TAG = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_LONGEST_TAG = len("</reasoning>")


class ReasoningSplitter:
    """A filter that separates a model's reasoning, `<think> ... </think>`, from the reply that follows it.

    Attributes:
        done: Whether the reply itself has begun.
    """

    __slots__ = ("_inside", "_pending", "done")

    def __init__(self) -> None:
        """Start before the first piece."""
        self.done = self._inside = False
        self._pending = ""

    def split(self, piece: str, *, final: bool = False) -> tuple[str, str]:
        """Take the next piece; return the part of the text so far that is reasoning, and the part that is the reply.

        Text that may still be either is kept for the next call, unless this is the last one (`final`).
        """
        text, self._pending = self._pending + piece, ""
        if not self._inside:
            beginning = text.lstrip()[:_LONGEST_TAG].lower()
            self._inside = beginning.startswith(_TAGS)
            if not (self._inside or final) and any(tag.startswith(beginning) for tag in _TAGS):
                if beginning:
                    self._pending, text = text, ""
                return text, ""
        end_tag = _END_TAG.search(text) if self._inside else None
        self.done = bool(end_tag) or not self._inside
        if not self.done:
            at = len(text) if final else max(0, len(text) - _LONGEST_TAG)  # the end tag may have begun
            self._pending = text[at:]
            return text[:at], ""
        at = end_tag.end() if end_tag else 0
        return text[:at], text[at:]


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
        self.at, self._last, self._after_mark = at, last, last in {",", ":", "."}

    def find(self, pattern: re.Pattern[str], at: int) -> Generator[None, None, int | None]:
        """Return where a pattern next begins, searching from `at`; None if it does not occur."""
        while not (found := pattern.search(self.text, at)):
            if self.final:
                return None
            yield
        return found.start()

    def word(self, state: State | None = None) -> Generator[None, None, str]:
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
