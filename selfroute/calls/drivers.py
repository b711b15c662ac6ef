"""The two loops over the flow, `stream` and `astream`; `run` and `arun` exhaust them.

A `Call` performs the effects. A reply that is requested as a whole is a stream of one piece, so that every mode runs
the same code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from selfroute.answerability import Verdict
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.last import LastGate
from selfroute.effects import Answer, Compare, Decide, Decided, Effect, Generate, ReadDocuments, Reply, Retrieve
from selfroute.errors import NoReplyError
from selfroute.flow import Flow

if TYPE_CHECKING:
    from selfroute.calls.call import Call

Item = Decided | str | Answer
AnyGate = Gate | FinalGate | GradedGate | LastGate


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
    effect = advance(flow.send, None)
    pieces: Generator[str, None, None] | None = None
    gate: AnyGate | None = None
    with call.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    if isinstance(effect, Generate):
                        if pieces is None or gate is None or not effect.resumed:
                            pieces, gate = call.generate(effect), call.gate(effect.step)
                        result: Any = _judged(effect, pieces, gate, call)
                        if _is_over(result.verdict, gate):
                            pieces.close()
                            pieces = None
                    else:
                        result = _perform(effect, call)
                except Exception as error:
                    if not _may_read_less(effect, error, call):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decide):
                    if pieces is not None and not effect.final and (result.granted or effect.latest.declined):
                        pieces.close()  # the reply in doubt, or one that may have been the last
                        pieces = None
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if pieces is not None and gate is not None:
                for piece in pieces:
                    if text := gate.feed(piece):
                        shown.append(text)
                        yield text
                if text := gate.end(call.ending.kind):
                    shown.append(text)
                    yield text
                effect = call.ended(effect, "".join(shown))
            effect = call.cite(effect)
            with suppress(Exception):  # an error in measuring must not cost the answer
                call.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if pieces is not None:
                pieces.close()


async def astream(flow: Flow, call: Call[Any]) -> AsyncGenerator[Item, None]:  # noqa: C901, PLR0912
    """The async twin of `stream`."""
    effect = advance(flow.send, None)
    pieces: AsyncGenerator[str, None] | None = None
    gate: AnyGate | None = None
    with call.account as account:
        try:
            while not isinstance(effect, Answer):
                resume: Callable[[Any], Effect] = flow.send
                try:
                    if isinstance(effect, Generate):
                        if pieces is None or gate is None or not effect.resumed:
                            pieces, gate = call.agenerate(effect), call.gate(effect.step)
                        result: Any = await _ajudged(effect, pieces, gate, call)
                        if _is_over(result.verdict, gate):
                            await pieces.aclose()
                            pieces = None
                    else:
                        result = await _aperform(effect, call)
                except Exception as error:
                    if not _may_read_less(effect, error, call):
                        raise
                    resume, result = flow.throw, error
                if isinstance(effect, Decide):
                    if pieces is not None and not effect.final and (result.granted or effect.latest.declined):
                        await pieces.aclose()  # the reply in doubt, or one that may have been the last
                        pieces = None
                    account.decided(result)
                    yield result
                effect = advance(resume, result)
            shown = [effect.text]
            account.shown(effect)
            yield effect.text
            if pieces is not None and gate is not None:
                async for piece in pieces:
                    if text := gate.feed(piece):
                        shown.append(text)
                        yield text
                if text := gate.end(call.ending.kind):
                    shown.append(text)
                    yield text
                effect = await call.aended(effect, "".join(shown))
            effect = await call.acite(effect)
            with suppress(Exception):  # an error in measuring must not cost the answer
                call.complete_usage(effect)
            account.close(effect)
            yield effect
        finally:
            if pieces is not None:
                await pieces.aclose()


def _judged(effect: Generate, pieces: Iterable[str], gate: AnyGate, call: Call[Any]) -> Reply:
    """Read a reply until its verdict is certain."""
    text = cast("GradedGate | LastGate", gate).resume() if effect.resumed else ""
    if gate.verdict is None:
        for piece in pieces:
            text += gate.feed(piece)
            if gate.verdict is not None:
                break
        else:
            text += gate.end(call.ending.kind)
    return _reply(effect, gate.verdict, text, call)


async def _ajudged(effect: Generate, pieces: AsyncIterable[str], gate: AnyGate, call: Call[Any]) -> Reply:
    """The async twin of `_judged`."""
    text = cast("GradedGate | LastGate", gate).resume() if effect.resumed else ""
    if gate.verdict is None:
        async for piece in pieces:
            text += gate.feed(piece)
            if gate.verdict is not None:
                break
        else:
            text += gate.end(call.ending.kind)
    return _reply(effect, gate.verdict, text, call)


def _reply(effect: Generate, verdict: Verdict | None, text: str, call: Call[Any]) -> Reply:
    if verdict is None or (verdict.signal == "phrase" and call.ending.kind == "refused"):
        raise call.no_reply(effect.step)  # a filter's stock sentence says nothing of the passages
    return Reply(text, verdict)


def _is_over(verdict: Verdict, gate: AnyGate) -> bool:
    """Return whether nothing more of a reply will be shown. One in doubt may be the answer, if there is no more."""
    return verdict.declined and not isinstance(gate, FinalGate | LastGate)


def _perform(
    effect: Retrieve | Compare | ReadDocuments | Decide, call: Call[Any]
) -> Sequence[Any] | bool | Decided | None:
    if isinstance(effect, Retrieve):
        return call.retrieve(effect)
    if isinstance(effect, Compare):
        return call.compare(effect)
    if isinstance(effect, ReadDocuments):
        return call.read_documents(effect)
    return call.decide(effect)


async def _aperform(
    effect: Retrieve | Compare | ReadDocuments | Decide, call: Call[Any]
) -> Sequence[Any] | bool | Decided | None:
    if isinstance(effect, Retrieve):
        return await call.aretrieve(effect)
    if isinstance(effect, Compare):
        return await call.acompare(effect)
    if isinstance(effect, ReadDocuments):
        return await call.aread_documents(effect)
    return await call.adecide(effect)


def _may_read_less(effect: Effect, error: Exception, call: Call[Any]) -> bool:
    if isinstance(error, NoReplyError):  # that reply was paid for
        return False
    return isinstance(effect, Generate) and call.is_too_long(error)


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
