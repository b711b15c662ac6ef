"""Read the documents of the second step from whatever the chain was given as `documents`."""

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
        source: A list of documents, or a runnable or callable that takes `given`.
        given: The chain's inputs and the `retrieved` passages.
        config: The config of the run that reads the documents; the source's own runs become its children.

    Returns:
        The documents, best first.

    Raises:
        ReplyError: The source returned something else, or must be awaited.
    """
    if isinstance(source, list):
        return source
    found = _within(config, _call(source, config), given)
    if inspect.isawaitable(found):
        if hasattr(found, "close"):
            found.close()
        msg = "documents is async: call ainvoke or astream, or pass a sync callable"
        raise ReplyError(msg)
    return documents_of(found, "documents")


async def aread(source: Source, given: Given, config: RunnableConfig) -> list[Document]:
    """Do as `read` does, asynchronously; a sync callable runs in a thread, so that it does not block the event loop."""
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
    """Call with the config in the context, where runnables within look for their parent run."""
    with set_config_context(config) as context:
        return context.run(call, given)


def documents_of(found: Any, what: str) -> list[Document]:
    """Return what a component supplied by the user returned, as a list of documents.

    Args:
        found: What it returned.
        what: The name of the component, for the error message.

    Raises:
        ReplyError: It returned something else.
    """
    return items_of(found, Document, what=f"{what} must return a list of Documents")


def labelled(document: Document, text: str, **label: Any) -> Document:
    """Return a copy of a document with another text and with this label in `metadata["selfroute"]`."""
    how = {**original_label(), **label_of(document), **label}
    return Document(page_content=text, metadata={**document.metadata, "selfroute": how}, id=document.id)


def label_of(document: Document) -> Mapping[str, Any]:
    """Return how a document was assembled, from `metadata["selfroute"]`; empty if that is missing or not ours."""
    label = document.metadata.get("selfroute")
    return label if isinstance(label, Mapping) else {}
