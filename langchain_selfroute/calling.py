"""Call what the user supplied, a runnable or a callable, sync or async, within the run of a chain."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor, set_config_context

from selfroute.errors import ReplyError


def call(supplied: Any, given: Any, config: RunnableConfig, *, name: str) -> Any:
    """Call a runnable or a callable.

    Args:
        supplied: The runnable or callable.
        given: What it takes.
        config: The config; its runs become children of the run whose callbacks this has.
        name: The name of the chain's field, for error messages.

    Raises:
        ReplyError: The result must be awaited.
    """
    found = _within(config, _bound(supplied, config), given)
    if inspect.isawaitable(found):
        if hasattr(found, "close"):
            found.close()
        msg = f"{name} is async: call ainvoke or astream, or pass a sync callable"
        raise ReplyError(msg)
    return found


async def acall(supplied: Any, given: Any, config: RunnableConfig) -> Any:
    """Do as `call` does, asynchronously; a sync callable runs in a thread, so that it does not block the event loop."""
    if isinstance(supplied, Runnable):
        found: Any = supplied.ainvoke(given, config)
    elif inspect.iscoroutinefunction(supplied) or inspect.iscoroutinefunction(type(supplied).__call__):
        found = supplied(given)
    else:
        found = await run_in_executor(None, _within, config, supplied, given)
    if inspect.isawaitable(found):
        with set_config_context(config) as context:
            found = await context.run(asyncio.ensure_future, found)
    return found


def _bound(supplied: Any, config: RunnableConfig) -> Callable[[Any], Any]:
    return partial(supplied.invoke, config=config) if isinstance(supplied, Runnable) else supplied


def _within(config: RunnableConfig, bound: Callable[[Any], Any], given: Any) -> Any:
    """Call with the config in the context, where runnables within look for their parent run."""
    with set_config_context(config) as context:
        return context.run(bound, given)
