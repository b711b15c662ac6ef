"""The Self-Route decision (Li et al., 2024, section 4.2) as a generator of effects; it does no I/O.

A question climbs a ladder of steps: the passages, sections of the documents, the documents. The flow yields effects and
is sent their results. The drivers loop over it, and an adapter performs the effects. The passages and documents of a
framework pass through here untouched.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from selfroute.answerability.ending import NO_PASSAGES, STARTED
from selfroute.effects import (
    NOTHING_MORE,
    Answer,
    Compare,
    Decide,
    Decided,
    Effect,
    Generate,
    Judged,
    ReadDocuments,
    Retrieve,
    Route,
)

MOST_RETRIES = 5  # with half of what was refused before, or less; so a 32nd part is the last that is sent
Flow = Generator[Effect, Any, Answer]


def self_route(  # noqa: C901, PLR0912 - one loop, read as a whole
    question: str,
    ladder: Sequence[Route] = ("rag", "long_context"),
    *,
    refusal: str = "unanswerable",
    compares: bool = False,
) -> Flow:
    """Climb from one step to the next, until one answers, none is left, or the next may not be paid for.

    A step that would read nothing new is skipped; the decision says if none is left.

    Args:
        question: The question, as plain text.
        ladder: The steps, the cheapest first. `("long_context",)` asks for no draft.
        refusal: The word that is returned as the answer if every step declines with no other word.
        compares: Whether to go to the documents at once if the passages are most of them.

    Yields:
        Effects. Each documents the result that the flow expects to be sent.

    Returns:
        The answer. Its text ends where the verdict became certain; `Answer.ended` adds the rest of the reply.
    """
    passages, ladder = yield from _retrieved(question, ladder, compares=compares)
    route: Route = "rag"
    context, announced, skipped = passages, False, False
    decision = NO_PASSAGES if ladder[0] == "rag" else STARTED
    reply = Judged("", decision)
    for at, step in enumerate(ladder):
        if step == "rag":
            if passages:
                reply, context = (yield from _ask(step, passages, passages)) or (reply, context)
                decision = reply.verdict
        else:
            found: Sequence[Any] | None = ()
            rung, skipped = ladder[:at].count(step), True
            if step == "sections" and not (found := (yield ReadDocuments(passages, None, step, rung))):
                continue
            decided: Decided = yield Decide(step, decision, reply.verdict, since=route, context=found or ())
            decision, announced = decided.decision, True
            if not decided.granted:
                reply = Judged("", reply.verdict)
                break
            found = found or (yield ReadDocuments(passages))
            if found is not None and not found:
                return Answer(refusal, step, False, decision, passages, found)
            ends = "long_context" not in ladder[at + 1 :]
            if found is None or (asked := (yield from _ask(step, passages, found, rung, ends=ends))) is None:
                continue
            route, (reply, context), skipped = step, asked, False
        if not reply.verdict.escalates:
            break
    else:
        if skipped and reply.verdict.signal not in ("no_passages", "start"):
            decision, announced = replace(decision, ruling=NOTHING_MORE), False
    if not announced:
        yield Decide(route, decision, reply.verdict, since=route, final=True)
    if reply.verdict.signal == "doubt":
        reply = yield Generate(route, context, resumed=True)
    return Answer(reply.text or refusal, route, reply.verdict.signal == "answered", decision, passages, context)


def _retrieved(
    question: str, ladder: Sequence[Route], *, compares: bool
) -> Generator[Effect, Any, tuple[Sequence[Any], Sequence[Route]]]:
    """Return the passages that the draft reads, and the steps that are left with them."""
    passages: Sequence[Any] | None = yield Retrieve(question)
    if passages is None and ladder[0] == "rag":  # nothing was found, and nothing leads to a document
        ladder = ("rag",)
    passages = passages or []
    if compares and passages and (yield Compare(passages)):
        ladder = ("long_context",)
    return passages, ladder


def _ask(
    step: Route, passages: Sequence[Any], context: Sequence[Any], rung: int = 0, *, ends: bool = True
) -> Generator[Effect, Any, tuple[Judged, Sequence[Any]] | None]:
    """Ask the model of a step, with less to read each time that it refuses the prompt as too long.

    Args:
        step: The step.
        passages: The retrieved passages.
        context: What the step reads.
        rung: Which reading of sections it is, from 0.
        ends: Whether the error is raised if even the least is refused; else the documents are read.

    Returns:
        The reply, and what the model read; None if the documents come next.
    """
    retries = MOST_RETRIES
    while True:
        try:
            return (yield Generate(step, context, rung=rung)), context
        except Exception as too_long:  # noqa: PERF203 - the drivers throw in no other error
            less: Sequence[Any] = (yield ReadDocuments(passages, too_long, step, rung)) if retries else ()
            if not less and ends:
                raise
            if not less:
                return None
            context, retries = less, retries - 1
