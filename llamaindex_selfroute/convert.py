"""Convert between LlamaIndex and the core: queries, prompts, nodes and documents; and call what the user supplied."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeAlias, TypeVar

from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from typing_extensions import override

from selfroute.calls.host import check_question, items_of
from selfroute.documents.label import KEY, label_in, labelled_with

_CITED = re.compile(r"Source \d+:\n")  # what LlamaIndex's CitationQueryEngine puts before the nodes that it retrieves

Result = TypeVar("Result")
ReadNodes: TypeAlias = Iterable["BaseNode | NodeWithScore"]
Source: TypeAlias = (
    "Sequence[BaseNode] | Callable[[list[NodeWithScore], QueryBundle], ReadNodes | Awaitable[ReadNodes]]"
)


def bundle_of(query: Any) -> QueryBundle:
    """Return a query as LlamaIndex's bundle, checked.

    Raises:
        InputError: It is not a question.
    """
    bundle = QueryBundle(query) if isinstance(query, str) else query
    check_question(getattr(bundle, "query_str", bundle))
    return bundle


def retrieved_text(node: BaseNode) -> str:
    """Return the text of a retrieved node as it is in its document: without the number that cites it."""
    text = node.get_content()
    return text[label.end() :] if (label := _CITED.match(text)) else text


def read(source: Source, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
    """Read the documents.

    Args:
        source: A list of documents, or a callable that takes the nodes and the query.
        nodes: The retrieved nodes, best first.
        query: The query.

    Returns:
        Copies of the documents, best first, each labelled with how it was assembled.

    Raises:
        ReplyError: The source returned something else.
    """
    return _copies(call(source, list(nodes), query) if callable(source) else source)


async def aread(source: Source, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
    """The async twin of `read`; a sync callable runs in a thread, so that it does not block the event loop."""
    return _copies(await acall(source, list(nodes), query) if callable(source) else source)


def call(supplied: Callable[..., Any], *given: Any) -> Any:
    """Call what the user supplied, sync or async."""
    found = supplied(*given)
    if inspect.isawaitable(found):
        with ThreadPoolExecutor(1) as thread:  # an event loop may be running in this thread
            found = thread.submit(copy_context().run, asyncio.run, _await(found)).result()
    return found


async def acall(supplied: Callable[..., Any], *given: Any) -> Any:
    """The async twin of `call`; a sync callable runs in a thread, so that it does not block the event loop."""
    if inspect.iscoroutinefunction(supplied) or inspect.iscoroutinefunction(type(supplied).__call__):
        found: Any = supplied(*given)
    else:
        found = await in_thread(supplied, *given)
    return await found if inspect.isawaitable(found) else found


async def in_thread(call: Callable[..., Result], *args: Any) -> Result:
    """Call a function in a thread; turn a `StopIteration`, which a future cannot carry, into a `RuntimeError`."""

    def guarded() -> Result:
        try:
            return call(*args)
        except StopIteration as stop:
            msg = f"{call} raised StopIteration"
            raise RuntimeError(msg) from stop

    return await asyncio.to_thread(guarded)


async def _await(found: Awaitable[ReadNodes]) -> ReadNodes:
    return await found


def _copies(found: Any) -> list[NodeWithScore]:
    items = items_of(found, (NodeWithScore, BaseNode), what="documents must return a list of Documents")
    return [labelled(item) for item in items]


class WholeDocument(NodeWithScore):
    """A document in the `source_nodes` of a response: the whole of it, or as much as fits the window."""

    @property
    @override
    def text(self) -> str:
        """The text of the document. LlamaIndex's own property raises for nodes other than TextNodes."""
        return self.node.get_content()

    @override
    def get_text(self) -> str:
        return self.text


def labelled(item: BaseNode | NodeWithScore, text: str | None = None, /, **label: Any) -> WholeDocument:
    """Return a copy, with another text if there is one, whose metadata says how the document was assembled.

    That is hidden from models and embeddings.
    """
    node, score = (item.node, item.score) if isinstance(item, NodeWithScore) else (item, None)
    whole = node.get_content()
    how = labelled_with(label_in(node.metadata, whole), label, whole if text is None else text)
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, KEY: how},
            "excluded_llm_metadata_keys": [*dict.fromkeys([*node.excluded_llm_metadata_keys, KEY])],
            "excluded_embed_metadata_keys": [*dict.fromkeys([*node.excluded_embed_metadata_keys, KEY])],
        }
    )
    if text is not None:
        copy.set_content(text)
    return WholeDocument(node=copy, score=score)


def trimmed(item: NodeWithScore, text: str, /, **label: Any) -> NodeWithScore:
    """Return a copy of a document with another text and with this label in `metadata["selfroute"]`."""
    return labelled(item, text, **label)
