"""Find the filter of a retriever, as configured for one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSequence
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from langchain_selfroute.convert import config_within
from langchain_selfroute.host import is_retry

_HARMLESS = frozenset({"k", "fetch_k", "lambda_mult", "score_threshold"})
_OWN = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")


@dataclass(frozen=True, slots=True)
class RetrieverScope:
    """The store that a retriever searches, and what limits the search.

    Attributes:
        vectorstore: The store.
        filter: The filter; None if it has no filter.
        others: The names of other search arguments that may hide chunks.
    """

    vectorstore: VectorStore
    filter: Any = None
    others: tuple[str, ...] = ()


def scope_of(retriever: Runnable[Any, Any], config: RunnableConfig) -> RetrieverScope | None:
    """Find the filter of a retriever, within whatever LangChain wraps around it.

    Returns:
        The scope; None if it cannot be determined, so that anything may be hidden from the retriever.
    """
    given: dict[str, Any] = {}
    while not isinstance(retriever, BaseRetriever):
        if isinstance(retriever, DynamicRunnable):
            retriever, config = retriever.prepare(config)
        elif type(retriever) is RunnableBinding or is_retry(retriever):
            bound: Any = retriever
            given = {**bound.kwargs, **given}
            retriever, config = bound.bound, config_within(bound, config)
        elif type(retriever) is RunnableSequence:  # the steps before only transform the question
            retriever, given = retriever.last, {}
        else:
            return None
    if not _is_plain(retriever, given):
        return None
    known: Any = retriever
    searches = {**known.search_kwargs, **given}
    others = sorted(key for key in searches.keys() - _HARMLESS - {"filter"} if searches[key] is not None)
    found = searches.get("filter")
    return RetrieverScope(known.vectorstore, None if isinstance(found, Mapping) and not found else found, tuple(others))


def _is_plain(retriever: BaseRetriever, given: Mapping[str, Any]) -> bool:
    """Return whether a retriever searches only by its `search_kwargs` and the given arguments."""
    if isinstance(retriever, VectorStoreRetriever):
        # A subclass with a search of its own may hide more.
        return all(getattr(type(retriever), name) is getattr(VectorStoreRetriever, name) for name in _OWN)
    multi = type(retriever).__module__.startswith(("langchain.", "langchain_classic."))
    # `ParentDocumentRetriever` and similar ones, which ignore given arguments
    return (
        multi
        and isinstance(getattr(retriever, "vectorstore", None), VectorStore)
        and hasattr(retriever, "docstore")
        and not given
    )
