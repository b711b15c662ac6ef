"""How vector stores hand over the chunks of one document, and nothing that a filter hides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from langchain_selfroute.documents import documents_of
from selfroute.errors import ConfigurationError, ReplyError

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Is given key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""
Row: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""Id, text and metadata of a chunk."""

_PAGE = 32_000  # rows: Chroma answers at most 32,766 with their texts, and begins anew for each page


class Store(Protocol):
    """Hands over chunks.

    Attributes:
        in_threads: Whether it may be asked in several threads at once.
    """

    in_threads: bool = True

    def is_of(self, vectorstore: Any) -> bool:
        """Whether these are the chunks of this vector store."""

    def is_plain(self, vectorstore: Any) -> bool:
        """Whether a filter is all by which a search of this vector store hides any."""

    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if this can be no filter of the store."""

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        """All chunks with `metadata[key] == source` for which the conditions hold."""

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """The ids of these chunks."""

    def kept_under(self, conditions: Sequence[Any]) -> str | None:
        """What tells texts that are read now from others, but for their ids; None if `ids` costs as much as `rows`."""


def store_of(vectorstore: VectorStore, fetch: Fetch | None) -> Store:
    """Find out how to ask a store.

    Raises:
        ConfigurationError: Nobody knows how.
    """
    if fetch is not None:
        if not callable(fetch) or any(map(inspect.iscoroutinefunction, (fetch, type(fetch).__call__))):
            msg = "fetch must be a sync callable that is given (source_key, source, filter) and returns Documents"
            raise ConfigurationError(msg)
        return Fetched(vectorstore, fetch)
    if _kind(vectorstore, "InMemoryVectorStore"):
        return InMemory(vectorstore)
    if _kind(vectorstore, "Chroma"):
        return Chroma(vectorstore)
    msg = (
        f"a {type(vectorstore).__name__} has no way to list the chunks of one document: give fetch=, a callable that "
        "is given (source_key, source, filter) and returns all chunks whose metadata have that source, as Documents"
    )
    raise ConfigurationError(msg)


def _kind(vectorstore: Any, name: str) -> type | None:
    """The class of this name that a store is of: by its name, since to import it may take long."""
    return next((base for base in reversed(type(vectorstore).__mro__) if base.__name__ == name), None)


class Chroma(Store):
    """Of `langchain_chroma`, embedded or over HTTP. Filters are dicts, Chroma's `where`."""

    def __init__(self, vectorstore: Any) -> None:
        self._vectorstore, self._get = vectorstore, vectorstore.get
        self._kind = _kind(vectorstore, "Chroma")

    @override
    def is_of(self, vectorstore: Any) -> bool:
        if vectorstore is self._vectorstore:
            return True
        theirs = getattr(getattr(vectorstore, "_collection", None), "id", None)
        return theirs is not None and theirs == self._collection_id()

    @override
    def is_plain(self, vectorstore: Any) -> bool:
        return _searches_as(vectorstore, self._kind)

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, Mapping):
            msg = f"Chroma's filters are dicts; this is a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        where, at, size = _where(key, source, conditions), 0, _PAGE
        while size == _PAGE:
            found = self._get(where=where, limit=_PAGE, offset=at, include=["documents", "metadatas"])
            at, size = at + _PAGE, len(found["ids"])
            for id_, text, about in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield id_, text or "", about or {}

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        ids: list[str] = self._get(where=_where(key, source, conditions), include=[])["ids"]
        return ids

    @override
    def kept_under(self, conditions: Sequence[Any]) -> str | None:
        return repr((self._collection_id(), conditions))

    def _collection_id(self) -> Any:
        return self._vectorstore._collection.id  # noqa: SLF001 - two objects may be one store, and one two


def _where(key: str, source: Any, conditions: Sequence[Any]) -> Mapping[str, Any]:
    own = {key: source}
    return {"$and": [own, *conditions]} if conditions else own


class InMemory(Store):
    """LangChain's own `InMemoryVectorStore`. Filters are callables that are given a Document."""

    def __init__(self, vectorstore: Any) -> None:
        self._vectorstore, self._kind = vectorstore, _kind(vectorstore, "InMemoryVectorStore")

    @override
    def is_of(self, vectorstore: Any) -> bool:
        return vectorstore is self._vectorstore

    @override
    def is_plain(self, vectorstore: Any) -> bool:
        return _searches_as(vectorstore, self._kind)

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

    @override
    def kept_under(self, conditions: Sequence[Any]) -> str | None:
        return None


class Fetched(Store):
    """Any other store, through the user's own callable."""

    in_threads = False

    def __init__(self, vectorstore: VectorStore, fetch: Fetch) -> None:
        self._vectorstore, self._fetch = vectorstore, fetch

    @override
    def is_of(self, vectorstore: Any) -> bool:
        return vectorstore is self._vectorstore

    @override
    def is_plain(self, vectorstore: Any) -> bool:
        return True  # how it searches is its own business

    @override
    def check(self, condition: Any) -> None:
        pass  # whatever that callable makes of it

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[Row]:
        if len(conditions) > 1:
            msg = "fetch takes one filter: give the retriever and StoredDocuments the same, or only one of them"
            raise ConfigurationError(msg)
        found: Any = self._fetch(key, source, conditions[0] if conditions else None)
        if inspect.iscoroutine(found):
            found.close()  # it is refused below
        for document in documents_of(found, "fetch"):
            if document.metadata.get(key, source) != source:
                msg = f"fetch was asked for {source!r} and returned a chunk of {document.metadata[key]!r}"
                raise ReplyError(msg)
            yield document.id or "", document.page_content, document.metadata

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [id_ for id_, *_ in self.rows(key, source, conditions)]

    @override
    def kept_under(self, conditions: Sequence[Any]) -> str | None:
        return None


@cache
def _searches(kind: type | None) -> Sequence[str]:
    return [name for name in dir(kind) if "search" in name or "query" in name]


def _searches_as(vectorstore: Any, kind: type | None) -> bool:
    """Whether the searches of a store are those of its kind: one of the user's own may hide more than its filter."""
    own, changed = type(vectorstore), vars(vectorstore)
    return all(name not in changed and getattr(own, name, None) is getattr(kind, name) for name in _searches(kind))
