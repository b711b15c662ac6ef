"""The two loops over the flow, `stream` and `astream`; `run` and `arun` exhaust them.

A `Call` performs the effects. A reply that is requested as a whole is a stream of one piece, so that every mode runs
the same code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from selfroute.effects import Answer, Compare, Decide, Decided, Effect, Generate, ReadDocuments, Retrieve
from selfroute.flow import Flow

if TYPE_CHECKING:
    from selfroute.calls.call import Call

Item = Decided | str | Answer


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


def stream(flow: Flow, call: Call[Any]) -> Generator[Item, None, None]:  # noqa: C901, PLR0912 - one loop, read as a whole
    """Perform the flow's effects.

    Args:
        flow: A fresh flow.
        call: Performs its effects.

    Yields:
        `Decided`, then the text of the answer in pieces that are never empty, then the whole `Answer`. No piece of a
        draft that declines is yielded; it is closed as soon as that is certain. Closing this generator closes the
        reply.

    Raises:
        NoReplyError: A step ended without a reply that could be judged.
        Exception: Any error of a step, except those about a prompt that was too long: then less is read.
    """
    effect, reply = advance(flow.send, None), None
    with call.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    if isinstance(effect, Generate):
                        reply = reply if reply and effect.resumed else call.ask(effect)
                        result: Any = reply.judge(resumed=effect.resumed)
                    else:
                        result = _perform(effect, call)
                except Exception as error:
                    if not call.may_read_less(effect, error):
                        raise
                    resume, result, reply = flow.throw, error, None
                if isinstance(effect, Decide):
                    if reply and reply.is_given_up(effect, result):
                        reply.close()
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if reply and reply.is_open:
                for piece in reply.pieces:
                    if text := reply.shown(piece):
                        shown.append(text)
                        yield text
                if text := reply.end():
                    shown.append(text)
                    yield text
                effect = call.ended(effect, "".join(shown), reply.ending.reason)
            effect = call.cite(effect)
            with suppress(Exception):  # an error in measuring must not cost the answer
                call.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if reply:
                reply.close()


async def astream(flow: Flow, call: Call[Any]) -> AsyncGenerator[Item, None]:  # noqa: C901, PLR0912
    """The async twin of `stream`."""
    effect, reply = advance(flow.send, None), None
    with call.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    if isinstance(effect, Generate):
                        reply = reply if reply and effect.resumed else call.aask(effect)
                        result: Any = await reply.ajudge(resumed=effect.resumed)
                    else:
                        result = await _aperform(effect, call)
                except Exception as error:
                    if not call.may_read_less(effect, error):
                        raise
                    resume, result, reply = flow.throw, error, None
                if isinstance(effect, Decide):
                    if reply and reply.is_given_up(effect, result):
                        await reply.aclose()
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if reply and reply.is_open:
                async for piece in reply.pieces:
                    if text := reply.shown(piece):
                        shown.append(text)
                        yield text
                if text := reply.end():
                    shown.append(text)
                    yield text
                effect = await call.aended(effect, "".join(shown), reply.ending.reason)
            effect = await call.acite(effect)
            with suppress(Exception):
                call.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if reply:
                await reply.aclose()


def _perform(
    effect: Retrieve | Compare | ReadDocuments | Decide, call: Call[Any]
) -> Sequence[Any] | bool | Decided | None:
    if isinstance(effect, Retrieve):
        return call.retrieve(effect)
    if isinstance(effect, Compare):
        return call.compare(effect)
    if isinstance(effect, ReadDocuments):
        return call.read_documents(effect)
    return call.decisions.decide(effect)


async def _aperform(
    effect: Retrieve | Compare | ReadDocuments | Decide, call: Call[Any]
) -> Sequence[Any] | bool | Decided | None:
    if isinstance(effect, Retrieve):
        return await call.aretrieve(effect)
    if isinstance(effect, Compare):
        return await call.acompare(effect)
    if isinstance(effect, ReadDocuments):
        return await call.aread_documents(effect)
    return await call.decisions.adecide(effect)


def run(flow: Flow, call: Call[Any]) -> Answer:
    """Exhaust `stream` and return its answer."""
    item: Item | None = None
    for item in stream(flow, call):  # noqa: B007 - the last one counts
        pass
    return cast("Answer", item)


async def arun(flow: Flow, call: Call[Any]) -> Answer:
    """Exhaust `astream` and return its answer."""
    item: Item | None = None
    async for item in astream(flow, call):  # noqa: B007
        pass
    return cast("Answer", item)
