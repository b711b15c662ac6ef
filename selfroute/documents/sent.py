"""Remember what a question's models were sent, so that no step is paid for that reads nothing new."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD, _SPACE = re.compile(r"[\w\u2190-\u2bff\U0001f000-\U0001faff]"), re.compile(r"\s+")  # and signs such as ✓
_MOST = 4  # times as long as what was sent a text may be, with its white space
_LEAST = 20  # characters of a piece that covers a part; shorter ones may stand anywhere
_OFTEN = 32  # times a piece is looked for in a text; one that repeats itself more often counts as new


class Sent:
    """The texts that the models of one question were sent."""

    def __init__(self) -> None:
        """Start with nothing sent."""
        self._texts: dict[str, None] = {}  # without white space, which joining changes
        self._length = 0

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._texts)

    def add(self, texts: Iterable[str]) -> None:
        """Note texts that are sent to a model."""
        for text in map(_solid, texts):
            if text not in self._texts:
                self._texts[text] = None
                self._length += len(text)

    def has_all(self, texts: Iterable[str]) -> bool:
        """Return whether each word of some texts was sent; what several pieces cover together counts."""
        known = dict.fromkeys(texts)
        if any(len(text) > _MOST * self._length for text in known):  # it is new, or repeats itself very often
            return False
        return all(map(self._covers, map(_solid, known)))

    def _covers(self, text: str) -> bool:
        pieces = [piece for piece in self._texts if len(piece) >= _LEAST or piece == text]
        return any(text in piece for piece in pieces) or not any(map(_WORD.search, _uncovered(text, pieces)))


def _uncovered(text: str, pieces: Iterable[str]) -> list[str]:
    """Return the parts of a text that none of some pieces covers; pieces may overlap, and may stand there twice."""
    spans = sorted(span for piece in pieces if piece for span in _places(piece, text))
    parts, end = [], 0
    for start, stop in spans:
        if start > end:
            parts.append(text[end:start])
        end = max(end, stop)
    return [*parts, text[end:]]


def _places(piece: str, text: str) -> Iterable[tuple[int, int]]:
    at = text.find(piece)
    for _ in range(_OFTEN):
        if at < 0:
            return
        yield at, at + len(piece)
        at = text.find(piece, at + 1)


def _solid(text: str) -> str:
    return _SPACE.sub("", text)
