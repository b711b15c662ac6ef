"""One table of scenarios: what the model writes, and what must come of it, whatever the framework and the mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from selfroute.flow import Route

Pieces = tuple[str | None, ...]

QUESTION = "Who chaired the meeting?"
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
    name: str, draft: Pieces, *final: str | None, signal: str = "sentinel", refusal: str = "unanswerable"
) -> Scenario:
    evidence = text_of(draft) if signal == "sentinel" else ""
    return Scenario(name, draft, final, refusal, "long_context", signal, evidence, answerable=False, refusal=refusal)


PLAIN = _answered("a plain answer", "Mr Lin.")
DECLINED = _declined("a plain decline", "unanswerable", evidence="unanswerable")
NOTHING_RETRIEVED = Scenario("nothing is retrieved", None, FINAL, FOUND, "long_context", "no_passages")

ANSWERS = [
    PLAIN,
    _answered("an answer in many pieces", "Mr", " Lin", " took", " the", " chair", " at", " nine", "."),
    _answered("an answer cut inside its words", "Mr L", "in to", "ok the ch", "air."),
    _answered("an answer in single characters", *"Ms Duarte did."),
    _answered("an answer between empty pieces", "", "Mr", "", " Lin", "", "", ".", ""),
    _answered("an answer between pieces without content", None, "Mr Lin", None, " did.", None),
    _answered("an answer after white space", "\n", " ", "Mr Lin.", "\n"),
    _answered("a number", "42"),
    _answered("one ideograph", "是"),
    _answered("one letter", "A"),
    _answered("a yes", "Yes."),
    _answered("a no", "No."),
    _answered("an answer that opens with no", "No, Mr Lin ", "did not chair it; Ms Okafor did."),
    _answered("the beginning of the refusal", "un"),
    _answered("the refusal but for its last letter", "unanswer", "abl"),
    _answered("a name that begins like the refusal", "Un", "a"),
    _answered("a full name that begins like the refusal", "U", "na", " Harper", " chaired it."),
    _answered("a word that begins like the refusal", "Un", "answer", "ed letters are kept for a year."),
    _answered("the refusal inside an answer", "S4", ": theoretically ", "unanswerable"),
    _answered("the refusal at the head of an answer", "Unanswerable", " questions", " go to the chair."),
    _answered("the refusal called by its name", 'Mr Lin called it "', "unanswerable", '".'),
    _answered("an answer that tells of a refusal", "The council did not mention it to the press until May."),
    _answered("accents and other scripts", "Frau Ol", "šanská; 李先生 ", "и г-н Орлов 🚢."),
    _answered("braces", "The form is {name}", " and {{context}}, or {0}."),
    _answered("a Jinja template", "{% for x in y %}", "{{ input }}", "{% endfor %}"),
    _answered("HTML", "<b>Mr Lin</b>", " &amp; <script>alert('chair')</script>"),
    _answered("per cent and backslashes", "%s of 100 %", r" \n \d+ $1"),
]

DECLINES = [
    DECLINED,
    _declined("a decline with a capital", "Unanswerable", evidence="Unanswerable"),
    _declined("a decline in capitals", "UNANSWERABLE", evidence="UNANSWERABLE"),
    _declined("a decline with a full stop", "unanswerable", ".", evidence="unanswerable"),
    _declined("a decline with an exclamation mark", "Unanswerable!", evidence="Unanswerable"),
    _declined("a decline in quotes", '"', "unanswerable", '"', evidence="unanswerable"),
    _declined("a decline in curly quotes", "“Unanswerable.”", evidence="Unanswerable"),
    _declined("a decline in bold", "**", "Unanswerable", "**", evidence="Unanswerable"),
    _declined("a decline in italics and a full stop", "_unanswerable_.", evidence="unanswerable"),
    _declined("a decline as code", "`unanswerable`", evidence="unanswerable"),
    _declined("a decline split in pieces", "un", "answer", "able", evidence="unanswerable"),
    _declined("a decline in single characters", *"unanswerable.", evidence="unanswerable"),
    _declined("a decline between empty pieces", "", "unans", "", "werable", "", evidence="unanswerable"),
    _declined("a decline after white space", " ", "\n\n", " unanswerable", "\n", evidence="unanswerable"),
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
    _declined(
        "a decline with a paragraph after it",
        "unanswerable",
        "\n\n",
        "The passages give no name for the chair.",
        evidence="unanswerable",
    ),
    _declined(
        "a decline because", "unanswerable ", "because the text ", "does not name the chair.", evidence="unanswerable"
    ),
    _declined(
        "a decline in words of its own", "The passages", " do not mention", " who chaired the meeting.", signal="phrase"
    ),
    _declined(
        "a decline of the excerpts",
        "The provided excerpts do not ",
        "mention the chair of the meeting.",
        signal="phrase",
    ),
    _declined(
        "a decline of the reader", "I cannot answer this question ", "based on the given context.", signal="phrase"
    ),
    _declined(
        "a decline for want of information",
        "There is no ",
        "information about the chair in the passages.",
        signal="phrase",
    ),
    _declined("no piece at all", signal="empty"),
    _declined("an empty reply", "", signal="empty"),
    _declined("only white space", " ", "\n\t", " ", signal="empty"),
    _declined("no content", None, signal="empty"),
]

FINALS = [
    NOTHING_RETRIEVED,
    Scenario(
        "nothing is retrieved and the documents do not tell",
        None,
        ("Unanswerable.",),
        "unanswerable",
        "long_context",
        "no_passages",
        answerable=False,
    ),
    _neither("both steps decline", ("unanswerable",), "un", "answerable"),
    _neither(
        "the second declines with a reason", ("unanswerable",), "Unanswerable", ": the text names nobody", " at all."
    ),
    _neither("the second declines in words of its own", ("unanswerable",), "The text does not ", "mention the chair."),
    _neither("the second reply is empty", ("unanswerable",), "", ""),
    _neither("the second reply is white space", ("unanswerable",), " ", "\n"),
    _neither("the second reply has no content", ("unanswerable",), None),
    _neither("the first is empty and the second declines", ("",), "unanswerable", signal="empty"),
    Scenario(
        "the second step quotes the refusal",
        ("unanswerable",),
        ("S4 is ", "unanswerable", " in theory."),
        "S4 is unanswerable in theory.",
        "long_context",
        "sentinel",
        "unanswerable",
    ),
    Scenario(
        "the second answer is the beginning of the refusal",
        ("unanswerable",),
        ("Un", "a"),
        "Una",
        "long_context",
        "sentinel",
        "unanswerable",
    ),
]

REFUSALS = [
    _declined("two words as the refusal", "No ", "answer", ".", evidence="No answer", refusal="NO ANSWER"),
    _neither("two words, twice", ("NO ANSWER",), "no answer", refusal="NO ANSWER"),
    _answered("an answer beside another refusal", "Mr Lin.", refusal="NO ANSWER"),
    _declined("a sentence as the refusal", "I don't", " know.", evidence="I don't know", refusal="I don't know"),
    _answered("an answer that is not that sentence", "I, Claudius", refusal="I don't know"),
    _declined("a refusal with regex characters", "(a|b)+", evidence="(a|b)+", refusal="(a|b)+"),
    _answered("what a refusal as a regex would match", "ab", "ba", refusal="(a|b)+"),
    _answered("what a refusal with a wild card would match", "N", "elson", refusal="N.*"),
    _declined(
        "a refusal in another language", "Nicht ", "beantwortbar", evidence="Nicht", refusal="nicht beantwortbar"
    ),
    _declined("a refusal in another script", "不", "明。", evidence="不明", refusal="不明"),
    _declined("a slash in the refusal", "n/a", evidence="n/a", refusal="N/A"),
]

SCENARIOS = [*ANSWERS, *DECLINES, *FINALS, *REFUSALS]
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
    "the second answer is the beginning of the refusal",
    "two words as the refusal",
}
SOME = [scenario for scenario in SCENARIOS if scenario.name in _SOME]  # one of each way to come to an end
