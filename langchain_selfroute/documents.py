"""Reads the documents of the second step from whatever the chain was given, and fits them to the window."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor, set_config_context

from selfroute.documents.rebuild import original_label
from selfroute.documents.sizes import Lengths, Size
from selfroute.documents.window import Count, fit
from selfroute.errors import ReplyError

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
        found = await run_in_executor(None, _within, config, source, given)
    if inspect.isawaitable(found):
        with set_config_context(config) as context:
            found = await context.run(asyncio.ensure_future, found)
    return documents_of(found, "documents")


def lengths(documents: Sequence[Document]) -> Lengths:
    """What tells how long the documents of a list are."""
    size = Size(None, sum([len(document.page_content) for document in documents]))
    return lambda: [size]


def _call(source: Source, config: RunnableConfig) -> Callable[[Given], Any]:
    return partial(source.invoke, config=config) if isinstance(source, Runnable) else cast("Any", source)


def _within(config: RunnableConfig, call: Callable[[Given], Any], given: Given) -> Any:
    """Call with the config in the context, where runnables inside look for their parent run."""
    with set_config_context(config) as context:
        return context.run(call, given)


def documents_of(found: Any, what: str) -> list[Document]:
    """Check that a user's part returned documents.

    Raises:
        ReplyError: It did not; the message names the part.
    """
    if type(found) is list or (isinstance(found, Iterable) and not isinstance(found, str | Document | Mapping)):
        documents = list(found)
        strangers = [item for item in documents if type(item) is not Document and not isinstance(item, Document)]
        if not strangers:
            return documents
        found = strangers[0]
    msg = f"{what} must return a list of Documents; got {type(found).__name__}"
    raise ReplyError(msg)


def fitted(
    documents: Sequence[Document], *, retrieved: Sequence[Document], budget: int | None, count: Count
) -> list[Document]:
    """Take documents, best first, until the budget is full; trim the one that does not fit.

    Returns:
        The documents as they are, and a copy of the trimmed one with `metadata["selfroute"]["trimmed"]`
        set; empty if there is no text at all.
    """
    texts = [document.page_content for document in documents]
    passages = [passage.page_content for passage in retrieved]
    taken = []
    for part in fit(texts, passages=passages, budget=budget, count=count):
        document = documents[part.index]
        if part.trimmed:
            label = {**original_label(), **label_of(document), "trimmed": True}
            metadata = {**document.metadata, "selfroute": label}
            document = Document(page_content=part.text, metadata=metadata, id=document.id)
        taken.append(document)
    return taken if any(item.page_content and not item.page_content.isspace() for item in taken) else []


def label_of(document: Document) -> Mapping[str, Any]:
    """What `metadata["selfroute"]` says of how a document was come by; empty if the key is somebody else's."""
    label = document.metadata.get("selfroute")
    return label if isinstance(label, Mapping) else {}
