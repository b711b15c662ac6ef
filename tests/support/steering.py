"""One table of scenarios for what steers a question: two numbers, bounds, a wider look, policies and the first step.

There is nothing of a framework in it; plain steps and both frameworks play it in all modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS, Pieces, Scenario, text_of
from selfroute.flow import Route
from selfroute.policies import Case, Never, Ruling

WIDE = "A vote was taken."  # no draft reads it, each wider look does
WIDE_TEXTS = (*PASSAGE_TEXTS, "The room was cold.", WIDE)  # best first
PLACES = (30, 90, 60, 0)  # of these in their document
WIDE_IN_ORDER = tuple(text for _, text in sorted(zip(PLACES, WIDE_TEXTS, strict=True)))
LONG_TEXTS = (DOCUMENT_TEXTS[0] + " And so it went on, at some length." * 60, DOCUMENT_TEXTS[1])
GRADED: Mapping[str, Any] = {"answerability": "graded"}
LIN = "Mr Lin took the chair at nine."
LOOKED = ("The vote ", "was led by ", "Ms Duarte.")
UNANSWERABLE: Pieces = ("unanswerable",)


@dataclass(frozen=True, slots=True)
class Steered(Scenario):
    """A scenario with options; a step that has no reply must not be asked.

    Attributes:
        options: The options, in the words of the settings.
        wider: The pieces of the reply to a wider look.
        widens: Whether there may be a wider look.
        finds: Whether passages are found.
        numbers: The two numbers of the first step, if it gave them.
        ruling: What was ruled, and by whom.
    """

    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    wider: Pieces | None = field(default=None, kw_only=True)
    widens: bool = field(default=False, kw_only=True)
    finds: bool = field(default=True, kw_only=True)
    numbers: tuple[int, int] | None = field(default=None, kw_only=True)
    ruling: tuple[bool, str] | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def declined(self) -> bool:
        """Whether the first step declined, or had nothing to answer from."""
        return self.signal in {"sentinel", "phrase", "empty", "no_passages"}

    @property
    def steps(self) -> list[Route]:
        """The steps that are asked, in order."""
        said: dict[Route, Any] = {"rag": self.draft, "wider": self.wider, "long_context": self.final}
        return [step for step, pieces in said.items() if pieces is not None]

    @property
    def found(self) -> list[str]:
        """The texts of the retrieved passages."""
        return list(PASSAGE_TEXTS) if self.finds else []

    @property
    def read(self) -> list[str]:
        """The texts that the answer was read from."""
        read: dict[Route, Any] = {"rag": self.found, "wider": WIDE_IN_ORDER, "long_context": LONG_TEXTS}
        return list(read[self.route])

    def check(self, answer: tuple[str, str, bool], decision: Mapping[str, Any]) -> None:
        """Hold an answer, its route, whether it is one, and its decision against the scenario."""
        assert answer == (self.answer, self.route, self.answerable)
        graded = {"prospect", "confidence"} if self.numbers else set()
        assert set(decision) == {"declined", "signal", "evidence", "ruling", *graded}
        assert (decision["declined"], decision["signal"]) == (self.declined, self.signal)
        assert self.evidence in decision["evidence"]
        if self.numbers:
            assert (decision["prospect"], decision["confidence"]) == self.numbers
        ruling = decision["ruling"]
        assert (ruling and (ruling["go"], ruling["by"])) == self.ruling
        assert ruling is None or set(ruling) == {"go", "by", "reason"}


def yes(case: Case) -> bool:
    """Agree to everything."""
    assert case.step in {"wider", "long_context"}
    return True


def only_wider(case: Case) -> bool:
    """Agree to a wider look and to nothing else."""
    return case.step == "wider"


def only_gold(case: Case) -> Ruling:
    """Agree to nothing, in words."""
    return Ruling(go=case.inputs.get("tier") == "gold", by="tier", reason="only gold may read documents")


def with_policy(policy: Callable[[Case], Any], **options: Any) -> dict[str, Any]:
    """Return graded options with a policy."""
    return {**GRADED, "escalation": policy, **options}


def _sure(name: str, *draft: str | None, numbers: tuple[int, int] | None, answer: str = LIN, **more: Any) -> Steered:
    return Steered(name, draft, None, answer, "rag", "answered", numbers=numbers, **{"options": GRADED, **more})


def _doubted(name: str, *draft: str, numbers: tuple[int, int] = (80, 42), **more: Any) -> Steered:
    evidence = "{} {}".format(*numbers)
    more = {"options": GRADED, "final": FINAL, "answer": FOUND, "route": "long_context", **more}
    return Steered(name, draft, signal="doubt", evidence=evidence, numbers=numbers, **more)


def _declined(
    name: str, *draft: str, numbers: tuple[int, int] | None = None, signal: str = "sentinel", **more: Any
) -> Steered:
    more = {"options": GRADED, "final": FINAL, "answer": FOUND, "route": "long_context", **more}
    return Steered(name, draft, signal=signal, numbers=numbers, **more)


def _started(name: str, **more: Any) -> Steered:
    options = {"start": "long_context"} | {key: more.pop(key) for key in _OPTIONS & more.keys()}
    more = {"final": FINAL, "answer": FOUND, "route": "long_context", **more}
    return Steered(name, None, signal="start", options=options, **more)


_OPTIONS = {"start", "answerability", "escalation"}
_KEPT = {"final": None, "answer": LIN, "route": "rag"}  # the draft is the answer after all
_STOPPED = {"final": None, "answer": "unanswerable", "route": "rag", "answerable": False}
_PROSPECT = {**_STOPPED, "ruling": (False, "prospect")}
_TEXT: dict[str, Any] = {"options": {}}
_WIDE = {"widens": True, "final": None, "wider": LOOKED, "answer": text_of(LOOKED), "route": "wider"}
_ON = {"widens": True}  # past the wider look, to the documents

LINES = ["80 42", "80, 42", "80% / 42%", "**80 42**", "(80, 42)", "80/100 42/100", "Prospect: 80, confidence: 42"]
NUMBERS = [
    *(_doubted(f"a doubt written {line}", f"{line}\n", "Mr Lin ", "took the chair.") for line in LINES),
    *(_doubted(f"a doubt in single characters {line}", *f"{line}\n{LIN}") for line in LINES),
    _doubted("a doubt in one piece", f"80 42\n{LIN}"),
    _doubted("a doubt between empty pieces", "", "80", "", " 4", "2", "", "\n", "", LIN),
    _doubted("a doubt after a blank line", "\n\n80 42\n", LIN),
    _doubted("a doubt after thoughts", "<think>hm, 90 90\n</think>", "80 42\n", LIN),
    _doubted("a doubt about Markdown and nothing more", "80 42\n**"),
    _doubted("a doubt about what may not be in the text", f"10 30\n{LIN}", numbers=(10, 30)),
    _doubted("a doubt about an answer worth nothing", f"80 0\n{LIN}", numbers=(80, 0)),
    _doubted("a doubt by a bound of 100", f"99 99\n{LIN}", numbers=(99, 99), options={**GRADED, "doubt_below": 100}),
    _sure("a sure answer", "80 90\n", "Mr Lin took the chair ", "at nine.", numbers=(80, 90)),
    _sure("a sure answer in one piece", f"80 90\n{LIN}", numbers=(80, 90)),
    _sure("a sure answer in single characters", *f"**80 90**\n{LIN}", numbers=(80, 90)),
    _sure("a sure answer after a blank line", "80 90\n", "\n", LIN, numbers=(80, 90)),
    _sure("a sure answer that is a number", "80 90\n42", numbers=(80, 90), answer="42"),
    _sure("an answer at the bound", f"80 50\n{LIN}", numbers=(80, 50)),
    _sure("an answer that nothing can shake", f"80 1\n{LIN}", numbers=(80, 1), options={**GRADED, "doubt_below": 0}),
    _sure("an answer without numbers", "Mr Lin took the chair ", "at nine.", numbers=None),
    _sure("an answer after one number", "80\n", LIN, numbers=None, answer=f"80\n{LIN}"),
    _sure("an answer after three numbers", "80 42 17\n", LIN, numbers=None, answer=f"80 42 17\n{LIN}"),
    _sure("an answer that begins with a year", "1850 ", "was the year.", numbers=None, answer="1850 was the year."),
    _sure("a year in a line of its own", "1850\n", "is the year.", numbers=None, answer="1850\nis the year."),
    _sure("a number out of range", "101 20\n", LIN, numbers=None, answer=f"101 20\n{LIN}"),
    *(
        _sure(f"two numbers and nothing more, {text!r}", *pieces, numbers=None, answer=text)
        for text in ("12 and 15", "5/10", "80 42", "5 90", "80 42\n", "\n5 0\n\n", "```\n80 42\n```")
        for pieces in ((text,), tuple(text))
    ),
    _sure(
        "two numbers that no policy is asked about", "80 42", numbers=None, answer="80 42", options=with_policy(Never())
    ),
    _declined("a decline without numbers", "unanswerable", evidence="unanswerable"),
    _declined("a decline that may be answered", "60 0\n", "unanswerable", numbers=(60, 0), evidence="unanswerable"),
    _declined("a decline at the bound", "20 0\n", "unanswerable", numbers=(20, 0)),
    _declined("a decline without words", "80 90\n", "**", numbers=(80, 90), signal="empty"),
    _declined(
        "a lead-in after sure numbers", "80 90\nThe answer to", " this question is:", numbers=(80, 90), signal="empty"
    ),
    _declined(
        "a decline where nothing stops", "0 0\nunanswerable", numbers=(0, 0), options={**GRADED, "stop_below": 0}
    ),
    _declined("a hopeless decline", "10 0\n", "unanswerable", numbers=(10, 0), evidence="unanswerable", **_PROSPECT),
    _declined("a hopeless decline with little confidence", "10 30\nunanswerable", numbers=(10, 30), **_PROSPECT),
    _declined(
        "a hopeless decline in words of its own",
        "5 0\n",
        "The passages do not mention who chaired the meeting.",
        numbers=(5, 0),
        signal="phrase",
        **_PROSPECT,
    ),
    _declined("hopeless numbers before a lead-in", "5 0\n", "The answer is:", numbers=(5, 0), signal="empty"),
    _declined(
        "a hopeless decline and a policy",
        "10 0\nunanswerable",
        numbers=(10, 0),
        **_PROSPECT | {"options": with_policy(yes)},
    ),
    _declined(
        "both steps decline",
        "60 0\nunanswerable",
        numbers=(60, 0),
        final=UNANSWERABLE,
        answer="unanswerable",
        answerable=False,
    ),
    _doubted(
        "the documents do not hold what was doubted",
        f"80 42\n{LIN}",
        final=("unanswerable",),
        answer="unanswerable",
        answerable=False,
    ),
    Steered("nothing is retrieved", None, FINAL, FOUND, "long_context", "no_passages", options=GRADED, finds=False),
]

POLICIES = [
    _declined("a decline that is granted", "unanswerable", options={"escalation": yes}, ruling=(True, "yes")),
    _declined(
        "a decline that is refused",
        "unanswerable",
        options={"escalation": Never()},
        ruling=(False, "never"),
        **_STOPPED,
    ),
    _declined(
        "a decline that is refused in words",
        "unanswerable: not a word of it",
        options={"escalation": only_gold},
        ruling=(False, "tier"),
        **_STOPPED,
    ),
    _sure("an answer that no policy is asked about", LIN, numbers=None, options={"escalation": Never()}),
    _doubted("a doubt that is granted", "80 42\n", LIN, options=with_policy(yes), ruling=(True, "yes")),
    _doubted(
        "a doubt that is refused",
        "80 42\n",
        "Mr Lin took ",
        "the chair ",
        "at nine.",
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_KEPT,
    ),
    _doubted(
        "a doubt in one piece that is refused",
        f"80 42\n{LIN}",
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_KEPT,
    ),
    _doubted(
        "a doubt in single characters that is refused",
        *f"80 42\n{LIN}",
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_KEPT,
    ),
    _doubted(
        "a doubt of what may not be there that is refused",
        *f"10 30\n{LIN}",
        numbers=(10, 30),
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_KEPT,
    ),
    _doubted(
        "a doubt without an answer that is refused",
        "80 42\n",
        "**",
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_STOPPED,
    ),
    _doubted(
        "a doubt of a decline that is refused",
        "80 42\n",
        "unanswerable",
        options=with_policy(Never()),
        ruling=(False, "never"),
        **_STOPPED,
    ),
    Steered(
        "no passages and a policy",
        None,
        None,
        "unanswerable",
        "rag",
        "no_passages",
        answerable=False,
        options={"escalation": Never()},
        finds=False,
        ruling=(False, "never"),
    ),
]

WIDER = [
    _declined("a wider look that answers", "unanswerable", **_TEXT, **_WIDE),
    _declined("a wider look that declines", "unanswerable", wider=UNANSWERABLE, **_TEXT, **_ON),
    _sure("an answer that needs no wider look", LIN, numbers=None, widens=True, **_TEXT),
    _declined(
        "no step answers",
        "unanswerable",
        wider=UNANSWERABLE,
        **_TEXT,
        **_ON,
        final=("The text ", "is silent on the chair."),
        answer="The text is silent on the chair.",
        answerable=False,
    ),
    Steered(
        "nothing is retrieved, so nothing is widened",
        None,
        FINAL,
        FOUND,
        "long_context",
        "no_passages",
        widens=True,
        finds=False,
    ),
    _declined(
        "a wider look that is refused",
        "unanswerable",
        options={"escalation": Never()},
        widens=True,
        ruling=(False, "never"),
        **_STOPPED,
    ),
    _declined(
        "a wider look that is granted",
        "unanswerable",
        options={"escalation": only_wider},
        ruling=(True, "only_wider"),
        **_WIDE,
    ),
    _declined(
        "documents that are refused after a wider look",
        "unanswerable",
        wider=UNANSWERABLE,
        options={"escalation": only_wider},
        **_ON,
        ruling=(False, "only_wider"),
        **_STOPPED | {"route": "wider"},
    ),
    _doubted("a doubt that a wider look settles", f"80 42\n{LIN}", **_WIDE | {"wider": ("80 70\n", *LOOKED)}),
    _doubted("a doubt that a wider look shares", f"80 42\n{LIN}", wider=("80 42\n", *LOOKED), **_ON),
    _doubted("a doubt that a wider look declines", f"80 42\n{LIN}", wider=("60 0\nunanswerable",), **_ON),
    _doubted(
        "a doubt that a wider look has no hope for",
        f"80 42\n{LIN}",
        wider=("5 0\nunanswerable",),
        **_ON,
        **_PROSPECT | {"route": "wider"},
    ),
    _doubted("a wider look without numbers", f"80 42\n{LIN}", **_WIDE),
    _declined(
        "a decline that a wider look answers with numbers",
        "60 0\nunanswerable",
        numbers=(60, 0),
        **_WIDE | {"wider": ("80 70\n", *LOOKED)},
    ),
    _declined("a hopeless decline and no wider look", "10 0\nunanswerable", numbers=(10, 0), widens=True, **_PROSPECT),
    _doubted(
        "a doubt whose wider look is refused",
        "80 42\n",
        LIN,
        options=with_policy(Never()),
        widens=True,
        ruling=(False, "never"),
        **_KEPT,
    ),
    _doubted(
        "a doubted wider look that is taken after all",
        "80 42\n",
        LIN,
        options=with_policy(only_wider),
        ruling=(False, "only_wider"),
        **_WIDE | {"wider": ("80 42\n", *LOOKED)},
    ),
]

STARTS = [
    _started("a question that starts with the documents"),
    _started("a start that is called", start=lambda _: "long_context"),
    _sure("a start that is called for a draft", LIN, numbers=None, options={"start": lambda _: "rag"}),
    _started("a start and a wider look", widens=True),
    _started("a graded start", **GRADED),
    _started("a start that is granted", escalation=yes, ruling=(True, "yes")),
    _started("a start that is refused", escalation=Never(), ruling=(False, "never"), **_STOPPED),
    _started("a start where nothing is found", finds=False),
]

STEERED = [*NUMBERS, *POLICIES, *WIDER, *STARTS]
BY_NAME = {scenario.name: scenario for scenario in STEERED}
