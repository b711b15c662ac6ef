"""Build the responses of an engine: whole, streamed, or streamed asynchronously."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing
from typing import Any, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.schema import NodeWithScore
from typing_extensions import override

from llamaindex_selfroute.steps import Steps
from selfroute.drivers import Item, arun, astream, run, stream
from selfroute.effects import Answer, Decided
from selfroute.first_step import FirstStep
from selfroute.two_steps import cited_in

More = Iterable[NodeWithScore]


def whole(steps: Steps, more: More) -> Response:
    """Return the whole answer.

    Args:
        steps: Performs the effects of the query.
        more: Other nodes to list as sources.
    """
    return _response(run(steps.flow(), steps), steps, more)


async def awhole(steps: Steps, more: More) -> Response:
    """Do as `whole` does, asynchronously."""
    return _response(await arun(await steps.aflow(), steps), steps, more)


def _response(answer: Answer, steps: Steps, more: More) -> Response:
    metadata = {**_metadata(answer, steps), **_outcome(answer, steps)}
    return Response(answer.text, [*steps.context, *more], metadata)


def of_row(kept: FirstStep[NodeWithScore], *, streaming: bool) -> Response | StreamingResponse:
    """Return the answer from a row that is done: whole, or as a stream of one piece."""
    known = dict(kept.result or {})
    text, sources, metadata = known.pop("answer"), list(kept.context), {**known, "retrieved": _ids(kept.retrieved)}
    if streaming:
        return StreamingResponse((piece for piece in (text,)), sources, metadata)
    return Response(text, sources, metadata)


def aof_row(kept: FirstStep[NodeWithScore], *, streaming: bool) -> Response | AsyncStreamingResponse:
    """Do as `of_row` does, for who awaits it."""
    whole = cast("Response", of_row(kept, streaming=False))
    if not streaming:
        return whole

    async def pieces() -> AsyncGenerator[str, None]:
        yield whole.response or ""

    return ClosingStreamingResponse(pieces(), whole.source_nodes, whole.metadata)


def streamed(steps: Steps, more: More) -> StreamingResponse:
    """Return a stream of the answer. Its first text, and so its route and sources, are known when this returns."""
    items = stream(steps.flow(), steps)
    decided = cast("Decided", next(items))
    while isinstance(first := next(items), Decided):
        decided = first
    metadata, sources = _metadata(decided, steps), [*steps.context, *more]
    return StreamingResponse(_text_stream(cast("str", first), items, steps, metadata, sources), sources, metadata)


def _text_stream(
    first: str,
    items: Generator[Item, None, None],
    steps: Steps,
    metadata: dict[str, Any],
    sources: list[NodeWithScore],
) -> Generator[str, None, None]:
    try:
        yield first
        for item in items:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Answer):
                metadata.update(_outcome(item, steps))
    finally:
        items.close()
        metadata["usage"] = steps.account.as_dict()
        sources[: len(steps.context)] = steps.context  # their labels, if the provider has cut them


def astreamed(steps: Steps, more: More) -> AsyncStreamingResponse:
    """Return an async stream of the answer. The model is called only when the first piece is requested.

    LlamaIndex's tools read a stream in another event loop than the one it was created in. Until the first piece, the
    metadata has only `retrieved` and there are no sources; then both are filled in place.
    """
    sources: list[NodeWithScore] = []
    metadata: dict[str, Any] = {"retrieved": _retrieved(steps)}

    async def pieces() -> AsyncGenerator[str, None]:
        items = astream(await steps.aflow(), steps)
        try:
            decided = cast("Decided", await anext(items))
            while isinstance(first := await anext(items), Decided):
                decided = first
            metadata.update(_metadata(decided, steps))
            sources[:] = [*steps.context, *more]
            yield cast("str", first)
            async for item in items:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, Answer):
                    metadata.update(_outcome(item, steps))
        finally:
            await items.aclose()
            if "route" in metadata:
                metadata["usage"] = steps.account.as_dict()
                sources[: len(steps.context)] = steps.context

    return ClosingStreamingResponse(pieces(), sources, metadata)


class ClosingStreamingResponse(AsyncStreamingResponse):
    """An `AsyncStreamingResponse` that can be stopped: closing `async_response_gen()` stops the model."""

    @override
    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        try:
            async with aclosing(self._yield_response()) as pieces:
                async for text in pieces:
                    yield text
        finally:
            await self.response_gen.aclose()


def _metadata(of: Decided | Answer, steps: Steps) -> dict[str, Any]:
    """Return the metadata as far as they are known; the end of a stream settles the rest."""
    return {
        "route": of.route,
        "answerable": steps.account.answerable,
        "finish_reason": None,
        "decision": of.decision.as_dict(),
        "usage": steps.account.as_dict(),
        "retrieved": _retrieved(steps),
    }


def _outcome(answer: Answer, steps: Steps) -> dict[str, Any]:
    """Return the metadata that are known when the reply has ended."""
    known = {"answerable": answer.answerable, "finish_reason": answer.finish_reason}
    return known | cited_in(answer, steps.settings)


def _retrieved(steps: Steps) -> list[str]:
    return _ids(steps.passages)


def _ids(nodes: Iterable[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]
