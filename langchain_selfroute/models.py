"""Read what LangChain's models report: their names, their windows, and the usage of a call."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from typing_extensions import override

from langchain_selfroute.convert import config_within, text_of
from langchain_selfroute.host import address_of, chosen_model, tracing_params
from selfroute.answerability.ending import Ending, reason_in, refusal_in
from selfroute.usage.counts import StepUsage, as_count
from selfroute.usage.prices import PricedModel
from selfroute.usage.tally import Tally

# OpenAI's client raises these for structured replies that ended early.
_ENDING_ERRORS = {"LengthFinishReasonError": "length", "ContentFilterFinishReasonError": "content_filter"}
_URLS = ("openai_api_base", "base_url", "anthropic_api_url")
_logger = logging.getLogger(__name__)


class MessageTally(Tally):
    """Collect the text and the token counts of one model call from its messages.

    Attributes:
        about: What the messages say of themselves, the latest last.
        calls_tool: Whether a message without text calls a tool.
        refusal: The texts by which the model refused, where they come apart from the reply.
    """

    __slots__ = ("about", "calls_tool", "refusal")

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self.about: dict[str, Any] = {}
        self.calls_tool = False
        self.refusal = ""

    def add(self, message: Any) -> str:
        """Add a message, or a chunk of one, and return its text."""
        text = text_of(message)
        self.text.append(text)
        if type(message) is str:
            return text
        about = getattr(message, "response_metadata", None)
        if about and isinstance(about, Mapping):
            self.about |= {key: value for key, value in about.items() if value} if self.about else about
        if not text and isinstance(message, AIMessage):
            self.calls_tool = self.calls_tool or bool(message.tool_calls or message.invalid_tool_calls)
            self.refusal += _refusal_of(message)
        reported = getattr(message, "usage_metadata", None)
        if reported and isinstance(reported, Mapping):
            counts = _counts(reported)
            self.counts = self.counts + counts if self.counts else counts
        return text

    @override
    def ending(self) -> Ending:
        refusal = self.refusal or ("" if any(self.text) else refusal_in(self.about))
        return Ending(reason_in(self.about), refusal, self.calls_tool, self.ended.reported)

    @override
    def ends_with(self, error: Exception) -> bool:
        reason = _ENDING_ERRORS.get(type(error).__name__)
        if reason is None:
            return False
        self.about["finish_reason"], self.whole = reason, False
        self.text.append("")  # it was paid for
        return True

    @override
    def model(self, configured: PricedModel) -> PricedModel:
        answered = PricedModel.from_reported(self.about.get("model_name"), self.about.get("model_provider"))
        if answered.name is None or answered.name.startswith(configured.name or "\0"):
            # A client that builds on another client may report the other's provider.
            return PricedModel(
                answered.name or configured.name, configured.provider or answered.provider, configured.url
            )
        if answered.provider in {None, configured.provider}:
            return PricedModel(answered.name, configured.provider, configured.url)
        return answered


def _refusal_of(message: AIMessage) -> str:
    """Return the text by which a model refused: OpenAI's clients keep it beside the content, or in a block of it."""
    blocks = message.content if isinstance(message.content, list) else []
    return "".join(map(refusal_in, [message.additional_kwargs, *blocks]))


def _counts(reported: Mapping[str, Any]) -> StepUsage:
    about = reported.get("input_token_details")
    about = about if isinstance(about, Mapping) else {}
    written = sum(
        # Anthropic's models may report the others instead of "cache_creation"
        as_count(about.get(key))
        for key in ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
    )
    return StepUsage(
        as_count(reported.get("input_tokens")),
        as_count(reported.get("output_tokens")),
        as_count(about.get("cache_read")),
        cache_write_tokens=written,
    )


def text_of_prompt(prompt: PromptValue) -> str:
    """Return the text of a prompt."""
    return "\n".join(_texts(prompt))


def length_of(prompt: PromptValue) -> int:
    """Return the length of a prompt in characters."""
    return sum(map(len, _texts(prompt)))


def _texts(prompt: PromptValue) -> list[str]:
    messages = prompt.to_messages()
    return [one.content if type(one.content) is str else str(one.text) for one in messages]


def inside_of(model: Runnable[Any, Any], config: RunnableConfig | None) -> tuple[Any, dict[str, Any]]:
    """Return the model within bindings, retries, fallbacks, configurable fields and sequences, and the bound options.

    Of several models with fallbacks it is the first.
    """
    bound: dict[str, Any] = {}
    while True:
        if isinstance(model, RunnableBindingBase):
            bound, config = {**model.kwargs, **bound}, config_within(model, config)
            model = model.bound
        elif isinstance(model, RunnableWithFallbacks):
            model = model.runnable
        elif isinstance(model, DynamicRunnable):
            model, config = model.prepare(config)
        elif (chosen := chosen_model(model, config)) is not None:
            model = chosen
        elif isinstance(model, RunnableSequence):
            inside = (inside_of(step, config) for step in model.steps)
            return next((found for found in inside if isinstance(found[0], BaseLanguageModel)), (model, bound))
        else:
            return model, bound


def name_of(
    model: Runnable[Any, Any], config: RunnableConfig | None = None, options: Mapping[str, Any] | None = None
) -> PricedModel:
    """Return the name by which a model is priced if it is called with these options, as far as it reports one."""
    inside, bound = inside_of(model, config)
    params = tracing_params(inside, {**bound, **(options or {})})
    if not params:
        return PricedModel()
    return PricedModel.from_reported(params.get("ls_model_name"), params.get("ls_provider"), address_of(inside, _URLS))


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


def log_missing_usage(model: Runnable[Any, Any], config: RunnableConfig | None) -> None:
    """Log how to make a model report its token counts, if it can."""
    inside, _ = inside_of(model, config)
    if getattr(inside, "stream_usage", True) in {None, False}:
        _say(type(inside).__name__)


@cache
def _say(kind: str) -> None:
    _logger.warning(
        "%s reported no token counts for a streamed reply, so they are estimated; use %s(stream_usage=True) to have "
        "them reported, which is not the default if a base_url is set",
        kind,
        kind,
    )
