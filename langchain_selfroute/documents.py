"""Reads the documents of the second step from whatever the chain was given."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor, set_config_context

from selfroute.documents.rebuild import original_label
from selfroute.errors import ReplyError
from selfroute.performing import items_of

Given: TypeAlias = dict[str, Any]
Source: TypeAlias = (
    list[Document] | Runnable[Any, Any] | Callable[[Given], Iterable[Document] | Awaitable[Iterable[Document]]]
)


def read(source: Source, given: Given, config: RunnableConfig) -> list[Document]:
    """Read the documents.

    Args:
        source: A list of documents, or a runnable or callable that is given `given`.
        given: The chain's inputs and the `retrieved` passages.
        config: The config of the run that reads; what the source runs becomes its child.

    Returns:
        The documents, best first.

    Raises:
        ReplyError: The source returned something else, or has to be awaited.
    """
    if isinstance(source, list):
        return source
    found = _within(config, _call(source, config), given)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        msg = "documents is async: call ainvoke or astream, or give the chain a sync callable"
        raise ReplyError(msg)
    return documents_of(found, "documents")


async def aread(source: Source, given: Given, config: RunnableConfig) -> list[Document]:
    """As `read`; a sync callable runs in a thread, so that the event loop goes on."""
    if isinstance(source, list):
        return source
    if isinstance(source, Runnable):
        found: Any = source.ainvoke(given, config)
    elif inspect.iscoroutinefunction(source) or inspect.iscoroutinefunction(type(source).__call__):
        found = source(given)
    else:
        found = await run_in_executor(None, _within, config, _call(source, config), given)
    if inspect.isawaitable(found):
        with set_config_context(config) as context:
            found = await context.run(asyncio.ensure_future, found)
    return documents_of(found, "documents")


def _call(source: Source, config: RunnableConfig) -> Callable[[Given], Any]:
    return partial(source.invoke, config=config) if isinstance(source, Runnable) else cast("Any", source)


def _within(config: RunnableConfig, call: Callable[[Given], Any], given: Given) -> Any:
    """Call with the config in the context, where runnables inside look for their parent run."""
    with set_config_context(config) as context:
        return context.run(call, given)


def documents_of(found: Any, what: str) -> list[Document]:
    """Check that a part which the user supplied returned documents.

    Raises:
        ReplyError: It did not; the message names the part.
    """
    return items_of(found, Document, what=f"{what} must return a list of Documents")


def trimmed(document: Document, text: str) -> Document:
    """Return a copy of a document with less text, marked so in `metadata["selfroute"]`."""
    label = {**original_label(), **label_of(document), "trimmed": True}
    return Document(page_content=text, metadata={**document.metadata, "selfroute": label}, id=document.id)


def label_of(document: Document) -> Mapping[str, Any]:
    """Return how a document was assembled, from `metadata["selfroute"]`; empty if somebody else uses that key."""
    label = document.metadata.get("selfroute")
    return label if isinstance(label, Mapping) else {}
