"""Take off a reply what is not said to the user: the prompt given back, reasoning, and the marks of templates.

Servers leak these where a template does not fit the model, and some pipelines return the prompt before the text. They
stand at the edges of a reply; a mark within a sentence is part of the answer. No more is held back than may be one.
"""

from __future__ import annotations

import re

from selfroute.answerability.echo import SPECIAL, Echo, Sent

_KINDS = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad)"
_FINAL = r"<\|channel\|>\s?final(?:[^<]|<\|constrain\|>){0,40}?<\|message\|>"
_OPENS = rf"<{_KINDS}>|\[THINK\]|\u25c1think\u25b7|<\|(?:begin_of_)?(?:thought|think|thinking)\|>"
_CLOSES = rf"(?:</{_KINDS}>|\[/THINK\]|\u25c1/think\u25b7|<\|(?:end_of_|/)(?:thought|think|thinking)\|>|<channel\|>)"
# How a block of reasoning opens and closes, and whether it counts as the reply if it never closes.
_BLOCKS = tuple(
    (re.compile(opens), (re.compile(closes, re.MULTILINE), doubtful))
    for opens, closes, doubtful in (
        (rf"(?i:{_OPENS})", rf"(?i:{_CLOSES})", False),
        (r"<\|channel>\s?thought", r"<channel\|>", False),
        (r"<\|channel\|>\s?(?:analysis|commentary)", _FINAL, False),
        (r"(?:analysis|commentary)(?=[A-Z])", r"assistant ?final", True),
        (r"\*{0,2}Thought(?:\*\*)?:", r"^\W{0,4}Final Answer(?:\*\*)?:(?:\*\*)?(?=[^*])", True),
    )
)
_MARK = re.compile(
    rf"{_FINAL}|(?!<\|channel\|>){SPECIAL}|(?i:{_CLOSES}|</?s>|<(?:[be]os|pad|unk)>|<(?:start|end)_of_turn>|\[/?INST\])"
    r"|#{2,3} ?(?:Response|Assistant):|assistantfinal|(?:assistant|model)(?:[ \t]*\r?\n\s*(?=\S)|(?=<\|))"
)
_OPENING_MARKS = (
    *(f"<{slash}{kind}>" for slash in ("", "/") for kind in ("thinking", "thoughts", "reasoning", "reflection")),
    *(f"<{slash}{kind}>" for slash in ("", "/") for kind in ("think", "thought", "reason", "analysis", "scratchpad")),
    *("<seed:thinking>", "<seed:think>", "</seed:think>", "[think]", "[/think]", "[inst]", "[/inst]", "<s>", "</s>"),
    *("\u25c1think\u25b7", "\u25c1/think\u25b7", "<bos>", "<eos>", "<pad>", "<unk>"),
    *("<start_of_turn>", "<end_of_turn>", "<channel|>"),
    *("<|channel>thought", "<|channel> thought", "<|channel|>analysis", "<|channel|>commentary", "analysis"),
    *("<|channel|>final<|message|>", "<|channel|> analysis", "<seed:reasoning>", "## response:", "###response:"),
    *("commentary", "model", "assistantfinal", "### response:", "### assistant:"),
    *("thought:", "**thought:", "**thought**:"),
)
_BEGINNINGS = frozenset(mark[:end] for mark in _OPENING_MARKS for end in range(len(mark) + 1))
_FIRST = frozenset("<[#*Tacm\u25c1")  # characters of what stands before a reply
_PART_OF_MARK = re.compile(
    r"(?:<[|\uff5c][^<>|\uff5c\s]{0,40}[|\uff5c]?|(?:assistant|model)\s*(?:<\|?)?|<\|channel\|>\s?final(?:[^<]|<\|constrain\|>){0,40}?<?[|a-z]{0,14})\Z"
)
_LONGEST = 100  # characters of a mark
_LONGEST_THOUGHT = 4_000  # characters of reasoning that only its words give away
_END = rf"(?:{SPECIAL}|(?i:</?s>|<eos>|<end_of_turn>|\[/INST\]))"
_PART_OF_END = r"(?:<(?:[|\uff5c][^<>|\uff5c\s]{0,40}[|\uff5c]?|/?[A-Za-z_]{0,11})|\[/?[A-Z]{0,4})"
_NEXT_ROLE = r"(?:user|human|assistant|model|system)"
_ENDS = re.compile(rf"{_END}\s*(?:{_END}\s*(?:{_NEXT_ROLE}\s*)?)*\Z")
_MAY_END = re.compile(
    rf"{_END}\s*(?:{_END}\s*(?:{_NEXT_ROLE}\s*)?)*(?:{_PART_OF_END}|(?<=>)[a-z]{{1,9}})?\Z|{_PART_OF_END}\Z"
)
_RUN = 300  # characters of the marks at the end of a reply
_UNMISTAKABLE_MARKS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<|return|>", "<end_of_turn>", "<eos>")
_UNMISTAKABLE = re.compile("|".join(map(re.escape, _UNMISTAKABLE_MARKS)), re.IGNORECASE)
# Any other mark after a space ends a reply only where a sentence has ended: "It is </s>" speaks of it.
_AT_AN_EDGE = re.compile(r"(?:\A|[\n.!?\u2026\u3002\uff01\uff1f)\"\u201d*`])\s*\Z|\S\Z")
# The end of reasoning that the prompt has opened stands alone: on a line of its own, or where a sentence ends.
_ALONE = re.compile(
    r"(?:\A|\n|[.!?\u2026\u3002\uff01\uff1f])\s{0,4}(?i:</(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning)>|\[/THINK\]|\u25c1/think\u25b7"
    r"|<\|(?:end_of_|/)(?:thought|think|thinking)\|>|<channel\|>)(?![`\"')\]])"
    rf"|(?:\A|\n|<\|start\|>assistant)\s{{0,4}}{_FINAL}|(?<=[.!?\n])assistant ?final"
)
_OPENED = re.compile(_OPENS, re.IGNORECASE)


class Spoken:
    """Passes on what a model says to the user, as it arrives.

    Examples:
        >>> spoken = Spoken()
        >>> spoken.feed("<think>Hm."), spoken.feed("</think>It is"), spoken.feed(" red.<|im_"), spoken.feed("end|>")
        ('', 'It is', ' red.', '')

    Attributes:
        anew: Whether all that was passed on has turned out to be reasoning; the reader sets it back.
    """

    def __init__(self, sent: Sent | None = None) -> None:
        """Start before the first piece.

        Args:
            sent: Returns the texts that the model may give back before its reply; None if it gives back none.
        """
        self.anew = False
        self._opening: Opening | None = Opening(sent)
        self._text = ""  # what may be a mark at the end
        self._before = ""  # the end of what was passed on
        self._watching = True  # whether the end of reasoning may stand alone

    def feed(self, piece: str, *, held: bool = True) -> str:
        """Take the next piece; return what is said in the text so far and was not returned before.

        Args:
            piece: The piece.
            held: Whether what was returned is still held back: then the end of reasoning may stand alone.
        """
        if not (held or self._opening or self._text or "<" in piece or "[" in piece):
            self._before = (self._before + piece)[-_LONGEST:]
            return piece
        return self._said(piece, held=held, final=False)

    def end(self, *, held: bool = True) -> str:
        """Return what is left of the reply, now that it has ended."""
        return self._said("", held=held, final=True)

    def _said(self, piece: str, *, held: bool, final: bool) -> str:
        if self._opening:
            begun = self._opening.after(piece, final=final)
            if begun is None:
                return ""
            piece, self._opening = begun, None
        text = self._text + piece
        if held and self._watching and (rest := self._alone(text)) is not None:
            self._text, self._before, self.anew = "", "", True
            self._opening = Opening(took=True)
            return self._said(rest, held=held, final=final)
        if "<" in text or "[" in text:
            text = self._without_end(text, final=final)
        else:
            self._text = ""
        if text:
            self._before = (self._before + text)[-_LONGEST:] if len(text) < _LONGEST else text[-_LONGEST:]
        return text

    def _alone(self, text: str) -> str | None:
        """Return the text after the end of reasoning that the prompt has opened; None if it has not ended."""
        seen = self._before + text
        opened, first = _OPENED.search(seen), _ALONE.search(seen)
        if opened and not (first and first.start() < opened.start()):
            self._watching = False
            return None
        ends = [found.end() for found in _ALONE.finditer(seen) if seen.count("```", 0, found.start()) % 2 == 0]
        return seen[ends[-1] :] if ends and ends[-1] > len(self._before) else None

    def _without_end(self, text: str, *, final: bool) -> str:
        """Return a text without the marks at its end, and keep those until it goes on."""
        self._text = ""
        tail = (_ENDS if final else _MAY_END).search(text, max(0, len(text) - _RUN))
        if tail is None or not _is_end(tail[0], (self._before + text[: tail.start()])[-_LONGEST:], final=final):
            return text
        self._text = "" if final else tail[0]
        return text[: tail.start()]


_Block = tuple[re.Pattern[str], bool]


class Opening:
    """Takes off what stands before a reply."""

    def __init__(self, sent: Sent | None = None, *, took: bool = False) -> None:
        """Start before the first piece; `took` if something was taken off, so that no white space comes first."""
        self._echo = Echo(sent) if sent else None
        self._took = took
        self._space, self._text = "", ""  # the white space at the beginning, and what follows it
        self._block: _Block | None = None  # the reasoning that has begun
        self._from = 0  # where to go on looking for its end
        self._given_up = False  # whether what looked like reasoning is the reply

    def after(self, piece: str, *, final: bool) -> str | None:
        """Take the next piece; return the text so far from where the reply begins; None while that is uncertain."""
        if self._echo:
            rest = self._echo.after(piece, final=final)
            if rest is None:
                return None
            piece, self._took, self._echo = rest, self._echo.found, None
        if not self._text:
            visible = piece.lstrip()
            self._space += piece[: len(piece) - len(visible)]
            piece = visible
        self._text += piece
        if not (self._begins(final=final) or final):
            return None
        return self._text if self._took else self._space + self._text

    def _begins(self, *, final: bool) -> bool:
        """Take off what stands before the reply; return whether it has begun."""
        while self._text:
            if self._block:
                if self._close(final=final):
                    continue
                return False
            if self._given_up or self._text[0] not in _FIRST:
                return True
            begun = [(found.end(), how) for opens, how in _BLOCKS if (found := opens.match(self._text))]
            if begun:
                self._from, self._block = begun[0]
            elif mark := _MARK.match(self._text):
                self._take(mark.end())
            else:
                return final or not _may_open(self._text)
        return False

    def _take(self, end: int) -> None:
        self._text, self._took, self._block = self._text[end:].lstrip(), True, None

    def _close(self, *, final: bool) -> bool:
        """Take off the block that has begun; return whether it has ended."""
        closes, doubtful = self._block  # type: ignore[misc]
        if found := closes.search(self._text, self._from):
            self._take(found.end())
            return True
        if final and not doubtful:
            self._take(len(self._text))
        if doubtful and len(self._text) > _LONGEST_THOUGHT:
            self._from, self._block = 0, None
            self._given_up = True
            return True
        self._from = max(self._from, len(self._text) - _LONGEST)
        if not doubtful:
            self._text, self._from = self._text[self._from :], 0
        return False


def _is_end(tail: str, before: str, *, final: bool) -> bool:
    """Return whether marks end a reply, or may do so, and are no part of its last sentence."""
    if tail.startswith("</s>") and "<s>" in before:  # of HTML
        return False
    if _AT_AN_EDGE.search(before) or _UNMISTAKABLE.match(tail):
        return True
    return not final and any(mark.startswith(tail.lower()) for mark in _UNMISTAKABLE_MARKS)


def _may_open(text: str) -> bool:
    """Return whether a text may become a mark."""
    if len(text) > _LONGEST:
        return False
    return text.lower() in _BEGINNINGS or _PART_OF_MARK.match(text) is not None


def said_in(reply: str) -> str:
    """Return what a whole reply says to the user."""
    spoken = Spoken()
    return spoken.feed(reply) + spoken.end()
