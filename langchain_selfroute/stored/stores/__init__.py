"""List the chunks of one document in a vector store, apart from those that a filter hides: one module per store."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from langchain_core.vectorstores import VectorStore

from langchain_selfroute.stored.stores.base import Fetch, Store, is_sync, kind_of
from langchain_selfroute.stored.stores.fetched import Fetched
from selfroute.errors import ConfigurationError

__all__ = ["Fetch", "Store", "store_of"]

_KINDS: Mapping[tuple[str, str], str] = {
    ("langchain_core", "InMemoryVectorStore"): "in_memory.InMemory",
    ("langchain_chroma", "Chroma"): "chroma.Chroma",
    ("langchain_community", "Chroma"): "chroma.Chroma",
    ("langchain_community", "FAISS"): "faiss.Faiss",
    ("langchain_qdrant", "QdrantVectorStore"): "qdrant.Qdrant",
    ("langchain_postgres", "PGVector"): "postgres.PGVector",
    ("langchain_postgres", "PGVectorStore"): "postgres.PGVectorStore",
    ("langchain_postgres", "AsyncPGVectorStore"): "postgres.PGVectorStore",
    ("langchain_community", "LanceDB"): "lancedb.LanceDB",
    ("langchain_milvus", "Milvus"): "milvus.Milvus",
}
"""The module and class that list each kind of store, by its top-level package and class; imported when it is met."""


def store_of(vectorstore: VectorStore, fetch: Fetch | None) -> Store:
    """Return an object that lists the chunks of a vector store.

    Args:
        vectorstore: The vector store.
        fetch: The user's own way to list chunks, if there is one.

    Raises:
        ConfigurationError: The store is of an unknown kind and there is no `fetch`, or `fetch` is unusable.
    """
    found = kind_of(vectorstore, _KINDS)
    known = _listing(*found) if found else None
    if fetch is not None:
        if not is_sync(fetch):
            msg = "fetch must be a sync callable that takes (source_key, source, filter) and returns Documents"
            raise ConfigurationError(msg)
        return Fetched(vectorstore, fetch, known)
    if found and known:
        return known(vectorstore, found[0])
    msg = (
        f"a {type(vectorstore).__name__} has no known way to list the chunks of one document: pass fetch=, a callable "
        "that takes (source_key, source, filter) and returns all chunks whose metadata has that source, as Documents"
    )
    raise ConfigurationError(msg)


def _listing(_kind: type, name: tuple[str, str]) -> type[Store]:
    module, _, listing = _KINDS[name].partition(".")
    found: type[Store] = getattr(import_module(f"{__name__}.{module}"), listing)
    return found
