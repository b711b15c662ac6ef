"""Run a statement on an async engine of SQLAlchemy from sync code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Made = TypeVar("Made")


def fetched(
    engine: Any, statement: Any, made: Callable[[Any], Made], *, loop: asyncio.AbstractEventLoop | None = None
) -> list[Made]:
    """Return what is made of each row of a statement.

    Args:
        engine: An `AsyncEngine`.
        statement: What to run.
        made: Takes a row.
        loop: The event loop that the engine's connections belong to, if that is known.
    """
    if loop is not None and loop.is_running() and loop is not _running():
        return asyncio.run_coroutine_threadsafe(_all(engine, statement, made), loop).result()
    with ThreadPoolExecutor(1) as thread:  # this one may be running a loop
        return thread.submit(copy_context().run, asyncio.run, _apart(engine, statement, made)).result()


async def _all(engine: Any, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
    async with engine.connect() as connection:
        return list(map(made, await connection.execute(statement)))


async def _apart(engine: Any, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
    """Run it on a new connection, since those of the engine belong to another loop.

    It is made as theirs are, and used through the engine itself: its listeners may say which rows it sees.
    """
    from sqlalchemy import Connection  # noqa: PLC0415 - only where it is used
    from sqlalchemy.util import greenlet_spawn  # noqa: PLC0415

    theirs = engine.sync_engine

    def rows() -> list[Made]:
        pool = theirs.pool.recreate()
        try:
            with Connection(theirs, pool.connect()) as connection:
                return list(map(made, connection.execute(statement)))
        finally:
            pool.dispose()

    found: list[Made] = await greenlet_spawn(rows)
    return found


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
