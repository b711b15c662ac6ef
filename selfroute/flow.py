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

Route = Literal["rag", "wider", "long_context"]
MOST_RETRIES = 5  # with half of what was refused before, or less; so a 32nd part is the last that is sent


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Find the passages for a question. Result: those that fit the window, best first; there may be none."""

    question: str


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read what a step answers from, as far as it fits. Result: that as a sequence, best first; it may be empty.

    Attributes:
        passages: The retrieved passages.
        too_long: The provider's error if it refused the last prompt as too long; then read less.
        step: The step. The first one reads the passages themselves, fewer of them if they were too long.
    """

    passages: Sequence[Any]
    too_long: Exception | None = None
    step: Route = "long_context"

    @property
    def anew(self) -> bool:
        """Whether documents have to be read; else what is at hand is fitted."""
        return self.step == "long_context" and self.too_long is None


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
        draft, read = yield from _ask("rag", passages, passages)
        decision = draft.verdict
        if not decision:
            yield Decided("rag", decision)
            return Answer(draft.text, "rag", True, decision, passages, read)
    yield Decided("long_context", decision)
    documents: Sequence[Any] = yield ReadDocuments(passages)
    if not documents:
        return Answer(refusal, "long_context", False, decision, passages, documents)
    final, documents = yield from _ask("long_context", passages, documents)
    return Answer(final.text or refusal, "long_context", not final.verdict, decision, passages, documents)


def _ask(
    step: Route, passages: Sequence[Any], context: Sequence[Any]
) -> Generator[Effect, Any, tuple[Reply, Sequence[Any]]]:
    """Ask the model of a step, with less to read each time that it refuses the prompt as too long.

    Returns:
        The reply, and what the model read.
    """
    retries = MOST_RETRIES
    while True:
        try:
            return (yield Generate(step, context)), context
        except Exception as too_long:  # noqa: PERF203 - the drivers throw in no other error
            less: Sequence[Any] = (yield ReadDocuments(passages, too_long, step)) if retries else ()
            if not less:
                raise
            context, retries = less, retries - 1
