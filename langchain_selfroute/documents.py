"""Read whole documents from what the user passed as `documents`, and call what else the user supplied."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor, set_config_context

from selfroute.calls.host import items_of
from selfroute.documents.rebuild import labelled_with
from selfroute.effects import ReadDocuments
from selfroute.errors import ReplyError

Source: TypeAlias = (
    list[Document] | Runnable[Any, Any] | Callable[[dict[str, Any]], Iterable[Document] | Awaitable[Iterable[Document]]]
)


def read(source: Source, given: dict[str, Any], config: RunnableConfig) -> list[Document]:
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
    return documents_of(call(source, given, config, name="documents"), "documents")


async def aread(source: Source, given: dict[str, Any], config: RunnableConfig) -> list[Document]:
    """Do as `read` does, asynchronously; a sync callable runs in a thread, so that it does not block the event loop."""
    if isinstance(source, list):
        return source
    return documents_of(await acall(source, given, config), "documents")


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
    bound = partial(supplied.invoke, config=config) if isinstance(supplied, Runnable) else supplied
    found = _within(config, bound, given)
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


def _within(config: RunnableConfig, bound: Callable[[Any], Any], given: Any) -> Any:
    """Call with the config in the context, where runnables within look for their parent run."""
    with set_config_context(config) as context:
        return context.run(bound, given)


def documents_of(found: Any, what: str) -> list[Document]:
    """Check what a component of the user's returned, and return it as a list of documents.

    Args:
        found: What it returned.
        what: The name of the component, for the error message.

    Raises:
        ReplyError: It returned something else.
    """
    return items_of(found, Document, what=f"{what} must return a list of Documents")


def labelled(document: Document, text: str, /, **label: Any) -> Document:
    """Return a copy of a document with another text and with this label in `metadata["selfroute"]`."""
    how = labelled_with(label_of(document), label)
    return Document(page_content=text, metadata={**document.metadata, "selfroute": how}, id=document.id)


def label_of(document: Document) -> Mapping[str, Any]:
    """Return how a document was assembled, from `metadata["selfroute"]`; empty if that is missing or not ours."""
    label = document.metadata.get("selfroute")
    return label if isinstance(label, Mapping) else {}


def inputs_of_reading(question: str, effect: ReadDocuments) -> dict[str, Any]:
    """Return the inputs that a run which reads documents records: no text of passages."""
    inputs = {"input": question, "retrieved": len(effect.passages)}
    return inputs if effect.too_long is None else {**inputs, "too_long": str(effect.too_long)[:500]}


def outputs_of_reading(read: Sequence[Document], source_of: Callable[[Document], Any]) -> dict[str, Any]:
    """Return the outputs that a run which reads documents records: their names and lengths, but no text."""
    return {
        "documents": [
            {"source": str(source_of(one) or ""), "characters": len(one.page_content), **label_of(one)} for one in read
        ]
    }
