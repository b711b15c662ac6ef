"""Lead recorded questions through the flow: the strategies, and what each comes to on a row of recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.effects import Route
from selfroute_workbench.evaluation.replay import Signal, climb, signal_of

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
    """What the model said from one context, and how long that is."""

    characters: int
    grade: float
    declined: bool
    prospect: int | None
    confidence: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question ended: the grade of what is shown, what was paid for it, whether documents were read."""

    grade: float
    characters: int
    read: bool


def look_at(row: Json, strategy: Strategy, at: int) -> Look | None:
    """Return the reply of a step; None if it was not recorded.

    In one store the plain draft was not asked for; there the graded one is taken without its numbers.
    """
    step = strategy.ladder[at]
    found, characters = row["long_context"], row["document_characters"]
    if step == "rag":
        draft = "graded" if strategy.doubt_below or "rag" not in row else "rag"
        found, characters = row[draft], row["draft_characters"]
    elif step == "sections":
        found = row.get(strategy.sections[at - 1], {})
        characters = found.get("characters")
    elif strategy.max_documents is not None and row.get("documents_behind", 1) > strategy.max_documents:
        return None
    if not found:
        return None
    declined = found.get("declined", False)
    return Look(characters, found["grade"], declined, found.get("prospect"), found.get("confidence"))


def replay(row: Json, strategy: Strategy) -> Outcome | None:
    """Lead a question through the flow; None if it asks for a reply that was not recorded."""
    looks = [look_at(row, strategy, at) for at in range(len(strategy.ladder))]
    asked = climb(strategy.ladder, tuple(signal(look, strategy, at) for at, look in enumerate(looks)))
    paid = [looks[at] for at in asked or ()]
    found = [look for look in paid if look is not None]
    if len(found) < len(paid) or not found:
        return None
    read = any(strategy.ladder[at] == "long_context" for at in asked or ())
    return Outcome(found[-1].grade, sum(look.characters for look in found), read)


def signal(look: Look | None, strategy: Strategy, at: int) -> Signal:
    """Return what a reply says of itself; one that was not recorded is led on, so that it is missed."""
    if look is None:
        return "declined"
    if not strategy.doubt_below or strategy.ladder[at] == "long_context":
        return signal_of(look)
    return signal_of(look, strategy.doubt_below[at], STOP_BELOW)
