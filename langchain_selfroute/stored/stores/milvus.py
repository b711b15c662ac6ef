"""List the chunks of Milvus, embedded or a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store
from selfroute.documents.access import StoredChunk
from selfroute.documents.milvus import Collection, literal, place_of
from selfroute.errors import ConfigurationError

_SUPPORTED = "langchain-milvus 0.3.3 or 0.4"


class Milvus(Store):
    """`Milvus` of `langchain_milvus`, embedded or a server. Filters are strings in Milvus's own language (`expr`)."""

    filter_key = "expr"
    harmless = frozenset({"param", "ranker_type", "ranker_params", "timeout"})
    lists_ids = True

    def __init__(self, vectorstore: Any, kind: type) -> None:
        """Take a vector store; its passages have the id of their row among their metadata.

        Raises:
            ConfigurationError: This version names its fields elsewhere.
        """
        super().__init__(vectorstore, kind)
        try:
            self.added = frozenset([vectorstore._primary_field])  # noqa: SLF001
            self._text, self._metadata = vectorstore._text_field, vectorstore._metadata_field  # noqa: SLF001
        except AttributeError as error:
            msg = f"langchain-milvus has changed ({error}); use {_SUPPORTED}, or pass fetch="
            raise ConfigurationError(msg) from error

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether Milvus numbers the rows; else they are listed by the ids that they were given."""
        return self._described().numbered

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, str):
            msg = f"Milvus takes a string as filter, such as 'tenant == \"north\"', not a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        collection = self._described()
        for row in collection.rows(self._where(collection, key, source, conditions)):
            metadata = row.pop(self._metadata) if self._metadata else row
            yield StoredChunk(str(row[collection.primary]), row.pop(self._text) or "", metadata or {})

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        collection = self._described()
        return collection.ids(self._where(collection, key, source, conditions))

    @override
    def collection(self, vectorstore: Any) -> Any:
        place = place_of(getattr(vectorstore, "_connection_args", None))
        return place and (place, vectorstore.collection_name)

    def _described(self) -> Collection:
        return Collection.of(self._vectorstore.client, self._vectorstore.collection_name)

    def _where(self, collection: Collection, key: str, source: Any, conditions: Sequence[Any]) -> Sequence[str] | None:
        """Return the conditions of a document's rows; None if no row can have the key."""
        path = f"{self._metadata}[{literal(key)}]" if self._metadata else collection.path(key)
        return None if path is None else [f"{path} == {literal(source)}", *conditions]
