"""List the chunks of Qdrant, embedded or a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store
from selfroute.documents.access import StoredChunk
from selfroute.documents.qdrant import collection_of, equals, path_of, points_of
from selfroute.errors import ConfigurationError


class Qdrant(Store):
    """`QdrantVectorStore` of `langchain_qdrant`. Filters are `qdrant_client.models.Filter`."""

    harmless = frozenset({"search_params", "offset", "consistency", "timeout", "hybrid_fusion"})
    ordered = False
    lists_ids = True
    added = frozenset({"_id", "_collection_name"})

    @override
    def check(self, condition: Any) -> None:
        from qdrant_client.models import Filter  # noqa: PLC0415 - only where it is used

        if not isinstance(condition, Filter):
            msg = f"Qdrant takes a qdrant_client.models.Filter as filter, not a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        store = self._vectorstore
        for point in self._points(key, source, conditions, with_payload=True):
            metadata = point.payload.get(store.metadata_payload_key) or {}
            yield StoredChunk(str(point.id), point.payload.get(store.content_payload_key) or "", metadata)

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [str(point.id) for point in self._points(key, source, conditions, with_payload=False)]

    @override
    def collection(self, vectorstore: Any) -> Any:
        return collection_of(vectorstore.client, vectorstore.collection_name)

    def _points(self, key: str, source: Any, conditions: Sequence[Any], *, with_payload: bool) -> Iterator[Any]:
        from qdrant_client import models  # noqa: PLC0415 - only where it is used

        store = self._vectorstore
        own = equals(models, path_of(store.metadata_payload_key, key), source)
        where = models.Filter(must=[own, *conditions])
        return points_of(store.client, store.collection_name, where, with_payload=with_payload)
