"""What a LangChain model's reply depends on besides its prompt, as plain JSON that is the same in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.load import dumpd
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from selfroute.evaluation.asking.replies import NO_SETTINGS


def describe_model(model: Runnable[Any, Any], config: RunnableConfig | None = None) -> Any:
    """Describe a model with all that is around it: fallbacks and sequences in their order, what is bound.

    What can not be described is told by its `repr`. That may differ in another process, where its replies are asked for
    again; it never makes two models one.
    """
    if isinstance(model, RunnableBindingBase):  # retries, too
        return {"bound": describe_model(model.bound, config), "kwargs": _plain(model.kwargs)}
    if isinstance(model, RunnableWithFallbacks):
        return {"fallbacks": [describe_model(one, config) for one in model.runnables]}
    if isinstance(model, RunnableSequence):
        return {"steps": [describe_model(step, config) for step in model.steps]}
    if isinstance(model, DynamicRunnable):
        prepared, config = model.prepare(config)
        return describe_model(prepared, config)
    if isinstance(model, BaseLanguageModel):
        settings = dumpd(model) if model.is_lc_serializable() else model._identifying_params  # noqa: SLF001
        return {"kind": f"{type(model).__module__}.{type(model).__qualname__}", "settings": _plain(settings)}
    return _function(model) if isinstance(model, RunnableLambda) else repr(model)


def _function(model: RunnableLambda[Any, Any]) -> Any:
    """A function by its code and what it closes over."""
    function = getattr(model, "func", None) or getattr(model, "afunc", None)
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function)
    around = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    return [code.co_code.hex(), repr(code.co_consts), list(code.co_names), around]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items() if not str(key).endswith(NO_SETTINGS)}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
