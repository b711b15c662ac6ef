"""The Self-Route decision (Li et al., 2024, section 4.2) as a generator of effects; it does no I/O.

The flow yields what is to be done and is sent the results; the drivers loop over it and an adapter
performs it. Whatever a framework calls a passage or a document goes through here untouched.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from selfroute.answerability.verdict import NO_PASSAGES, Verdict

Route = Literal["rag", "long_context"]


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Find the passages for a question. Result: a sequence of them, best first, maybe empty."""

    question: str


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read the documents behind the passages. Result: a sequence of them, maybe empty.

    Attributes:
        passages: What was retrieved.
        too_long: The provider's error when it refused what was read before as too long: read less.
    """

    passages: Sequence[Any]
    too_long: Exception | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask the model of one step to answer from a context. Result: a `Reply`, once its verdict stands."""

    step: Route
    context: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Decided:
    """Announce the route. It comes as soon as it is known: before documents are read or text is shown."""

    route: Route
    decision: Verdict


Effect = Retrieve | ReadDocuments | Generate | Decided


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply as far as it was read when its verdict stood.

    Attributes:
        text: What may be shown; empty if the reply declines.
        verdict: Whether it declines.
    """

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question led to. The drivers yield it last, with its whole text.

    Attributes:
        text: The answer, or the refusal word if there is none.
        route: The step that produced it.
        answerable: False when every step that ran declined.
        decision: Why this route: the verdict on the first step.
        passages: What was retrieved, on either route.
        context: What the answer was read from: the passages, or the documents.
    """

    text: str
    route: Route
    answerable: bool
    decision: Verdict
    passages: Sequence[Any]
    context: Sequence[Any]


def self_route(question: str, *, refusal: str = "unanswerable") -> Generator[Effect, Any, Answer]:
    """Answer from the passages, and from whole documents only if the draft declines.

    Args:
        question: The question, plain text.
        refusal: The word that stands for "no answer" when both steps declined.

    Yields:
        Effects; each expects the result that it documents.

    Returns:
        The answer, whose text the driver completes while it pours the rest of the reply.
    """
    passages: Sequence[Any] = yield Retrieve(question)
    decision = NO_PASSAGES
    if passages:
        draft: Reply = yield Generate("rag", passages)
        decision = draft.verdict
        if not decision:
            yield Decided("rag", decision)
            return Answer(draft.text, "rag", True, decision, passages, passages)
    yield Decided("long_context", decision)
    documents: Sequence[Any] = yield ReadDocuments(passages)
    if not documents:
        return Answer(refusal, "long_context", False, decision, passages, documents)
    try:
        final: Reply = yield Generate("long_context", documents)
    except Exception as too_long:  # a driver throws in nothing else
        documents = yield ReadDocuments(passages, too_long)
        if not documents:
            raise
        final = yield Generate("long_context", documents)
    answered = not final.verdict
    text = final.text if answered else refusal
    return Answer(text, "long_context", answered, decision, passages, documents)
