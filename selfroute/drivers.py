"""The two loops over the flow, `stream` and `astream`; `run` and `arun` exhaust them.

An adapter performs the effects as `Steps` or `AsyncSteps`. A reply that is requested as a whole is a stream of one
piece, so that every mode runs the same code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from selfroute.answerability.ending import Ending
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.verdict import Verdict
from selfroute.effects import Answer, Compare, Decide, Decided, Effect, Generate, ReadDocuments, Reply, Retrieve, Route
from selfroute.errors import NoReplyError
from selfroute.usage.account import Account

Flow = Generator[Effect, Any, Answer]
Item = Decided | str | Answer
AnyGate = Gate | FinalGate | GradedGate


class _Common(Protocol):
    @property
    def refusal(self) -> str:
        """The word by which the model declines."""

    @property
    def may_resume(self) -> bool:
        """Whether a reply in doubt may turn out to be the answer, so that it has to stay open."""

    def gate(self, step: Route, /) -> AnyGate:
        """Return a fresh gate for a reply of a step."""

    @property
    def account(self) -> Account:
        """The account of the question; `generate` adds each call of a model to it."""

    @property
    def ending(self) -> Ending:
        """How the latest reply ended; asked once all its pieces have come."""

    def complete_usage(self, answer: Answer) -> None:
        """Add what the long context alone would have cost to the usage of the account.

        All text has been shown by then.
        """

    def is_too_long(self, error: Exception) -> bool:
        """Return whether an error means that the prompt was too long for the model's window."""


class Steps(_Common, Protocol):
    """Performs the effects of one question."""

    def retrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """Return the passages, best first."""

    def compare(self, effect: Compare, /) -> bool:
        """Return whether the passages are most of their documents, so that a draft would cost more than it saves."""

    def read_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """Return what a step answers from, as far as it fits: passages, or sections of documents, or documents."""

    def generate(self, effect: Generate, /) -> Generator[str, None, None]:
        """Yield the reply's text in pieces; closing it stops the model."""

    def decide(self, effect: Decide, /) -> Decided:
        """Ask the policy, if the question should go on; announce the route and return it."""

    def cite(self, answer: Answer, /) -> Answer:
        """Return the answer, which was shown, with where it stands, if that is wanted."""


class AsyncSteps(_Common, Protocol):
    """Performs the effects of one question asynchronously."""

    async def aretrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """Do as `Steps.retrieve` does, asynchronously."""

    async def acompare(self, effect: Compare, /) -> bool:
        """Do as `Steps.compare` does, asynchronously."""

    async def aread_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """Do as `Steps.read_documents` does, asynchronously."""

    def agenerate(self, effect: Generate, /) -> AsyncGenerator[str, None]:
        """Do as `Steps.generate` does, asynchronously."""

    async def adecide(self, effect: Decide, /) -> Decided:
        """Do as `Steps.decide` does, asynchronously."""

    async def acite(self, answer: Answer, /) -> Answer:
        """Do as `Steps.cite` does, asynchronously."""


def advance(resume: Callable[[Any], Effect], value: Any) -> Effect | Answer:
    """Resume the flow through its `send` or `throw`.

    Only these two may be called within the `try`: a `StopIteration` from a user's code must not be taken for the end of
    the flow.

    Returns:
        The next effect, or the answer.
    """
    try:
        return resume(value)
    except StopIteration as stop:
        return cast("Answer", stop.value)


def stream(flow: Flow, steps: Steps) -> Generator[Item, None, None]:  # noqa: C901, PLR0912 - one loop, read as a whole
    """Perform the flow's effects.

    Args:
        flow: A fresh flow.
        steps: Performs its effects.

    Yields:
        `Decided`, then the text of the answer in pieces that are never empty, then the whole `Answer`. No piece of a
        draft that declines is yielded; it is closed as soon as that is certain. Closing this generator closes the
        reply.

    Raises:
        NoReplyError: A step ended without a reply that could be judged.
        Exception: Any error of a step, except those about a prompt that was too long: then less is read.
    """
    effect = advance(flow.send, None)
    pieces: Generator[str, None, None] | None = None
    gate: AnyGate | None = None
    with steps.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    with account.performing(effect):
                        if isinstance(effect, Generate):
                            if pieces is None or gate is None or not effect.resumed:
                                pieces, gate = steps.generate(effect), steps.gate(effect.step)
                            result: Any = _judged(effect, pieces, gate, steps)
                            if _is_over(result.verdict, effect.step, steps):
                                pieces.close()
                                pieces = None
                        else:
                            result = _perform(effect, steps)
                except Exception as error:
                    if not _may_read_less(effect, error, steps):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decide):
                    if pieces is not None and not effect.final and result.granted:
                        pieces.close()  # the reply in doubt
                        pieces = None
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if pieces is not None:
                for piece in filter(None, pieces):
                    shown.append(piece)
                    yield piece
                effect = effect.ended("".join(shown), finish_reason=steps.ending.reason, refusal=steps.refusal)
            effect = steps.cite(effect)
            with suppress(Exception):  # an error in measuring must not cost the answer
                steps.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if pieces is not None:
                pieces.close()


async def astream(flow: Flow, steps: AsyncSteps) -> AsyncGenerator[Item, None]:  # noqa: C901, PLR0912
    """Do as `stream` does, asynchronously."""
    effect = advance(flow.send, None)
    pieces: AsyncGenerator[str, None] | None = None
    gate: AnyGate | None = None
    with steps.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    with account.performing(effect):
                        if isinstance(effect, Generate):
                            if pieces is None or gate is None or not effect.resumed:
                                pieces, gate = steps.agenerate(effect), steps.gate(effect.step)
                            result: Any = await _ajudged(effect, pieces, gate, steps)
                            if _is_over(result.verdict, effect.step, steps):
                                await pieces.aclose()
                                pieces = None
                        else:
                            result = await _aperform(effect, steps)
                except Exception as error:
                    if not _may_read_less(effect, error, steps):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decide):
                    if pieces is not None and not effect.final and result.granted:
                        await pieces.aclose()  # the reply in doubt
                        pieces = None
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if pieces is not None:
                async for piece in pieces:
                    if piece:
                        shown.append(piece)
                        yield piece
                effect = effect.ended("".join(shown), finish_reason=steps.ending.reason, refusal=steps.refusal)
            effect = await steps.acite(effect)
            with suppress(Exception):  # an error in measuring must not cost the answer
                steps.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if pieces is not None:
                await pieces.aclose()


def _judged(effect: Generate, pieces: Iterable[str], gate: AnyGate, steps: _Common) -> Reply:
    """Read a reply until its verdict is certain."""
    text = cast("GradedGate", gate).resume() if effect.resumed else ""
    if gate.verdict is None:
        for piece in pieces:
            text += gate.feed(piece)
            if gate.verdict is not None:
                break
        else:
            text += gate.end(steps.ending.kind)
    return _reply(effect, gate.verdict, text, steps)


async def _ajudged(effect: Generate, pieces: AsyncIterable[str], gate: AnyGate, steps: _Common) -> Reply:
    """Do as `_judged` does, asynchronously."""
    text = cast("GradedGate", gate).resume() if effect.resumed else ""
    if gate.verdict is None:
        async for piece in pieces:
            text += gate.feed(piece)
            if gate.verdict is not None:
                break
        else:
            text += gate.end(steps.ending.kind)
    return _reply(effect, gate.verdict, text, steps)


def _reply(effect: Generate, verdict: Verdict | None, text: str, steps: _Common) -> Reply:
    if verdict is None:
        raise steps.ending.error(effect.step)
    return Reply(text, verdict)


def _is_over(verdict: Verdict, step: Route, steps: _Common) -> bool:
    """Return whether nothing more of a reply will be shown."""
    if step == "long_context":
        return False
    return verdict.declined or (verdict.escalates and not steps.may_resume)


def _perform(effect: Retrieve | Compare | ReadDocuments | Decide, steps: Steps) -> Sequence[Any] | bool | Decided:
    if isinstance(effect, Retrieve):
        return steps.retrieve(effect)
    if isinstance(effect, Compare):
        return steps.compare(effect)
    if isinstance(effect, ReadDocuments):
        return steps.read_documents(effect)
    return steps.decide(effect)


async def _aperform(
    effect: Retrieve | Compare | ReadDocuments | Decide, steps: AsyncSteps
) -> Sequence[Any] | bool | Decided:
    if isinstance(effect, Retrieve):
        return await steps.aretrieve(effect)
    if isinstance(effect, Compare):
        return await steps.acompare(effect)
    if isinstance(effect, ReadDocuments):
        return await steps.aread_documents(effect)
    return await steps.adecide(effect)


def _may_read_less(effect: Effect, error: Exception, steps: _Common) -> bool:
    if isinstance(error, NoReplyError):  # that reply was paid for
        return False
    return isinstance(effect, Generate) and steps.is_too_long(error)


def run(flow: Flow, steps: Steps) -> Answer:
    """Exhaust `stream` and return its answer."""
    item: Item | None = None
    for item in stream(flow, steps):  # noqa: B007 - the last one counts
        pass
    return cast("Answer", item)


async def arun(flow: Flow, steps: AsyncSteps) -> Answer:
    """Exhaust `astream` and return its answer."""
    item: Item | None = None
    async for item in astream(flow, steps):  # noqa: B007
        pass
    return cast("Answer", item)
