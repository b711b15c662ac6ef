"""Read what LangChain's models say of themselves: their names and windows; and why their fallbacks failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from typing_extensions import override

from langchain_selfroute import internals
from langchain_selfroute.convert import config_within, is_too_long
from langchain_selfroute.internals import chosen_model, tracing_params
from selfroute.calls.memory import Said
from selfroute.usage.addresses import address_of
from selfroute.usage.prices import PricedModel

_NO_USAGE = (
    "%s reported no token counts for a streamed reply, so they are estimated; use %s(stream_usage=True) to have them "
    "reported, which is not the default if a base_url is set"
)
_logger = logging.getLogger(__name__)


def text_of_prompt(prompt: PromptValue) -> str:
    """Return the text of a prompt."""
    return "\n".join(texts_of(prompt))


def length_of(prompt: PromptValue) -> int:
    """Return the length of a prompt in characters."""
    return sum(map(len, texts_of(prompt)))


def texts_of(prompt: PromptValue) -> list[str]:
    """Return the texts of the messages of a prompt."""
    messages = prompt.to_messages()
    return [one.content if type(one.content) is str else str(one.text) for one in messages]


def inside_of(model: Runnable[Any, Any], config: RunnableConfig | None) -> tuple[Any, dict[str, Any]]:
    """Return the model within bindings, retries, fallbacks, configurable fields and sequences, and the bound options.

    Of several models with fallbacks it is the first.
    """
    return next(_inside(model, config, {}))


def first_insides_of(model: Runnable[Any, Any], config: RunnableConfig | None) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what is given the prompt, and each of its fallbacks, with what is bound to it.

    That is what `inside_of` returns, but of a sequence the first step, which need not be a model.
    """
    return _inside(model, config, {}, first=True)


def _inside(
    model: Runnable[Any, Any], config: RunnableConfig | None, bound: dict[str, Any], *, first: bool = False
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the model and its fallbacks, and what is bound to each."""
    if isinstance(model, RunnableBindingBase):
        yield from _inside(model.bound, config_within(model, config), {**model.kwargs, **bound}, first=first)
    elif isinstance(model, RunnableWithFallbacks):
        for one in model.runnables:
            yield from _inside(one, config, bound, first=first)
    elif isinstance(model, DynamicRunnable):
        yield from _inside(*model.prepare(config), bound, first=first)
    elif (chosen := chosen_model(model, config)) is not None:
        yield from _inside(chosen, config, bound, first=first)
    elif isinstance(model, RunnableSequence) and first:
        yield from _inside(model.first, config, bound, first=first)
    elif isinstance(model, RunnableSequence):
        # Options are passed to the first step only.
        options = [bound, *[dict[str, Any]()] * (len(model.steps) - 1)]
        found = [pair for step, own in zip(model.steps, options, strict=True) for pair in _inside(step, config, own)]
        yield from [pair for pair in found if isinstance(pair[0], BaseLanguageModel)] or [(model, bound)]
    else:
        yield model, bound


def name_of(
    model: Runnable[Any, Any], config: RunnableConfig | None = None, options: Mapping[str, Any] | None = None
) -> PricedModel:
    """Return the name by which a model is priced when called with these options; without a name if it reports none."""
    first, *others = [_reported(one, {**bound, **(options or {})}) for one, bound in _inside(model, config, {})]
    return replace(first, fallbacks=tuple(others)) if others else first


def certain_name_of(model: Runnable[Any, Any]) -> PricedModel:
    """Return the name by which a model is priced; without a name if a call can choose another model."""
    return PricedModel() if model.config_specs else name_of(model)


def _reported(model: Any, options: Mapping[str, Any]) -> PricedModel:
    params = tracing_params(model, options)
    if not params:
        return PricedModel()
    return PricedModel.from_reported(params.get("ls_model_name"), params.get("ls_provider"), address_of(model))


def window_of(model: Runnable[Any, Any], config: RunnableConfig | None = None) -> int | None:
    """Return a model's window in tokens: Ollama's `num_ctx` or what its `profile` states; None if it says nothing."""
    options: Any = None
    while isinstance(model, RunnableBindingBase):  # not every binding passes it on
        options = options or model.kwargs.get("options")
        model, config = model.bound, config_within(model, config)
    model = chosen_model(model, config) or model
    try:
        own, profile = getattr(model, "num_ctx", None), getattr(model, "profile", None)
    except Exception:  # noqa: BLE001 - a model that is chosen in the call has no attributes before
        return None
    for known, name in ((options, "num_ctx"), ({"num_ctx": own}, "num_ctx"), (profile, "max_input_tokens")):
        window = known.get(name) if isinstance(known, dict) else None
        if isinstance(window, int) and window > 0:
            return window
    return None


def streams_whole(
    asked: Runnable[Any, Any], config: RunnableConfig, options: Mapping[str, Any], *, awaited: bool
) -> bool:
    """Return whether reading a model's stream does the same as asking it for a whole reply, but can be stopped.

    LangChain decides: it reads a stream for a whole reply if the model has `streaming=True`, or if a handler waits for
    tokens. Caches, retries and fallbacks work on whole replies, so a model that has them is asked for those.

    Args:
        asked: The model, which may have options bound to it.
        config: The config of the call.
        options: The options of the call.
        awaited: Whether the model is asked asynchronously.
    """
    model: Any = asked
    while type(model) is RunnableBinding:
        model, options = model.bound, {**model.kwargs, **options}
    if not isinstance(model, BaseChatModel) or model.cache or (model.cache is None and get_llm_cache() is not None):
        return False
    return internals.streams_whole(model, options, manager=config["callbacks"], awaited=awaited)


def log_missing_usage(model: Runnable[Any, Any], config: RunnableConfig | None, said: Said) -> None:
    """Log how to make a model report its token counts, if it can, unless that was said."""
    inside, _ = inside_of(model, config)
    if getattr(inside, "stream_usage", True) in {None, False}:
        said.warn(_logger, _NO_USAGE, *[type(inside).__name__] * 2)


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

    `with_fallbacks` raises the error of the first model, not those of the others.

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
