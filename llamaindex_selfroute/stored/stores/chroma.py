"""List the nodes of Chroma, embedded or over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llama_index.core.schema import BaseNode
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import Filters, chroma_where
from llamaindex_selfroute.stored.stores.base import VectorStore
from llamaindex_selfroute.stored.stores.rows import node_of

_LEAST, _MOST = 2_000, 20_000  # rows in a page; Chroma returns at most 32,766, and searches again for each page


class Chroma(VectorStore):
    """`ChromaVectorStore`, embedded or over HTTP."""

    lists_ids = True
    tests_filters = False

    @override
    def collection(self, store: Any) -> Any:
        return getattr(getattr(store, "client", None), "id", None)

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        where, at, size, limit = _where(document, filters), 0, 0, 0
        while size == limit:
            limit = min(max(_LEAST, at), _MOST)
            found = self._store.client.get(where=where, limit=limit, offset=at, include=["documents", "metadatas"])
            at, size = at + limit, len(found["ids"])
            for text, metadata in zip(found["documents"], found["metadatas"], strict=True):
                yield node_of(metadata, text)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        ids: list[str] = self._store.client.get(where=_where(document, filters), include=[])["ids"]
        return ids


def _where(document: str, filters: Filters) -> Mapping[str, Any]:
    own: dict[str, Any] = {"ref_doc_id": document}
    return {"$and": [own, *map(chroma_where, filters)]} if filters else own
