"""List the chunks of LanceDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store
from selfroute.documents.access import StoredChunk
from selfroute.documents.lancedb import column, fields_of, literal, rows_of
from selfroute.errors import ConfigurationError

_METADATA = "metadata"
_NAME = re.compile(r"`(?:[^`]|``)+`|[^\W\d]\w*")
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")
_SUPPORTED = "langchain-community 0.4"


class LanceDB(Store):
    """`LanceDB` of `langchain_community`. Filters are strings in SQL, or dicts of columns such as `metadata.tenant`."""

    harmless = frozenset({"fts", "metrics", "prefilter", "query_type"})
    lists_ids = True

    def __init__(self, vectorstore: Any, kind: type) -> None:
        """Take a vector store.

        Raises:
            ConfigurationError: This version names its columns elsewhere.
        """
        super().__init__(vectorstore, kind)
        try:
            self._id, self._text = vectorstore._id_key, vectorstore._text_key  # noqa: SLF001
        except AttributeError as error:
            msg = f"langchain-community has changed its LanceDB ({error}); use {_SUPPORTED}, or pass fetch="
            raise ConfigurationError(msg) from error

    @override
    def check(self, condition: Any) -> None:
        if isinstance(condition, Mapping):
            for name in condition:
                if not isinstance(name, str) or not _NAMES.fullmatch(name):
                    msg = f"{name!r} in a filter of LanceDB does not name a column, such as metadata.tenant"
                    raise ConfigurationError(msg)
        elif not isinstance(condition, str):
            msg = (
                "LanceDB takes a string in SQL as filter, such as \"metadata.tenant = 'north'\", or a dict, not a "
                f"{type(condition).__name__}"
            )
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        for row in self._rows(key, source, conditions, [self._id, self._text, _METADATA]):
            yield StoredChunk(row[self._id] or "", row[self._text] or "", row[_METADATA] or {})

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        return [row[self._id] for row in self._rows(key, source, conditions, [self._id])]

    @override
    def collection(self, vectorstore: Any) -> Any:
        connection, name = (getattr(vectorstore, own, None) for own in ("_connection", "_table_name"))
        place = getattr(connection, "uri", None)
        return (place, name) if place and name and not str(place).startswith("memory:") else None

    def _rows(
        self, key: str, source: Any, conditions: Sequence[Any], columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        table = self._vectorstore.get_table()  # None if there is no such table
        kind = None if table is None else fields_of(table, _METADATA).get(key)
        if kind is None or isinstance(source, str) != ("string" in kind):
            return iter(())  # no chunk can have this source; LanceDB does not compare texts with numbers
        own = f"{column(_METADATA, key)} = {literal(source)}"
        return rows_of(table, [own, *map(_sql, conditions)], columns)


def _sql(condition: Mapping[str, Any] | str) -> str:
    """Return a filter in SQL; the integration compares a dict's values as texts, but does not escape them."""
    if isinstance(condition, str):
        return condition
    parts = []
    for name, value in condition.items():
        path = [part.strip("`").replace("``", "`") for part in _NAME.findall(name)]
        parts.append(f"{column(*path)} = {literal(str(value))}")
    return " AND ".join(parts)
