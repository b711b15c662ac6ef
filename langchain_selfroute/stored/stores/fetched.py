"""List the chunks of any other store, through the user's own `fetch`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from langchain_selfroute.documents import documents_of
from langchain_selfroute.stored.stores.base import Fetch, Store
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError, ReplyError


class Fetched(Store):
    """Any other store, through the user's own callable."""

    def __init__(self, vectorstore: VectorStore, fetch: Fetch, known: type[Store] | None) -> None:
        """Take a vector store, and what is known of its kind apart from how its chunks are listed."""
        super().__init__(vectorstore, type(vectorstore))
        self._fetch = fetch
        if known:
            self.filter_key, self.harmless = known.filter_key, known.harmless

    @override
    def is_of(self, vectorstore: Any) -> bool:
        return vectorstore is self._vectorstore

    @override
    def is_plain(self, vectorstore: Any) -> bool:
        return True  # `fetch` is to hide what a search hides

    @override
    def check(self, condition: Any) -> None:
        pass  # only `fetch` knows what it takes

    @override
    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        return self.rows(key, source, conditions)  # `fetch` may return chunks without a source, or one id for all

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        if len(conditions) > 1:
            msg = "fetch takes one filter: pass the same to the retriever and StoredDocuments, or to only one of them"
            raise ConfigurationError(msg)
        found: Any = self._fetch(key, source, conditions[0] if conditions else None)
        if inspect.iscoroutine(found):
            found.close()  # it is refused below
        for document in documents_of(found, "fetch"):
            if document.metadata.get(key, source) != source:
                msg = f"fetch was asked for {source!r} and returned a chunk of {document.metadata[key]!r}"
                raise ReplyError(msg)
            yield StoredChunk(document.id or "", document.page_content, document.metadata)
