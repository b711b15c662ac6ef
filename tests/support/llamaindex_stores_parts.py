"""Real stores under LlamaIndex's indices, an embedding that tells texts apart, a model that declines to passages."""

from __future__ import annotations

import operator
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from pydantic import PrivateAttr

from in_chroma import new_collection
from llamaindex_parts import ScriptedLLM
from scenarios import FINAL


class Words(BaseEmbedding):
    """Texts that share words are near to each other."""

    def _embed(self, text: str) -> list[float]:
        vector = [0.01] * 64
        for word in re.findall(r"\w+", text.lower()):
            vector[crc32(word.encode()) % 64] += 1
        length = sum(part * part for part in vector) ** 0.5
        return [part / length for part in vector]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)


class First(BaseSelector):
    """Selects the first engine or retriever."""

    def _select(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=0, reason="")])

    async def _aselect(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        pass


# By lines: the default asks nltk, which refuses to read its word lists where an installer has hard-linked them.
SPLIT = SentenceSplitter(chunk_size=40, chunk_overlap=0, chunking_tokenizer_fn=lambda text: text.splitlines(True))


def split(*documents: Document, by: Any = SPLIT) -> list[BaseNode]:
    """The nodes of documents, each cut on its own: the host mixes up those that share an id."""
    return [node for document in documents for node in by.get_nodes_from_documents([document])]


_COMPARE: Mapping[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: operator.eq,
    FilterOperator.NE: operator.ne,
    FilterOperator.GT: operator.gt,
    FilterOperator.LT: operator.lt,
    FilterOperator.IN: lambda held, wanted: held in wanted,
    FilterOperator.NIN: lambda held, wanted: held not in wanted,
}


def _meets(held: Mapping[str, Any], filters: MetadataFilters | None) -> bool:
    if not filters or not filters.filters:
        return True
    met = [
        _meets(held, one)
        if isinstance(one, MetadataFilters)
        else one.key in held and _COMPARE[one.operator](held[one.key], one.value)
        for one in filters.filters
    ]
    return any(met) if filters.condition == "or" else all(met)


class Shelf(BasePydanticVectorStore):
    """A vector store that keeps texts in a dict and cannot list them."""

    stores_text: bool = True
    _held: dict[str, tuple[BaseNode, dict[str, Any]]] = PrivateAttr(default_factory=dict)

    @property
    def client(self) -> None:
        return None

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        for node in nodes:
            self._held[node.node_id] = (node.model_copy(), node_to_metadata_dict(node, remove_text=True))
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self._held = {id_: row for id_, row in self._held.items() if row[0].ref_doc_id != ref_doc_id}

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **_: Any) -> None:
        self._held = {id_: row for id_, row in self._held.items() if id_ not in node_ids}

    def found(self, filters: MetadataFilters | None) -> list[BaseNode]:
        """What the filters let through."""
        return [node.model_copy() for node, held in self._held.values() if _meets(held, filters)]

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        nodes = [node for node in self.found(query.filters) if not query.doc_ids or node.ref_doc_id in query.doc_ids]
        nodes = [node for node in nodes if not query.node_ids or node.node_id in query.node_ids]
        scored = [(sum(map(operator.mul, node.embedding or (), query.query_embedding or ())), node) for node in nodes]
        scored.sort(key=lambda pair: -pair[0])
        best = scored[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[node for _, node in best],
            similarities=[score for score, _ in best],
            ids=[n.node_id for _, n in best],
        )


class ListingShelf(Shelf):
    """The same with `get_nodes`, which counts."""

    listed: int = 0

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        self.listed += 1
        return [node for node in self.found(filters) if node_ids is None or node.node_id in node_ids]


def a_chroma(client: Any = None) -> Any:
    """A `ChromaVectorStore` over a new collection."""
    kind = pytest.importorskip("llama_index.vector_stores.chroma").ChromaVectorStore
    return kind(client.create_collection(f"c{uuid4().hex}") if client else new_collection())


def over(store: Any, nodes: Sequence[BaseNode], **fields: Any) -> VectorStoreIndex:
    """An index over a vector store, or over the host's own if that is None."""
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes, storage_context=context, **{"embed_model": Words(), **fields})


def simple(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    """The default: in memory, texts in the document store."""
    return over(None, nodes)


def loaded(nodes: Sequence[BaseNode], folder: Path) -> VectorStoreIndex:
    """The default, persisted and loaded again."""
    simple(nodes).storage_context.persist(str(folder))
    context = StorageContext.from_defaults(persist_dir=str(folder))
    index = load_index_from_storage(context, embed_model=Words())
    assert isinstance(index, VectorStoreIndex)
    return index


def chroma(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    """Over embedded Chroma."""
    return over(a_chroma(), nodes)


def again(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    """Over what another process has put into Chroma: no document store, no list of nodes."""
    store = a_chroma()
    over(store, nodes)
    return from_store(store)


def from_store(store: Any) -> VectorStoreIndex:
    """An index over a vector store that is there already."""
    return VectorStoreIndex.from_vector_store(store, embed_model=Words())


def listing(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    """Over somebody's own store."""
    return over(ListingShelf(), nodes)


STORES: dict[str, Callable[[Sequence[BaseNode]], VectorStoreIndex]] = {
    "simple": simple,
    "chroma": chroma,
    "from_vector_store": again,
    "listing": listing,
}


@contextmanager
def a_chroma_server(folder: Path) -> Iterator[Any]:
    """Two clients of a `chroma run` on a free port of this machine."""
    chromadb = pytest.importorskip("chromadb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--host", "127.0.0.1"]
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen([*command, "--port", str(port)], stdout=out, stderr=out)  # noqa: S603
        try:
            clients: list[Any] = []
            for _ in range(600):
                try:
                    clients.append(chromadb.HttpClient(host="127.0.0.1", port=port))
                except (ValueError, OSError):
                    assert server.poll() is None, log.read_text()
                    time.sleep(0.05)
                if len(clients) == 2:
                    break
            yield clients
            for client in clients:
                for forgotten in (client, client._admin_client):
                    forgotten._server._session.close()
                client.close()
        finally:
            server.terminate()
            server.wait(30)


def only(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    """A filter."""
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def declining(**fields: Any) -> ScriptedLLM:
    """A model that declines to passages and answers from documents."""
    return ScriptedLLM(**{"draft": ("unanswerable",), "final": FINAL, "marker": "Read the following text", **fields})
