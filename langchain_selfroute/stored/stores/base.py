"""The interface by which `StoredDocuments` uses a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, Protocol, TypeAlias

from langchain_core.documents import Document

from selfroute.documents.stored import StoredChunk

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Takes key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""


class Store(Protocol):
    """Lists the chunks of a vector store.

    Attributes:
        filter_key: What the store's search, and so a retriever's `search_kwargs`, calls a filter.
        harmless: The other arguments of its search that hide nothing.
        in_threads: Whether it may be used from several threads at once.
    """

    filter_key: str = "filter"
    harmless: AbstractSet[str] = frozenset()
    in_threads: bool = True

    def is_of(self, vectorstore: Any) -> bool:
        """Return whether these chunks are in this vector store."""

    def is_plain(self, vectorstore: Any) -> bool:
        """Return whether a search of this vector store hides chunks only by its filter."""

    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if a value cannot be a filter of the store."""

    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield all chunks with `metadata[key] == source` that meet the conditions."""

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these chunks."""

    def cache_key(self, conditions: Sequence[Any]) -> str | None:
        """Return a cache key for documents read under these conditions; None if `ids` costs as much as `chunks`."""


def kind_of(vectorstore: Any, name: str, *packages: str) -> type | None:
    """Return the base class of a store with this name from one of these packages, None if it has none.

    It is found by name, since importing it may be slow.
    """
    bases = (base for base in reversed(type(vectorstore).__mro__) if base.__name__ == name)
    return next((base for base in bases if base.__module__.partition(".")[0] in packages), None)


@cache
def _searches(kind: type | None) -> Sequence[str]:
    return [name for name in dir(kind) if "search" in name or "query" in name]


def searches_as(vectorstore: Any, kind: type | None) -> bool:
    """Return whether a store has the search of its kind; a user's subclass may hide more than the filter does."""
    own, changed = type(vectorstore), vars(vectorstore)
    return all(name not in changed and getattr(own, name, None) is getattr(kind, name) for name in _searches(kind))
