"""The interface by which `StoredDocuments` uses a vector store."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from langchain_core.documents import Document

from selfroute.documents.access import StoredChunk
from selfroute.documents.listing import checked_rows, same_name
from selfroute.documents.metadata import without_keys

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Takes key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""


class Store(ABC):
    """Lists the chunks of a vector store of one kind.

    Attributes:
        filter_key: What the store's search, and so a retriever's `search_kwargs`, calls a filter.
        harmless: The other arguments of its search that hide nothing.
        ordered: Whether it lists chunks in the order in which they were added.
        lists_ids: Whether `ids` costs much less than `chunks`.
        added: The keys that it adds to the metadata of what it returns.
    """

    filter_key: str = "filter"
    harmless: AbstractSet[str] = frozenset()
    ordered: bool = True
    lists_ids: bool = False
    added: AbstractSet[str] = frozenset()

    def __init__(self, vectorstore: Any, kind: type) -> None:
        """Take a vector store, and the class among its bases that this kind of store is known by."""
        self._vectorstore, self._kind = vectorstore, kind

    def is_of(self, vectorstore: Any) -> bool:
        """Return whether these chunks are in this vector store."""
        if vectorstore is self._vectorstore:
            return True
        if not isinstance(vectorstore, self._kind):
            return False
        theirs = self.collection(vectorstore)
        return theirs is not None and theirs == self.collection(self._vectorstore)

    def is_plain(self, vectorstore: Any) -> bool:
        """Return whether a search of this vector store hides chunks only by its filter."""
        return searches_as(vectorstore, self._kind)

    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield all chunks with `metadata[key] == source` that meet the conditions."""
        tests = [test for test in map(self.test_of, conditions) if test]

        def belongs(chunk: StoredChunk) -> bool:
            return same_name(chunk.metadata.get(key), source) and all(test(chunk) for test in tests)

        for chunk in checked_rows(self.rows(key, source, conditions), belongs=belongs, id_of=lambda chunk: chunk.id):
            about = chunk.metadata
            yield chunk if self.added.isdisjoint(about) else replace(chunk, metadata=without_keys(about, self.added))

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these chunks."""
        return [chunk.id for chunk in self.chunks(key, source, conditions)]

    def cache_key(self, conditions: Sequence[Any]) -> str | None:
        """Return a cache key for documents read under these conditions; None if `ids` costs as much as `chunks`."""
        # Not the object: two may share a collection, and one may change it.
        known = self.collection(self._vectorstore) if self.lists_ids else None
        return None if known is None else repr((known, conditions))

    @abstractmethod
    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if a value cannot be a filter of the store."""

    @abstractmethod
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield what the store lists when it is asked for these chunks; what comes is looked at once more.

        Key and source are data: they are passed as parameters, or escaped here.

        Raises:
            SelfRouteError: Not all of them can be listed.
        """

    def collection(self, vectorstore: Any) -> Any:  # noqa: ARG002
        """Return what two objects over one collection have in common; None if that is unknown."""
        return None

    def test_of(self, condition: Any) -> Callable[[StoredChunk], bool] | None:  # noqa: ARG002
        """Return a function that tests a chunk against a filter; None if only the store itself can."""
        return None


def kind_of(vectorstore: Any, names: Iterable[tuple[str, str]]) -> tuple[type, tuple[str, str]] | None:
    """Find the base class by which the kind of a store is known; None if it has none.

    It is found by name, since importing it may be slow.

    Args:
        vectorstore: The store.
        names: The top-level package and the name of each class.

    Returns:
        The class and its name.
    """
    for base in type(vectorstore).__mro__:
        name = base.__module__.partition(".")[0], base.__name__
        if name in names:
            return base, name
    return None


@cache
def _searches(kind: type) -> Sequence[str]:
    return [name for name in dir(kind) if "search" in name or "query" in name]


def searches_as(vectorstore: Any, kind: type) -> bool:
    """Return whether a store has the search of its kind; a user's subclass may hide more than the filter does."""
    own, changed = type(vectorstore), vars(vectorstore)
    return all(name not in changed and getattr(own, name, None) is getattr(kind, name) for name in _searches(kind))


def is_sync(function: Any) -> bool:
    """Return whether a value is a callable that returns its result, not a coroutine, which would be true as a test."""
    return callable(function) and not any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def described(value: Any) -> str:
    """Return the kind of a value that is refused, for an error message."""
    return f"{'an async' if callable(value) and not is_sync(value) else 'a'} {type(value).__name__}"
