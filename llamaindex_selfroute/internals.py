"""Use those parts of LlamaIndex that are not public. All such uses are in this module.

Nothing here can fail at import. If LlamaIndex has changed, a `ConfigurationError` names the supported versions, or the
filter of a retriever is reported as unknown, so that nothing unverified is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, singledispatchmethod
from inspect import unwrap
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from llama_index.core import instrumentation
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores import MetadataFilters, simple

from llamaindex_selfroute import known
from selfroute.documents.access import frozen, is_one_of, is_same
from selfroute.errors import ConfigurationError

Engine = TypeVar("Engine")
Method = TypeVar("Method", bound=Callable[..., Any])

_SELECTING = (
    *("retrieve", "_apply_node_postprocessors", "_query"),
    *("aretrieve", "_async_apply_node_postprocessors", "_aquery"),
)
_ASKED: Mapping[type, str] = {
    QueryFusionRetriever: "_retrievers",
    RouterRetriever: "_retrievers",
    RecursiveRetriever: "_retriever_dict",
    AutoMergingRetriever: "_vector_retriever",
    TransformRetriever: "_retriever",
}
_LIMITS = ("_filters", "_doc_ids", "_node_ids", "_kwargs", "corpus", "corpus_weight_mask")
_COPIES: WeakKeyDictionary[BaseRetriever, dict[str, Any]] = WeakKeyDictionary()  # of what limits them
_SUPPORTED = "llama-index-core 0.12.52 to 0.14"


@dataclass(frozen=True, slots=True)
class Search:
    """How a `VectorIndexRetriever` searches.

    Attributes:
        filters: The filters that nodes have to meet.
        documents: The ids of the only documents that are searched; None for all.
        nodes: The ids of the only nodes that are searched; None for all.
        indexed: The ids of all nodes that the index knows.
        options: The names of other arguments for the vector store.
    """

    filters: MetadataFilters | None
    documents: Collection[str] | None
    nodes: Collection[str] | None
    indexed: Collection[str]
    options: Collection[str]


def search_of(retriever: BaseRetriever) -> Search | None:
    """Return how a retriever searches; None if that is unknown."""
    if type(retriever) is not VectorIndexRetriever:  # a subclass may search differently
        return None
    try:
        return Search(
            filters=retriever._filters,  # noqa: SLF001
            documents=retriever._doc_ids,  # noqa: SLF001
            nodes=retriever._node_ids,  # noqa: SLF001
            indexed=retriever._index.index_struct.nodes_dict.values(),  # noqa: SLF001
            options=retriever._kwargs.keys(),  # noqa: SLF001
        )
    except AttributeError:
        _refuse("where a VectorIndexRetriever keeps its filters")


def leaves_of(retriever: BaseRetriever) -> list[BaseRetriever]:
    """Return the retrievers that search, seen through LlamaIndex's own wrappers around them.

    A wrapper returns what the retrievers inside it return, so if these have the same limits, the wrapper has them too.
    A fusion returns what any of its retrievers returns, so those that search nodes in memory are left out if
    there are others. A third-party class may hide nodes, so it is not seen through.
    """
    asked = _asked_by(retriever)
    if asked is None:
        return [retriever]
    found = [leaves_of(one) for one in asked]
    if type(retriever) is QueryFusionRetriever:
        found = [leaves for leaves in found if not all(map(_searches_words, leaves))] or found
    return [leaf for leaves in found for leaf in leaves]


def copies_in(retriever: Any) -> Mapping[str, dict[str, Any]] | None:
    """Return the copies of nodes that a `BM25Retriever` searches by words, by their ids; None if that is unknown.

    They are as `node_to_metadata_dict` writes them.
    """
    if not _searches_words(retriever):
        return None
    copies, weights = getattr(retriever, "corpus", None), getattr(retriever, "corpus_weight_mask", None)
    if not isinstance(copies, list) or not all(isinstance(one, dict) and "node_id" in one for one in copies):
        return None
    return {one["node_id"]: one for one, weight in zip(copies, weights or [1] * len(copies), strict=True) if weight}


def bigger_nodes_of(retriever: BaseRetriever) -> list[Mapping[str, Any] | BaseDocumentStore]:
    """Return where a retriever and those that it asks look up the nodes that found nodes stand for or were cut from.

    Mappings hold what an `IndexNode` leads to, by its `index_id`: also retrievers and query engines. Document stores
    hold the parents of nodes.
    """
    known: list[Mapping[str, Any] | BaseDocumentStore] = [retriever.object_map] if retriever.object_map else []
    try:
        if type(retriever) is RecursiveRetriever:
            known.append(retriever._node_dict)  # noqa: SLF001
        if type(retriever) is AutoMergingRetriever:
            known.append(retriever._storage_context.docstore)  # noqa: SLF001
    except AttributeError:
        _refuse("where a RecursiveRetriever or an AutoMergingRetriever keeps its nodes")
    return known + [one for asked in _asked_by(retriever) or () for one in bigger_nodes_of(asked)]


def fixed(retriever: BaseRetriever) -> BaseRetriever:
    """Return a copy of a retriever whose searches stay as they are now; itself if it is not LlamaIndex's own."""
    kind = type(retriever)
    if kind is VectorIndexRetriever or is_one_of(retriever, known.WORDS):
        found = copy(retriever)
        for name in vars(found).keys() & set(_LIMITS):
            value = getattr(found, name)
            setattr(found, name, _copied(retriever, name, value) if isinstance(value, list | dict) else frozen(value))
        return found
    if _asked_by(retriever) is None:
        return retriever
    found, held = copy(retriever), getattr(retriever, _ASKED[kind])
    if isinstance(held, dict):
        inside: Any = {name: fixed(one) for name, one in held.items()}
    else:
        inside = [fixed(one) for one in held] if isinstance(held, list | tuple) else fixed(held)
    setattr(found, _ASKED[kind], inside)
    return found


def _copied(retriever: BaseRetriever, name: str, value: Any) -> Any:
    """Return a copy of a list or dict of a retriever, the latest one if it is still the same: they may hold all ids."""
    copies = _COPIES.setdefault(retriever, {})
    if name not in copies or not is_same(copies[name], value):
        copies[name] = copy(value)
    return copies[name]


def with_parts(engine: Engine, retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor]) -> Engine:
    """Return a copy of a query engine with another retriever and other postprocessors."""
    found: Any = copy(engine)
    found._retriever, found._node_postprocessors = retriever, [*postprocessors]  # noqa: SLF001
    return found  # type: ignore[no-any-return]


def with_streaming(engine: Engine, streaming: bool) -> Engine:  # noqa: FBT001 - LlamaIndex's own switch
    """Return a copy of a query engine that answers in pieces, or does not."""
    found: Any = copy(engine)
    found._response_synthesizer = copy(parts_of(engine)[0])  # noqa: SLF001
    found._response_synthesizer.streaming = streaming  # noqa: SLF001
    return found  # type: ignore[no-any-return]


def _asked_by(retriever: Any) -> list[BaseRetriever] | None:
    """Return the retrievers that a wrapper asks; None for a retriever that is not LlamaIndex's."""
    kind = type(retriever)
    if kind not in _ASKED:
        return None
    try:
        if kind is TransformRetriever and not is_one_of(retriever._query_transform, known.TRANSFORMS):  # noqa: SLF001
            return None
        held = getattr(retriever, _ASKED[kind])
    except AttributeError:
        _refuse(f"where a {kind.__name__} keeps the retrievers that it asks")
    if isinstance(held, dict):
        return [*held.values()]
    return [*held] if isinstance(held, list | tuple) else [held]


def _searches_words(retriever: Any) -> bool:
    return is_one_of(retriever, known.WORDS)


@cache
def selects_nodes_as(kind: type, base: type) -> bool:
    """Return whether a class of query engines selects nodes as its base does, without overriding how.

    Raises:
        ConfigurationError: This version of LlamaIndex has other methods.
    """
    try:
        own, known = ([unwrap(getattr(one, name)) for name in _SELECTING] for one in (kind, base))
    except AttributeError:
        _refuse("how a RetrieverQueryEngine selects its nodes")
    return own == known


def without_span(method: Method) -> Method:
    """Give no span in traces to a method that only calls the one that it overrides."""
    setattr(method, getattr(instrumentation, "DISPATCHER_SPAN_DECORATED_ATTR", "__without_span__"), True)
    return method


def parts_of(engine: Any) -> tuple[Any, Any]:
    """Return the synthesizer and the postprocessors of a query engine.

    Raises:
        ConfigurationError: This version of LlamaIndex keeps them elsewhere.
    """
    try:
        return engine._response_synthesizer, engine._node_postprocessors  # noqa: SLF001
    except AttributeError:
        _refuse("where a RetrieverQueryEngine keeps its parts")


def index_of(retriever: Any) -> Any:
    """Return the index that a retriever searches; None if that is unknown."""
    return getattr(retriever, "_index", None)


def vector_store_of(retriever: Any) -> Any:
    """Return the vector store that a retriever searches; None if that is unknown."""
    return getattr(retriever, "_vector_store", None)


def metadata_test(filters: MetadataFilters) -> Callable[[Mapping[str, Any]], bool]:
    """Return LlamaIndex's own function that tests metadata against filters.

    Raises:
        ConfigurationError: This version of LlamaIndex does not have it.
    """
    make = getattr(simple, "build_metadata_filter_fn", None) or getattr(simple, "_build_metadata_filter_fn", None)
    if make is None:
        _refuse("the test of metadata filters in llama_index.core.vector_stores.simple")
    test: Callable[[Mapping[str, Any]], bool] = make(lambda metadata: metadata, filters)
    return test


def formatted(llm: LLM, template: BasePromptTemplate, words: Mapping[str, Any]) -> list[ChatMessage] | str:
    """Return the prompt that `llm.predict` would send, with the model's system prompt and its wrappers.

    `predict` itself returns only text, without token counts.

    Raises:
        ConfigurationError: This version of LlamaIndex formats prompts in an unknown way.
    """
    chat = llm.metadata.is_chat_model
    form = getattr(llm, "_get_messages" if chat else "_get_prompt", None)
    if form is None:
        _refuse("how a model formats its prompts (LLM._get_messages, LLM._get_prompt)")
    prompt: list[ChatMessage] | str = form(template, **words)
    return prompt


def report_options(llm: Any, report: type) -> dict[str, Any]:
    """Return the options that make an OpenAI-like model keep to a schema; empty if it has none."""
    wanted, prepare = (getattr(llm, name, None) for name in ("_should_use_structure_outputs", "_prepare_schema"))
    return dict(prepare({}, report)) if wanted and prepare and wanted() else {}


def pass_over(event: type[BaseEvent]) -> None:
    """Have OpenInference, if it is in use, pass over an event for which it has no use, instead of logging a warning."""
    module = sys.modules.get("openinference.instrumentation.llama_index._handler")
    process = getattr(getattr(module, "_Span", None), "__dict__", {}).get("_process_event")
    if isinstance(process, singledispatchmethod) and event not in process.dispatcher.registry:
        process.register(event, lambda _span, _event: None)


def _refuse(what: str) -> NoReturn:
    msg = f"LlamaIndex has changed {what}; use {_SUPPORTED}, which this version of selfroute supports"
    raise ConfigurationError(msg)
