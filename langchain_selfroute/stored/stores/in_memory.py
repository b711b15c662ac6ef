"""List the chunks of LangChain's own `InMemoryVectorStore`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store, kind_of, searches_as
from selfroute.documents.stored import StoredChunk
from selfroute.errors import ConfigurationError


class InMemory(Store):
    """LangChain's own `InMemoryVectorStore`. Filters are callables that take a Document."""

    def __init__(self, vectorstore: Any) -> None:
        self._vectorstore, self._kind = vectorstore, self.kind(vectorstore)

    @staticmethod
    def kind(vectorstore: Any) -> type | None:
        """Return LangChain's own class of an in-memory store, None if it is another store."""
        return kind_of(vectorstore, "InMemoryVectorStore", "langchain_core")

    @override
    def is_of(self, vectorstore: Any) -> bool:
        return vectorstore is self._vectorstore

    @override
    def is_plain(self, vectorstore: Any) -> bool:
        return searches_as(vectorstore, self._kind)

    @override
    def check(self, condition: Any) -> None:
        if not callable(condition):
            msg = f"InMemoryVectorStore takes a callable over a Document as filter, not a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        for entry in list(self._vectorstore.store.values()):
            metadata = entry["metadata"] or {}
            if metadata.get(key) != source:
                continue
            # Each condition gets a new Document, as in a search.
            if all(condition(Document(entry["text"], id=entry["id"], metadata=metadata)) for condition in conditions):
                yield StoredChunk(entry["id"], entry["text"], metadata)

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [chunk.id for chunk in self.chunks(key, source, conditions)]

    @override
    def cache_key(self, conditions: Sequence[Any]) -> str | None:
        return None
