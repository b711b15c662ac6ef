"""List the rows of tables through SQLAlchemy, whose engines may be sync or async."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any, TypeAlias

from selfroute.documents.access import StoredChunk
from selfroute.stores.listing import Listing

Run: TypeAlias = Callable[[Any], Sequence[Any]]
"""Runs a statement and returns its rows."""


class Sql(Listing):
    """The rows of a table. Conditions are clauses of SQLAlchemy, in which values are bound.

    All rows are fetched before the first is used, so that no connection is kept meanwhile.
    """

    def __init__(  # noqa: PLR0913 - the layout of a table
        self,
        sa: Any,
        run: Run,
        *,
        id: Any,  # noqa: A002
        text: Any,
        metadata: Any,
        fields: Mapping[str, Any] | None = None,
        own: Callable[[str, Any], Any],
        order_by: Any = None,
    ) -> None:
        """Take what runs a statement.

        Args:
            sa: The module `sqlalchemy`.
            run: Runs a statement.
            id: The column of a row's id.
            text: The column of its text.
            metadata: The column of its metadata; SQL's NULL if it has none.
            fields: Columns that are part of its metadata, by their keys.
            own: Takes key and source; returns the clause that a row is of that source.
            order_by: The column that says in which order rows were added. Without it rows have no order: Postgres puts
                new rows where old ones were deleted.
        """
        self._sa, self._run, self._id, self._own, self._order_by = sa, run, id, own, order_by
        self._fields = fields or {}
        self._columns = [id, text, metadata, *self._fields.values()]
        self.ordered = order_by is not None

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield the rows that have the source."""
        for id_, text, metadata, *values in self._selected(self._columns, key, source, conditions):
            fields = dict(zip(self._fields, values, strict=True))
            yield StoredChunk(str(id_), text or "", {**(metadata or {}), **fields})

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these rows, each once."""
        return list(dict.fromkeys(str(id_) for (id_,) in self._selected([self._id], key, source, conditions)))

    def _selected(self, columns: Sequence[Any], key: str, source: Any, conditions: Sequence[Any]) -> Sequence[Any]:
        statement = self._sa.select(*columns).where(self._own(key, source), *conditions)
        return self._run(statement if self._order_by is None else statement.order_by(self._order_by))


def in_session(opened: Callable[[], AbstractContextManager[Any]]) -> Run:
    """Return a function that executes SQL on the session's connection; bypasses the slow ORM."""

    def run(statement: Any) -> list[Any]:
        with opened() as session:
            return list(session.connection().execute(statement))

    return run


def on_async_engine(sa: Any, engine: Any, loop: asyncio.AbstractEventLoop | None = None) -> Run:
    """Return what runs a statement on an `AsyncEngine` from sync code.

    Args:
        sa: The module `sqlalchemy`.
        engine: The engine.
        loop: The event loop that its connections belong to, if that is known.
    """

    def run(statement: Any) -> list[Any]:
        if loop is not None and loop.is_running() and loop is not _running():
            return asyncio.run_coroutine_threadsafe(_all(engine, statement), loop).result()
        with ThreadPoolExecutor(1) as thread:  # this one may be running a loop
            return thread.submit(copy_context().run, asyncio.run, _apart(sa, engine, statement)).result()

    return run


async def _all(engine: Any, statement: Any) -> list[Any]:
    async with engine.connect() as connection:
        return list(await connection.execute(statement))


async def _apart(sa: Any, engine: Any, statement: Any) -> list[Any]:
    """Run it on a new connection, since those of the engine belong to another loop.

    It is made as theirs are, and used through the engine itself: its listeners may say which rows it sees.
    """
    theirs = engine.sync_engine

    def rows() -> list[Any]:
        pool = theirs.pool.recreate()
        try:
            with sa.Connection(theirs, pool.connect()) as connection:
                return list(connection.execute(statement))
        finally:
            pool.dispose()

    found: list[Any] = await sa.util.greenlet_spawn(rows)
    return found


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
