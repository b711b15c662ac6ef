"""List the chunks of LangChain's own `InMemoryVectorStore`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store, described, is_sync
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError


class InMemory(Store):
    """LangChain's own `InMemoryVectorStore`. Filters are callables that take a Document."""

    @override
    def check(self, condition: Any) -> None:
        if not is_sync(condition):
            msg = f"InMemoryVectorStore takes a sync callable over a Document as filter, not {described(condition)}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        for entry in list(self._vectorstore.store.values()):
            metadata = entry["metadata"] or {}
            if metadata.get(key) == source:
                yield StoredChunk(entry["id"], entry["text"], metadata)

    @override
    def test_of(self, condition: Any) -> Callable[[StoredChunk], bool]:
        # Each condition gets a new Document, as in a search.
        return lambda chunk: bool(condition(Document(chunk.text, id=chunk.id, metadata={**chunk.metadata})))
