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


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Heads of a subject that is the text, and of one that is what was asked for.
_TEXT = _set(
    "text texts passage passages context contexts chunk chunks excerpt excerpts document documents paper papers article"
    " articles statement statements report reports source sources snippet snippets material materials content contents"
    " section sections note notes book story novel chapter filing filings transcript prospectus study author authors"
)
_ASKED = _set("information info data details detail answer answers question questions")
_GIVEN = _set(
    "provided given retrieved supplied available above following financial annual quarterly entire whole two search"
    " specific exact"
)
_DETERMINERS = _set("the this these that those your any all my our a an")
_SUBJECTS = _TEXT | _ASKED | _GIVEN | _DETERMINERS
_AFTER_HEAD = _set("of in for about regarding on to from concerning with by between at within which who as")
_FILLERS = _set("unfortunately apologies regrettably sorry however actually but and so therefore alas well hmm , .")
_LEADS = _set("based according from in after upon on within given as while although though since because despite")
_LEADING = _set("to on of carefully reviewing reading analyzing examining searching thorough careful review not ai")
_NEGATIONS = _set("not never unable")
_BE = _set("is are was were be been being am seem seems appear appears")
_AUXILIARIES = _BE | _set("do does did has have had can could will would may might should")
_PARTICLES = _AUXILIARIES | _NEGATIONS | _set("to able also even yet sure certain")
_LACKING = _set(
    "insufficient unclear impossible unspecified unavailable unanswerable lack lacks lacking omit omits fail"
    " fails missing absent silent"
)
_NONE = _set("no none neither nothing insufficient")
_ENDS = _set(". ?") | {""}
_AGENTS = _set("by to for until because")
_TELL = re.compile(
    r"(?:mention|specif|contain|provid|discuss|describ|includ|stat|addres|detail|disclos|indicat|refer|reveal|list|giv"
    r"|explain|answer|say|tell|identif|elaborat|cover|offer|present|outlin|clarif|compar|quantif|show|suggest|report"
    r"|convey|explor|have|name|make|confirm|project|support|touch|note|find|found|determin|see|locat|know|verif|access"
    r"|infer|extract|deriv|calculat|comment|conclude|assess|establish|discern|respond|help|allow)\w*"
)
_TOLD = re.compile(
    r"mentioned|specified|stated|provided|given|discussed|described|disclosed|indicated|detailed|revealed|addressed"
    r"|answer(?:ed|able)|determined|explained|outlined|compared|quantified|calculated|inferred"
)
_THERE = re.compile(
    r"found|available|included|listed|present|reported|possible|clear|identified|known|covered|defined|named|visible"
)
_INFORMATION = re.compile(
    r"(?:mention|information|detail|referenc|indication|discussion|explicit|specific|relevant|sufficient)\w*"
)
_FINDINGS = re.compile(r"(?:direct|answer|data|descri|statement|evidence|record|clear|comparison)\w*")
# Verbs that end a subject, so that what follows is an answer: "The text says ..." is not about what it does not say.
_ASSERTS = _set(
    "says states shows suggests argues indicates explains implies refers means represents reflects"
    " increased decreased declined rose fell grew resulted contributed involves requires focuses aims expects"
    " intends believes leads led became went took gave got said told considers allows consists but"
)
_DESCRIBES = _set("discusses discuss describes describe focuses focus covers cover")
_HOLDS = _set("contains contain provides provide gives give makes make offers offer includes include")
_TITLES = _set("mr mrs ms dr")
_APOLOGIES = _set("sorry apologize apologise afraid regret")
_REVIEWED = _set("reviewed read searched checked examined analyzed looked")

_Reader = Generator[None, str, bool | None]
"""Is sent the words of a reply in lower case, the marks `,` `:` `.` `?` between them and `""` at the end.

It returns as soon as it knows whether they decline, or None if what it read was only a label or an apology.
"""


def _clause() -> _Reader:
    """Read a reply from its first word."""
    cited = False
    word = yield
    while True:
        if word in _LEADS:
            word = yield from _lead()
            if not word:
                return False
            cited = True
        elif word in {"i", "we"}:
            known = yield from _predicate((yield), "reader")
            if known is not None:
                return known
            cited, word = True, (yield)
        elif word == "it":
            word = yield
            if word not in {"seems", "appears", "looks"}:
                return (yield from _predicate(word, "asked", cited=cited))
            word = yield
        elif word in {"for", "that", "like"} and cited:  # "I apologize for ..., but"
            while word not in _FILLERS and word not in _ENDS and word != "the":
                word = yield
        elif word in _FILLERS:
            word = yield
        else:
            return (yield from _subject(word, cited=cited))


def _lead() -> Generator[None, str, str]:
    """Read "Based on the passages,"; return the first word after it, or nothing if it does not speak of the text."""
    cited = False
    while (word := (yield)) not in _ENDS:
        if cited and word in {",", ":"}:
            return (yield)
        if cited and word in {"there", "i", "we", "it", "they", "no"}:
            return word
        cited = cited or word in _TEXT or word in _ASKED or word in _GIVEN or word == "ai"
        if not (cited or word in _DETERMINERS or word in _LEADING):
            break
    return ""


def _subject(word: str, *, cited: bool) -> _Reader:
    """Read a clause from its subject on."""
    if word == "there":
        word = yield
        while word in _AUXILIARIES:
            word = yield
        return (word in _NONE or word in _NEGATIONS) and (yield from _nothing(cited=cited))
    if word in _NONE:
        return (yield from _nothing(cited=cited))
    if word in _AUXILIARIES or word in _NEGATIONS:
        return (yield from _predicate(word, "asked", cited=cited))
    if word == "they" and cited:
        return (yield from _predicate((yield), "text"))
    if word in _SUBJECTS or word in _TITLES or word in {"final", "response"} or word.endswith(("'s", "’s")):
        return (yield from _noun(word, cited=cited))
    for _ in range(3 if cited else 0):  # "Based on the passages, Mr Ames does not ..."
        word = yield
        if word in _AUXILIARIES:
            return (yield from _predicate(word, "topic", cited=cited))
    return False


def _noun(word: str, *, cited: bool) -> _Reader:
    """Read a clause whose subject is a noun: the text, what was asked for, or the topic of the question."""
    kind, first, last = "", word, ""
    while word not in _AUXILIARIES and word not in _NEGATIONS:
        if kind == "text" and word in _HOLDS:
            return (yield) in _NONE
        if word in _DESCRIBES and kind == "text":
            return (yield from _next())
        if word in _ENDS or word in _ASSERTS:
            return False
        if word == ":":
            return None if last in {"answer", "response"} else False
        if word in _LACKING and kind in {"text", "asked"}:
            return True
        if not kind and (word in _TEXT or word in _ASKED):
            kind = "text" if word in _TEXT else "asked"
        if not kind and word in _AFTER_HEAD:
            kind = "topic"
        last = word
        word = yield
    if last == first and first in {"this", "that"}:
        kind = "asked"
    return (yield from _predicate(word, kind or "topic", cited=cited))


def _predicate(word: str, kind: str, *, cited: bool = False) -> _Reader:
    """Read a clause from its first verb on; its subject is the text, the reader, what was asked, or any topic."""
    negated = passive = softened = False
    while word in _PARTICLES or word[-2:] == "ly":
        if word == "have" and negated and kind != "topic":
            return True
        negated = negated or word in _NEGATIONS
        softened = softened or word[-2:] == "ly"
        passive = word in _BE or (passive and word not in {"able", "unable"})
        word = yield
    if not negated:
        return (yield from _positive(word, kind))
    if word in {"enough", "sufficient"} and kind != "topic":
        return kind == "text" or (yield from _nothing(cited=cited))
    if _TOLD.fullmatch(word) or (_THERE.fullmatch(word) and (kind == "asked" or cited)):
        return word in {"mentioned", "possible", "clear"} or (yield) not in _AGENTS or (yield from _tail())
    if _TELL.fullmatch(word) and not passive and (kind != "topic" or softened):
        return True
    if kind == "text" and word == "about":
        return True
    return bool(kind in {"text", "asked"} or _TELL.fullmatch(word) or _THERE.fullmatch(word)) and (yield from _tail())


def _positive(word: str, kind: str) -> _Reader:
    """Read a verb that is not negated: an apology, "found no mention", "is insufficient"."""
    if kind == "reader" and word in _APOLOGIES:
        return None
    if kind == "reader" and word in _REVIEWED:
        while word not in _ENDS and word not in _FILLERS:
            word = yield
        return None
    if kind == "reader" and word in {"find", "found", "see", "saw"}:
        word = yield
    if kind == "topic":
        return word in _LACKING and (yield from _tail())
    return word in _LACKING or word == "no"


def _nothing(*, cited: bool) -> _Reader:
    """Read on after "no" or "there is no"."""
    verb = False
    first = word = yield
    while word not in _ENDS and not (word in {",", ":"} and word == first):
        if _INFORMATION.match(word) or word in _TEXT or (cited and _FINDINGS.match(word)):
            return True
        if _TOLD.fullmatch(word):
            return (yield) not in _AGENTS or (yield from _tail())
        if _THERE.fullmatch(word):
            return cited or (yield from _tail())
        if verb and word not in _AUXILIARIES and word[-2:] != "ly":
            return (yield from _next())
        verb = verb or word in _AUXILIARIES
        word = yield
    return False


def _next() -> _Reader:
    """Read the sentence after one that only denies, or says what the text is about."""
    while (word := (yield)) not in _ENDS and word != "but":
        pass
    while word in _ENDS or word in _FILLERS or word == "instead":
        if word == "":
            return False
        word = yield
    if word in {"they", "it"} or word in _AUXILIARIES:
        word = (yield) if word in {"they", "it"} else word
        return (yield from _predicate(word, "text"))
    return (yield from _subject(word, cited=False))


def _tail() -> Generator[None, str, bool]:
    """Read the rest of a sentence: does it speak of the text?"""
    while (word := (yield)) not in _ENDS:
        if word in _TEXT or word in {"provided", "given", "retrieved"} or _INFORMATION.match(word):
            return True
    return False


_CONTRASTS = _set("but however though although nevertheless nonetheless yet still")
_SOFTENED = re.compile(r"(?i)\b(?:explicitly|directly|exact|outright|precise)")
_TELLING = re.compile(r"(?:mention|discuss|describ|focus|refer|provid|infer|lack)\w*|not|no|never|only|rather|instead")
_WORKED_OUT = re.compile(r"(?:calculat|comput|deriv|adding|subtract|sum|work|impli)\w*")


def _amends(*, softened: bool) -> Generator[None, str, bool]:
    """Read on after a decline: does the reply then answer after all, "but adding the rows gives 12"?"""
    while (word := (yield)) not in _ENDS and word not in _CONTRASTS:
        pass
    same = word in _CONTRASTS
    if not same and (word == "" or (yield) not in _CONTRASTS):
        return False
    while (word := (yield)) not in _ENDS:
        if _WORKED_OUT.match(word):
            return True
        if _TELLING.fullmatch(word):
            return False
    return same and softened


_BECAUSE = (
    _NONE
    | _FILLERS
    | _set("the this these those that your because since as given based due per according without there not i we :")
    | {""}
)
_LINKS = _set("from in with by on using for under within through")


def _explanation(core: str) -> _Reader:
    """Read on after the refusal: is the rest an explanation, or was the refusal a word of a sentence?"""
    word = yield
    if word in {",", ":", "."}:
        yield
        return True
    if word == "?":
        return (yield) == ""
    if word in _LINKS:
        return (yield) in _SUBJECTS | {"", "what"}
    return word in _BECAUSE or core.startswith(word)


_NOISE = (
    r"\s\\\"'`*_#>~|=+.…,:;!?()\[\]{}<«»„“”‘’‚‹›「」『』＂＇（）［］【】、。，：；！？¡¿•·/–—\-"
    "\ufeff\u200b-\u200f\u2060"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_JOINED = re.compile(r"\w|['’-]\w")
_FENCE = re.compile(r"\w*\W")
_CONTRACTION = re.compile(r"(can)(not)|(\w+?)(n['’]t)|(i|we|it|there)['’](m|ve|s|re|d)")
_EXPANDED = {"m": "am", "ve": "have", "s": "is", "re": "are", "d": "would", "ca": "can", "n't": "not", "n’t": "not"}
_ABBREVIATIONS = _set("mr mrs ms dr st inc ltd corp co vs jr sr prof no")
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
    if (first and first in ",;—–([") or gap.startswith((" - ", " -- ")):
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
        return "".join((*self._noise, self._text)) if self.verdict is ANSWERED else ""

    def _advance(self, *, final: bool) -> None:
        self._opening, self._final = self._text[: self._limit], final
        try:
            next(self._judging)
        except StopIteration as stop:
            self.verdict = stop.value

    def _judge(self) -> Generator[None, None, Verdict]:
        """Judge the opening; yield to wait for more of it."""
        at = (yield from self._fence()) if "".join(self._noise).endswith("```") else 0
        for _ in range(2):  # once more after a label
            while not (visible := self._visible.search(self._opening, at)):
                if self._final:
                    return EMPTY
                yield
            start = visible.start()
            if end := (yield from self._refusal(start)):
                return Verdict(declined=True, signal="sentinel", evidence=self._opening[start:end])
            declined, at = yield from self._read(_clause(), start)
            if declined:
                evidence = self._opening[start:at]
                amends = _amends(softened=bool(_SOFTENED.search(evidence)))
                amended, _ = yield from self._read(amends, self._before)
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
        explained, _ = yield from self._read(_explanation(self._core), end)
        return end if explained else 0

    def _read(self, reader: _Reader, at: int) -> Generator[None, None, tuple[bool | None, int]]:
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
