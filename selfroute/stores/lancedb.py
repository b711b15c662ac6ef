"""List the rows of LanceDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores.listing import Listing

PAGE = 2_000  # rows that are turned into Python's objects at once


class LanceDB(Listing):
    """The rows of a table, in the order in which they were added. Conditions are in SQL."""

    def __init__(self, table: Any, *, id: str, text: str, metadata: str, own: str | None = None) -> None:  # noqa: A002
        """Take a table.

        Args:
            table: The table; None if it does not exist yet.
            id: The column of a row's id.
            text: The column of its text.
            metadata: The column of its metadata.
            own: A column that names a row's document; other names are fields of its metadata.
        """
        self._table, self._id, self._columns = table, id, [id, text, metadata]
        self._metadata, self._own = metadata, own

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield the rows that have the source.

        Raises:
            ConfigurationError: LanceDB lists fewer rows than it counts, or cannot apply the conditions.
        """
        for row in self._rows(key, source, conditions, self._columns):
            id_, text, metadata = (row[name] for name in self._columns)
            yield StoredChunk(id_ or "", text or "", metadata or {})

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these rows."""
        return [row[self._id] for row in self._rows(key, source, conditions, [self._id])]

    def _rows(
        self, key: str, source: Any, conditions: Sequence[Any], columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        within = None if key == self._own else self._metadata
        kind = None if self._table is None else fields_of(self._table, within).get(key)
        if kind is None or isinstance(source, str) != ("string" in kind):
            return iter(())  # no chunk can have this source; LanceDB does not compare texts with numbers
        path = [key] if within is None else [within, key]
        return rows_of(self._table, [f"{column(*path)} = {literal(source)}", *conditions], columns)


def rows_of(table: Any, where: Iterable[str], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield all rows that meet all conditions, in the order in which they were added.

    Args:
        table: The table.
        where: The conditions, in SQL.
        columns: The columns to read.

    Raises:
        ConfigurationError: LanceDB lists fewer rows than it counts, or cannot apply the conditions.
    """
    condition = " AND ".join(f"({each}\n)" for each in where if each.strip())  # a comment may end a condition
    try:
        count, listed = table.count_rows(condition), 0
        # Without a limit, older versions list ten rows, and newer ones all.
        query = table.search().where(condition, prefilter=True).select(list(columns)).limit(None)
        for batch in query.to_batches(PAGE):
            listed += batch.num_rows
            yield from batch.to_pylist()
        is_whole = listed >= count or listed >= table.count_rows(condition)  # rows may have been deleted meanwhile
    except (ValueError, RuntimeError) as error:  # the latter by older versions
        msg = (
            f"LanceDB cannot apply {condition!r}: {error}; if the filter is right, call table.optimize(), since it "
            "cannot filter rows that were added with fewer keys of metadata than others"
        )
        raise ConfigurationError(msg) from error
    if not is_whole:
        msg = f"LanceDB listed {listed:,} of {count:,} rows: the rest of the document is missing"
        raise ConfigurationError(msg)


def column(*path: str) -> str:
    """Return how SQL names a column, or a field within one."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def literal(value: Any) -> str:
    """Return a value as it is written in SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def fields_of(table: Any, within: str | None = None) -> dict[str, str]:
    """Return the columns of a table and the names of their types, or the fields within one, if it is there."""
    schema = table.schema
    if within is None:
        fields = [schema.field(name) for name in schema.names]
    else:
        kind = schema.field(within).type if within in schema.names else None
        fields = [] if kind is None else [kind.field(at) for at in range(kind.num_fields)]
    return {field.name: str(field.type) for field in fields}


def place_of(connection: Any, table: str | None) -> tuple[str, str] | None:
    """Return what identifies a table, also for other connections to its place; None for one in memory."""
    place = str(getattr(connection, "uri", None) or "memory:")
    return (place, table) if table and not place.startswith("memory:") else None
