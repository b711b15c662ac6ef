"""The two loops over the flow, `stream` and `astream`; `run` and `arun` exhaust them.

An adapter performs the effects as `Steps` or `AsyncSteps`. A model that is asked for its whole reply
is a stream of one piece, so that every mode takes the same way.
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
        """The word that declines."""

    @property
    def account(self) -> Account:
        """What the question takes; whoever asks a model adds what it took."""

    def complete_usage(self, answer: Answer) -> None:
        """Complete the account's usage with what the long context alone would have taken.

        All text was shown, but that of the `answer` is only what was released with the verdict.
        """

    def is_too_long(self, error: Exception) -> bool:
        """Whether the model refused its prompt as too long for its window."""


class Steps(_Common, Protocol):
    """Performs the effects of one question."""

    def retrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """Return the passages, best first."""

    def read_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """Return the documents behind the passages, as far as they fit."""

    def generate(self, effect: Generate, /) -> Generator[str, None, None]:
        """Yield the reply's text in pieces; closing it stops the model."""

    def decided(self, effect: Decided, /) -> None:
        """Announce the route."""


class AsyncSteps(_Common, Protocol):
    """Performs the effects of one question, awaiting."""

    async def aretrieve(self, effect: Retrieve, /) -> Sequence[Any]:
        """As `Steps.retrieve`."""

    async def aread_documents(self, effect: ReadDocuments, /) -> Sequence[Any]:
        """As `Steps.read_documents`."""

    def agenerate(self, effect: Generate, /) -> AsyncGenerator[str, None]:
        """As `Steps.generate`."""

    async def adecided(self, effect: Decided, /) -> None:
        """As `Steps.decided`."""


def advance(resume: Callable[[Any], Effect], value: Any) -> Effect | Answer:
    """Resume the flow through its `send` or `throw`.

    Nothing but these two may be wrapped: a `StopIteration` out of a user's code must not pass for the
    end of the flow.

    Returns:
        The next effect, or the answer.
    """
    try:
        return resume(value)
    except StopIteration as stop:
        return cast("Answer", stop.value)


def stream(flow: Flow, steps: Steps) -> Generator[Item, None, None]:  # noqa: C901, PLR0912 - the loop, whole
    """Perform the flow's effects.

    Args:
        flow: A fresh flow.
        steps: Who performs its effects.

    Yields:
        `Decided`, then the answer's text in pieces that are never empty, then the whole `Answer`. Of a
        reply that declines no piece is yielded, and it is closed as soon as that is certain. Closing
        this generator closes the reply.

    Raises:
        Exception: Whatever a step raises, unless it is a prompt that was too long and the flow reads less.
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
            with suppress(Exception):  # what can not be measured must not cost the answer
                steps.complete_usage(effect)
            account.close(effect)
            yield effect if len(shown) == 1 else replace(effect, text="".join(shown))
        finally:
            if pieces is not None:
                pieces.close()


async def astream(flow: Flow, steps: AsyncSteps) -> AsyncGenerator[Item, None]:  # noqa: C901, PLR0912
    """As `stream`, awaiting the steps."""
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
            with suppress(Exception):  # what can not be measured must not cost the answer
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
    return isinstance(effect, Generate) and effect.step == "long_context" and steps.is_too_long(error)


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
