"""How vector stores hand over the chunks of one document, and nothing that a filter hides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from typing_extensions import override

from langchain_selfroute.documents import documents_of
from selfroute.errors import ConfigurationError

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Is given key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""
Row: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""Id, text and metadata of a chunk."""

_LEAST, _MOST = 2_000, 20_000  # rows in a page: Chroma answers at most 32,766, and begins anew for each


class Store(Protocol):
    """Hands over chunks."""

    tells_ids: bool
    """Whether `ids` costs much less than `rows`."""

    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if this can be no filter of the store."""

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        """All chunks with `metadata[key] == source` for which the conditions hold."""

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """The ids of these chunks."""


def store_of(vectorstore: VectorStore, fetch: Fetch | None) -> Store:
    """Find out how to ask a store.

    Raises:
        ConfigurationError: Nobody knows how.
    """
    if fetch is not None:
        if not callable(fetch) or inspect.iscoroutinefunction(fetch):
            msg = "fetch must be a sync callable that is given (source_key, source, filter) and returns Documents"
            raise ConfigurationError(msg)
        return Fetched(fetch)
    if isinstance(vectorstore, InMemoryVectorStore):
        return InMemory(vectorstore)
    if any(base.__name__ == "Chroma" for base in type(vectorstore).__mro__):
        return Chroma(vectorstore)
    msg = (
        f"a {type(vectorstore).__name__} has no way to list the chunks of one document: give fetch=, a callable that "
        "is given (source_key, source, filter) and returns all chunks whose metadata have that source, as Documents"
    )
    raise ConfigurationError(msg)


class Chroma(Store):
    """Of `langchain_chroma`, embedded or over HTTP. Filters are dicts, Chroma's `where`."""

    tells_ids = True

    def __init__(self, vectorstore: Any) -> None:
        self._get = vectorstore.get

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, Mapping):
            msg = f"Chroma's filters are dicts; this is a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        for found in self._pages(key, source, conditions, include=["documents", "metadatas"]):
            texts, metadata = found["documents"], found["metadatas"]
            for id_, text, about in zip(found["ids"], texts, metadata, strict=True):
                yield id_, text or "", about or {}

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [id_ for found in self._pages(key, source, conditions, include=[]) for id_ in found["ids"]]

    def _pages(self, key: str, source: Any, conditions: Sequence[Any], *, include: list[str]) -> Iterator[Any]:
        own = {key: source}
        where = {"$and": [own, *conditions]} if conditions else own
        at, size, limit = 0, 0, 0
        while size == limit:
            limit = min(max(_LEAST, at), _MOST)
            found = self._get(where=where, limit=limit, offset=at, include=include)
            size = len(found["ids"])
            yield found
            at += size


class InMemory(Store):
    """LangChain's own `InMemoryVectorStore`. Filters are callables that are given a Document."""

    tells_ids = False

    def __init__(self, vectorstore: InMemoryVectorStore) -> None:
        self._vectorstore = vectorstore

    @override
    def check(self, condition: Any) -> None:
        if not callable(condition):
            msg = f"InMemoryVectorStore's filters are callables over a Document; this is a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        for entry in list(self._vectorstore.store.values()):
            metadata = entry["metadata"] or {}
            if metadata.get(key) != source:
                continue
            # Each condition is given a Document of its own, as in a search.
            if all(condition(Document(entry["text"], id=entry["id"], metadata=metadata)) for condition in conditions):
                yield entry["id"], entry["text"], metadata

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [id_ for id_, *_ in self.rows(key, source, conditions)]


class Fetched(Store):
    """Any other store, through the user's own callable."""

    tells_ids = False

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    @override
    def check(self, condition: Any) -> None:
        pass  # whatever that callable makes of it

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        if len(conditions) > 1:
            msg = "fetch takes one filter: give the retriever and StoredDocuments the same, or only one of them"
            raise ConfigurationError(msg)
        for document in documents_of(self._fetch(key, source, conditions[0] if conditions else None), "fetch"):
            yield document.id or "", document.page_content, document.metadata

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [id_ for id_, *_ in self.rows(key, source, conditions)]
