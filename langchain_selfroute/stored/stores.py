"""List the chunks of one document in a vector store, apart from those that a filter hides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores.conditions import metadata_test
from selfroute.stores.listing import ByFunction, Test, Wrapped, fetched, is_sync

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Takes key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""


class Store(Wrapped):
    """A vector store of one kind.

    Attributes:
        filters: The types of its filters.
        callables: Whether a sync callable can be a filter.
        takes: What it takes as a filter, for error messages.
        ignores_filters: Whether its search ignores filters, so that it can have none.
        filter_key: What its search, and so a retriever's `search_kwargs`, calls a filter.
        harmless: The other arguments of its search that hide nothing.
    """

    filters: tuple[type, ...] = (Mapping,)
    callables: bool = False
    takes: str = "a dict as filter"
    ignores_filters: bool = False
    filter_key: str = "filter"
    harmless: AbstractSet[str] = frozenset()

    def is_filter(self, condition: Any) -> bool:
        """Return whether a value can be a filter of the store."""
        return isinstance(condition, self.filters) or (self.callables and is_sync(condition))

    def test_of(self, condition: Any) -> Test | None:  # noqa: ARG002
        """Return a function that tests a chunk against a filter; None if only the store itself can.

        Raises:
            ConfigurationError: The store does not take such a filter.
        """
        return None

    def check_key(self, source_key: str) -> None:
        """Raise a `ConfigurationError` if this key of the metadata cannot name documents in the store."""

    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if a value cannot be a filter of the store."""
        if self.ignores_filters:
            msg = (
                f"the search of {self.base.__name__} ignores filters and would find what this one hides: make a store "
                "for each group of readers, or use a store that filters"
            )
            raise ConfigurationError(msg)
        if not self.is_filter(condition):
            an = "an async" if callable(condition) and not is_sync(condition) else "a"
            msg = f"{self.base.__name__} takes {self.takes}, not {an} {type(condition).__name__}"
            raise ConfigurationError(msg)
        self.test_of(condition)

    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Return all chunks with `metadata[key] == source` that meet the conditions, each looked at once more."""
        return self.listing().chunks(key, source, self.native(conditions), self._tests(conditions))

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these chunks."""
        if self._tests(conditions):
            return [chunk.id for chunk in self.chunks(key, source, conditions)]
        return self.listing().ids(key, source, self.native(conditions))

    def _tests(self, conditions: Sequence[Any]) -> list[Test]:
        return [test for test in map(self.test_of, conditions) if test]

    def cache_key(self, conditions: Sequence[Any]) -> str | None:
        """Return a cache key for documents read under these conditions; None if they cannot be cached."""
        known = self.identity()  # not the object: two may share a collection, and one may change it
        return None if known is None else repr((known, conditions))


class Fetched(Store):
    """Any other store, through the user's own callable."""

    filters = (object,)  # only `fetch` knows what it takes

    def __init__(self, vectorstore: VectorStore, fetch: Fetch, known: Store | None) -> None:
        """Take a vector store, and what is known of its kind apart from how its chunks are listed."""
        super().__init__(vectorstore, type(vectorstore))
        self._fetch, self._known = fetch, known
        if known:
            self.filter_key, self.harmless = known.filter_key, known.harmless
            if known.is_plain(vectorstore):
                self.ignores_filters = known.ignores_filters

    def listing_of(self, wrapper: Any) -> ByFunction:  # noqa: ARG002
        """Return what lists the chunks that `fetch` returns."""
        return ByFunction(self._rows)

    def is_plain(self, wrapper: Any) -> bool:  # noqa: ARG002
        """Return True: `fetch` is to hide what a search hides."""
        return True

    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Return what `fetch` returns: that may have no source, or one id for all."""
        return self._rows(key, source, conditions)

    def _rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        if len(conditions) > 1:
            msg = "fetch takes one filter: pass the same to the retriever and StoredDocuments, or to only one of them"
            raise ConfigurationError(msg)
        found = self._fetch(key, source, conditions[0] if conditions else None)
        tests = [test for test in (tested_by(self._known, condition) for condition in conditions) if test]

        def name_of(document: Document) -> Any:
            return document.metadata.get(key, source)

        for document in fetched(found, source, name_of, Document, called="chunk"):
            chunk = StoredChunk(document.id or "", document.page_content, document.metadata)
            if document.metadata.keys() <= {key} or all(_meets(test, chunk) for test in tests):
                yield chunk


def _meets(test: Test, chunk: StoredChunk) -> bool:
    with suppress(Exception):  # a filter that is a callable may not know such a chunk
        return test(chunk)
    return False


def tested_by(store: Store | None, condition: Any) -> Test | None:
    """Return a function that tests a chunk against a filter, outside of the store; None if that is not possible.

    Args:
        store: The store whose filter it is; None if it is of an unknown kind.
        condition: The filter.
    """
    test = store.test_of(condition) if store and store.is_filter(condition) else None
    if test is None and (by_metadata := metadata_test(condition)):
        return lambda chunk: by_metadata(chunk.metadata)
    return test
