"""List rows of Milvus, for both frameworks; its client is the same in both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from selfroute.errors import ConfigurationError

PAGE = 5_000  # rows; Milvus returns at most 16,384, and an embedded one searches again for each page
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_INT64, _VECTORS = 5, range(100, 200)  # the numbers of its data types
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection, as it is now.

    Attributes:
        client: The `MilvusClient` that it is read by.
        name: Its name.
        primary: The field with the ids of its rows.
        numbered: Whether Milvus numbers the rows as they are added.
        fields: Its fields apart from vectors.
        dynamic: Whether rows may have fields of their own.
    """

    client: Any
    name: str
    primary: str
    numbered: bool
    fields: frozenset[str]
    dynamic: bool

    @classmethod
    def of(cls, client: Any, name: str) -> Collection:
        """Describe a collection.

        Raises:
            MilvusException: There is none of this name, or no connection.
        """
        about = client.describe_collection(name)
        primary = next(field for field in about["fields"] if field.get("is_primary"))
        names = frozenset(field["name"] for field in about["fields"] if int(field["type"]) not in _VECTORS)
        numbered = bool(primary.get("auto_id") or about.get("auto_id")) and int(primary["type"]) == _INT64
        return cls(client, name, primary["name"], numbered, names, bool(about.get("enable_dynamic_field")))

    def path(self, key: str) -> str | None:
        """Return how a filter names a field; None if no row has it."""
        if key in self.fields:
            return key
        return f"$meta[{literal(key)}]" if self.dynamic else None

    def rows(self, where: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """Yield all rows that meet all conditions, without their vectors, in the order of their ids; none for None.

        Raises:
            ConfigurationError: Milvus returned a page in another order, so that rows may be missing.
        """
        return self._paged(where, [*sorted(self.fields), *(["$meta"] if self.dynamic else [])])

    def ids(self, where: Sequence[str] | None) -> list[str]:
        """Return the ids of these rows."""
        return [str(row[self.primary]) for row in self._paged(where, [self.primary])]

    def _paged(self, where: Sequence[str] | None, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
        last: Any = None
        while where is not None:
            conditions = [f"({condition})" for condition in where if condition.strip()]
            conditions += [] if last is None else [f"{self.primary} > {literal(last)}"]
            pages = self.client.query_iterator(
                self.name, batch_size=PAGE, filter=" and ".join(conditions), output_fields=list(fields)
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
        ids = [row[self.primary] for row in page]
        if any(one > other for one, other in pairwise(ids)):
            msg = (
                f"Milvus listed rows of {self.name!r} in no order, so that some may be missing: upgrade pymilvus and "
                "milvus-lite, or the server"
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
