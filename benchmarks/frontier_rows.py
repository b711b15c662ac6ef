"""Lead recorded questions through the flow: the strategies, and what each comes to on a row of recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from selfroute.answerability import Verdict
from selfroute.calls.drivers import advance
from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.effects import Answer, Decide, Decided, Generate, ReadDocuments, Reply, Route
from selfroute.flow import self_route

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Strategy:
    """Steps, and when a question goes on.

    Attributes:
        name: How it is printed.
        ladder: The steps.
        doubt_below: For the draft and each rung of sections, the confidence below which an answer goes on; empty if
            the model is asked for no numbers.
        sections: The replies that the rungs of sections are given.
        max_documents: At most so many documents are read; None for all.
    """

    name: str
    ladder: tuple[Route, ...]
    doubt_below: tuple[int, ...] = ()
    sections: tuple[str, ...] = ("sections", "more_sections")
    max_documents: int | None = None


RAG = Strategy("RAG", ("rag",))
PAPER = Strategy("Self-Route", ("rag", "long_context"))
SECTIONS = Strategy("Self-Route + sections", ("rag", "sections", "long_context"))
GRADED = Strategy("graded", ("rag", "long_context"), (DOUBT_BELOW,))
EVEN = Strategy("graded + sections 50/50", SECTIONS.ladder, (50, 50))
CAREFUL = Strategy("graded + sections 70/60", SECTIONS.ladder, (70, 60))
NEAREST = Strategy("graded + 13 nearest passages 70/70", SECTIONS.ladder, (70, 70), sections=("passages_13",))
RUNGS = Strategy("graded + two rungs 70/60/50", ("rag", "sections", "sections", "long_context"), (70, 60, 50))
SURER = Strategy("graded + two rungs 70/70/50", RUNGS.ladder, (70, 70, 50))
WHOLE = Strategy("long context", ("long_context",))
NEVER = Strategy("graded + two rungs, never documents", RUNGS.ladder[:-1], RUNGS.doubt_below)
FEW = [
    replace(each, name=f"{each.name}, {word} at most", max_documents=count)
    for each in (PAPER, RUNGS, WHOLE)
    for count, word in ((2, "two documents"), (1, "one document"))
]


@dataclass(frozen=True, slots=True)
class Look:
    """What the model said from one context."""

    characters: int
    grade: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question ended: the grade of what is shown, what was paid for it, whether documents were read."""

    grade: float
    characters: int
    read: bool


def look_at(row: Json, strategy: Strategy, step: str, rung: int = 0) -> Look | None:
    """Return the reply of a step, judged by the bounds of a strategy; None if it was not recorded.

    In one store the plain draft was not asked for; there the graded one is taken without its numbers.
    """
    graded = bool(strategy.doubt_below) and step != "long_context"
    found, characters = row["long_context"], row["document_characters"]
    if step == "rag":
        found, characters = row["graded"] if graded else row.get("rag", row["graded"]), row["draft_characters"]
    elif step == "sections":
        found = row.get(strategy.sections[rung], {})
        characters = found.get("characters")
    elif strategy.max_documents is not None and row.get("documents_behind", 1) > strategy.max_documents:
        return None
    if not found:
        return None
    bound = strategy.doubt_below[rung + (step == "sections")] if graded else 0
    return Look(characters, found["grade"], judged(found, doubt_below=bound, stop_below=STOP_BELOW if graded else 0))


def judged(found: Json, *, doubt_below: int, stop_below: int) -> Verdict:
    """Return the verdict on a reply; what says no number is taken as sure."""
    if found.get("declined"):
        hopeless = found.get("prospect", 100) < stop_below
        return Verdict(True, "sentinel", ruling={"go": False} if hopeless else None)
    return Verdict(False, "doubt" if found.get("confidence", 100) < doubt_below else "answered")


def replay(row: Json, strategy: Strategy) -> Outcome | None:
    """Lead a question through the flow; None if it asks for a reply that was not recorded."""
    flow = self_route("", strategy.ladder, passages=(look_at(row, strategy, "rag"),))
    characters, read = 0, False
    result: Any = None
    while not isinstance(effect := advance(flow.send, result), Answer):
        if isinstance(effect, ReadDocuments):
            result = (look_at(row, strategy, effect.step, effect.rung),)
        elif isinstance(effect, Decide):
            result = Decided(effect.route, effect.decision)
        elif isinstance(effect, Generate):
            look = effect.context[0]
            if look is None:
                return None
            if not effect.resumed:
                characters += look.characters
                read = read or effect.step == "long_context"
            result = Reply("an answer", Verdict(False, "answered") if effect.resumed else look.verdict)
    return Outcome(effect.context[0].grade, characters, read)
