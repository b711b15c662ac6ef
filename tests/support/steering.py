"""One table of scenarios for what steers a question: two numbers, bounds, sections, policies and the start.

There is nothing of a framework in it; the adapter of `docs/adapter.md` and both frameworks play it in all modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS, Pieces, Scenario
from selfroute.effects import Route
from selfroute.policies import Case, Never, Ruling

VOTE = "The vote on who chaired the meeting was led by Ms Duarte."  # no draft reads it, sections do


def long_text(pier: str, paragraphs: int = 20) -> str:
    """Return readable text of some 600 characters a paragraph, which holds no word of the question."""
    goods = ("timber", "salt", "copper", "wool", "glass", "grain", "oil")
    days = [
        f"On day {day} {pier} took in {day * 7 % 90} crates of {goods[day % 7]} and paid {day * 13 % 50} crowns for it."
        for day in range(paragraphs * 8)
    ]
    return "\n\n".join(" ".join(days[at : at + 8]) for at in range(0, len(days), 8))


LONG_TEXTS = (
    f"{DOCUMENT_TEXTS[0]}\n\n{long_text('pier A', 12)}\n\n{VOTE}\n\n{long_text('pier B', 8)}",
    DOCUMENT_TEXTS[1],
)
RUNG, LARGER = 1_000, 1_500  # tokens of sections; a third of the documents holds them
LEFT_OUT = "[...]"  # the mark in a prompt with sections
TOO_MUCH = 9_000  # sections that are all of the documents
GRADED: Mapping[str, Any] = {"answerability": "graded", "doubt_below": 50, "stop_below": 20}
LIN = "Mr Lin took the chair at nine."
LOOKED = ("Ms Duarte ", "led the ", "vote.")
SAID = "Ms Duarte led the vote."
DENIED = "The passages do not mention who chaired the meeting."
UNANSWERABLE: Pieces = ("unanswerable",)


@dataclass(frozen=True, slots=True)
class Steered(Scenario):
    """A scenario with options; a step that has no reply must not be asked.

    Attributes:
        options: The options, in the words of the settings.
        looks: The pieces of each reply to sections, in order.
        finds: Whether passages are found.
        numbers: The two numbers of the first step, if it gave them.
        ruling: What was ruled, and by whom.
    """

    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    looks: tuple[Pieces, ...] = field(default=(), kw_only=True)
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
        asked: dict[Route, int] = {
            "rag": int(self.draft is not None),
            "sections": len(self.looks),
            "long_context": int(self.final is not None),
        }
        return [step for step, times in asked.items() for _ in range(times)]

    @property
    def found(self) -> list[str]:
        """The texts of the retrieved passages."""
        return list(PASSAGE_TEXTS) if self.finds else []

    def check_read(self, read: Sequence[str]) -> None:
        """Hold the texts that an answer was read from against the scenario."""
        if self.route == "sections":
            assert all(any(text in whole for whole in LONG_TEXTS) for text in read)
            assert all(any(text in one for one in read) for text in (*self.found, VOTE))
            assert 2 * sum(map(len, read)) <= sum(map(len, LONG_TEXTS))
        else:
            assert list(read) == list(self.found if self.route == "rag" else LONG_TEXTS)

    def check(self, answer: tuple[str, str, bool], decision: Mapping[str, Any]) -> None:
        """Hold an answer, its route, whether it is one, and its decision against the scenario."""
        assert answer == (self.answer, self.route, self.answerable)
        numbers = dict(zip(("prospect", "confidence"), self.numbers or (None, None), strict=True))
        graded = {name for name, number in numbers.items() if number is not None}
        assert set(decision) == {"declined", "signal", "evidence", "ruling", *graded}
        assert (decision["declined"], decision["signal"]) == (self.declined, self.signal)
        assert self.evidence in decision["evidence"]
        assert {name: decision[name] for name in graded} == {name: numbers[name] for name in graded}
        ruling = decision["ruling"]
        assert (ruling and (ruling["go"], ruling["by"])) == self.ruling
        assert ruling is None or set(ruling) == {"go", "by", "reason"}


def yes(case: Case) -> bool:
    """Agree to everything."""
    assert case.step in {"sections", "long_context"}
    return True


def only_sections(case: Case) -> bool:
    """Agree to sections and to nothing else."""
    return case.step == "sections"


def only_the_first(case: Case) -> bool:
    """Agree to the first reading of sections and to nothing else."""
    return case.usage["sections"] is None


def only_gold(case: Case) -> Ruling:
    """Agree to nothing, in words."""
    return Ruling(go=case.inputs.get("tier") == "gold", by="tier", reason="only gold may read documents")


def with_policy(policy: Callable[[Case], Any], **options: Any) -> dict[str, Any]:
    """Return graded options with a policy."""
    return {**GRADED, "escalation": policy, **options}


def _sure(
    name: str, *draft: str | None, numbers: tuple[int | None, int] | None, answer: str = LIN, **more: Any
) -> Steered:
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


_OPTIONS = {"start", "answerability", "doubt_below", "stop_below", "escalation", "sections", "max_documents"}
_IN_SECTIONS: dict[str, Any] = {"start": "sections", "sections": RUNG}
_KEPT = {"final": None, "answer": LIN, "route": "rag"}  # the draft is the answer
_STOPPED = {"final": None, "answer": "unanswerable", "route": "rag", "answerable": False}
_PROSPECT = {**_STOPPED, "ruling": (False, "prospect")}
_NEITHER = {"answer": "unanswerable", "answerable": False}  # the documents do not answer
_DECLINE: dict[str, Any] = {"options": {"sections": RUNG}}  # whose sections answer or decline in text
_AGAIN: dict[str, Any] = {"options": {"sections": (RUNG, LARGER)}}
_NO_MORE: dict[str, Any] = {"options": {"sections": RUNG, "max_documents": 0}}
_GRADED: dict[str, Any] = {"options": {**GRADED, "sections": RUNG}}
_TWICE: dict[str, Any] = {"options": {**GRADED, "sections": (RUNG, LARGER)}}
_ENDS: dict[str, Any] = {"options": {**GRADED, "sections": RUNG, "max_documents": 0}}  # with sections
_OWN: dict[str, Any] = {"options": {**GRADED, "sections": RUNG, "doubt_below": (70, 60)}}  # a bound of their own
_FOUND: dict[str, Any] = {"final": None, "looks": (LOOKED,), "answer": SAID, "route": "sections"}
_NOTHING = {**_STOPPED, "route": "sections"}
_UNFOUND: dict[str, Any] = {"finds": False, "signal": "no_passages"}


def _refused(policy: Callable[[Case], Any], by: str = "never", **options: Any) -> dict[str, Any]:
    """The options of a graded question whose policy says no in the end, and what it ruled."""
    return {"options": with_policy(policy, **options), "ruling": (False, by)}


def _looked(*looks: Pieces) -> dict[str, Any]:
    """What is found in sections by replies to them, the last of which answers."""
    return {**_FOUND, "looks": looks}


_SURE, _UNSURE = ("70\n", *LOOKED), ("42\n", *LOOKED)  # replies to sections

LINES = ["80 42", "80% / 42%", "**80 42**", "Prospect: 80, confidence: 42"]
NUMBERS = [
    *(_doubted(f"a doubt written {line}", f"{line}\n", "Mr Lin ", "took the chair.") for line in LINES),
    *(_doubted(f"a doubt in single characters {line}", *f"{line}\n{LIN}") for line in LINES),
    _doubted("a doubt in one piece", f"80 42\n{LIN}"),
    _doubted("a doubt between empty pieces", "", "80", "", " 4", "2", "", "\n", "", LIN),
    _doubted("a doubt after a blank line", "\n\n80 42\n", LIN),
    _doubted("a doubt after thoughts", "<think>hm, 90 90\n</think>", "80 42\n", LIN),
    _doubted("a doubt about Markdown and nothing more", "80 42\n**"),
    _doubted("a doubt about what may not be in the text", f"10 30\n{LIN}", numbers=(10, 30)),
    _doubted("a doubt by a bound of 100", f"99 99\n{LIN}", numbers=(99, 99), options={**GRADED, "doubt_below": 100}),
    _sure("a sure answer", "80 90\n", "Mr Lin took the chair ", "at nine.", numbers=(80, 90)),
    _sure("a sure answer in single characters", *f"**80 90**\n{LIN}", numbers=(80, 90)),
    _sure("a sure answer that is a number", "80 90\n42", numbers=(80, 90), answer="42"),
    _sure("an answer at the bound", f"80 50\n{LIN}", numbers=(80, 50)),
    _sure("an answer that nothing can shake", f"80 1\n{LIN}", numbers=(80, 1), options={**GRADED, "doubt_below": 0}),
    _sure("an answer without numbers", "Mr Lin took the chair ", "at nine.", numbers=None),
    _sure("an answer after one number", "80\n", LIN, numbers=(None, 80)),
    _sure("an answer that begins with a year", "1850 ", "was the year.", numbers=None, answer="1850 was the year."),
    _sure("a number out of range", "101 20\n", LIN, numbers=None, answer=f"101 20\n{LIN}"),
    *(
        _sure(f"two numbers and nothing more, {text!r}", *pieces, numbers=None, answer=text)
        for text in ("12 and 15", "80 42", "\n5 0\n\n", "```\n80 42\n```")
        for pieces in ((text,), tuple(text))
    ),
    _sure(
        "two numbers that no policy is asked about", "80 42", numbers=None, answer="80 42", options=with_policy(Never())
    ),
    _declined("a decline without numbers", "unanswerable", evidence="unanswerable"),
    _declined("a decline at the bound", "20 0\n", "unanswerable", numbers=(20, 0)),
    _declined("a decline without words", "80 90\n", "**", numbers=(80, 90), signal="empty"),
    _declined(
        "a lead-in after sure numbers", "80 90\nThe answer to", " this question is:", numbers=(80, 90), signal="empty"
    ),
    _declined("a hopeless decline", "10 0\n", "unanswerable", numbers=(10, 0), evidence="unanswerable", **_PROSPECT),
    _declined("a hopeless decline in words of its own", "5 0\n", DENIED, numbers=(5, 0), signal="phrase", **_PROSPECT),
    _declined("hopeless numbers before a lead-in", "5 0\n", "The answer is:", numbers=(5, 0), signal="empty"),
    _declined(
        "a hopeless decline and a policy",
        "10 0\nunanswerable",
        numbers=(10, 0),
        **_PROSPECT | {"options": with_policy(yes)},
    ),
    _declined("both steps decline", "60 0\nunanswerable", numbers=(60, 0), final=UNANSWERABLE, **_NEITHER),
    _doubted("the documents do not hold what was doubted", f"80 42\n{LIN}", final=UNANSWERABLE, **_NEITHER),
    Steered("nothing is retrieved", None, FINAL, FOUND, "long_context", options=GRADED, **_UNFOUND),
]

POLICIES = [
    _declined("a decline that is granted", "unanswerable", options={"escalation": yes}, ruling=(True, "yes")),
    _declined(
        "a decline that is refused", *UNANSWERABLE, options={"escalation": Never()}, ruling=(False, "never"), **_STOPPED
    ),
    _sure("an answer that no policy is asked about", LIN, numbers=None, options={"escalation": Never()}),
    _doubted("a doubt that is granted", "80 42\n", LIN, options=with_policy(yes), ruling=(True, "yes")),
    _doubted(
        "a doubt that is refused", "80 42\n", "Mr Lin took ", "the chair ", "at nine.", **_refused(Never()), **_KEPT
    ),
    _doubted("a doubt in one piece that is refused", f"80 42\n{LIN}", **_refused(Never()), **_KEPT),
    _doubted("a doubt in single characters that is refused", *f"80 42\n{LIN}", **_refused(Never()), **_KEPT),
    _doubted(
        "a doubt of what may not be there that is refused",
        *f"10 30\n{LIN}",
        numbers=(10, 30),
        **_refused(Never()),
        **_KEPT,
    ),
    _doubted("a doubt without an answer that is refused", "80 42\n", "**", **_refused(Never()), **_STOPPED),
    _doubted("a doubt of a decline that is refused", "80 42\n", "unanswerable", **_refused(Never()), **_STOPPED),
    Steered(
        "no passages and a policy",
        None,
        **_STOPPED,
        options={"escalation": Never()},
        ruling=(False, "never"),
        **_UNFOUND,
    ),
]

SECTIONS = [
    _declined("sections that answer", "unanswerable", **_FOUND | _DECLINE),
    _declined("sections that decline", "unanswerable", looks=(UNANSWERABLE,), **_DECLINE),
    _declined("sections that decline in words", "unanswerable", looks=(("The passages ", "do not say."),), **_DECLINE),
    _sure("an answer that needs no sections", LIN, numbers=None, **_DECLINE),
    _declined(
        "no step answers",
        "unanswerable",
        looks=(UNANSWERABLE,),
        **_DECLINE,
        final=("The text ", "is silent on the chair."),
        answer="The text is silent on the chair.",
        answerable=False,
    ),
    _declined("sections that would be most of the documents", "unanswerable", options={"sections": TOO_MUCH}),
    _declined("a second reading that answers", "unanswerable", **_looked(UNANSWERABLE, LOOKED), **_AGAIN),
    _declined("a second reading that declines", "unanswerable", looks=(UNANSWERABLE, UNANSWERABLE), **_AGAIN),
    _declined(
        "a second reading that has no more",
        "unanswerable",
        looks=(UNANSWERABLE,),
        options={"sections": (RUNG, RUNG + 1)},
    ),
    _declined(
        "sections that are refused",
        "unanswerable",
        options={"sections": RUNG, "escalation": Never()},
        ruling=(False, "never"),
        **_STOPPED,
    ),
    _declined(
        "sections that are granted",
        "unanswerable",
        options={"sections": RUNG, "escalation": only_sections},
        ruling=(True, "only_sections"),
        **_FOUND,
    ),
    _declined(
        "documents that are refused after sections",
        "unanswerable",
        looks=(UNANSWERABLE,),
        options={"sections": RUNG, "escalation": only_sections},
        ruling=(False, "only_sections"),
        **_NOTHING,
    ),
    _declined(
        "a second reading that is refused",
        "unanswerable",
        looks=(UNANSWERABLE,),
        options={"sections": (RUNG, LARGER), "escalation": only_the_first},
        ruling=(False, "only_the_first"),
        **_NOTHING,
    ),
    _doubted("a doubt that sections settle", f"80 42\n{LIN}", **_looked(_SURE), **_GRADED),
    _doubted("a doubt that sections share", f"80 42\n{LIN}", looks=(_UNSURE,), **_GRADED),
    _doubted("a doubt that sections decline", f"80 42\n{LIN}", looks=(UNANSWERABLE,), **_GRADED),
    _doubted("a doubt that sections decline with a number", f"80 42\n{LIN}", looks=(("20\nunanswerable",),), **_GRADED),
    _doubted("a doubt that sections give up", f"80 42\n{LIN}", looks=(("19\nunanswerable",),), **_GRADED | _NOTHING),
    _doubted("a doubt that sections deny", f"80 42\n{LIN}", looks=((f"5\n{DENIED}",),), **_GRADED),
    _doubted("a doubt that sections answer without a number", f"80 42\n{LIN}", **_FOUND, **_GRADED),
    _doubted(
        "a doubt that sections answer with two numbers", f"80 42\n{LIN}", **_looked(("80 70\n", *LOOKED)), **_GRADED
    ),
    _doubted(
        "sections with a bound of their own", f"80 69\n{LIN}", numbers=(80, 69), **_looked(("60\n", *LOOKED)), **_OWN
    ),
    _doubted(
        "sections below a bound of their own", f"80 69\n{LIN}", numbers=(80, 69), looks=(("59\n", *LOOKED),), **_OWN
    ),
    _doubted("a doubt that a second reading settles", f"80 42\n{LIN}", **_looked(("42\n", LIN), _SURE), **_TWICE),
    _doubted(
        "a doubt that a second reading shares",
        f"80 42\n{LIN}",
        looks=(("42\n", LIN), ("43\n", *LOOKED)),
        **_TWICE,
    ),
    _doubted("a doubt whose sections are refused", "80 42\n", LIN, **_refused(Never(), sections=RUNG), **_KEPT),
    _doubted(
        "doubted sections that are kept as the documents are refused",
        "80 42\n",
        LIN,
        **_refused(only_sections, "only_sections", sections=RUNG),
        **_looked(_UNSURE),
    ),
    _doubted(
        "doubted sections that are kept as a second reading is refused",
        "80 42\n",
        LIN,
        **_refused(only_the_first, "only_the_first", sections=(RUNG, LARGER)),
        **_looked(_UNSURE),
    ),
    _declined("a decline where documents are forbidden", "unanswerable", options={"max_documents": 0}, **_STOPPED),
    _doubted("a doubt where documents are forbidden", "80 42\n", LIN, options={**GRADED, "max_documents": 0}, **_KEPT),
    _declined(
        "sections that decline where documents are forbidden",
        "unanswerable",
        looks=(UNANSWERABLE,),
        **_NO_MORE,
        **_NOTHING,
    ),
    _doubted("doubted sections where documents are forbidden", "80 42\n", LIN, **_looked(_UNSURE), **_ENDS),
    _doubted(
        "a doubt that sections decline where documents are forbidden",
        "80 42\n",
        LIN,
        looks=(UNANSWERABLE,),
        **_ENDS,
        **_NOTHING,
    ),
    _doubted(
        "a doubt that a second reading shares where documents are forbidden",
        f"80 42\n{LIN}",
        **_looked(("42\n", LIN), ("43\n", *LOOKED)),
        options={**GRADED, "sections": (RUNG, LARGER), "max_documents": 0},
    ),
    _doubted(
        "a doubt that sections share and a second reading has no more to read",
        f"80 42\n{LIN}",
        **_looked(_UNSURE),
        ruling=(False, "nothing_more"),
        options={**GRADED, "sections": (RUNG, RUNG + 1), "max_documents": 0},
    ),
    Steered("nothing is retrieved, so sections are chosen by words", None, **_FOUND, **_DECLINE, **_UNFOUND),
    Steered(
        "nothing is retrieved, and sections decline",
        None,
        FINAL,
        FOUND,
        "long_context",
        looks=(UNANSWERABLE,),
        **_DECLINE,
        **_UNFOUND,
    ),
]

STARTS = [
    _started("a question that starts with the documents"),
    _started("a start that is called", start=lambda _: "long_context"),
    _sure("a start that is called for a draft", LIN, numbers=None, options={"start": lambda _: "rag"}),
    _started("a start and sections", sections=RUNG),
    _started("a start that is granted", escalation=yes, ruling=(True, "yes")),
    _started("a start that is refused", escalation=Never(), ruling=(False, "never"), **_STOPPED),
    _started("a start with sections", **_IN_SECTIONS, **_FOUND),
    _started("a start with sections where nothing is found", **_IN_SECTIONS, **_FOUND, finds=False),
    _started("a start with sections that decline", **_IN_SECTIONS, looks=(UNANSWERABLE,)),
    _started("a graded start with sections", **_IN_SECTIONS, **GRADED, **_looked(_SURE)),
    _started(
        "a start with sections that documents may not follow",
        **_IN_SECTIONS,
        max_documents=0,
        looks=(UNANSWERABLE,),
        **_NOTHING,
    ),
    _started(
        "a start with sections that is refused",
        **_IN_SECTIONS,
        escalation=Never(),
        ruling=(False, "never"),
        **_STOPPED,
    ),
    _started(
        "a start with sections that would be all of the documents",
        **{**_IN_SECTIONS, "sections": TOO_MUCH},
    ),
]

STEERED = [*NUMBERS, *POLICIES, *SECTIONS, *STARTS]
BY_NAME = {scenario.name: scenario for scenario in STEERED}
_ONE_OF_EACH = [
    "a sure answer",
    "a doubt in single characters 80 42",
    "a hopeless decline",
    "a doubt that is refused",
    "a decline that is refused",
    "sections that answer",
    "sections that decline",
    "a second reading that declines",
    "doubted sections that are kept as the documents are refused",
    "a question that starts with the documents",
    "a start with sections",
]
ONE_OF_EACH = [BY_NAME[name] for name in _ONE_OF_EACH]
