"""What an engine returns: whole, streamed, streamed and awaited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing
from typing import Any, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.schema import NodeWithScore
from typing_extensions import override

from llamaindex_selfroute.steps import Steps
from selfroute.drivers import Item, arun, astream, run, stream
from selfroute.flow import Answer, Decided

More = Iterable[NodeWithScore]


def whole(steps: Steps, more: More) -> Response:
    """Answer at once.

    Args:
        steps: Who performs the effects of the query.
        more: Nodes to be listed as sources too.
    """
    return _response(run(steps.flow(), steps), steps, more)


async def awhole(steps: Steps, more: More) -> Response:
    """As `whole`."""
    return _response(await arun(steps.flow(), steps), steps, more)


def _response(answer: Answer, steps: Steps, more: More) -> Response:
    return Response(answer.text, [*answer.context, *more], _metadata(answer, steps, answerable=answer.answerable))


def streamed(steps: Steps, more: More) -> StreamingResponse:
    """Answer in pieces. Route and sources are known when this returns; what goes wrong until then is raised here."""
    items = stream(steps.flow(), steps)
    decided, first = cast("Decided", next(items)), cast("str", next(items))
    metadata = _opening(decided, first, steps)
    return StreamingResponse(_poured(first, items, steps, metadata), [*steps.context, *more], metadata)


def _poured(
    first: str, items: Generator[Item, None, None], steps: Steps, metadata: dict[str, Any]
) -> Generator[str, None, None]:
    try:
        yield first
        for item in items:
            if isinstance(item, str):
                yield item
    finally:
        items.close()
        metadata["usage"] = steps.account.usage.as_dict()


def astreamed(steps: Steps, more: More) -> AsyncStreamingResponse:
    """Answer in pieces, and ask only when the first is asked for: tools drain a stream in another event loop.

    Until then the metadata holds `retrieved` alone and the sources are empty; both are filled in place.
    """
    sources: list[NodeWithScore] = []
    metadata: dict[str, Any] = {"retrieved": _retrieved(steps)}

    async def pieces() -> AsyncGenerator[str, None]:
        items = astream(steps.flow(), steps)
        try:
            decided, first = cast("Decided", await anext(items)), cast("str", await anext(items))
            metadata.update(_opening(decided, first, steps))
            sources[:] = [*steps.context, *more]
            yield first
            async for item in items:
                if isinstance(item, str):
                    yield item
        finally:
            await items.aclose()
            if "route" in metadata:
                metadata["usage"] = steps.account.usage.as_dict()

    return ClosingStreamingResponse(pieces(), sources, metadata)


class ClosingStreamingResponse(AsyncStreamingResponse):
    """An `AsyncStreamingResponse` whose reader can leave: closing `async_response_gen()` stops the model."""

    @override
    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        try:
            async with aclosing(self._yield_response()) as pieces:
                async for text in pieces:
                    yield text
        finally:
            await self.response_gen.aclose()


def _opening(decided: Decided, first: str, steps: Steps) -> dict[str, Any]:
    # The first text of an answer is never the bare refusal: that would decline.
    return _metadata(decided, steps, answerable=decided.route == "rag" or first != steps.refusal)


def _metadata(of: Decided | Answer, steps: Steps, *, answerable: bool) -> dict[str, Any]:
    return {
        "route": of.route,
        "answerable": answerable,
        "decision": of.decision.as_dict(),
        "usage": steps.account.usage.as_dict(),
        "retrieved": _retrieved(steps),
    }


def _retrieved(steps: Steps) -> list[str]:
    return [item.node.node_id for item in steps.passages]
