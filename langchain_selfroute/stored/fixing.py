"""Copy a retriever so that what it may return stays as it is now, whoever changes its parts meanwhile."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableBranch, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from langchain_selfroute.convert import config_within
from langchain_selfroute.stored.searches import KINDS, Config, is_plain
from selfroute.documents.access import frozen, name_of


def fixed(retriever: Any, config: Config) -> Any:
    """Return a copy of a retriever whose searches stay as they are now; itself if no search in it can be seen.

    Args:
        retriever: The retriever.
        config: The config that it is called with; None if that is unknown.
    """
    if isinstance(retriever, BaseRetriever):
        return _fixed_searches(retriever, config)
    if isinstance(retriever, DynamicRunnable) and config is not None:
        chosen, within = retriever.prepare(config)
        found, renamed = fixed(chosen, within), within.get("configurable", {})
        return retriever if found is chosen else found.with_config(configurable=renamed)
    update: dict[str, Any] = {}
    if isinstance(retriever, RunnableBindingBase):
        bound = fixed(retriever.bound, config if config is None else config_within(retriever, config))
        if bound is not retriever.bound:
            update = {"bound": bound, "kwargs": _frozen_values(retriever.kwargs)}
    elif isinstance(retriever, RunnableWithFallbacks):
        first, *fallbacks = copies = [fixed(one, config) for one in retriever.runnables]
        if not any(map(operator.is_, copies, retriever.runnables)):
            update = {"runnable": first, "fallbacks": fallbacks}
    elif isinstance(retriever, RunnableBranch):
        branches = [(condition, fixed(one, config)) for condition, one in retriever.branches]
        update = {"branches": branches, "default": fixed(retriever.default, config)}
    elif isinstance(retriever, RunnableSequence):
        first, *middle, last = copies = [fixed(step, config) for step in retriever.steps]
        if not all(map(operator.is_, copies, retriever.steps)):
            update = {"first": first, "middle": middle, "last": last}
    return retriever.model_copy(update=update) if update else retriever


def _fixed_searches(retriever: Any, config: Config) -> Any:
    kind = KINDS.get(name_of(type(retriever)))
    if kind and kind.inside:
        held, within = getattr(retriever, kind.inside), kind.within(config)
        asked = [fixed(one, within) for one in held] if isinstance(held, list) else fixed(held, within)
        return retriever.model_copy(update={kind.inside: asked})
    searches = getattr(retriever, "search_kwargs", None)
    if searches is None or not (kind or is_plain(retriever)):
        return retriever
    return retriever.model_copy(update={"search_kwargs": _frozen_values(searches)})


def _frozen_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: frozen(value) for name, value in arguments.items()}
