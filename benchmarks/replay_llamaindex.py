"""The filings of `replay.py` in LlamaIndex: a copy of the same chunks and embeddings, and an engine for each filing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.llms.openai_like import OpenAILike
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import PrivateAttr

from llamaindex_selfroute import SelfRouteLedger, SelfRouteQueryEngine, StoredDocuments

PAGE = 5_000
Json = dict[str, Any]


class Shared(BaseEmbedding):
    """The embeddings that the index was made with."""

    _model: Embeddings = PrivateAttr()

    def __init__(self, model: Embeddings) -> None:
        """Wrap LangChain's embeddings."""
        super().__init__()
        self._model = model

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.embed_query(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._model.embed_documents([text])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)


def index(store: Chroma, name: str) -> VectorStoreIndex:
    """Copy a store's chunks into a LlamaIndex index, unless that was done before."""
    client: Any = store._client  # noqa: SLF001 - the only handle on it
    if f"{name}-nodes" in {collection.name for collection in client.list_collections()}:
        client.delete_collection(f"{name}-nodes")  # an older kind of copy, whose nodes have no offsets
    collection = client.get_or_create_collection(f"{name}-placed-nodes")
    target = ChromaVectorStore(chroma_collection=collection)
    total = store._collection.count()  # noqa: SLF001
    for offset in range(collection.count(), total, PAGE):
        rows: Any = store.get(limit=PAGE, offset=offset, include=["documents", "metadatas", "embeddings"])
        target.add(
            [
                _node(key, text, metadata, [float(value) for value in embedding])
                for key, text, metadata, embedding in zip(
                    rows["ids"], rows["documents"], rows["metadatas"], rows["embeddings"], strict=True
                )
            ]
        )
    return VectorStoreIndex.from_vector_store(target, embed_model=Shared(store.embeddings))


def _node(key: str, text: str, metadata: Json, embedding: list[float]) -> TextNode:
    return TextNode(
        id_=key,
        text=text,
        start_char_idx=metadata["start_index"],
        end_char_idx=metadata["start_index"] + len(text),
        embedding=embedding,
        metadata={"source": metadata["source"]},
        excluded_llm_metadata_keys=["source"],
        excluded_embed_metadata_keys=["source"],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=metadata["source"])},
    )


def model(name: str, url: str) -> LLM:
    """Return a model that the server replays."""
    return OpenAILike(
        model=name,
        api_base=url,
        api_key="replay",
        is_chat_model=True,
        max_retries=0,
        timeout=120,
        additional_kwargs={"stream_options": {"include_usage": True}},
    )


class Engine:
    """The engine of one filing, with the modes and the output keys of the chain."""

    def __init__(self, of: SelfRouteQueryEngine, streaming: SelfRouteQueryEngine) -> None:
        """Take two engines: one answers at once, the other streams."""
        self._of, self._streaming = of, streaming

    def ask(self, question: str, *, mode: str) -> Json:
        """Ask in a sync mode."""
        response = (self._streaming if mode == "stream" else self._of).query(question)
        return _output(response, str(response))

    async def aask(self, question: str, *, mode: str) -> Json:
        """Ask in an async mode."""
        response = await (self._streaming if mode == "astream" else self._of).aquery(question)
        if isinstance(response, AsyncStreamingResponse):
            return _output(response, "".join([text async for text in response.async_response_gen()]))
        return _output(response, str(response))


def _output(response: Any, answer: str) -> Json:
    read = [Document(item.node.get_content(), metadata=item.node.metadata) for item in response.source_nodes]
    return {**response.metadata, "answer": answer, "context": read}


@contextmanager
def hearing() -> Iterator[SelfRouteLedger]:
    """Keep a ledger of all engines."""
    ledger, root = SelfRouteLedger(), get_dispatcher()
    root.add_event_handler(ledger)
    try:
        yield ledger
    finally:
        root.event_handlers.remove(ledger)


def _only(name: str) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key="source", value=name)])


def read(over: VectorStoreIndex, name: str) -> str:
    """Read a filing from the index."""
    node = TextNode(relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)})
    (document,) = StoredDocuments(over, filters=_only(name))([NodeWithScore(node=node)], QueryBundle(""))
    return document.get_content()


def engines_of(  # noqa: PLR0913 - each is a separate setting
    names: Sequence[str], over: VectorStoreIndex, llm: LLM, *, k: int, budget: int | None, priced_as: str | None
) -> dict[str, Engine]:
    """Make one engine per filing, which sees only this filing."""

    def engine(name: str, *, streaming: bool) -> SelfRouteQueryEngine:
        return SelfRouteQueryEngine.from_index(
            over,
            similarity_top_k=k,
            filters=_only(name),
            llm=llm,
            max_context_tokens=budget,
            priced_as=priced_as,
            streaming=streaming,
        )

    return {name: Engine(engine(name, streaming=False), engine(name, streaming=True)) for name in names}
