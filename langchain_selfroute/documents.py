"""Read the documents of the second step from whatever the chain was given as `documents`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute.calling import acall, call
from selfroute.calls.checks import items_of
from selfroute.documents.rebuild import labelled_with

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
    return documents_of(call(source, given, config, name="documents"), "documents")


async def aread(source: Source, given: Given, config: RunnableConfig) -> list[Document]:
    """Do as `read` does, asynchronously; a sync callable runs in a thread, so that it does not block the event loop."""
    if isinstance(source, list):
        return source
    return documents_of(await acall(source, given, config), "documents")


def documents_of(found: Any, what: str) -> list[Document]:
    """Return what a component supplied by the user returned, as a list of documents.

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
