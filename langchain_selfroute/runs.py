"""Perform a call of a chain, and return its output whole or in chunks."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import Any, TypeAlias, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, BaseCallbackHandler, CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from langchain_selfroute.ledger import SelfRouteLedger
from langchain_selfroute.running import recorded, recorded_inputs
from selfroute.calls.call import Call
from selfroute.calls.drivers import arun, run
from selfroute.calls.drivers import astream as astream_items
from selfroute.calls.drivers import stream as stream_items
from selfroute.effects import Answer, Decided
from selfroute.hangup import cancelled_once
from selfroute.usage.entry import Entry

Function = TypeVar("Function", bound=Callable[..., Any])
ChainCall: TypeAlias = Call[Document]


class RecordedChunk(AddableDict):
    """A chunk that traces as text but carries the full output."""

    def __init__(self, whole: dict[str, Any]) -> None:
        super().__init__(recorded(whole))
        self.whole = AddableDict(whole)


def whole_chunk(chunk: AddableDict) -> Any:
    """Return a chunk as the reader gets it."""
    return chunk.whole if isinstance(chunk, RecordedChunk) else chunk


def whole(call: ChainCall) -> dict[str, Any]:
    """Perform a call, and return its output, which equals the sum of a stream's chunks."""
    return output_of(call, run(call.flow(), call))


def output_of(call: ChainCall, answer: Answer) -> dict[str, Any]:
    """Return the output of a call that ended with an answer."""
    return {**_head(call, answer, answer.text), **_rest(call, answer)}


async def awhole(call: ChainCall) -> dict[str, Any]:
    """The async twin of `whole`."""
    return output_of(call, await arun(await call.aflow(), call))


def chunks_of(make: Callable[[], ChainCall]) -> Generator[AddableDict, None, None]:
    """Perform a call and yield its output in chunks, the first when there is text; closing this stops the model.

    Args:
        make: Makes the call; it may raise.
    """
    decided, call = None, make()
    with closing(stream_items(call.flow(), call)) as items:
        for item in items:
            if isinstance(item, Decided):
                decided = item
                continue
            yield _chunk(call, item, decided)
            decided = None


async def achunks_of(make: Callable[[], ChainCall]) -> AsyncGenerator[AddableDict, None]:
    """The async twin of `chunks_of`."""
    decided, call = None, make()
    async with aclosing(astream_items(await call.aflow(), call)) as items:
        async for item in items:
            if isinstance(item, Decided):
                decided = item
                continue
            yield _chunk(call, item, decided)
            decided = None


def _chunk(call: ChainCall, item: str | Answer, decided: Decided | None) -> AddableDict:
    """Return a piece of text as a chunk, the first one after the decision with what is known by then; or the end."""
    if not isinstance(item, str):
        return AddableDict(_rest(call, item))
    return RecordedChunk(_head(call, decided, item)) if decided else AddableDict(answer=item)


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
        **answer.cited(),
    }


def entry_recorder(handlers: Sequence[BaseCallbackHandler]) -> Callable[[Entry], None] | None:
    """Return a function that adds an entry to each ledger among the handlers of a run; None if there is no ledger."""
    # A ledger may be among them twice: bound to the chain, and passed with the call.
    ledgers = {handler for handler in handlers if isinstance(handler, SelfRouteLedger)}

    def record(entry: Entry) -> None:
        for ledger in ledgers:
            ledger.add(entry)

    return record if ledgers else None


def stream(
    chain: Any, given: Any, config: RunnableConfig | None, make: Callable[[Any], ChainCall], options: Mapping[str, Any]
) -> Generator[Any, None, None]:
    """Perform a call within a run, and yield its output in chunks; closing the stream stops the model.

    Args:
        chain: The chain, which names the run.
        given: The input, as it is recorded.
        config: The config of the call.
        make: Makes the call, within the run that this manager manages.
        options: The options of the models, for the record.
    """
    inner: list[Generator[AddableDict, None, None]] = []

    @_with_signature
    def transform(_: Iterator[Any], run_manager: CallbackManagerForChainRun, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG001
        inner.append(chunks_of(partial(make, run_manager)))
        return inner[0]

    outer: Any = chain._transform_stream_with_config(  # noqa: SLF001 - what every runnable streams with
        iter([recorded_inputs(given)]), transform, config, **options
    )
    try:
        for chunk in outer:  # `yield from` would close `outer` first
            yield whole_chunk(chunk)
    finally:
        for chunks in inner:  # the model's run has to end before that of the chain
            chunks.close()
        outer.close()


async def astream(
    chain: Any, given: Any, config: RunnableConfig | None, make: Callable[[Any], ChainCall], options: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    """The async twin of `stream`."""
    inner: list[AsyncGenerator[AddableDict, None]] = []

    async def once() -> AsyncIterator[Any]:
        yield recorded_inputs(given)

    @_with_signature
    def transform(
        _: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        **kwargs: Any,  # noqa: ARG001
    ) -> AsyncIterator[Any]:
        inner.append(achunks_of(partial(make, run_manager)))
        return inner[0]

    outer: Any = chain._atransform_stream_with_config(once(), transform, config, **options)  # noqa: SLF001
    try:
        guarded = True  # until the first chunk a model may not have begun to reply
        while True:
            try:
                chunk = await (cancelled_once(anext(outer)) if guarded else anext(outer))
            except StopAsyncIteration:
                break
            yield whole_chunk(chunk)
            guarded = _CANCELLED_AGAIN
    finally:
        for chunks in inner:
            await chunks.aclose()
        await outer.aclose()


# Before Python 3.12, one cancellation in the middle of a reply may not reach the client, and the further ones do.
_CANCELLED_AGAIN = sys.version_info >= (3, 12)
_TRANSFORM = inspect.signature(lambda given, run_manager, **kwargs: None)  # noqa: ARG005


def _with_signature(transform: Function) -> Function:
    """Give a function its signature: LangChain inspects it twice for every stream, which takes longer than routing."""
    transform.__signature__ = _TRANSFORM  # type: ignore[attr-defined]
    return transform
