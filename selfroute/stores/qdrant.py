"""List the points of Qdrant, embedded or a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores.listing import Listing

PAGE = 1_000  # points; more at once is no faster, and a server may be set up to refuse it
LOCAL_PAGE = 100_000  # a collection in this process is searched again for each page
_PLACE = ("location", "url", "host", "port", "grpc_port", "prefix", "path")
_RIGHTS = ("api_key", "headers", "auth_token_provider")  # two keys may show two parts of one server
_UNQUOTABLE = frozenset('"\\')  # there is no way to escape them


class Qdrant(Listing):
    """The points of a collection, in no order. Conditions are `qdrant_client.models.Filter`."""

    ordered = False
    added = frozenset({"_id", "_collection_name"})  # by LangChain

    def __init__(self, models: Any, client: Any, collection: str, *, text: str, metadata: str | None) -> None:
        """Take a `QdrantClient`.

        Args:
            models: The module `qdrant_client.models`.
            client: The client.
            collection: The name of the collection.
            text: The key of the payload that holds a chunk's text.
            metadata: The key that holds its metadata; None if these are the payload itself.
        """
        self._models, self._client, self._collection = models, client, collection
        self._text, self._metadata = text, metadata

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield the points whose metadata have the source; each point itself is the chunk's `host`."""
        for point in self._points(key, source, conditions, with_payload=True):
            metadata = point.payload if self._metadata is None else point.payload.get(self._metadata) or {}
            yield StoredChunk(str(point.id), point.payload.get(self._text) or "", metadata, host=point)

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these points."""
        return [str(point.id) for point in self._points(key, source, conditions, with_payload=False)]

    def _points(self, key: str, source: Any, conditions: Sequence[Any], *, with_payload: bool) -> Iterator[Any]:
        path = path_of(key) if self._metadata is None else path_of(self._metadata, key)
        where = self._models.Filter(must=[self._equals(path, source), *conditions])
        options = getattr(self._client, "init_options", None) or {}
        limit = LOCAL_PAGE if options.get("location") == ":memory:" or options.get("path") else PAGE
        offset = None
        while True:
            points, offset = self._client.scroll(
                self._collection,
                scroll_filter=where,
                limit=limit,
                offset=offset,
                with_payload=with_payload,
                with_vectors=False,
            )
            yield from points
            if offset is None:
                return

    def _equals(self, path: str, value: Any) -> Any:
        """Return the condition that a value of the payload is a string or a number, or a list that holds it."""
        if isinstance(value, float):
            return self._models.FieldCondition(key=path, range=self._models.Range(gte=value, lte=value))
        return self._models.FieldCondition(key=path, match=self._models.MatchValue(value=value))


def path_of(*keys: str) -> str:
    """Return the path of a value in the payload; keys other than plain words are quoted.

    Raises:
        ConfigurationError: A key has a quote or a backslash in it, which Qdrant cannot write.
    """
    if not _UNQUOTABLE.isdisjoint("".join(keys)):
        msg = (
            f"Qdrant has no way to name {keys[-1]!r}, which has a quote or a backslash in it: index the chunks with "
            "another key"
        )
        raise ConfigurationError(msg)
    return ".".join(key if _is_word(key) else f'"{key}"' for key in keys)


def collection_of(client: Any, collection: str) -> Any:
    """Return what identifies a collection, also for another client of the same place with the same rights."""
    options = getattr(client, "init_options", None) or {}
    shared = options.get("location") != ":memory:" and any(options.get(name) for name in _PLACE)
    if not shared:
        return client, collection
    rights = repr([options.get(name) or None for name in _RIGHTS])  # hashed, since they are secret
    return tuple(repr(options.get(name)) for name in _PLACE), sha256(rights.encode()).hexdigest(), collection


def _is_word(key: str) -> bool:
    return key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
