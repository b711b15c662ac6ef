"""Which filter a retriever works under, as configured for one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSequence
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

_HARMLESS = frozenset({"k", "fetch_k", "lambda_mult", "score_threshold"})
_OWN = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a retriever asks its store for.

    Attributes:
        filter: The filter; None if there is none.
        others: More search arguments, any of which may hide something.
    """

    filter: Any = None
    others: tuple[str, ...] = ()


def filter_of(retriever: Runnable[Any, Any], config: RunnableConfig) -> Seen | None:
    """Look for the filter of a retriever through whatever LangChain wraps around it.

    Returns:
        What it asks for; None if that can not be seen: then anything may be hidden from it.
    """
    given: dict[str, Any] = {}
    while not isinstance(retriever, BaseRetriever):
        if isinstance(retriever, DynamicRunnable):
            retriever, config = retriever.prepare(config)
        elif type(retriever) in (RunnableBinding, RunnableRetry):
            bound: Any = retriever
            given = {**bound.kwargs, **given}
            retriever, config = bound.bound, merge_configs(bound.config, config)
        elif type(retriever) is RunnableSequence:  # what comes before only makes the question
            retriever, given = retriever.last, {}
        else:
            return None
    searches = _search_arguments(retriever)
    if searches is None:
        return None
    searches = {**searches, **given}
    others = sorted(key for key in searches.keys() - _HARMLESS - {"filter"} if searches[key] is not None)
    found = searches.get("filter")
    return Seen(None if isinstance(found, Mapping) and not found else found, tuple(others))


def _search_arguments(retriever: BaseRetriever) -> Mapping[str, Any] | None:
    if isinstance(retriever, VectorStoreRetriever):
        # A subclass that searches in its own way may hide more.
        own = all(getattr(type(retriever), name) is getattr(VectorStoreRetriever, name) for name in _OWN)
        return retriever.search_kwargs if own else None
    multi = type(retriever).__module__.startswith(("langchain.", "langchain_classic."))
    if multi and isinstance(getattr(retriever, "vectorstore", None), VectorStore) and hasattr(retriever, "docstore"):
        arguments: Mapping[str, Any] = retriever.search_kwargs  # type: ignore[attr-defined]
        return arguments  # ParentDocumentRetriever and its like
    return None
