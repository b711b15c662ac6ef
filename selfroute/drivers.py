"""The two loops over the flow, `stream` and `astream`; `run` and `arun` exhaust them.

An adapter performs the effects as `Steps` or `AsyncSteps`. A reply that is requested as a whole is a stream of one
piece, so that every mode runs the same code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast

from selfroute.answerability.gate import Gate
from selfroute.answerability.verdict import Verdict
from selfroute.flow import Answer, Decided, Effect, Generate, ReadDocuments, Reply, Retrieve
from selfroute.usage.account import Account

Flow = Generator[Effect, Any, Answer]
Item = Decided | str | Answer


class _Common(Protocol):
    @property
    def refusal(self) -> str:
        """The word by which the model declines."""

    @property
    def account(self) -> Account:
        """The account of the question; `generate` adds each call of a model to it."""

    def complete_usage(self, answer: Answer) -> None:
        """Add what the long context alone would have cost to the usage of the account.

        All text has been shown by then, but the text of `answer` ends where the verdict became certain.
        """

    def is_too_long(self, error: Exception) -> bool:
        """Return whether an error means that the prompt was too long for the model's window."""


class Steps(_Common, Protocol):
    """Performs the effects of one question."""

    def retrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """Return the passages, best first."""

    def read_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """Return what a step answers from, as far as it fits: the passages, or the documents behind them."""

    def generate(self, effect: Generate, /) -> Generator[str, None, None]:
        """Yield the reply's text in pieces; closing it stops the model."""

    def decided(self, effect: Decided, /) -> None:
        """Announce the route."""


class AsyncSteps(_Common, Protocol):
    """Performs the effects of one question asynchronously."""

    async def aretrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """Do as `Steps.retrieve` does, asynchronously."""

    async def aread_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """Do as `Steps.read_documents` does, asynchronously."""

    def agenerate(self, effect: Generate, /) -> AsyncGenerator[str, None]:
        """Do as `Steps.generate` does, asynchronously."""

    async def adecided(self, effect: Decided, /) -> None:
        """Do as `Steps.decided` does, asynchronously."""


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
        reply that declines is yielded; the reply is closed as soon as that is certain. Closing this generator closes
        the reply.

    Raises:
        Exception: Any error of a step, except those about a prompt that was too long: then less is read.
    """
    effect = advance(flow.send, None)
    pieces: Generator[str, None, None] | None = None
    with steps.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    with account.performing(effect):
                        if isinstance(effect, Generate):
                            pieces, gate = steps.generate(effect), Gate(steps.refusal)
                            for piece in pieces:
                                text = gate.feed(piece)
                                if gate.verdict is not None:
                                    break
                            else:
                                text = gate.end()
                            result: Any = Reply(text, cast("Verdict", gate.verdict))
                            if result.verdict:
                                pieces.close()
                        else:
                            result = _perform(effect, steps)
                except Exception as error:
                    if not _may_read_less(effect, error, steps):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decided):
                    account.decided(effect)
                    yield effect
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown()
            yield effect.text
            if pieces is not None and effect.answerable:
                for piece in filter(None, pieces):
                    shown.append(piece)
                    yield piece
            with suppress(Exception):  # an error in measuring must not cost the answer
                steps.complete_usage(effect)
            account.close(effect)
            yield effect if len(shown) == 1 else replace(effect, text="".join(shown))
        finally:
            if pieces is not None:
                pieces.close()


async def astream(flow: Flow, steps: AsyncSteps) -> AsyncGenerator[Item, None]:  # noqa: C901, PLR0912
    """Do as `stream` does, asynchronously."""
    effect = advance(flow.send, None)
    pieces: AsyncGenerator[str, None] | None = None
    with steps.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    with account.performing(effect):
                        if isinstance(effect, Generate):
                            pieces, gate = steps.agenerate(effect), Gate(steps.refusal)
                            async for piece in pieces:
                                text = gate.feed(piece)
                                if gate.verdict is not None:
                                    break
                            else:
                                text = gate.end()
                            result: Any = Reply(text, cast("Verdict", gate.verdict))
                            if result.verdict:
                                await pieces.aclose()
                        else:
                            result = await _aperform(effect, steps)
                except Exception as error:
                    if not _may_read_less(effect, error, steps):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decided):
                    account.decided(effect)
                    yield effect
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown()
            yield effect.text
            if pieces is not None and effect.answerable:
                async for piece in pieces:
                    if piece:
                        shown.append(piece)
                        yield piece
            with suppress(Exception):  # an error in measuring must not cost the answer
                steps.complete_usage(effect)
            account.close(effect)
            yield effect if len(shown) == 1 else replace(effect, text="".join(shown))
        finally:
            if pieces is not None:
                await pieces.aclose()


def _perform(effect: Retrieve | ReadDocuments | Decided, steps: Steps) -> Sequence[Any] | None:
    if isinstance(effect, Retrieve):
        return steps.retrieve(effect)
    if isinstance(effect, ReadDocuments):
        return steps.read_documents(effect)
    steps.decided(effect)
    return None


async def _aperform(effect: Retrieve | ReadDocuments | Decided, steps: AsyncSteps) -> Sequence[Any] | None:
    if isinstance(effect, Retrieve):
        return await steps.aretrieve(effect)
    if isinstance(effect, ReadDocuments):
        return await steps.aread_documents(effect)
    await steps.adecided(effect)
    return None


def _may_read_less(effect: Effect, error: Exception, steps: _Common) -> bool:
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
