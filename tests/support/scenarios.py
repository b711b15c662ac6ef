"""One table of scenarios: what the model writes, and what must come of it, whatever the framework and the mode."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from selfroute.effects import Route

Pieces = tuple[str | None, ...]

QUESTION = "Who chaired the meeting?"
DRAFTED = {"answerability": "text", "sections": None, "draft_passages": 1}
"""Options: the draft reads one passage, so that documents hold something new, and they come next."""
STARTED = {"answerability": "text", "sections": None, "start": "long_context"}
"""Options where passages are whole documents, of which nothing more could be read after a draft."""
WHOLE = "The whole minutes"  # every whole document opens with it, no passage holds it
PASSAGE_TEXTS = ("The meeting was long.", "Tea was served.")
DOCUMENT_TEXTS = (
    f"{WHOLE} of May. The meeting was long. Tea was served. Ms Okafor chaired it.",
    f"{WHOLE} of June. Nobody came.",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a model writes in both steps, and the outcome.

    Attributes:
        name: A sentence on what happens.
        draft: The pieces of the first reply (None is a piece without content); None if nothing is retrieved.
        final: The pieces of the second reply; None if it must not be asked for.
        answer: The whole answer.
        route: The step that gives it.
        signal: The signal of the decision.
        evidence: Words that the decision's evidence holds; of an answer it is empty.
        answerable: Whether some step answered.
        refusal: The word that declines.
        ends: How the replies of the steps end, in the provider's words; a step that is missing says nothing.
        finish_reason: How the reply that is shown ended.
    """

    name: str
    draft: Pieces | None
    final: Pieces | None
    answer: str
    route: Route
    signal: str
    evidence: str = ""
    answerable: bool = True
    refusal: str = field(default="unanswerable", kw_only=True)
    ends: Mapping[Route, str] = field(default_factory=dict, kw_only=True)
    finish_reason: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def declined(self) -> bool:
        """Whether the first step declined, or had nothing to answer from."""
        return self.route == "long_context"


FINAL = ("Ms ", "Okafor ", "chaired", " it.")
FOUND = "Ms Okafor chaired it."


def text_of(pieces: Pieces) -> str:
    """The whole text of a reply."""
    return "".join(piece or "" for piece in pieces)


def cut(text: str, at: Iterable[int]) -> tuple[str, ...]:
    """Cut a text into pieces at the given places."""
    places = sorted({0, len(text), *(place for place in at if 0 <= place <= len(text))})
    return tuple(text[start:end] for start, end in pairwise(places))


def _answered(name: str, *pieces: str | None, refusal: str = "unanswerable") -> Scenario:
    return Scenario(name, pieces, None, text_of(pieces), "rag", "answered", refusal=refusal)


def _declined(
    name: str, *pieces: str | None, signal: str = "sentinel", evidence: str = "", refusal: str = "unanswerable"
) -> Scenario:
    return Scenario(name, pieces, FINAL, FOUND, "long_context", signal, evidence, refusal=refusal)


def _neither(
    name: str, *final: str | None, answer: str | None = None, refusal: str = "unanswerable", **more: Any
) -> Scenario:
    more = {"draft": (refusal,), "signal": "sentinel", "answerable": False, "refusal": refusal, **more}
    evidence = text_of(more["draft"] or ())
    return Scenario(name, final=final, answer=answer or refusal, route="long_context", evidence=evidence, **more)


def _answered_second(name: str, *final: str) -> Scenario:
    return _neither(name, *final, answer=text_of(final), answerable=True)


PLAIN = _answered("a plain answer", "Mr Lin.")
DECLINED = _declined("a plain decline", "unanswerable", evidence="unanswerable")
NOTHING_RETRIEVED = Scenario("nothing is retrieved", None, FINAL, FOUND, "long_context", "no_passages")

ANSWERS = [
    PLAIN,
    _answered("an answer in many pieces", "Mr", " Lin", " took", " the", " chair", " at", " nine", "."),
    _answered("an answer in single characters", *"Ms Duarte did."),
    _answered("an answer between empty pieces", "", "Mr", "", " Lin", "", "", ".", ""),
    _answered("an answer between pieces without content", None, "Mr Lin", None, " did.", None),
    _answered("an answer after white space", "\n", " ", "Mr Lin.", "\n"),
    _answered("one ideograph", "是"),
    _answered("an answer that opens with no", "No, Mr Lin ", "did not chair it; Ms Okafor did."),
    _answered("the beginning of the refusal", "un"),
    _answered("a full name that begins like the refusal", "U", "na", " Harper", " chaired it."),
    _answered("a word that begins like the refusal", "Un", "answer", "ed letters are kept for a year."),
    _answered("the refusal inside an answer", "S4", ": theoretically ", "unanswerable"),
    _answered("the refusal at the head of an answer", "Unanswerable", " questions", " go to the chair."),
    _answered("the refusal called by its name", 'Mr Lin called it "', "unanswerable", '".'),
    _answered("an answer that tells of a refusal", "The council did not mention it to the press until May."),
    _answered("accents and other scripts", "Frau Ol", "šanská; 李先生 ", "и г-н Орлов 🚢."),
    _answered("braces", "The form is {name}", " and {{context}}, or {0}."),
]

DECLINES = [
    DECLINED,
    _declined("a decline with a capital", "Unanswerable", evidence="Unanswerable"),
    _declined("a decline with a full stop", "unanswerable", ".", evidence="unanswerable"),
    _declined("a decline in quotes", '"', "unanswerable", '"', evidence="unanswerable"),
    _declined("a decline in bold", "**", "Unanswerable", "**", evidence="Unanswerable"),
    _declined("a decline split in pieces", "un", "answer", "able", evidence="unanswerable"),
    _declined("a decline in single characters", *"unanswerable.", evidence="unanswerable"),
    _declined("a decline between empty pieces", "", "unans", "", "werable", "", evidence="unanswerable"),
    _declined("a decline after a piece without content", None, "unanswerable", None, evidence="unanswerable"),
    _declined(
        "a decline with a reason",
        "unanswerable",
        ": ",
        "the passages ",
        "tell of the harbour",
        " only, and of May.",
        evidence="unanswerable",
    ),
    _declined(
        "a decline with a sentence after it",
        "Unanswerable",
        ".",
        " The",
        " passages",
        " speak",
        " of",
        " the",
        " pier.",
        evidence="Unanswerable",
    ),
    _declined("a decline in another line", "unanswerable\u2028", "Ms Okafor", " may have.", evidence="unanswerable"),
    _declined("a decline between marks of direction", "\u202aunanswer", "able\u202c", evidence="unanswerable"),
    _declined(
        "a decline in words of its own", "The passages", " do not mention", " who chaired the meeting.", signal="phrase"
    ),
    _declined(
        "a decline of the reader", "I cannot answer this question ", "based on the given context.", signal="phrase"
    ),
    _declined("no piece at all", signal="empty"),
    _declined("an empty reply", "", signal="empty"),
    _declined("only white space", " ", "\n\t", " ", signal="empty"),
    _declined("no content", None, signal="empty"),
    _declined("a lead-in and nothing after it", "The answer to", " this question is:", signal="empty"),
]

FINALS = [
    NOTHING_RETRIEVED,
    _neither("nothing is retrieved and the documents do not tell", "Unanswerable.", draft=None, signal="no_passages"),
    _neither("both steps decline", "un", "answerable"),
    _neither(
        "the second declines and says what there is",
        *("un", "answerable", ".", " The", " report covers 2024 only."),
        answer="The report covers 2024 only.",
    ),
    _neither(
        "the second denies in its second sentence",
        *("The report covers ", "2024 only. ", "It does not mention ", "the chair."),
        answer="The report covers 2024 only. It does not mention the chair.",
    ),
    _answered_second(
        "the second says what is not stated and answers", "Not stated in ", "the minutes, the vote", " was 5 to 3."
    ),
    _neither("the second declines more than once", "**Unanswerable**, ", "unanswerable!"),
    _neither("the second declines in a tag", "<answer>unanswerable</", "answer>"),
    _neither("the second reply is empty", "", ""),
    _neither("the second reply has no content", None),
    _neither("the first is empty and the second declines", "unanswerable", draft=("",), signal="empty"),
    _answered_second("the second step quotes the refusal", "S4 is ", "unanswerable", " in theory."),
    _answered_second("the second answer is the beginning of the refusal", "Un", "a"),
]


def _leaked(name: str, before: str, after: str = "") -> list[Scenario]:
    """A draft that declines behind what a server leaks, and an answer to documents between it."""
    cut_before = tuple(re.findall(r"\S+\s*", before))
    answered = replace(
        _answered_second(f"an answer behind {name}", FOUND), final=(*cut_before, "Ms Okafor", " chaired it.", after)
    )
    return [
        _declined(f"a decline behind {name}", *cut_before, "unans", "werable", after, evidence="unanswerable"),
        answered,
    ]


LEAKED = [
    *_leaked("thoughts", "<think>\nThe passages do not say. Unanswerable? </think>\n\n", "<|im_end|>"),
    *_leaked(
        "channels",
        "<|channel|>analysis<|message|>Hm. <|end|> <|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
    *_leaked("channels without marks", "analysisThe passages do not say.assistantfinal"),
    *_leaked("a template", "<|im_start|>assistant\n", "<|im_end|>"),
    *_leaked("a role", "assistant\n\n", "</s>"),
    *_leaked("the habit of an agent", "Thought: it is not there.\nFinal Answer: "),
    _neither("the second declines with a source", "unanswerable ", "[1]"),
    _neither("the second declines and names its sources", "unanswerable\n\n", "Sources: ", "notes.pdf"),
    _neither("the second declines and says how sure it is", "**unanswerable**", "\n\nConfidence: 0"),
    _neither("the second declines in a report", '{"answer": "unanswerable"', ', "pages": []}'),
    _neither(
        "the second declines in a report with a reason",
        *('{"answer": "unanswerable", ', '"reason": "The report covers ', '2024 only."}'),
        answer="The report covers 2024 only.",
    ),
    _declined("a no that the passages do not tell", "No, the passages do ", "not mention a vote.", signal="phrase"),
    _answered_second("a no that the whole text does not tell", "No, the report ", "does not mention a vote."),
    _answered("a plain no", "No."),
]

REFUSALS = [
    _declined("two words as the refusal", "No ", "answer", ".", evidence="No answer", refusal="NO ANSWER"),
    _declined("a sentence as the refusal", "I don't", " know.", evidence="I don't know", refusal="I don't know"),
    _answered("an answer that is not that sentence", "I, Claudius", refusal="I don't know"),
    _declined("a refusal with regex characters", "(a|b)+", evidence="(a|b)+", refusal="(a|b)+"),
    _answered("what a refusal with a wild card would match", "N", "elson", refusal="N.*"),
    _declined("a refusal in another script", "不", "明。", evidence="不明", refusal="不明"),
    _declined("a slash in the refusal", "n/a", evidence="n/a", refusal="N/A"),
]


def _ended(of: Scenario, name: str, finish_reason: str | None, **ends: str) -> Scenario:
    return replace(of, name=name, ends=ends, finish_reason=finish_reason)


ENDINGS = [
    _ended(PLAIN, "an answer with a word that nobody knows", "xyzzy", rag="xyzzy"),
    _ended(
        _answered("", "On 4 May ", "the crane was ", "repaired in"), "an answer that was cut", "length", rag="length"
    ),
    _ended(_answered("", "Mr Lin ", "said: "), "an answer that was filtered", "SAFETY", rag="SAFETY"),
    _ended(_answered("", "Let me look it up."), "words before a tool call", "tool_use", rag="tool_use"),
    _ended(DECLINED, "a decline and an answer", "end_turn", rag="stop", long_context="end_turn"),
    _ended(DECLINED, "a second answer that was cut", "max_tokens", rag="stop", long_context="max_tokens"),
    _ended(_declined("", "un", "a", evidence="una"), "a draft that was cut in the refusal", None, rag="length"),
    _ended(_declined("", '"U', evidence="U"), "a draft cut after one letter of the refusal", None, rag="MAX_TOKENS"),
    _ended(
        _declined("", "The ", "passages", signal="phrase", evidence="The passages"),
        "a draft cut where a decline may begin",
        None,
        rag="length",
    ),
    _ended(
        _declined("", "The passages do not ", "mention", signal="phrase"), "a cut decline in words", None, rag="length"
    ),
    _ended(_neither("", ""), "an empty second reply that ended by itself", "stop", long_context="stop"),
    _ended(
        _neither("", "una"),
        "a second reply that was cut in the refusal",
        "length",
        long_context="length",
    ),
    _ended(
        _neither("", "Unanswerable. The repo", answer="The repo"),
        "a second decline that was cut in its own words",
        "length",
        long_context="length",
    ),
]

SCENARIOS = [*ANSWERS, *DECLINES, *FINALS, *LEAKED, *REFUSALS, *ENDINGS]
_SOME = {
    "a plain answer",
    "an answer in many pieces",
    "an answer between empty pieces",
    "an answer after white space",
    "the beginning of the refusal",
    "a plain decline",
    "a decline split in pieces",
    "a decline with a reason",
    "a decline in words of its own",
    "an empty reply",
    "nothing is retrieved",
    "both steps decline",
    "the second declines and says what there is",
    "an answer that was cut",
    "the second answer is the beginning of the refusal",
    "two words as the refusal",
}
SOME = [scenario for scenario in SCENARIOS if scenario.name in _SOME]  # one of each way to come to an end


@dataclass(frozen=True, slots=True)
class NoReply:
    """A question that has a step end without a reply that could be judged.

    Attributes:
        name: A sentence on what happens.
        step: The step.
        pieces: The pieces of its text; the draft before the second step declines.
        finish_reason: How it ends, in the provider's word.
        refusal: The text by which the model refuses, apart from its text.
        calls_tool: Whether it calls a tool.
    """

    name: str
    step: Route
    pieces: Pieces
    finish_reason: str | None
    refusal: str = ""
    calls_tool: bool = False

    def __str__(self) -> str:
        return f"{self.step}: {self.name}".replace(" ", "-")

    @property
    def model(self) -> dict[str, Any]:
        """The fields of a scripted model."""
        draft, final = (self.pieces, None) if self.step == "rag" else (("unanswerable",), self.pieces)
        ends = {self.step: self.finish_reason} if self.finish_reason else {}
        apart = {"refusals": {self.step: self.refusal} if self.refusal else {}}
        calls = {"tool_calls": {self.step} if self.calls_tool else set()}
        return {"draft": draft, "final": final, "ends": ends, **apart, **calls}


_NO_REPLY: list[tuple[Any, ...]] = [
    ("the thoughts used the tokens up", (), "length"),
    ("the tokens ended in white space", (" ", "\n"), "max_tokens"),
    ("the tokens ended in the thoughts", ("<think>the passages ", "tell"), "length"),
    ("filtered", ("",), "content_filter"),
    ("unsafe", (None,), "SAFETY"),
    ("refused without a word", (), "refusal"),
    ("refused in words of its own", (), "stop", "I cannot help with that."),
    ("refused by a provider that gives no reason", (), None, "I cannot help with that."),
    ("a tool call", (), "tool_calls", "", True),
    ("a tool call that ended by itself", (), "STOP", "", True),
    ("a tool call that says nothing", (), None, "", True),
    ("broken off", (), "error"),
]
NO_REPLIES = [NoReply(row[0], step, *row[1:]) for row in _NO_REPLY for step in ("rag", "long_context")] + [
    NoReply("filtered where a decline may begin", "rag", ("No",), "content_filter"),
]
