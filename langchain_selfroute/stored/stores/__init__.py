"""List the chunks of one document in a vector store, apart from those that a filter hides: one module per store."""

from __future__ import annotations

import inspect

from langchain_core.vectorstores import VectorStore

from langchain_selfroute.stored.stores.base import Fetch, Store
from langchain_selfroute.stored.stores.chroma import Chroma
from langchain_selfroute.stored.stores.fetched import Fetched
from langchain_selfroute.stored.stores.in_memory import InMemory
from selfroute.errors import ConfigurationError

__all__ = ["Fetch", "Store", "store_of"]


def store_of(vectorstore: VectorStore, fetch: Fetch | None) -> Store:
    """Return an object that lists the chunks of a vector store.

    Args:
        vectorstore: The vector store.
        fetch: The user's own way to list chunks, if there is one.

    Raises:
        ConfigurationError: The store is of an unknown kind and there is no `fetch`, or `fetch` is unusable.
    """
    if fetch is not None:
        if not callable(fetch) or any(map(inspect.iscoroutinefunction, (fetch, type(fetch).__call__))):
            msg = "fetch must be a sync callable that takes (source_key, source, filter) and returns Documents"
            raise ConfigurationError(msg)
        return Fetched(vectorstore, fetch)
    if InMemory.kind(vectorstore):
        return InMemory(vectorstore)
    if Chroma.kind(vectorstore):
        return Chroma(vectorstore)
    msg = (
        f"a {type(vectorstore).__name__} has no known way to list the chunks of one document: pass fetch=, a callable "
        "that takes (source_key, source, filter) and returns all chunks whose metadata has that source, as Documents"
    )
    raise ConfigurationError(msg)
