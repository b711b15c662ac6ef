"""The Self-Route decision (Li et al., 2024, section 4.2) as a generator of effects; it does no I/O.

The flow yields effects and is sent their results. The drivers loop over it, and an adapter performs the effects. The
passages and documents of a framework pass through here untouched.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from selfroute.answerability.anywhere import declines_anywhere
from selfroute.answerability.verdict import NO_PASSAGES, Verdict

Route = Literal["rag", "long_context"]


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Find the passages for a question. Result: the passages as a sequence, best first; it may be empty."""

    question: str


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read the documents behind the passages. Result: the documents as a sequence; it may be empty.

    Attributes:
        passages: The retrieved passages.
        too_long: The provider's error if it refused the last prompt as too long; then read less.
    """

    passages: Sequence[Any]
    too_long: Exception | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask the model of one step to answer from a context. Result: a `Reply`, as soon as its verdict is certain."""

    step: Route
    context: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Decided:
    """Announce the route, as soon as it is known: before documents are read or text is shown."""

    route: Route
    decision: Verdict


Effect = Retrieve | ReadDocuments | Generate | Decided


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, as far as it was read when its verdict became certain.

    Attributes:
        text: The text that may be shown: none of a draft that declines, nor the refusal itself.
        verdict: Whether the reply declines, as far as its beginning tells.
    """

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question. The drivers yield it last, with its whole text.

    Attributes:
        text: The answer. If every step declined, the last step's own words, or the refusal word if it gave none.
        route: The step that produced the answer.
        answerable: False if every step that ran declined.
        decision: Why this route: the verdict on the first step.
        passages: The retrieved passages, on either route.
        context: What the model answered from: the passages, or the documents.
        finish_reason: How the reply that is shown ended, in the provider's word; None if it says nothing.
    """

    text: str
    route: Route
    answerable: bool
    decision: Verdict
    passages: Sequence[Any]
    context: Sequence[Any]
    finish_reason: str | None = None

    def ended(self, text: str, *, finish_reason: str | None, refusal: str) -> Answer:
        """Return the answer with its whole text. A reply to documents is judged again, as a whole.

        Args:
            text: All the text that was shown.
            finish_reason: How the reply ended, in the provider's word.
            refusal: The word that declines.
        """
        answerable = self.answerable and (self.route == "rag" or not declines_anywhere(text, refusal))
        return replace(self, text=text, answerable=answerable, finish_reason=finish_reason)


def self_route(question: str, *, refusal: str = "unanswerable") -> Generator[Effect, Any, Answer]:
    """Answer from the passages, and from whole documents only if the first reply declines.

    Args:
        question: The question, as plain text.
        refusal: The word that is returned as the answer if both steps decline with no other word.

    Yields:
        Effects. Each documents the result that the flow expects to be sent.

    Returns:
        The answer. Its text ends where the verdict became certain; `Answer.ended` adds the rest of the reply.
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
    except Exception as too_long:  # the drivers throw in no other error
        documents = yield ReadDocuments(passages, too_long)
        if not documents:
            raise
        final = yield Generate("long_context", documents)
    return Answer(final.text or refusal, "long_context", not final.verdict, decision, passages, documents)
