"""List points of Qdrant, for both frameworks; its client is the same in both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selfroute.errors import ConfigurationError

PAGE = 10_000  # points
LOCAL_PAGE = 100_000  # a collection in this process is searched anew for each page
_PLACE = ("location", "url", "host", "port", "grpc_port", "prefix", "path")


def points_of(client: Any, collection: str, where: Any, *, with_payload: bool) -> Iterator[Any]:
    """Yield all points that meet a `models.Filter`, in no order."""
    offset = None
    options = getattr(client, "init_options", None) or {}
    limit = LOCAL_PAGE if options.get("location") == ":memory:" or options.get("path") else PAGE
    while True:
        points, offset = client.scroll(
            collection,
            scroll_filter=where,
            limit=limit,
            offset=offset,
            with_payload=with_payload,
            with_vectors=False,
        )
        yield from points
        if offset is None:
            return


def equals(models: Any, path: str, value: Any) -> Any:
    """Return the condition that a value of the payload is the given one, or a list that holds it.

    Args:
        models: The module `qdrant_client.models`.
        path: Where the value is in the payload.
        value: A string or a number.
    """
    if isinstance(value, float):
        return models.FieldCondition(key=path, range=models.Range(gte=value, lte=value))
    return models.FieldCondition(key=path, match=models.MatchValue(value=value))


def path_of(*keys: str) -> str:
    """Return the path of a value in the payload; keys other than plain words are quoted.

    Raises:
        ConfigurationError: A key has a quote in it, which Qdrant cannot write.
    """
    if any('"' in key for key in keys):
        msg = f"Qdrant has no way to name {keys[-1]!r}, which has a quote in it: index the chunks with another key"
        raise ConfigurationError(msg)
    return ".".join(key if _is_word(key) else json.dumps(key, ensure_ascii=False) for key in keys)


def collection_of(client: Any, collection: str) -> Any:
    """Return what identifies a collection, also for another client that is connected to the same server or folder."""
    options = getattr(client, "init_options", None) or {}
    place = tuple(repr(options.get(name)) for name in _PLACE)
    shared = options.get("location") != ":memory:" and any(options.get(name) for name in _PLACE)
    return (place if shared else client), collection


def _is_word(key: str) -> bool:
    return key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
