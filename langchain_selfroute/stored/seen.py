"""Find the search arguments that are seen in a retriever, also in one whose searches are not all known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableBranch, RunnableParallel, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from langchain_selfroute.stored.searches import KINDS
from selfroute.documents.access import name_of


def arguments_in(retriever: Any, around: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield the names of the search arguments that are seen anywhere in a retriever, also where others are not.

    Args:
        retriever: The retriever.
        around: What it is in, so that one that holds itself is looked at once.
    """
    given: Mapping[str, Any] = {}
    if isinstance(retriever, RunnableBindingBase) and isinstance(_innermost(retriever), BaseRetriever | RunnableBranch):
        given = retriever.kwargs
    elif isinstance(retriever, VectorStoreRetriever) or name_of(type(retriever)) in KINDS:
        given = getattr(retriever, "search_kwargs", {})
    yield from (name for name, value in given.items() if value is not None)
    for one in _held_by(retriever):
        if not any(one is other for other in around):
            yield from arguments_in(one, (*around, retriever))


def _innermost(bound: Any) -> Any:
    while isinstance(bound, RunnableBindingBase):
        bound = bound.bound
    return bound


def _held_by(retriever: Any) -> Iterable[Any]:
    """Return what may search for a retriever: the parts of LangChain's runnables, and what retrievers hold."""
    if isinstance(retriever, RunnableBindingBase | DynamicRunnable):
        return [retriever.bound if isinstance(retriever, RunnableBindingBase) else retriever.default]
    if isinstance(retriever, BaseRetriever):
        return chain.from_iterable(one if isinstance(one, list) else [one] for one in vars(retriever).values())
    if isinstance(retriever, RunnableSequence):
        return retriever.steps
    if isinstance(retriever, RunnableBranch):
        return [retriever.default, *(one for _, one in retriever.branches)]
    if isinstance(retriever, RunnableWithFallbacks):
        return retriever.runnables
    return retriever.steps__.values() if isinstance(retriever, RunnableParallel) else ()
