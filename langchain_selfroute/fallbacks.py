"""Hear why fallbacks failed: `with_fallbacks` raises the error of the first model, whatever the others say."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from typing_extensions import override

from langchain_selfroute.convert import config_within, is_too_long


def has_fallbacks(model: Runnable[Any, Any], config: RunnableConfig | None) -> bool:
    """Return whether a model has others to fall back on, within bindings, configurable fields and sequences."""
    if isinstance(model, RunnableBindingBase):
        return has_fallbacks(model.bound, config_within(model, config))
    if isinstance(model, DynamicRunnable):
        return has_fallbacks(*model.prepare(config))
    if isinstance(model, RunnableSequence):
        return any(has_fallbacks(step, config) for step in model.steps)
    return isinstance(model, RunnableWithFallbacks)


class TooLongHeard(BaseCallbackHandler):
    """Keeps the last error by which a model within one call refused the prompt as too long.

    Attributes:
        error: That error; None if there was none.
    """

    run_inline = True  # it never blocks

    def __init__(self) -> None:
        self.error: Exception | None = None

    @property
    @override
    def ignore_chat_model(self) -> bool:
        return True

    @override
    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        if isinstance(error, Exception) and is_too_long(error):
            self.error = error

    on_chain_error = on_llm_error  # of a model that is a function
