"""Reads the documents of the second step from whatever the engine was given, and fits them to the window."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeAlias, TypeVar

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore, SimpleDocumentStore
from typing_extensions import Self, override

from llamaindex_selfroute.convert import LABEL
from selfroute.documents import Chunk, Count, fit, rebuild
from selfroute.errors import ConfigurationError, DocumentNotFoundError, ReplyError

Result = TypeVar("Result")
Found: TypeAlias = Iterable["BaseNode | NodeWithScore"]
Source: TypeAlias = "Sequence[BaseNode] | Callable[[list[NodeWithScore], QueryBundle], Found | Awaitable[Found]]"


def checked_documents(documents: Any) -> Source:
    """Check the documents that an engine is given.

    Raises:
        ConfigurationError: They are neither a list of Documents nor a callable, or the list is empty.
    """
    if callable(documents):
        return documents  # type: ignore[no-any-return]
    if isinstance(documents, list | tuple) and all(isinstance(document, BaseNode) for document in documents):
        if documents:
            return documents
        msg = "documents is empty: the second step would have nothing to read"
        raise ConfigurationError(msg)
    msg = (
        "documents must be a list of Documents, or a callable, sync or async, that is given (nodes, query_bundle) and "
        f"returns them; it is {type(documents).__name__}"
    )
    raise ConfigurationError(msg)


def read(source: Source, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
    """Read the documents.

    Args:
        source: A list of documents, or a callable that is given the nodes and the query.
        nodes: What was retrieved, best first.
        query: The query.

    Returns:
        Copies of the documents, best first, each labelled with how it was come by.

    Raises:
        ReplyError: The source returned something else.
    """
    if not callable(source):
        return _copies(source)
    found: Any = source(list(nodes), query)
    if inspect.isawaitable(found):
        with ThreadPoolExecutor(1) as thread:  # there may be a loop running in this one
            found = thread.submit(copy_context().run, asyncio.run, _await(found)).result()
    return _copies(found)


async def aread(source: Source, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
    """As `read`; a sync callable runs in a thread, so that the event loop goes on."""
    if not callable(source):
        return _copies(source)
    if inspect.iscoroutinefunction(source) or inspect.iscoroutinefunction(type(source).__call__):
        found: Any = source(list(nodes), query)
    else:
        found = await in_thread(source, list(nodes), query)
    return _copies(await found if inspect.isawaitable(found) else found)


async def in_thread(call: Callable[..., Result], *args: Any) -> Result:
    """Call in a thread; a `StopIteration`, which no future can carry, is a `RuntimeError` there as in a generator."""

    def guarded() -> Result:
        try:
            return call(*args)
        except StopIteration as stop:
            msg = f"{call} raised StopIteration"
            raise RuntimeError(msg) from stop

    return await asyncio.to_thread(guarded)


async def _await(found: Awaitable[Found]) -> Found:
    return await found


def _copies(found: Any) -> list[NodeWithScore]:
    if isinstance(found, Iterable) and not isinstance(found, str | BaseNode | NodeWithScore | Mapping):
        items = list(found)
        strangers = [item for item in items if not isinstance(item, BaseNode | NodeWithScore)]
        if not strangers:
            return [_labelled(item) for item in items]
        found = strangers[0]
    msg = f"documents must return a list of Documents; got {type(found).__name__}"
    raise ReplyError(msg)


class WholeDocument(NodeWithScore):
    """A document that was read whole, or as much of it as fits, among a response's `source_nodes`."""

    @property
    @override
    def text(self) -> str:
        """Its text; the host's own refuses a node that is no TextNode, which an answer from passages never has."""
        return self.node.get_content()

    @override
    def get_text(self) -> str:
        return self.text


def _labelled(item: BaseNode | NodeWithScore, **label: Any) -> WholeDocument:
    """A copy that says how the document was come by, out of the sight of models and embeddings."""
    node, score = (item.node, item.score) if isinstance(item, NodeWithScore) else (item, None)
    known = node.metadata.get(LABEL)
    how = {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, LABEL: {**how, **(known if isinstance(known, Mapping) else {}), **label}},
            "excluded_llm_metadata_keys": [*dict.fromkeys([*node.excluded_llm_metadata_keys, LABEL])],
            "excluded_embed_metadata_keys": [*dict.fromkeys([*node.excluded_embed_metadata_keys, LABEL])],
        }
    )
    return WholeDocument(node=copy, score=score)


def fitted(
    documents: Sequence[NodeWithScore], *, retrieved: Sequence[NodeWithScore], budget: int | None, count: Count
) -> list[NodeWithScore]:
    """Take documents, best first, until the budget is full; trim the one that does not fit.

    Returns:
        The documents, the trimmed one labelled so; empty if there is no text at all.
    """
    texts = [item.node.get_content() for item in documents]
    passages = [item.node.get_content() for item in retrieved]
    taken = []
    parts = fit(texts, passages=passages, budget=budget, count=count)
    for part in parts:
        item = documents[part.index]
        if part.trimmed:
            item = _labelled(item, trimmed=True)
            item.node.set_content(part.text)
        taken.append(item)
    return taken if any(part.text and not part.text.isspace() for part in parts) else []


class DocstoreDocuments:
    """The documents that were hit, out of an index's docstore: the originals, or put together from their nodes."""

    def __init__(self, docstore: BaseDocumentStore) -> None:
        self._docstore = docstore

    @classmethod
    def of(cls, index: BaseIndex[Any]) -> Self:
        """The documents of an index.

        Raises:
            ConfigurationError: Its docstore is empty.
        """
        docstore = index.docstore
        # Any other docstore may be filled from elsewhere, and is not worth reading whole to find out.
        elsewhere = getattr(getattr(index, "vector_store", None), "stores_text", False)
        if elsewhere and isinstance(docstore, SimpleDocumentStore) and not docstore.docs:
            msg = (
                "the index's docstore is empty, since its vector store keeps the text: give the engine documents=, a "
                "list of Documents or a callable that returns them"
            )
            raise ConfigurationError(msg)
        return cls(docstore)

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:  # noqa: ARG002
        """Read the documents behind the nodes, best first, each once.

        Raises:
            DocumentNotFoundError: The docstore does not hold one of them (a `LookupError`).
        """
        return [self._document(name) for name in dict.fromkeys(item.node.ref_doc_id for item in nodes)]

    def _document(self, name: str | None) -> BaseNode:
        original = self._docstore.get_document(name, raise_error=False) if name else None
        if original is not None:
            return original
        info = self._docstore.get_ref_doc_info(name) if name else None
        if info is None:
            msg = (
                f"the index's docstore does not hold the document {name!r}, nor its nodes: give the engine documents=, "
                "or keep the originals with index.docstore.add_documents(documents)"
            )
            raise DocumentNotFoundError(msg)
        nodes = self._docstore.get_nodes(info.node_ids)
        whole = rebuild([Chunk(node.get_content(), getattr(node, "start_char_idx", None)) for node in nodes])
        label = {"method": whole.method, "chunks": len(nodes), "gaps": [list(gap) for gap in whole.gaps]}
        shared = {k: v for k, v in nodes[0].metadata.items() if all(node.metadata.get(k) == v for node in nodes)}
        return Document(
            id_=name,
            text=whole.text,
            metadata={**shared, LABEL: {**label, "trimmed": False}},
            excluded_llm_metadata_keys=nodes[0].excluded_llm_metadata_keys,
            excluded_embed_metadata_keys=nodes[0].excluded_embed_metadata_keys,
        )
