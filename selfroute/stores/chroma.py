"""List the rows of Chroma, embedded or over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selfroute.documents.access import StoredChunk
from selfroute.stores.listing import Listing

PAGE = 32_000  # rows; Chroma returns at most 32,766 with their texts, and searches again for each page


class Chroma(Listing):
    """The rows of a collection, in the order in which they were added. Conditions are in the form of `where`."""

    def __init__(self, collection: Any) -> None:
        """Take a collection, or anything with its `get`."""
        self._get = collection.get

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield the rows whose metadata have the source, page by page."""
        where, at, size = _where(key, source, conditions), 0, PAGE
        while size == PAGE:
            found = self._get(where=where, limit=PAGE, offset=at, include=["documents", "metadatas"])
            at, size = at + PAGE, len(found["ids"])
            for id_, text, about in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield StoredChunk(id_, text or "", about or {})

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these rows."""
        ids: list[str] = self._get(where=_where(key, source, conditions), include=[])["ids"]
        return ids


def _where(key: str, source: Any, conditions: Sequence[Any]) -> Mapping[str, Any]:
    own = {key: source}
    return {"$and": [own, *conditions]} if conditions else own
