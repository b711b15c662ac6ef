"""List the chunks of Chroma, embedded or over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from langchain_selfroute.host import collection_id
from langchain_selfroute.stored.stores.base import Store
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError

_PAGE = 32_000  # rows; Chroma returns at most 32,766 with their texts, and searches again for each page


class Chroma(Store):
    """`Chroma` of `langchain_chroma`, embedded or over HTTP. Filters are dicts in the form of Chroma's `where`."""

    lists_ids = True

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, Mapping):
            msg = f"Chroma takes a dict as filter, not a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        where, at, size = _where(key, source, conditions), 0, _PAGE
        while size == _PAGE:
            found = self._vectorstore.get(where=where, limit=_PAGE, offset=at, include=["documents", "metadatas"])
            at, size = at + _PAGE, len(found["ids"])
            for id_, text, about in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield StoredChunk(id_, text or "", about or {})

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        ids: list[str] = self._vectorstore.get(where=_where(key, source, conditions), include=[])["ids"]
        return ids

    @override
    def collection(self, vectorstore: Any) -> Any:
        return collection_id(vectorstore)


def _where(key: str, source: Any, conditions: Sequence[Any]) -> Mapping[str, Any]:
    own = {key: source}
    return {"$and": [own, *conditions]} if conditions else own
