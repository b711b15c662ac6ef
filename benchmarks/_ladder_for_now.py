"""The flow as a ladder of steps, until `selfroute.flow` is one; this file goes then."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from selfroute.answerability.verdict import NO_PASSAGES, STARTED
from selfroute.flow import Answer, Decide, Generate, Reply, Retrieve


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read what a step answers from; `rung` counts the steps of the same name."""

    passages: Sequence[Any]
    too_long: Exception | None = None
    step: str = "long_context"
    rung: int = 0


def self_route(  # noqa: C901 - as it will be
    question: str,
    ladder: Sequence[Any] = ("rag", "sections", "sections", "long_context"),
    *,
    refusal: str = "unanswerable",
    passages: Sequence[Any] | None = None,
    first_only: bool = False,
) -> Generator[Any, Any, Answer]:
    """Go up the ladder until a reply stands."""
    if passages is None:
        passages = yield Retrieve(question)
    route, context = "rag", passages
    reply = Reply("", NO_PASSAGES if ladder[0] == "rag" else STARTED)
    decision = None
    for at, step in enumerate(ladder):
        if not passages and step != "long_context":
            continue
        more: Sequence[Any] = ()
        if step != "rag":
            decision = reply.verdict if decision is None else decision
            if first_only:
                return Answer("", "rag", False, decision, passages, context, is_open=True)
            if step == "sections":
                more = yield ReadDocuments(passages, step=step, rung=ladder[:at].count(step))
                if not more:
                    continue
            decided = yield Decide(step, decision, reply.verdict, since=route, context=more)
            decision = decided.decision
            if decided.route != step:
                break
            route, context = step, more or (yield ReadDocuments(passages))
            if not context:
                return Answer(refusal, route, False, decision, passages, context)
        reply = yield Generate(step, context)
        decision = reply.verdict if decision is None else decision
        if (step == "rag" and not reply.verdict.escalates) or (step != "rag" and reply.verdict.ruling):
            decision = replace(decision, ruling=reply.verdict.ruling)
            yield Decide(step, decision, reply.verdict, since=step)
        if not reply.verdict.escalates:
            break
    if reply.verdict.signal == "doubt":
        reply = yield Generate(route, context, resumed=True)
    decision = reply.verdict if decision is None else decision
    return Answer(reply.text or refusal, route, reply.verdict.signal == "answered", decision, passages, context)
