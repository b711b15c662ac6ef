"""Judge whether a reply declines, while it is still arriving.

The routing signal is the model's own report (Li et al., 2024, section 4): it answers from the passages, or it writes
the refusal. In practice models also decline in their own words, and answers may contain the refusal as an ordinary word
("Unanswerable questions go to the chair."). So a reply is read from its beginning, word by word, until the verdict is
certain. It declines if it *is* the refusal, or if it begins as one of the rules of `selfroute.languages` describes: the
text does not say, the model does not know, what was asked for is not stated.

1. `ReplyGate.feed` receives pieces that may end anywhere, and leaves out what is not said to the user (`Spoken`). The
   gate skips white space, quotes and Markdown, which are released with the text if the reply answers.
2. `WordReader` hands out the rest word by word, each as soon as it is complete, or as soon as its first letters show
   that no rule continues with it.
3. `Gate._judge` feeds these words to the automata of the rules. If that of the declines is dead, no rule can match any
   more: the reply answers, and what was held back is released. If a rule has matched, the reply declines, unless the
   sentence goes on as one of the rules for answers describes. Otherwise the reply stays held back, and the next word is
   read. At the start, and after a label such as "Answer:", the text is also compared with the refusal itself.

For example, "The text does not mention her." matches a rule at "mention", and is a decline as soon as the sentence can
no longer turn into an answer. "The text describes her as tall. She" is held back up to "She", since "but it does not
say" could have followed. "There is one" is released at "one".

`_judge` is written as if the whole reply were there already, but it is a generator, as its helpers are: wherever it
needs text that has not arrived it yields, and `Gate._advance` resumes it when more has. `declines` feeds a whole reply
to a `Gate` as one piece, so the verdicts on texts and streams cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING

from selfroute.answerability.echo import Sent
from selfroute.answerability.ending import ANSWERED, EMPTY, Kind, Verdict
from selfroute.answerability.reply_gate import ReplyGate
from selfroute.languages.words import ATTRIBUTIVE, WordReader, compile_refusal

if TYPE_CHECKING:
    from selfroute.languages.automaton import State
    from selfroute.languages.grammars import Grammar

_WINDOW = 200  # characters, from the first visible one, that may influence the verdict

_TAG_NEXT = re.compile(r"<|\s+(?:<[/|\uff5c]|<\w+>\s*\Z)")
_WORD_CONTINUES = re.compile(r"[^\W_]|['\u2019-]\w")
# The rest of a code fence's first line, and the rest of a tag. `end` is empty where the text ends first.
_FENCE = re.compile(r"[ \t]*[\w+#.-]{0,20}[ \t]*\r?(?P<end>\n|\Z)")
_TAG = re.compile(r"[a-zA-Z][^<>]{0,80}(?P<end>>|\Z)")
_LAST_LATIN = "\u024f"
_OBJECT = re.compile(r"\{\s*[\"']")
# In a JSON object, the key before the answer.
_KEY = re.compile(r"(?:\A|\")(?:final_?)?(?:answer|response)\"\s*:", re.IGNORECASE)
_COUNT = re.compile(r"\d(?P<ends>[.)\]]\s*)?")  # of an item of a list, or of a source


class Gate(ReplyGate):
    """A gate that holds a streamed reply back for as long as it may still decline.

    However the reply is cut into pieces, the verdict is the one that `declines` gives on the whole reply. What `feed`
    and `end` return adds up to what the whole reply says if it answers, and to nothing if it declines.

    Examples:
        >>> gate = Gate()
        >>> gate.feed("There is "), gate.feed("one: "), gate.feed("S4."), gate.end()
        ('', 'There is one: ', 'S4.', '')

    Attributes:
        verdict: The verdict; None while it is not certain.
    """

    def __init__(
        self, refusal: str = "unanswerable", *, phrases: bool = True, last: bool = False, sent: Sent | None = None
    ) -> None:
        """Prepare for one reply.

        Args:
            refusal: The text that the prompt asks the model to write if it cannot answer.
            phrases: Whether declining in the model's own words counts, too. If not, only the refusal itself is held
                back, and everything else is an answer.
            last: Whether no step follows: then "No, the text does not mention it" answers.
            sent: As for all gates.
        """
        self._phrases, self._last = phrases, last
        self._refusal = compile_refusal(refusal)
        self._limit = max(_WINDOW, 2 * len(self._refusal.core))
        super().__init__(sent)

    def begin(self) -> None:
        """Begin to judge a reply."""
        super().begin()
        self._begun = ""  # the beginning of the refusal, if the reply ended within it
        self._end: int | None = None  # where the refusal ends in the text
        self._skipped: list[str] = []  # the text before the first character that counts, in pieces that are not empty
        self._text = ""  # the text from that character on
        self._reader = WordReader()
        self._judging = self._judge()

    def read(self, text: str) -> str:
        """Take the next text that is said to the user; return what may be shown now."""
        if self.verdict is not None:
            return "" if self.verdict else text
        if not self._text:
            visible = self._refusal.visible.search(text)
            start = visible.start() if visible else len(text)
            if start:
                self._skipped.append(text[:start])
            text = text[start:]
        self._text += text
        if self._text:
            self._advance(final=len(self._text) > self._limit)
        return self._release()

    def finish(self, kind: Kind) -> str:
        """Finish the verdict; return the text that was still held back."""
        if self.verdict is not None:
            return ""
        self._advance(final=True)
        if kind != "complete" and self.verdict in (ANSWERED, EMPTY):
            self.verdict = self._cut_off(kind)
        return self._release()

    def _cut_off(self, kind: Kind) -> Verdict | None:
        """Return the verdict on a reply that was cut off before anything was certain."""
        if self._begun:
            return Verdict(declined=True, signal="sentinel", evidence=self._begun)
        if self.verdict is ANSWERED and not self._phrases:
            return ANSWERED
        if kind == "cut" and self.verdict is ANSWERED:
            return Verdict(declined=True, signal="phrase", evidence=self._text)
        return None

    @property
    def text(self) -> str:
        """The text that had been fed when the verdict became certain."""
        return "".join((*self._skipped, self._text))

    @property
    def after_refusal(self) -> str:
        """The text after the refusal that had been fed when the verdict became certain."""
        return "" if self._end is None else self._text[self._end :]

    @property
    def in_report(self) -> bool:
        """Whether the refusal stands within a JSON object."""
        return _OBJECT.search("".join(self._skipped)) is not None

    def _release(self) -> str:
        return self.text if self.verdict is ANSWERED else ""

    def _advance(self, *, final: bool) -> None:
        """Give `_judge` the text so far, and let it continue until it needs more or has a verdict."""
        self._reader.text, self._reader.final = self._text[: self._limit], final
        try:
            next(self._judging)
        except StopIteration as stop:
            self.verdict = stop.value

    def _judge(self) -> Generator[None, None, Verdict]:
        """Return the verdict; yield to wait for more text."""
        from selfroute.languages.grammars import grammar  # noqa: PLC0415 - the rules take long to load

        reader, rules = self._reader, grammar()
        start = (yield from self._skip_markup()) if self._skipped else 0
        if start is None or not reader.text:
            return EMPTY
        if refused := (yield from self._refused_in_list(start, rules)) or (yield from self._refused(start, rules)):
            return refused
        declining, label, answering = rules.declines, rules.labels, rules.answers
        reader.read_from(start)
        while not (self._phrases and declining.matched):
            word = yield from reader.word(declining if self._phrases else label)
            declining, label = declining.after(word), label.after(word)
            held = declining if self._phrases else label
            if held.dead or (word == "$" and not held.matched):
                return ANSWERED
            answering = rules.answers if word == "." else answering.after(word)
            if label.matched:
                at = reader.at
                visible = yield from reader.find(self._refusal.visible, at)
                if visible is None and word == ":":
                    return EMPTY
                if visible is not None and (refused := (yield from self._refused(visible, rules))):
                    return refused
                reader.read_from(at, last=word)
        evidence = reader.text[start : reader.at]
        answers = (yield from self._matches(answering)) or (self._last and (yield from self._says_no(start, rules)))
        return ANSWERED if answers else Verdict(declined=True, signal="phrase", evidence=evidence)

    def _matches(self, state: State) -> Generator[None, None, bool]:
        """Return whether the text matches the rules of `state`, reading on from where the last word ended."""
        word = ""
        while not (state.matched or state.dead or word == "$"):
            word = yield from self._reader.word(state)
            state = state.after(word)
        return state.matched

    def _says_no(self, start: int, rules: Grammar) -> Generator[None, None, bool]:
        """Return whether a reply that declines says "no", and does not go on with whether, who or when."""
        self._reader.read_from(start)
        return (yield from self._matches(rules.no)) and not (yield from self._matches(rules.asks))

    def _skip_markup(self) -> Generator[None, None, int | None]:
        """Return where the reply begins, after the first line of a code fence, tags and keys; None if it is empty."""
        reader, refusal = self._reader, self._refusal
        at = 0
        before = "".join(self._skipped[-3:])  # no piece is empty, so this ends in the last three characters
        while pattern := _FENCE if before.endswith("```") else _TAG if before[-1:] == "<" else None:
            while (found := pattern.match(reader.text, at)) and not found["end"] and not reader.final:
                yield
            if not found or not found["end"]:
                break
            while (refused := refusal.end_in(reader.text, at)) is None and not reader.final:
                yield
            if refused != -1:
                break
            start = yield from reader.find(refusal.visible, found.end())
            if start is None:
                return None if pattern is _FENCE else at
            before, at = reader.text[found.end() : start], start
        return (yield from self._skip_keys()) if at == 0 and self.in_report else at

    def _skip_keys(self) -> Generator[None, None, int]:
        """Return where the answer of a JSON object begins; 0 if it has none."""
        reader = self._reader
        while not (found := _KEY.search(reader.text)):
            if reader.final:
                return 0
            yield
        if '"answerable"' in reader.text[: found.start()] or reader.text.startswith("answerable"):
            return 0
        return (yield from reader.find(self._refusal.visible, found.end())) or 0

    def _refused_in_list(self, start: int, rules: Grammar) -> Generator[None, None, Verdict | None]:
        """Return the verdict if the text at `start` is the refusal as an item of a list, or after a source."""
        reader = self._reader
        while (count := _COUNT.match(reader.text, start)) and count.end() == len(reader.text) and not reader.final:
            yield
        return (yield from self._refused(count.end(), rules)) if count and count["ends"] else None

    def _refused(self, start: int, rules: Grammar) -> Generator[None, None, Verdict | None]:
        """Return the verdict if the text at `start` is the refusal on its own; None if it is part of a sentence."""
        reader = self._reader
        while (end := self._refusal.end_in(reader.text, start)) is None and not reader.final:
            yield
        if end is None or end <= start:
            self._begun = reader.text[start:] if end is None else ""
            return None
        self._end = end
        while len(reader.text) < end + 2 and not reader.final:
            yield
        verdict = Verdict(declined=True, signal="sentinel", evidence=reader.text[start:end])
        if _TAG_NEXT.match(reader.text, end):  # a closing tag, or a special token of the model
            return verdict
        if _WORD_CONTINUES.match(reader.text, end):
            return None
        reader.read_from(end)
        word = yield from reader.word()
        # Another script follows, unless it makes the refusal an attribute of the next noun.
        foreign = word > _LAST_LATIN and word not in ATTRIBUTIVE
        repeated = [word] == self._refusal.first
        if word in {",", "."} or repeated or foreign or (word.isdecimal() and len(word) < len("1000")):
            return verdict
        if word == ":":  # `"unanswerable": false` reports an answer
            return None if (yield from reader.word()) == "false" else verdict
        ended = self._refusal.ends_reply(reader.text, end)
        explained = ended or (yield from self._matches(rules.explains.after(word)))
        return verdict if explained else None


def declines(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Return the verdict on a complete reply.

    Args:
        reply: The reply of the model.
        refusal: The text that the prompt asks the model to write if it cannot answer.

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
