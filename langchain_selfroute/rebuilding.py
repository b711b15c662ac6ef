"""Copy a retriever with other searches, through whatever LangChain wraps around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from langchain_selfroute.convert import config_within

Changed = Callable[[Any, "RunnableConfig | None"], Any]
"""Takes a retriever and the config that reaches it; returns a changed copy, None to leave it as it is."""


def rebuilt(
    retriever: Any,
    config: RunnableConfig | None,
    changed: Changed,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Any:
    """Return a copy of a retriever with changed searches; None if it has none that are changed.

    Args:
        retriever: The retriever, or what is wrapped around it.
        config: The config of the call, which may set its fields; None if that is unknown.
        changed: Changes a retriever.
        arguments: Changes the arguments that are bound to one.
    """

    def inside(one: Any, config: RunnableConfig | None = config) -> Any:
        return rebuilt(one, config, changed, arguments)

    update: dict[str, Any] | None = None
    if isinstance(retriever, BaseRetriever):
        return changed(retriever, config)
    if isinstance(retriever, DynamicRunnable) and config is not None:
        chosen, within = retriever.prepare(config)
        found = inside(chosen, within)
        return found and found.with_config(configurable=within.get("configurable", {}))  # with the keys renamed
    if isinstance(retriever, RunnableBindingBase):
        bound = inside(retriever.bound, config if config is None else config_within(retriever, config))
        update = bound and {"bound": bound, "kwargs": arguments(retriever.kwargs)}
    elif isinstance(retriever, RunnableWithFallbacks):
        copies = [inside(one) for one in retriever.runnables]
        update = {"runnable": copies[0], "fallbacks": copies[1:]} if all(copies) else None
    elif isinstance(retriever, RunnableSequence):
        copies = [inside(step) for step in retriever.steps]
        first, *middle, last = (new or old for new, old in zip(copies, retriever.steps, strict=True))
        update = {"first": first, "middle": middle, "last": last} if any(copies) else None
    return update and retriever.model_copy(update=update)
