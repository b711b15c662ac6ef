"""Does a reply decline?

The routing signal is the model's own report (Li et al., 2024, section 4): it answers from the passages, or it writes
the refusal. Real models also decline in words of their own, and real answers contain the refusal as a word. So a reply
is read as a sentence, word by word, until the verdict stands. It declines if it *is* the refusal, or if it opens by
one of the rules of `selfroute.languages`: the text does not tell, the reader does not know, what was asked for is not
told. Whole texts and streams go through the same reader, so their verdicts cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from selfroute.answerability.opening import ReasoningSplitter, WordReader
from selfroute.answerability.refusal import prepared
from selfroute.answerability.verdict import ANSWERED, EMPTY, Verdict
from selfroute.languages import Grammar, grammar
from selfroute.languages.automaton import State
from selfroute.languages.words import ATTRIBUTIVE

_WINDOW = 200  # characters from the first visible one that may bear on the verdict

_JOINED = re.compile(r"[^\W_]|['\u2019-]\w")
# What may stand before the first word, and ends there or not yet: the language of a code fence, the name of a tag.
_FENCE = re.compile(r"[ \t]*[\w+#.-]{0,20}[ \t]*\r?(?P<end>\n|\Z)")
_TAG = re.compile(r"[a-zA-Z][^<>]{0,80}(?P<end>>|\Z)")
_LAST_LATIN = "\u024f"


class Gate:
    """Hold a streamed reply back while it may still decline.

    Whatever pieces the reply comes in, the verdict is that of `declines` on the whole, and what was returned adds up
    to the whole reply if it answers, to nothing if it declines.

    Examples:
        >>> gate = Gate()
        >>> gate.feed("There is "), gate.feed("one: "), gate.feed("S4."), gate.end()
        ('', 'There is one: ', 'S4.', '')

    Attributes:
        verdict: The verdict, None while it is open.
    """

    __slots__ = ("_aside", "_judging", "_limit", "_opening", "_refusal", "_text", "_thoughts", "verdict")

    def __init__(self, refusal: str = "unanswerable") -> None:
        """Prepare for one reply that was told to write `refusal`."""
        self.verdict: Verdict | None = None
        self._refusal = prepared(refusal)
        self._limit = max(_WINDOW, 2 * len(self._refusal.core))
        self._thoughts = ReasoningSplitter()
        self._aside: list[str] = []  # what comes before the first character that counts
        self._text = ""
        self._opening = WordReader()
        self._judging = self._judge()

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply; return the text that may be shown now."""
        if self.verdict is not None:
            return "" if self.verdict else piece
        self._take(piece)
        if self._text:
            self._advance(final=len(self._text) > self._limit)
        return self._released()

    def end(self) -> str:
        """Settle the verdict, now that the reply is over; return the text that was still held."""
        if self.verdict is not None:
            return ""
        self._take("", final=True)
        self._advance(final=True)
        return self._released()

    def _take(self, piece: str, *, final: bool = False) -> None:
        if not self._thoughts.over:
            thought, piece = self._thoughts.split(piece, final=final)
            self._set_aside(thought)
        if not self._text:
            visible = self._refusal.visible.search(piece)
            start = visible.start() if visible else len(piece)
            self._set_aside(piece[:start])
            piece = piece[start:]
        self._text += piece

    def _set_aside(self, text: str) -> None:
        if text:
            self._aside.append(text)

    def _released(self) -> str:
        return "".join((*self._aside, self._text)) if self.verdict is ANSWERED else ""

    def _advance(self, *, final: bool) -> None:
        self._opening.text, self._opening.final = self._text[: self._limit], final
        try:
            next(self._judging)
        except StopIteration as stop:
            self.verdict = stop.value

    def _judge(self) -> Generator[None, None, Verdict]:
        """Judge the opening; yield to wait for more of it."""
        opening, rules = self._opening, grammar()
        start = (yield from self._skip_markup()) if self._aside else 0
        if start is None or not opening.text:
            return EMPTY
        if refused := (yield from self._refused(start, rules)):
            return refused
        declining, label, answering = rules.declines, rules.labels, rules.answers
        opening.read_from(start)
        while not declining.matched:
            word = yield from opening.word(declining)
            declining = declining.after(word)
            if declining.dead or (word == "$" and not declining.matched):
                return ANSWERED
            label, answering = label.after(word), rules.answers if word == "." else answering.after(word)
            if label.matched:
                at = opening.at
                visible = yield from opening.find(self._refusal.visible, at)
                if visible is None and word == ":":
                    return EMPTY
                if visible is not None and (refused := (yield from self._refused(visible, rules))):
                    return refused
                opening.read_from(at, last=word)
        evidence = opening.text[start : opening.at]
        answers = yield from self._goes_on(answering)
        return ANSWERED if answers else Verdict(declined=True, signal="phrase", evidence=evidence)

    def _goes_on(self, state: State) -> Generator[None, None, bool]:
        """Read on until a rule is matched, or none can be any more."""
        word = ""
        while not (state.matched or state.dead or word == "$"):
            word = yield from self._opening.word(state)
            state = state.after(word)
        return state.matched

    def _skip_markup(self) -> Generator[None, None, int | None]:
        """Return where the first word begins, after the first line of a code fence, and tags; None if there is none."""
        opening, refusal = self._opening, self._refusal
        at = 0
        before = "".join(self._aside[-3:])  # none of them is empty, so that three hold three characters
        while pattern := _FENCE if before.endswith("```") else _TAG if before[-1:] == "<" else None:
            while (found := pattern.match(opening.text, at)) and not found["end"] and not opening.final:
                yield
            if not found or not found["end"]:
                break
            while (refused := refusal.end_in(opening.text, at)) is None and not opening.final:
                yield
            if refused != -1:
                break
            start = yield from opening.find(refusal.visible, found.end())
            if start is None:
                return None if pattern is _FENCE else at
            before, at = opening.text[found.end() : start], start
        return at

    def _refused(self, start: int, rules: Grammar) -> Generator[None, None, Verdict | None]:
        """Return the verdict if what begins at `start` is the refusal, and not a word of a sentence."""
        opening = self._opening
        while (end := self._refusal.end_in(opening.text, start)) is None and not opening.final:
            yield
        if end is None or end <= start:
            return None
        while len(opening.text) < end + 2 and not opening.final:
            yield
        verdict = Verdict(declined=True, signal="sentinel", evidence=opening.text[start:end])
        if opening.text.startswith("<", end):  # a tag that ends, or a token of the model's
            return verdict
        if _JOINED.match(opening.text, end):
            return None
        opening.read_from(end)
        word = yield from opening.word()
        # A mark, the refusal once more, or another script that does not make an attribute of it.
        foreign = word > _LAST_LATIN and word not in ATTRIBUTIVE
        if word in {",", "."} or [word] == self._refusal.first or foreign:
            return verdict
        if word == ":":
            return None if (yield from opening.word()) == "false" else verdict
        explained = yield from self._goes_on(rules.explains.after(word))
        return verdict if explained else None


def declines(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Judge a whole reply to a prompt that asks for `refusal` where the passages do not hold the answer.

    Examples:
        >>> declines("Unanswerable. The passages do not name her.").signal
        'sentinel'
        >>> bool(declines("Unanswerable questions go to the chair."))
        False
    """
    gate = Gate(refusal)
    gate.feed(reply)
    gate.end()
    return gate.verdict or ANSWERED
