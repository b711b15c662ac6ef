"""List rows of LanceDB, for both frameworks; its tables are the same in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from selfroute.errors import ConfigurationError

PAGE = 2_000  # rows that are turned into Python's objects at once


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
        yield from _listed(table, condition, columns)
    except (ValueError, RuntimeError) as error:  # the latter by older versions
        if isinstance(error, ConfigurationError):
            raise
        msg = (
            f"LanceDB cannot apply {condition!r}: {error}; if the filter is right, call table.optimize(), since it "
            "cannot filter rows that were added with fewer keys of metadata than others"
        )
        raise ConfigurationError(msg) from error


def _listed(table: Any, condition: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    count, listed = table.count_rows(condition), 0
    # Without a limit, older versions list ten rows, and newer ones all.
    query = table.search().where(condition, prefilter=True).select(list(columns)).limit(None)
    for batch in query.to_batches(PAGE):
        listed += batch.num_rows
        yield from batch.to_pylist()
    if listed < count and listed < table.count_rows(condition):  # rows may have been deleted meanwhile
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


def fields_of(table: Any, name: str) -> dict[str, str]:
    """Return the fields within a column and the names of their types; none if there is no such column."""
    schema = table.schema
    if name not in schema.names:
        return {}
    kind = schema.field(name).type
    fields = (kind.field(at) for at in range(kind.num_fields))
    return {field.name: str(field.type) for field in fields}
