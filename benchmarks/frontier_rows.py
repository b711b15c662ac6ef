"""Lead recorded questions through the flow: the strategies, and what each brings on a row of recordings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from selfroute.calls.plan import DOUBT_BELOW, MORE_THAN_BEFORE, STOP_BELOW
from selfroute.effects import Route
from selfroute_workbench.evaluation.replay import Signal, climb, signal_of

Json = dict[str, Any]
PART = 2  # sections may be one such part of the documents that they are held against


@dataclass(frozen=True, slots=True)
class Strategy:
    """The replies that a question climbs through, and when it goes on.

    Attributes:
        name: How it is printed.
        steps: The replies, by their names in a row.
        doubt_below: For each step, the confidence below which an answer goes on.
        stop_below: For each step, the prospect below which a decline ends the question.
    """

    name: str
    steps: tuple[str, ...]
    doubt_below: tuple[int, ...] = (0,)
    stop_below: tuple[int, ...] = (0,)

    @property
    def ladder(self) -> tuple[Route, ...]:
        """The steps of the flow that these are."""
        kinds: dict[str, Route] = {"documents": "long_context", "all": "long_context"}
        return tuple(kinds.get(step, "rag" if at == 0 else "sections") for at, step in enumerate(self.steps))


RAG = Strategy("RAG", ("rag",))
RAG_20 = Strategy("RAG, 20 passages", ("rag_20",))
PAPER = Strategy("the paper's rule", ("rag", "all"))
DEFAULT = Strategy("**the default**", ("draft", "sections", "more_sections", "documents"), DOUBT_BELOW, STOP_BELOW)
NEVER = Strategy("the default, never documents", DEFAULT.steps[:-1], DOUBT_BELOW, STOP_BELOW)
EARLIER = Strategy("bounds 50/50/50", DEFAULT.steps, (50,), STOP_BELOW)
SURER = Strategy("bounds 70/70/50", DEFAULT.steps, (70, 70, 50), STOP_BELOW)
NO_STOP = Strategy("no stop after sections", DEFAULT.steps, DOUBT_BELOW, (STOP_BELOW[0], 0))
DRAFTS = Strategy("the default without sections", ("draft", "documents"), DOUBT_BELOW, STOP_BELOW)
WHOLE = Strategy("all documents", ("all",))


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
    """How a question ended: the grade of what is shown, what was paid for it, and which steps were asked."""

    grade: float
    characters: int
    steps: tuple[str, ...]


def looks_in(row: Json) -> dict[str, Look]:
    """Return the replies of a row by their names, the same for all recordings.

    `rag` is a plain draft, `draft` one with numbers, which stands for the plain one where that was not asked for;
    `documents` are those that the last step reads, `all` those behind five passages.
    """
    lengths = {"rag": "draft_characters", "draft": "draft_characters", "long_context": "document_characters"}
    called = {"graded": "draft", "all_behind_five": "all"}
    found: dict[str, Look] = {}
    for key, reply in row.items():
        if isinstance(reply, dict):
            name = called.get(key, key)
            characters = reply.get("characters") or row.get(f"{key}_characters") or row[lengths[name]]
            numbers = reply.get("prospect"), reply.get("confidence")
            found[name] = Look(characters, reply["grade"], reply.get("declined", False), *numbers)
    if whole := found.get("long_context"):
        found["documents"] = found["all"] = whole
    return {"rag": found["draft"], **found}


def replay(row: Json, strategy: Strategy) -> Outcome | None:
    """Lead a question through the flow; None if it asks for a reply that was not recorded."""
    looks = looks_in(row)
    found = [looks.get(step) for step in strategy.steps]
    reads_documents = "long_context" in strategy.ladder  # else no sections are skipped
    skipped = {step for step in strategy.steps if reads_documents and _is_too_large(step, row, looks)}
    signals = tuple(
        None if strategy.steps[at] in skipped else _signal(look, strategy, at) for at, look in enumerate(found)
    )
    asked = climb(strategy.ladder, signals)
    paid = [look for at in asked or () if (look := found[at]) is not None]
    if not paid or len(paid) < len(asked or ()):
        return None
    steps = tuple(strategy.steps[at] for at in asked or ())
    return Outcome(paid[-1].grade, sum(look.characters for look in paid), steps)


def _signal(look: Look | None, strategy: Strategy, at: int) -> Signal:
    """Return what a reply says of itself; one that was not recorded is led on, so that it is missed."""
    if look is None:
        return "declined"
    if strategy.ladder[at] == "long_context":
        return signal_of(look)
    return signal_of(look, strategy.doubt_below[: at + 1][-1], strategy.stop_below[: at + 1][-1])


def _is_too_large(step: str, row: Json, looks: dict[str, Look]) -> bool:
    """Return whether sections are skipped, since they are more than half of what they are held against.

    For the first ones these are all documents behind 20 passages. Where only those behind five are recorded, `default`
    says whether they were skipped.
    """
    first, documents = looks.get("sections"), looks.get("documents")
    if first is None or documents is None or step not in ("sections", "more_sections"):
        return False
    if step == "sections":
        if "default" in row:
            return "sections" not in row["default"] and "documents" in row["default"]
        return first.characters * PART > documents.characters
    more = looks.get(step)
    return (more.characters if more else MORE_THAN_BEFORE * first.characters) * PART > documents.characters
