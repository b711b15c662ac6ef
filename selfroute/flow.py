"""The Self-Route decision (Li et al., 2024, section 4.2) as a generator of effects; it does no I/O.

The flow yields effects and is sent their results. The drivers loop over it, and an adapter performs the effects. The
passages and documents of a framework pass through here untouched.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from selfroute.answerability.anywhere import declines_anywhere
from selfroute.answerability.verdict import NO_PASSAGES, STARTED, Verdict

if TYPE_CHECKING:
    from selfroute.citations import Cited

Route = Literal["rag", "wider", "long_context"]
Start = Literal["rag", "long_context"]
MOST_RETRIES = 5  # with half of what was refused before, or less; so a 32nd part is the last that is sent
_WIDER: tuple[Route, ...] = ("wider", "long_context")
_LONG_CONTEXT: tuple[Route, ...] = ("long_context",)


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Find the passages for a question. Result: those that fit the window, best first; there may be none.

    Attributes:
        question: The question.
        wider: Whether more passages are wanted. Result then: those that fit, in the order of their documents; none if
            reading them would save little.
    """

    question: str
    wider: bool = False


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read what a step answers from, as far as it fits. Result: that as a sequence, best first; it may be empty.

    Attributes:
        passages: The retrieved passages.
        too_long: The provider's error if it refused the last prompt as too long; then read less.
        step: The step. The first ones read passages themselves, fewer of them if they were too long.
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
    """Ask the model of one step to answer from a context. Result: a `Reply`, as soon as its verdict is certain.

    Attributes:
        step: The step.
        context: The passages or documents.
        resumed: Whether to go on with the reply in doubt, which is still open: it is the answer after all.
    """

    step: Route
    context: Sequence[Any]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    """Propose a step, before anything is paid for it or its text is shown. Result: what was `Decided`.

    Attributes:
        route: The step that the question should go to, or that answered it.
        decision: The verdict on the first step.
        latest: The verdict on the latest reply, which says why the question should go on.
        since: The step that it comes from.
        context: What a wider look would read.
    """

    route: Route
    decision: Verdict
    latest: Verdict
    since: Route = "rag"
    context: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """Announce the route, as soon as it is known. The drivers yield it.

    Attributes:
        route: The proposed step; or the one that the question comes from, if it must not go on.
        decision: The verdict on the first step, with what a policy said.
    """

    route: Route
    decision: Verdict


Effect = Retrieve | ReadDocuments | Generate | Decide


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
        cited: Where the answer stands in the context; None if nobody wants to know.
        is_open: Whether this is not the answer yet: only the first step was asked for, and the question should go on.
    """

    text: str
    route: Route
    answerable: bool
    decision: Verdict
    passages: Sequence[Any]
    context: Sequence[Any]
    finish_reason: str | None = None
    cited: Cited | None = None
    is_open: bool = False

    def ended(self, text: str, *, finish_reason: str | None, refusal: str) -> Answer:
        """Return the answer with its whole text. A reply to documents is judged again, as a whole.

        Args:
            text: All the text that was shown.
            finish_reason: How the reply ended, in the provider's word.
            refusal: The word that declines.
        """
        whole = self.route == "long_context"
        answerable = self.answerable and not (whole and declines_anywhere(text, refusal))
        return replace(self, text=text, answerable=answerable, finish_reason=finish_reason)


def self_route(  # noqa: PLR0913 - the options of one decision
    question: str,
    *,
    refusal: str = "unanswerable",
    wider: bool = False,
    start: Start = "rag",
    passages: Sequence[Any] | None = None,
    first_only: bool = False,
) -> Generator[Effect, Any, Answer]:
    """Answer from the passages, and from whole documents only if the draft declines or is in doubt.

    Args:
        question: The question, as plain text.
        refusal: The word that is returned as the answer if every step declines with no other word.
        wider: Whether to look at more passages before whole documents are read.
        start: The first step; with `"long_context"` there is no draft.
        passages: The passages, if they were retrieved before; None to retrieve them.
        first_only: Whether to end before anything is asked for after the draft; the answer may then be open.

    Yields:
        Effects. Each documents the result that the flow expects to be sent.

    Returns:
        The answer. Its text ends where the verdict became certain; `Answer.ended` adds the rest of the reply.
    """
    if passages is None:
        passages = yield Retrieve(question)
    context, reply = passages, Reply("", NO_PASSAGES if start == "rag" else STARTED)
    drafts = start == "rag" and bool(passages)
    if drafts:
        reply, context = yield from _ask("rag", passages, passages)
    decision = reply.verdict
    answer = Answer(reply.text, "rag", reply.verdict.signal == "answered", decision, passages, context)
    if not decision.escalates:
        yield Decide("rag", decision, decision)
        return answer if answer.text else replace(answer, text=refusal)
    if first_only:
        return replace(answer, text="", is_open=True)
    steps = _WIDER if wider and drafts else _LONG_CONTEXT
    return (yield from _read_more(question, steps, answer, reply, refusal=refusal))


def _read_more(
    question: str, steps: Sequence[Route], draft: Answer, reply: Reply, *, refusal: str
) -> Generator[Effect, Any, Answer]:
    """Go from one further step to the next, until one answers or may not be paid for.

    Args:
        question: The question.
        steps: The further steps.
        draft: What the first step came to.
        reply: Its reply.
        refusal: As in `self_route`.
    """
    route, decision, passages, context = draft.route, draft.decision, draft.passages, draft.context
    for step in steps:
        if not reply.verdict.escalates:
            break
        more: Sequence[Any] = (yield Retrieve(question, wider=True)) if step == "wider" else ()
        if step == "wider" and not more:
            continue
        decided: Decided = yield Decide(step, decision, reply.verdict, since=route, context=more)
        decision = decided.decision
        if decided.route != step:
            if reply.verdict.signal == "doubt":
                reply = yield Generate(route, context, resumed=True)
            break
        route, context = step, more or (yield ReadDocuments(passages))
        if not context:
            return Answer(refusal, route, False, decision, passages, context)
        reply, context = yield from _ask(step, passages, context)
        if reply.verdict.ruling:
            decision = replace(decision, ruling=reply.verdict.ruling)
            yield Decide(step, decision, reply.verdict, since=step)
    return Answer(reply.text or refusal, route, reply.verdict.signal == "answered", decision, passages, context)


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
