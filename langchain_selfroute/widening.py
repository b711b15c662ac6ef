"""Ask a retriever for more passages, within whatever LangChain wraps around it, under the same filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute.rebuilding import rebuilt
from selfroute.errors import ConfigurationError


def widened(
    retriever: Runnable[Any, Any], widen: Runnable[Any, Any] | int, config: RunnableConfig
) -> Runnable[Any, Any]:
    """Return the retriever of a wider look.

    Args:
        retriever: The retriever of the chain.
        widen: The number of passages, or a retriever of its own.
        config: The config of the call, which may set the retriever's fields.

    Raises:
        ConfigurationError: The retriever takes no number of passages.
    """
    if not isinstance(widen, int):
        return widen
    wider: Runnable[Any, Any] | None = _with_k(retriever, widen, config)
    if wider is None:
        msg = (
            f"widen={widen} needs a retriever with search_kwargs, such as vectorstore.as_retriever(); this one is a "
            f"{type(retriever).__name__}: pass a retriever of its own, widen=wider_retriever"
        )
        raise ConfigurationError(msg)
    return wider


def retrieving(retriever: Runnable[Any, Any], k: int, config: RunnableConfig) -> Runnable[Any, Any]:
    """Return a copy of a retriever that retrieves `k` passages, under the same filter.

    Args:
        retriever: The retriever of the chain.
        k: The number of passages.
        config: The config of the call, which may set the retriever's fields.

    Raises:
        ConfigurationError: The retriever takes no number of passages.
    """
    found: Runnable[Any, Any] | None = _with_k(retriever, k, config)
    if found is None:
        msg = (
            f"k={k} needs a retriever with search_kwargs, such as vectorstore.as_retriever(); this one is a "
            f"{type(retriever).__name__}"
        )
        raise ConfigurationError(msg)
    return found


def _with_k(retriever: Any, k: int, config: RunnableConfig) -> Any:
    """Return a copy that retrieves `k` passages; None if it takes no number."""

    def arguments(bound: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**bound, "k": k} if "k" in bound else bound

    return rebuilt(retriever, config, lambda one, _: _searching(one, k), arguments)


def _searching(retriever: BaseRetriever, k: int) -> BaseRetriever | None:
    searches = getattr(retriever, "search_kwargs", None)
    if isinstance(searches, dict):
        fetched = {"fetch_k": max(searches["fetch_k"], k)} if isinstance(searches.get("fetch_k"), int) else {}
        return retriever.model_copy(update={"search_kwargs": {**searches, **fetched, "k": k}})
    if isinstance(getattr(retriever, "k", None), int) and "k" in type(retriever).model_fields:
        return retriever.model_copy(update={"k": k})
    return None
