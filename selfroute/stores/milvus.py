"""List the rows of Milvus, embedded or a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores.listing import Listing

PAGE = 5_000  # rows; Milvus returns at most 16,384, and an embedded one searches again for each page
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_INT64, _VECTORS = 5, range(100, 200)  # the numbers of its data types
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Milvus(Listing):
    """The rows of a collection, in the order of their ids. Conditions are strings in Milvus's own language."""

    def __init__(self, client: Any, collection: str, *, text: str, metadata: str | None = None) -> None:
        """Take a `MilvusClient`.

        Args:
            client: The client.
            collection: The name of the collection.
            text: The field that holds a chunk's text.
            metadata: The field that holds its metadata; None if these are all other fields.
        """
        self._client, self._collection, self._text, self._metadata = client, collection, text, metadata

    @property
    def added(self) -> frozenset[str]:  # type: ignore[override]
        """The field with the ids of rows."""
        return frozenset([self._primary["name"]])

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether Milvus numbers the rows as they are added; else they have the ids that they were given.

        Raises:
            MilvusException: There is no collection of this name, or no connection.
        """
        numbered = self._primary.get("auto_id") or self._about.get("auto_id")
        return bool(numbered) and int(self._primary["type"]) == _INT64

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield the rows whose metadata have the source, without their vectors.

        Raises:
            ConfigurationError: Milvus returned a page in another order, so that rows may be missing.
        """
        fields = [*sorted(self._fields), *(["$meta"] if self._dynamic else [])]
        for row in self._paged(self._where(key, source, conditions), fields):
            id_, text = str(row[self._primary["name"]]), row.pop(self._text, None) or ""
            yield StoredChunk(id_, text, (row.pop(self._metadata) if self._metadata else row) or {})

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these rows."""
        name = self._primary["name"]
        return [str(row[name]) for row in self._paged(self._where(key, source, conditions), [name])]

    def path(self, key: str) -> str | None:
        """Return how a condition names a field; None if no row has it."""
        if key in self._fields:
            return key
        return f"$meta[{literal(key)}]" if self._dynamic else None

    @cached_property
    def _about(self) -> Mapping[str, Any]:
        about: Mapping[str, Any] = self._client.describe_collection(self._collection)
        return about

    @cached_property
    def _primary(self) -> Mapping[str, Any]:
        return next(field for field in self._about["fields"] if field.get("is_primary"))

    @cached_property
    def _fields(self) -> frozenset[str]:
        return frozenset(field["name"] for field in self._about["fields"] if int(field["type"]) not in _VECTORS)

    @property
    def _dynamic(self) -> bool:
        return bool(self._about.get("enable_dynamic_field"))

    def _where(self, key: str, source: Any, conditions: Sequence[Any]) -> Sequence[str] | None:
        """Return the conditions of a document's rows; None if no row can have the key."""
        path = f"{self._metadata}[{literal(key)}]" if self._metadata else self.path(key)
        return None if path is None else [f"{path} == {literal(source)}", *conditions]

    def _paged(self, where: Sequence[str] | None, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
        last: Any = None
        while where is not None:
            conditions = [f"({condition})" for condition in where if condition.strip()]
            conditions += [] if last is None else [f"{self._primary['name']} > {literal(last)}"]
            pages = self._client.query_iterator(
                self._collection, batch_size=PAGE, filter=" and ".join(conditions), output_fields=list(fields)
            )
            try:
                while (page := pages.next()) and _is_plain(last := self._last_of(page)):
                    yield from page
                yield from page
            finally:
                pages.close()
            where = where if page else None

    def _last_of(self, page: Sequence[Mapping[str, Any]]) -> Any:
        """Return the last id of a page.

        Raises:
            ConfigurationError: The ids are in no order, so that the next page may leave out rows.
        """
        ids = [row[self._primary["name"]] for row in page]
        if any(one > other for one, other in pairwise(ids)):
            msg = (
                f"Milvus listed rows of {self._collection!r} in no order, so that some may be missing: upgrade "
                "pymilvus and milvus-lite, or the server"
            )
            raise ConfigurationError(msg)
        return ids[-1]


def literal(value: Any) -> str:
    """Return a value as it is written in a filter of Milvus."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPED)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)


def _is_plain(id_: Any) -> bool:
    """Return whether pymilvus can list what comes after an id: it writes it into its filter without escaping it."""
    return not isinstance(id_, str) or literal(id_) == f'"{id_}"'


def is_word(key: str) -> bool:
    """Return whether a filter may name a field by this key as it is."""
    return _WORD.fullmatch(key) is not None


def place_of(arguments: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """Return what identifies the database that connection arguments lead to; None if that is unknown."""
    known = {name: (arguments or {}).get(name) for name in ("uri", "address", "host", "port", "db_name")}
    return tuple(map(repr, known.values())) if any(known.values()) else None
