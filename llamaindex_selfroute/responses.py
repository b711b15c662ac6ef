"""Build the responses of an engine, whole or as streams, and the nodes that their citations become."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing
from typing import Any, cast

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from typing_extensions import override

from llamaindex_selfroute.host import QueryCall
from selfroute.calls.drivers import Item, arun, astream, run, stream
from selfroute.documents.label import KEY
from selfroute.effects import Answer, Decided

More = Iterable[NodeWithScore]


def whole(call: QueryCall, more: More) -> Response:
    """Return the whole answer.

    Args:
        call: Performs the effects of the query.
        more: Other nodes to list as sources.
    """
    return _response(run(call.flow(), call), call, more)


async def awhole(call: QueryCall, more: More) -> Response:
    """The async twin of `whole`."""
    return _response(await arun(await call.aflow(), call), call, more)


def _response(answer: Answer, call: QueryCall, more: More) -> Response:
    metadata = {**_metadata(answer, call), **_outcome(answer)}
    return Response(answer.text, [*call.context, *more], metadata)


def streamed(call: QueryCall, more: More) -> StreamingResponse:
    """Return a stream of the answer. Its first text, and so its route and sources, are known when this returns."""
    items = stream(call.flow(), call)
    decided = cast("Decided", next(items))
    while isinstance(first := next(items), Decided):
        decided = first
    metadata, sources = _metadata(decided, call), [*call.context, *more]
    return StreamingResponse(_text_stream(cast("str", first), items, call, metadata, sources), sources, metadata)


def _text_stream(
    first: str,
    items: Generator[Item, None, None],
    call: QueryCall,
    metadata: dict[str, Any],
    sources: list[NodeWithScore],
) -> Generator[str, None, None]:
    try:
        yield first
        for item in items:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Answer):
                metadata.update(_outcome(item))
    finally:
        items.close()
        metadata["usage"] = call.account.as_dict()
        sources[: len(call.context)] = call.context  # their labels, if the provider has cut them


def astreamed(call: QueryCall, more: More) -> AsyncStreamingResponse:
    """Return an async stream of the answer. The model is called only when the first piece is requested.

    LlamaIndex's tools read a stream in another event loop than the one it was created in. Until the first piece, the
    metadata has only `retrieved` and there are no sources; then both are filled in place.
    """
    sources: list[NodeWithScore] = []
    metadata: dict[str, Any] = {"retrieved": _retrieved(call)}

    async def pieces() -> AsyncGenerator[str, None]:
        items = astream(await call.aflow(), call)
        try:
            decided = cast("Decided", await anext(items))
            while isinstance(first := await anext(items), Decided):
                decided = first
            metadata.update(_metadata(decided, call))
            sources[:] = [*call.context, *more]
            yield cast("str", first)
            async for item in items:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, Answer):
                    metadata.update(_outcome(item))
        finally:
            await items.aclose()
            if "route" in metadata:
                metadata["usage"] = call.account.as_dict()
                sources[: len(call.context)] = call.context

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


def _metadata(of: Decided | Answer, call: QueryCall) -> dict[str, Any]:
    """Return the metadata that are known so far; the end of a stream settles the rest."""
    return {
        "route": of.route,
        "answerable": call.account.answerable,
        "finish_reason": None,
        "decision": of.decision.as_dict(),
        "usage": call.account.as_dict(),
        "retrieved": _retrieved(call),
    }


def _outcome(answer: Answer) -> dict[str, Any]:
    """Return the metadata that are known when the reply has ended."""
    known = {"answerable": answer.answerable, "finish_reason": answer.finish_reason}
    return known | answer.cited()


def _retrieved(call: QueryCall) -> list[str]:
    return _ids(call.reading.passages)


def _ids(nodes: Iterable[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]


def citation_nodes(response: RESPONSE_TYPE) -> list[NodeWithScore]:
    """Return the citations of a response as nodes, best first.

    Each has the text, the offsets (`start_char_idx`, `end_char_idx`) and the score of its citation, and the metadata of
    the source node that it is from, with the citation's `page` if that is known. Its `NodeRelationship.SOURCE` leads to
    that node.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import CompletionResponse, MockLLM
        from llamaindex_selfroute import SelfRouteQueryEngine, citation_nodes

        minutes = Document(text="The meeting began at ten. Ms Okafor chaired it.")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))

        class Clerk(MockLLM):
            def complete(self, *_, **options):
                return CompletionResponse(text="Ms Okafor chaired it.")

        engine = SelfRouteQueryEngine.from_index(index, llm=Clerk(), citations=True)
        best = citation_nodes(engine.query("Who chaired the meeting?"))[0]
        assert best.text == minutes.text[best.node.start_char_idx : best.node.end_char_idx]
        ```

    Args:
        response: The response of an engine or synthesizer with `citations=True`. A stream has to be read first.
    """
    cited = (response.metadata or {}).get("citations", ())
    return [_citation_node(citation, response.source_nodes) for citation in cited]


def _citation_node(citation: dict[str, Any], sources: list[NodeWithScore]) -> NodeWithScore:
    of = sources[citation["document"]].node
    page = {"page": citation["page"]} if "page" in citation else {}
    node = TextNode(
        id_=f"{of.node_id}:{citation['start']}-{citation['end']}",
        text=citation["text"],
        start_char_idx=citation["start"],
        end_char_idx=citation["end"],
        metadata={key: value for key, value in of.metadata.items() if key != KEY} | page,
        excluded_llm_metadata_keys=of.excluded_llm_metadata_keys,
        excluded_embed_metadata_keys=of.excluded_embed_metadata_keys,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=citation["source"])},
    )
    return NodeWithScore(node=node, score=citation["score"])
