"""Return the answer of a call as the output of a chain: whole, or in chunks that add up to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from langchain_selfroute.recording import RecordedChunk
from selfroute.calls.call import Call
from selfroute.calls.drivers import astream, stream
from selfroute.flow import Answer, Decided

ChainCall: TypeAlias = Call[Document]


def whole(call: ChainCall, answer: Answer) -> dict[str, Any]:
    """Return the output of a call that does not stream, which equals the sum of a stream's chunks."""
    return {**_head(call, answer, answer.text), **_rest(call, answer)}


def chunks_of(make: Callable[[], ChainCall]) -> Generator[AddableDict, None, None]:
    """Run a call and yield its output in chunks, the first when there is text; closing this stops the model.

    Args:
        make: Makes the call; it may raise.
    """
    decided, call = None, make()
    with closing(stream(call.flow(), call)) as items:
        for item in items:
            if isinstance(item, Decided):
                decided = item
            elif not isinstance(item, str):
                yield AddableDict(_rest(call, item))
            elif decided:
                yield RecordedChunk(_head(call, decided, item))
                decided = None
            else:
                yield AddableDict(answer=item)


async def achunks_of(make: Callable[[], ChainCall]) -> AsyncGenerator[AddableDict, None]:
    """Do as `chunks_of` does, asynchronously."""
    decided, call = None, make()
    async with aclosing(astream(await call.aflow(), call)) as items:
        async for item in items:
            if isinstance(item, Decided):
                decided = item
            elif not isinstance(item, str):
                yield AddableDict(_rest(call, item))
            elif decided:
                yield RecordedChunk(_head(call, decided, item))
                decided = None
            else:
                yield AddableDict(answer=item)


def _head(call: ChainCall, of: Decided | Answer, text: str) -> dict[str, Any]:
    """Return the first chunk of a stream: everything that is known when the first text comes."""
    return {
        **call.host.inputs,
        "retrieved": list(call.reading.passages),
        "context": list(call.context),
        "route": of.route,
        "answer": text,
    }


def _rest(call: ChainCall, answer: Answer) -> dict[str, Any]:
    """Return the last chunk of a stream."""
    return {
        "answerable": answer.answerable,
        "finish_reason": answer.finish_reason,
        "decision": answer.decision.as_dict(),
        "usage": call.account.as_dict(),
        **answer.cited_as_dict(quoted=call.settings.structured),
    }
