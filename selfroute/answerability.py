"""Does a reply decline?

The routing signal is the model's own report (Li et al., 2024, section 4): it answers from the passages, or it writes
the refusal. Real models also decline in words of their own, and real answers contain the refusal as a word. So a reply
is read as a sentence, word by word, until the verdict stands. It declines if it *is* the refusal, or if its first
clause says that the text does not tell, that the reader does not know, or that what was asked for is not told.
Whole texts and streams go through the same reader, so their verdicts cannot differ.
"""

# ruff: noqa: RUF001 (models write curly quotes, dashes and full-width marks)

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from selfroute.vocabulary import SOFTENED
from selfroute.wording import Reader, amends, clause, explanation, may_decline

__all__ = ["ANSWERED", "EMPTY", "NO_PASSAGES", "Gate", "Signal", "Verdict", "declines"]

Signal = Literal["sentinel", "phrase", "empty", "no_passages", "answered"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say whether a reply declines, and what shows it; truthy when it does.

    Attributes:
        declined: Whether the reply declines.
        signal: What shows it: the refusal itself, a phrase of the model's own, an empty reply, no passages to ask from.
        evidence: The words that settled it, as the reply has them; empty for an answer.
    """

    declined: bool
    signal: Signal
    evidence: str = ""

    def __bool__(self) -> bool:
        """Tell whether the reply declines."""
        return self.declined

    def as_dict(self) -> dict[str, bool | str]:
        """Return the verdict as plain JSON."""
        return {"declined": self.declined, "signal": self.signal, "evidence": self.evidence}


ANSWERED = Verdict(declined=False, signal="answered")
EMPTY = Verdict(declined=True, signal="empty")
NO_PASSAGES = Verdict(declined=True, signal="no_passages")

_WINDOW = 200  # characters from the first visible one that may bear on the verdict


_NOISE = (
    r"\s\\\"'`*_#>~|=+.…,:;!?()\[\]{}<«»„“”‘’‚‹›「」『』＂＇（）［］【】、。，：；！？¡¿•·/–—\-"
    "\ufeff\u200b-\u200f\u2060"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_JOINED = re.compile(r"[^\W_]|['’-]\w")
_FENCE = re.compile(r"\w*\W")
_CONTRACTION = re.compile(r"(can)(not)|(\w+?)(n['’]t)|(i|we|it|there)['’](m|ve|s|re|d)")
_EXPANDED = {"m": "am", "ve": "have", "s": "is", "re": "are", "d": "would", "ca": "can", "n't": "not", "n’t": "not"}
_ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "inc", "ltd", "corp", "co", "vs", "jr", "sr", "prof", "no"])
_NAMES = {"May", "Can", "Will"}
_STOP = re.compile(r"[.!?。！？](?:\W|$)")


@lru_cache(maxsize=512)
def _fold(character: str) -> str:
    folded = unicodedata.normalize("NFKD", character).casefold()
    return {"’": "'", "‘": "'", "_": " ", "\\": " "}.get(folded, " " if folded.isspace() else folded)


@lru_cache(maxsize=64)
def _prepare(refusal: str) -> tuple[str, re.Pattern[str]]:
    """Return the refusal as it is compared, and a pattern for the first character of a reply that counts."""
    bare = refusal.strip(" \t\r\n\"'`*_.“”‘’") or refusal.strip()
    core = " ".join("".join(map(_fold, bare)).split())
    return core, re.compile(f"[^{_NOISE}]" + (f"|{re.escape(bare[0])}" if bare else ""))


def _find(text: str, at: int, core: str) -> int | None:
    """Return where the refusal that begins at `at` ends, -1 if none does, None if the text is too short to tell."""
    done = 0
    while done < len(core):
        if at == len(text):
            return None
        folded = _fold(text[at])
        if core.startswith(folded, done):
            done += len(folded)
        elif folded != " " or not done or core[done - 1] != " ":
            return -1
        at += 1
    return at


def _mark(gap: str, last: str, following: str, *, final: bool) -> str:
    """Return the mark in the gap after the word `last`, or nothing; only one that more text cannot change."""
    first = gap.lstrip(" \"'*_`”’)]")[:1]
    if (first and first in ",;—–([，；、（［【「『《") or gap.startswith((" - ", " -- ")):
        return ","
    if first and first in ":：":
        return ":"
    if not following and not final:
        return ""
    if "?" in gap:
        return "?"
    ends = _STOP.search(gap) and last.lower() not in _ABBREVIATIONS and not following[:1].islower()
    return "." if ends or "\n" in gap else ""


class Gate:
    """Hold a streamed reply back while it may still decline.

    Whatever pieces the reply comes in, the verdict is that of `declines` on the whole, and what was returned adds up
    to the whole reply if it answers, to nothing if it declines.

    Example:
        >>> gate = Gate()
        >>> gate.feed("There is "), gate.feed("one: "), gate.feed("S4."), gate.end()
        ('', 'There is one: ', 'S4.', '')

    Attributes:
        verdict: The verdict, None while it is open.
    """

    __slots__ = (
        "_before",
        "_core",
        "_final",
        "_judging",
        "_limit",
        "_noise",
        "_opening",
        "_text",
        "_visible",
        "verdict",
    )

    def __init__(self, refusal: str = "unanswerable") -> None:
        """Prepare for one reply that was told to write `refusal`."""
        self.verdict: Verdict | None = None
        self._core, self._visible = _prepare(refusal)
        self._limit = max(_WINDOW, 2 * len(self._core))
        self._noise: list[str] = []
        self._text = self._opening = ""
        self._before = 0
        self._final = False
        self._judging = self._judge()

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        if self.verdict is not None:
            return "" if self.verdict else piece
        if not self._text:
            visible = self._visible.search(piece)
            start = visible.start() if visible else len(piece)
            if start:
                self._noise.append(piece[:start])
                piece = piece[start:]
        if piece:
            self._text += piece
            self._advance(final=len(self._text) > self._limit)
        return self._released()

    def end(self) -> str:
        """Settle the verdict, now that the reply is over; return the text that was still held."""
        if self.verdict is not None:
            return ""
        self._advance(final=True)
        return self._released()

    def _released(self) -> str:
        if self.verdict is not ANSWERED:
            return ""
        return "".join((*self._noise, self._text)) if self._noise else self._text

    def _advance(self, *, final: bool) -> None:
        self._opening, self._final = self._text[: self._limit], final
        try:
            next(self._judging)
        except StopIteration as stop:
            self.verdict = stop.value

    def _judge(self) -> Generator[None, None, Verdict]:
        """Judge the opening; yield to wait for more of it."""
        at = (yield from self._fence()) if self._noise and "".join(self._noise).endswith("```") else 0
        for _ in range(2):  # once more after a label
            while not (visible := self._visible.search(self._opening, at)):
                if self._final:
                    return EMPTY
                yield
            start = visible.start()
            if end := (yield from self._refusal(start)):
                return Verdict(declined=True, signal="sentinel", evidence=self._opening[start:end])
            while (first := _WORD.match(self._opening, start)) and not (self._final or self._whole(first.end())):
                yield
            if first and not may_decline(first[0].lower()):
                return ANSWERED
            declined, at = yield from self._read(clause(), start)
            if declined:
                evidence = self._opening[start:at]
                amending = amends(softened=bool(SOFTENED.search(evidence)))
                amended, _ = yield from self._read(amending, self._before)
                return ANSWERED if amended else Verdict(declined=True, signal="phrase", evidence=evidence)
            if declined is not None:
                break
        return ANSWERED

    def _fence(self) -> Generator[None, None, int]:
        """Return where the first line of a code fence ends, if it only names a language."""
        while not (info := _FENCE.match(self._opening)) and not self._final:
            yield
        named = info and info[0].endswith("\n") and info[0][:-1].casefold() != self._core
        return info.end() if info and named else 0

    def _refusal(self, start: int) -> Generator[None, None, int]:
        """Return where the refusal ends if the reply is the refusal, else 0."""
        while (end := _find(self._opening, start, self._core)) is None and not self._final:
            yield
        if end is None or end <= start:
            return 0
        while len(self._opening) < end + 2 and not self._final:
            yield
        if _JOINED.match(self._opening, end):
            return 0
        explained, _ = yield from self._read(explanation(self._core), end)
        return end if explained else 0

    def _read(self, reader: Reader, at: int) -> Generator[None, None, tuple[bool | None, int]]:
        """Send the words of the opening from `at` on to `reader`; return what it says and where it stopped."""
        last, marked = "", False
        next(reader)
        try:
            while True:
                word = _WORD.search(self._opening, at)
                start, end = word.span() if word else (len(self._opening), at)
                following = word[0] if word else ""
                if not marked and (mark := _mark(self._opening[at:start], last, following, final=self._final)):
                    marked = True
                    reader.send(mark)
                if following and (self._final or self._whole(end)):
                    self._before, at, marked = at, end, False
                    last = following if last and following in _NAMES else following.lower()
                    split = _CONTRACTION.fullmatch(last)
                    for part in filter(None, split.groups()) if split else (last,):
                        reader.send(_EXPANDED.get(part, part) if split else part)
                elif self._final:
                    reader.send("")
                else:
                    yield
        except StopIteration as stop:
            return stop.value, at

    def _whole(self, end: int) -> bool:
        """Tell whether the word that ends at `end` cannot go on in the next piece."""
        return end < len(self._opening) and (self._opening[end] not in "'’" or end + 1 < len(self._opening))


def declines(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Judge a whole reply to a prompt that asks for `refusal` where the passages do not hold the answer.

    Example:
        >>> declines("Unanswerable. The passages do not name her.").signal
        'sentinel'
        >>> bool(declines("Unanswerable questions go to the chair."))
        False
    """
    gate = Gate(refusal)
    gate.feed(reply)
    gate.end()
    return gate.verdict or ANSWERED
