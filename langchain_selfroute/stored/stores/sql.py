"""Run a statement on an async engine of SQLAlchemy from sync code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
        return thread.submit(asyncio.run, _apart(engine, statement, made)).result()


async def _all(engine: Any, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
    async with engine.connect() as connection:
        return list(map(made, await connection.execute(statement)))


async def _apart(engine: Any, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
    """Run it on a new connection, since those of the engine belong to another loop.

    It is made as theirs are, with the same arguments and listeners: these may say which schema it sees.
    """
    from sqlalchemy import Engine  # noqa: PLC0415 - only where it is used
    from sqlalchemy.ext.asyncio import AsyncEngine  # noqa: PLC0415

    theirs = engine.sync_engine
    options = theirs.get_execution_options()
    own = AsyncEngine(Engine(theirs.pool.recreate(), theirs.dialect, theirs.url, execution_options=options))
    try:
        return await _all(own, statement, made)
    finally:
        await own.dispose()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
