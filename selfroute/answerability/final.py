"""Judge the reply of the last step, which is shown as it comes, even if it says that the documents do not tell.

Nothing follows it that could answer, so its own words are worth more to people than the refusal: "The report covers
2024 only." Only the refusal itself is held back. Whether the reply answers is judged on all of it, once it has ended,
by a wider rule: a denial anywhere in it counts. The model has read whole documents, after the first step declined, and
likes to describe what they hold before it says that they do not hold the answer, so that the opening tells less. Each
sentence is looked through by rules that need not begin with it; what denies a fact and not the answer is no denial here
either. Nothing comes after this verdict, so a denial is read to the end of its sentence, which may still answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import ANSWERED, Kind, Verdict
from selfroute.answerability.gate import Gate, declines
from selfroute.answerability.reply_gate import ReplyGate
from selfroute.answerability.spoken import said_in
from selfroute.languages.words import UNSPACED, Refusal, compile_refusal, fold, mark_of, word_pattern

if TYPE_CHECKING:
    from selfroute.languages.automaton import State

_WINDOW = 200  # characters, within which a refusal has to end, and own words have to begin
# Closing tags; the second is one that has not ended.
_TAG = re.compile(r"<[a-zA-Z/|!?][^<>]{0,80}>")
_OPEN_TAG = re.compile(r"<(?:[a-zA-Z/|!?][^<>]{0,80})?\Z")
# What is no word of the model's own: where it read something, how sure it is, and the keys of a report.
_LABEL = (
    r"(?i:sources?|references?|citations?|pages?|documents?|files?|passages?|confidence|prospect|score|metadata|answerable"
    r"|quellen?|belege?|seiten?|fuentes?|p[a\u00e1]ginas?|r[e\u00e9]f[e\u00e9]rences?|\u6765\u6e90|\u4f86\u6e90|\u51fa\u5178)"
)
_LEFT_OVER = re.compile(rf"{_LABEL}(?: [^\W\d]+)?[*_\"]*\s*[:\uff1a]")
_LISTED = re.compile(r"(?:\n\s*(?:[-*\u2022]|\d+[.)]|\[).*)*")  # lines that go on from it
_OPENS = re.compile(r"(?:(?:\A|(?<=\s))[\"'\u201c\u2018\u00ab*_`(\[\u3010]{1,8})?\Z")  # before the first word
_MAY_BE_LABEL = re.compile(rf"{_LABEL}(?: [^\W\d]*)?[*_\"]*\s*\Z")
_IN_BRACKETS = re.compile(
    rf"[\[(\u3010]\s*(?:\^?\w{{0,12}}\d[^\s\])\u3011]*|{_LABEL}[^\n\])\u3011]{{0,120}}|[\w-]+\.\w{{2,5}})\s*[\])\u3011]"
)
_MAY_BE_BRACKET = re.compile(r"[\[(\u3010][^\n\])\u3011]{0,120}\Z")
_OWN = re.compile(
    rf"(?<![^\W\d_])[^\W\d_]+[^\w\n]{{0,40}}\s[^\n]{{0,100}}?[^\W\d_]|[{UNSPACED}]{{4}}|[^\W\d_\x00-\x7f]{{8}}"
)
_REASON = re.compile(r"\"(?:reason|explanation|note|comment)\w*\"\s*:\s*(\"(?:[^\"\\]|\\.)*\")")


class FinalGate(ReplyGate):
    """A gate that holds back only the refusal at the beginning of a streamed reply, and shows what follows.

    What `feed` and `end` return adds up to the reply without a refusal at its beginning. What a refusal leaves behind
    is not shown: the rest of a report, sources, marks of citations, a number.

    Examples:
        >>> gate = FinalGate()
        >>> gate.feed("Unanswerable. The report"), gate.feed(" covers 2024 only."), gate.verdict.signal
        ('The report', ' covers 2024 only.', 'sentinel')

    Attributes:
        verdict: The verdict by the refusal alone; None while there is nothing to show.
    """

    __slots__ = ("_after", "_gate", "_limit", "_refusal", "_word")
    shows_declines = True

    def __init__(self, refusal: str = "unanswerable", *, sent: Sent | None = None) -> None:
        """Prepare for one reply of a model that was asked to write `refusal` if it cannot answer."""
        self._word = refusal
        self._refusal = compile_refusal(refusal)
        self._limit = max(_WINDOW, 2 * len(self._refusal.core))
        super().__init__(sent)

    def begin(self) -> None:
        """Begin to judge a reply."""
        super().begin()
        self._gate = Gate(self._word, phrases=False)
        self._after = ""  # what came after the refusal, and may be left over from it

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        if self.verdict is not None:
            return text
        if self._gate.verdict:
            return self._own_words(text)
        text = self._gate.read(text)
        if self._gate.verdict:
            return self._own_words(self._gate.after_refusal)
        self.verdict = self._gate.verdict
        return text

    def finish(self, kind: Kind) -> str:
        """Finish the verdict; return the text that was still held back."""
        if self.verdict is not None:
            return ""
        after = ""
        if not self._gate.verdict:
            text = self._gate.finish(kind)
            after = self._gate.after_refusal
            if not self._gate.verdict:
                self.verdict = self._gate.verdict
                return text
        text = self._own_words(after, final=True)
        self.verdict = self._gate.verdict
        return text

    def _own_words(self, piece: str, *, final: bool = False) -> str:
        """Return the words of its own that a model writes after the refusal; empty if none have come yet.

        What cannot be words of its own is dropped at once, so that all pieces together take linear time.
        """
        self._after += piece
        if self._gate.in_report:
            return _reason_in(self._after) if final else ""
        text, self._after = self._after, ""
        at = 0
        while True:
            at, start = self._skip(text, at)
            begins = at + len(text[at:start]) - len(_OPENS.search(text[at:start])[0])  # type: ignore[index]
            if start == len(text) or (text[start] == "<" and _OPEN_TAG.match(text, start) and not final):
                self._after = text[begins:]
                return ""
            end = self._refusal.end_in(text[start : start + self._limit], 0)
            if end and end > 0:
                at = start + end
                continue
            stop = text.find("\n", start)
            short = not final and stop < 0 and len(text) - start <= self._limit
            if left := _LEFT_OVER.match(text, start):
                if stop < 0:
                    self._after = text[start : left.end()]
                    return ""
                at = _LISTED.match(text, stop).end()  # type: ignore[union-attr]
                continue
            waits = short and (end is None or _MAY_BE_LABEL.match(text, start) or _MAY_BE_BRACKET.match(text, begins))
            if not waits and (
                _OWN.search(text, start, len(text) if stop < 0 else stop) or (not final and stop < 0 and not short)
            ):
                self.verdict = self._gate.verdict
                return text[begins:]
            if stop < 0:
                self._after = "" if final else text[begins:]
                return ""
            at = stop

    def _skip(self, text: str, at: int) -> tuple[int, int]:
        """Return where what is no word ends, tags and marks of citations, and where the next word begins."""
        while True:
            visible = self._refusal.visible.search(text, at)
            start = visible.start() if visible else len(text)
            tag = text.rfind("<", at, start)
            if tag >= 0 and (skipped := _TAG.match(text, tag)):
                at = skipped.end()
            elif tag >= 0 and _OPEN_TAG.match(text, tag):
                return tag, tag
            elif skipped := _IN_BRACKETS.search(text, at, start + _WINDOW):
                if skipped.start() > start:
                    return at, start
                at = skipped.end()
            else:
                return at, start


def _reason_in(report: str) -> str:
    """Return the reason that the rest of a report gives; empty if it gives none."""
    with suppress(ValueError):
        return str(json.loads(found[1], strict=False)) if (found := _REASON.search(report)) else ""
    return ""


def declines_anywhere(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Return the verdict on a complete reply to whole documents: a denial anywhere in it counts.

    It declines if it is empty, if it or one of its sentences is the refusal, or if a sentence says, also in its middle,
    that the text does not tell, and does not answer after that. The time that this takes grows with the length of the
    reply.

    Args:
        reply: The reply of the model.
        refusal: The text that the prompt asks the model to write if it cannot answer.

    Examples:
        >>> declines_anywhere("Kew is a garden. The report does not mention its owner.").evidence
        'The report does not mention'
        >>> bool(declines_anywhere("We do not provide refunds after 30 days."))
        False
        >>> bool(declines_anywhere("The report does not mention any fatalities, only 3 injuries."))
        False
    """
    verdict = declines(reply, refusal)
    if verdict and verdict.signal != "phrase":
        return verdict
    return _denial(said_in(reply), compile_refusal(refusal), opening=verdict or None) or ANSWERED


def _denial(text: str, refusal: Refusal, *, opening: Verdict | None) -> Verdict | None:
    """Return the verdict on the first sentence that denies and does not answer after that; None if no sentence does.

    After "No" it answers that the text does not mention something, but not if it does not say whether or who.

    Args:
        text: The reply.
        refusal: The refusal.
        opening: The verdict on the opening of the reply, if that denies.
    """
    from selfroute.languages.grammars import grammar  # noqa: PLC0415 - the rules take long to load
    from selfroute.languages.notation import NOTHING  # noqa: PLC0415

    rules = grammar()
    denying, answering, telling = rules.denials, rules.answers, NOTHING
    no = _matches(text, 0, rules.no)
    at, begins, found = 0, 0, None if no else opening
    if found:
        at = text.index(found.evidence) + len(found.evidence)
        denying, answering, telling = NOTHING, NOTHING, rules.tells
    for start, end, word in _words(text, at):
        if denying is rules.denials and not found:
            begins = start
            denying = NOTHING if no and not _matches(text, start, rules.asks) else denying
            if word != "." and (ended := _is_refusal(text, start, refusal)):
                return Verdict(declined=True, signal="sentinel", evidence=text[start:ended])
        answering, telling = answering.after(word), telling.after(word)
        if answering.matched or telling.matched:
            found, denying, telling = None, NOTHING, NOTHING
        elif not found:
            denying = denying.after(word)
            if denying.matched:
                found = Verdict(declined=True, signal="phrase", evidence=text[begins:end])
                telling = rules.tells.after(word) if start == end else rules.tells
        if found and answering.dead and telling.dead:
            return found
        if word == "." and not found:
            denying, answering = rules.denials, rules.answers
    return found


def _matches(text: str, at: int, state: State) -> bool:
    """Return whether rules match the sentence that begins at a position."""
    for _, _, word in _words(text, at):
        state = state.after(word)
        if state.matched or state.dead or word == ".":
            break
    return state.matched


def _words(text: str, at: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield the words and marks of a text from a position on, each with where it begins and ends."""
    last = ""
    for found in word_pattern().finditer(text, at):
        start, end = found.span()
        if mark := mark_of(text[at:start], last=last, following=found[0], final=True):
            yield at, at, mark
        last = fold(found[0])
        yield start, end, last
        at = end
    yield at, at, "."


def _is_refusal(text: str, start: int, refusal: Refusal) -> int | None:
    """Return where the refusal ends that is the whole sentence beginning at `start`; None if the sentence is not it."""
    end = refusal.end_in(text, start)
    if end is None or end <= start:
        return None
    after = text[end : end + 200]
    following = next(_words(after), None)
    return end if (following and following[2] == ".") or refusal.ends_reply(after, 0) else None
