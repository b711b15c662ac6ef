"""Notice the prompt in a reply: some pipelines return it before the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Sent = Callable[[], Sequence[str]]
"""Returns the texts of the messages that were sent."""

SPECIAL = r"<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>"
"""Matches a mark of a chat template, such as `<|im_end|>`."""

_LONGEST = 100  # characters of what stands between two messages
# What stands between messages that are given back: white space, marks, and who speaks; and what may become that.
_BETWEEN = re.compile(
    rf"(?:\s|{SPECIAL}|(?i:</?s>|<[be]os>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>)"
    r"|(?i:human|user|system|ai|assistant|model)[ \t]*[:\n])*"
)
_ROLES = ("human", "user", "system", "ai", "assistant", "model")
_BEGINNINGS = frozenset(role[:end] for role in _ROLES for end in range(len(role) + 1))
_PART_OF_ROLE = re.compile(rf"(?:<[^<>\s]{{0,40}}|\[/?[a-z]{{0,4}}|(?:{'|'.join(_ROLES)})[ \t]*)\Z")


class Echo:
    """Compares a reply with what was sent, which the model may give back word for word."""

    def __init__(self, sent: Sent) -> None:
        self.found = False  # whether all of it was given back
        self._sent, self._text, self._at = sent, "", 0  # the reply so far, and up to where it is what was sent
        self._texts: list[str] | None = None  # the texts that are still to come
        self._begun = self._offset = 0  # where the first of them begins in the reply; how much of it has come

    def after(self, piece: str, *, final: bool) -> str | None:
        """Take the next piece; return the reply so far without what was sent; None while that is uncertain."""
        self._text += piece
        if self._texts is None:
            self._texts = [text for one in self._sent() if (text := one.strip())]
            if not self._texts:
                return self._text
        while self._texts:
            if not self._offset:
                self._at = self._begun = _end_of_gap(self._text, self._at)
            expected, come = self._texts[0], len(self._text) - self._at
            if come <= 0:
                return self._text if final else None
            count = min(come, len(expected) - self._offset)
            if not expected.startswith(self._text[self._at : self._at + count], self._offset):
                if (after := _end_of_gap(self._text, self._begun)) > self._begun:  # the text begins like a role
                    self._at, self._offset = after, 0
                    continue
                return None if not final and _may_be_role(self._text[self._begun :]) else self._text
            self._at, self._offset = self._at + count, self._offset + count
            if self._offset == len(expected):
                self._texts.pop(0)
                self._offset = 0
        rest = self._text[_end_of_gap(self._text, self._at) :]
        if not final and _may_be_role(rest):
            return None
        self.found = True
        return rest


def _end_of_gap(text: str, at: int) -> int:
    """Return where what stands between two messages ends."""
    return _BETWEEN.match(text, at).end()  # type: ignore[union-attr]


def _may_be_role(text: str) -> bool:
    """Return whether a text may become what stands between two messages."""
    lower = text[:_LONGEST].lower()
    return lower in _BEGINNINGS or _PART_OF_ROLE.match(lower) is not None
