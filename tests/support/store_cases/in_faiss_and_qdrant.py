"""FAISS of LangChain, and Qdrant in both frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llama_index.core import VectorStoreIndex

from store_cases.base import Case
from store_cases.in_langchain import SIZE, HashEmbeddings, LangChainCase
from store_cases.in_llamaindex import EMBEDDING, LlamaIndexCase, nodes_of

_IGNORED = ("Payload indexes have no effect in the local Qdrant",)


class FaissCase(LangChainCase):
    """FAISS in memory."""

    name = "langchain-faiss"
    not_filters = ("tenant = 'north'",)
    copied = True
    needs = ("langchain_community", "faiss")

    def __init__(self, folder: Path) -> None:
        import faiss
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS

        super().__init__(folder)
        self.vectorstore = FAISS(HashEmbeddings(), faiss.IndexFlatL2(SIZE), InMemoryDocstore(), {})

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Dicts and a callable over the metadata."""
        return {
            "dict": {"tenant": tenant},
            "$and": {"$and": [{"tenant": {"$eq": tenant}}, {"source": {"$neq": 0}}]},
            "callable": lambda metadata: metadata["tenant"] == tenant,
        }

    def dump(self) -> int:
        store: Any = self.vectorstore
        return len([store.docstore.search(id_) for id_ in store.index_to_docstore_id.values()])


class FaissWithoutFiltersCase(LangChainCase):
    """`Faiss` of `langchain_faiss`, in memory, which ignores filters."""

    name = "langchain-faiss-vectorstore"
    copied = True
    needs = ("langchain_faiss.vectorstores", "faiss")
    vectorstore: Any

    def __init__(self, folder: Path) -> None:
        from langchain_faiss import Faiss

        super().__init__(folder)
        self.vectorstore = Faiss(HashEmbeddings())

    def filters(self, tenant: str) -> Mapping[str, Any]:
        return {}

    def dump(self) -> int:
        return len([(document.page_content, document.metadata) for document in self.vectorstore._docs.values()])


def _points(client: Any) -> list[Any]:
    points, _ = client.scroll("chunks", limit=1_000_000)
    return list(points)


class QdrantCase(LangChainCase):
    """Qdrant in memory."""

    name = "langchain-qdrant"
    not_filters = ({"tenant": "north"}, len, "tenant = 'north'")
    copied = True
    needs = ("langchain_qdrant",)
    ignored = _IGNORED
    ordered = False

    def __init__(self, folder: Path) -> None:
        from langchain_qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient, models

        super().__init__(folder)
        self._client = QdrantClient(":memory:")
        size = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
        self._client.create_collection("chunks", vectors_config=size)
        self.vectorstore = QdrantVectorStore(self._client, "chunks", HashEmbeddings())

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Filters of Qdrant's own models."""
        from qdrant_client import models

        own = models.FieldCondition(key="metadata.tenant", match=models.MatchValue(value=tenant))
        other = models.FieldCondition(key="metadata.tenant", match=models.MatchValue(value="nobody"))
        return {
            "must": models.Filter(must=[own]),
            "should": models.Filter(should=[own, other]),
            "must_not": models.Filter(must_not=[models.Filter(must_not=[own])]),
            "nested": models.Filter(must=[models.Filter(should=[own]), models.Filter()]),
        }

    def dump(self) -> int:
        return len(_points(self._client))

    def close(self) -> None:
        self._client.close()


class IndexQdrantCase(LlamaIndexCase):
    """Qdrant in memory, in LlamaIndex."""

    name = "llamaindex-qdrant"
    copied = True
    needs = ("llama_index.vector_stores.qdrant",)
    ignored = _IGNORED
    ordered = False

    def __init__(self, folder: Path) -> None:
        from llama_index.vector_stores.qdrant import QdrantVectorStore
        from qdrant_client import AsyncQdrantClient, QdrantClient

        super().__init__(folder)
        self._client, aclient = QdrantClient(":memory:"), AsyncQdrantClient(":memory:")
        aclient._client.collections = self._client._client.collections  # as if both were connected to one server
        store = QdrantVectorStore("chunks", client=self._client, aclient=aclient)
        self.index = VectorStoreIndex.from_vector_store(store, embed_model=EMBEDDING)

    def dump(self) -> int:
        return len(nodes_of((point.payload, point.payload.get("text")) for point in _points(self._client)))

    def close(self) -> None:
        self._client.close()


CASES: tuple[type[Case], ...] = (FaissCase, FaissWithoutFiltersCase, QdrantCase, IndexQdrantCase)
