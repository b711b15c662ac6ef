"""List the nodes of one document, apart from those that filters hide: one module per kind of store."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llamaindex_selfroute.stored.stores.base import Fetch, Store, VectorStore, kind_of, listing_class
from llamaindex_selfroute.stored.stores.docstore import Docstore
from llamaindex_selfroute.stored.stores.fetched import Fetched
from llamaindex_selfroute.stored.stores.listed import Listed
from selfroute.errors import ConfigurationError

__all__ = ["Fetch", "Store", "store_of"]

_KINDS: Mapping[tuple[str, str], str] = {
    ("llama_index.vector_stores.chroma", "ChromaVectorStore"): "chroma.Chroma",
    ("llama_index.vector_stores.qdrant", "QdrantVectorStore"): "qdrant.Qdrant",
    ("llama_index.vector_stores.postgres", "PGVectorStore"): "postgres.Postgres",
    ("llama_index.vector_stores.lancedb", "LanceDBVectorStore"): "lancedb.LanceDB",
    ("llama_index.vector_stores.milvus", "MilvusVectorStore"): "milvus.Milvus",
}
"""The module and class that list each kind of store, by its package and class; imported when it is met."""


def store_of(index: BaseIndex[Any], fetch: Fetch | None) -> Store:
    """Return an object that lists the nodes of an index.

    Args:
        index: The index.
        fetch: The user's own way to list nodes, if there is one.

    Raises:
        ConfigurationError: The store cannot list nodes and there is no `fetch`, or `fetch` is unusable.
    """
    if fetch is not None:
        if not callable(fetch) or any(map(inspect.iscoroutinefunction, (fetch, type(fetch).__call__))):
            msg = "fetch must be a sync callable that takes (ref_doc_id, filters) and returns nodes"
            raise ConfigurationError(msg)
        return Fetched(index, fetch)
    if not isinstance(index, VectorStoreIndex) or not index.vector_store.stores_text:
        return Docstore(index)
    store = index.vector_store
    if found := kind_of(store, _KINDS):
        return _listing(found[1])(store, found[0])
    if (kind := listing_class(store)) is not BasePydanticVectorStore:
        return Listed(store, kind)
    msg = (
        f"a {type(store).__name__} has no known way to list the nodes of one document: pass "
        "StoredDocuments(fetch=...), a callable that takes (ref_doc_id, filters) and returns all of its nodes, or pass "
        "the engine documents="
    )
    raise ConfigurationError(msg)


def _listing(name: tuple[str, str]) -> type[VectorStore]:
    module, _, listing = _KINDS[name].partition(".")
    found: type[VectorStore] = getattr(import_module(f"{__name__}.{module}"), listing)
    return found
