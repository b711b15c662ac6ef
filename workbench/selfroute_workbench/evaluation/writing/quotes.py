"""Find what a model quoted in what it was given: word for word, but for white space, quotation marks and dashes."""

# ruff: noqa: RUF001 (quotation marks and dashes)

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from selfroute.languages.words import is_spaced

_QUOTES = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂＇"
_DASHES = "-‐‑‒–—―−－"
_MARKS = str.maketrans({**dict.fromkeys(_QUOTES), **dict.fromkeys(_DASHES, " ")})
_WORD = re.compile(rf"[^\s{re.escape(_DASHES)}]+")
_AROUND = " .,;:!?…"
_TRIES = 1_000  # places where a quote stands within longer words; then it is given up
Where = tuple[int, int, int]
"""The number of a text, and where something begins and ends in it."""


def places_of(quotes: Sequence[str], texts: Sequence[str], *, first: Sequence[Where]) -> Iterator[Where | None]:
    """Yield for each quote where it stands; None if it stands nowhere. The time grows with the length of the texts.

    Args:
        quotes: The quotes.
        texts: The texts.
        first: Where to look first, since a quote may stand in more than one place.
    """
    wholes = [(number, 0, len(text)) for number, text in enumerate(texts)] if quotes else []
    looked = [(number, start, _Plain(texts[number][start:end])) for number, start, end in (*first, *wholes)]
    for quote in quotes:
        wanted = _plain(quote).strip(_AROUND)
        found = ((number, start, text.find(wanted)) for number, start, text in looked)
        yield next(((number, start + at[0], start + at[1]) for number, start, at in found if at), None)


def _plain(text: str) -> str:
    """Return a text without quotation marks, and with one space for dashes and white space."""
    return " ".join(text.translate(_MARKS).split())


class _Plain:
    """A text in which quotes are looked for."""

    def __init__(self, text: str) -> None:
        self._text, self._plain = text, _plain(text)

    def find(self, wanted: str) -> tuple[int, int] | None:
        """Return where a plain text stands, as offsets into the text as it is; None if it stands nowhere."""
        if not any(map(str.isalnum, wanted)):
            return None
        at = -1
        for _ in range(_TRIES):
            at = self._plain.find(wanted, at + 1)
            if at < 0:
                return None
            end = at + len(wanted)
            if _parts(self._plain, at) and _parts(self._plain, end):
                begins, last = self._offsets(at, end - 1)
                return begins, last + 1
        return None

    def _offsets(self, first: int, second: int) -> list[int]:
        """Return where two characters of the plain text stand in the text as it is."""
        wanted, at = [first, second], 0
        found: list[int] = []
        for word in _WORD.finditer(self._text):
            size = len(word[0].translate(_MARKS))
            if wanted[len(found)] < at + size:
                kept = [place for place, character in enumerate(word[0], word.start()) if character not in _QUOTES]
                found += [kept[place - at] for place in wanted[len(found) :] if place < at + size]
                if len(found) == len(wanted):
                    break
            at += size + bool(size)
        return found


def _parts(text: str, at: int) -> bool:
    """Return whether no word, or one of a script without spaces, goes on at an offset."""
    around = text[max(at - 1, 0) : at + 1]
    return at == 0 or not around.isalnum() or len(around) == 1 or not all(map(is_spaced, around))
