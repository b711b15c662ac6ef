"""Use those parts of LangChain and its integrations that are not public. All such uses are in this module.

If a package has changed, nothing fails: a model has no known name, and a store is not recognised.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig


def tracing_params(model: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters by which LangChain's traces name a model called with these options; empty if unknown."""
    try:
        params: Mapping[str, Any] = model._get_ls_params(**options)  # noqa: SLF001
    except Exception:  # noqa: BLE001 - not every model has this, and some fail
        return {}
    return params


def streams_whole(model: Any, options: Mapping[str, Any], *, manager: Any, awaited: bool) -> bool:
    """Return whether a chat model reads a stream itself when it is asked for a whole reply.

    It does with `streaming=True`, or if a handler of the call waits for its tokens.

    Args:
        model: The chat model.
        options: The options of the call.
        manager: Manages the callbacks of the call.
        awaited: Whether the model is asked asynchronously.
    """
    asked = {**options, "async_api": awaited, "run_manager": manager}
    try:
        events = getattr(model, "_should_use_protocol_streaming", None)  # which older versions do not have
        if events and events(**asked):
            return False  # a handler waits for events that only come with a whole reply
        return bool(model._should_stream(**asked))  # noqa: SLF001
    except Exception:  # noqa: BLE001 - a model without this is asked for whole replies
        return False


def chosen_model(model: Any, config: RunnableConfig | None) -> Any:
    """Return the chat model that `init_chat_model` chooses for a call.

    Args:
        model: A model that may be chosen by the config of a call.
        config: That config.

    Returns:
        The model; None if this is no such model, or if the config does not choose one.
    """
    choose = getattr(type(model), "_model", None) if type(model).__name__ == "_ConfigurableModel" else None
    if choose is None:
        return None
    try:
        return choose(model, config)
    except Exception:  # noqa: BLE001 - asked with this config it will say why itself
        return None


def is_retry(runnable: Any) -> bool:
    """Return whether a runnable is what `with_retry` returns; only that needs its module, which is slow to import."""
    module = sys.modules.get("langchain_core.runnables.retry")
    return module is not None and type(runnable) is getattr(module, "RunnableRetry", None)


def keeps_to_schemas(model: Any, tools: Sequence[Any]) -> bool:
    """Return whether an agent has a model's provider keep to a schema; otherwise the answer is the call of a tool."""
    supports: Any = getattr(sys.modules.get("langchain.agents.factory"), "_supports_provider_strategy", None)
    try:
        return bool(supports(model, list(tools)))
    except Exception:  # noqa: BLE001 - then the agent's own choice is a tool
        return False
