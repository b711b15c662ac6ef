"""List the nodes of Qdrant, embedded or a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilters
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import Filters
from llamaindex_selfroute.stored.stores.base import VectorStore
from selfroute.documents.qdrant import collection_of, equals, points_of
from selfroute.errors import ConfigurationError


class Qdrant(VectorStore):
    """`QdrantVectorStore`, whose own `get_nodes` ends after 9,999 nodes."""

    ordered = False
    lists_ids = True
    tests_filters = False

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        for point in self._points(document, filters, with_payload=True):
            yield from self._store.parse_to_query_result([point]).nodes

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [str(point.id) for point in self._points(document, filters, with_payload=False)]

    @override
    def collection(self, store: Any) -> Any:
        return None if store.client is None else collection_of(store.client, store.collection_name)

    def _points(self, document: str, filters: Filters, *, with_payload: bool) -> Iterator[Any]:
        if self._store.client is None:
            msg = (
                "this QdrantVectorStore has only an async client, and documents are read by a sync one: pass it "
                "client=QdrantClient(...) beside aclient="
            )
            raise ConfigurationError(msg)
        from qdrant_client import models  # noqa: PLC0415 - only where it is used

        own = equals(models, "doc_id", document)  # the one name of the document that the store has an index on
        where = models.Filter(must=[own, *(self._condition(each) for each in filters)])
        return points_of(self._store.client, self._store.collection_name, where, with_payload=with_payload)

    def _condition(self, filters: MetadataFilters) -> Any:
        """Return filters as the store applies them in a search."""
        translate = getattr(self._store, "_build_subfilter", None)
        if translate is None:
            msg = (
                "llama-index-vector-stores-qdrant has changed how it translates filters; use 0.8 to 0.10, which this "
                "version of selfroute supports"
            )
            raise ConfigurationError(msg)
        return translate(filters)
