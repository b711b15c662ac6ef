"""Read what LangChain's models report: their names, their windows, the usage of a call, and why fallbacks failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import AIMessage
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
from langchain_selfroute.convert import config_within, is_too_long, text_of
from langchain_selfroute.internals import chosen_model, tracing_params
from selfroute.answerability.ending import Ending, reason_in, reason_of, refusal_in, was_refused
from selfroute.calls.memory import Said
from selfroute.usage.account import Tally
from selfroute.usage.addresses import address_of
from selfroute.usage.counts import StepUsage, as_count, written_of
from selfroute.usage.prices import PricedModel

_ANSWER = "final_answer"  # the phase of the message that is the answer, in OpenAI's responses
_TIERS = ("", "flex_", "priority_")
_NO_USAGE = (
    "%s reported no token counts for a streamed reply, so they are estimated; use %s(stream_usage=True) to have them "
    "reported, which is not the default if a base_url is set"
)
_logger = logging.getLogger(__name__)


class MessageTally(Tally):
    """Collect the text and the token counts of one model call from its messages.

    Attributes:
        about: The messages' metadata, merged; a later value replaces an earlier one.
        phases: The phases of the blocks of text, by their index.
        calls_tool: Whether a message without text calls a tool.
        refusal: The text of a refusal that the provider sends beside the reply.
    """

    __slots__ = ("about", "calls_tool", "phases", "refusal")

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self.about: dict[str, Any] = {}
        self.phases: dict[Any, str] = {}
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
            self.counts = counts if self.counts is None else _with_more(self.counts, counts)
        content = getattr(message, "content", None)
        if type(content) is list and (self.phases or any("phase" in block for block in content)):
            return self._answer_in(content)
        return text

    add_piece = add

    def _answer_in(self, content: list[Any]) -> str:
        """Return the text of the blocks that are the answer: some commentary may come before it."""
        said = []
        for block in content:
            about = block if isinstance(block, Mapping) else {"type": "text", "text": block}
            place = about.get("index")
            phase = about.get("phase") or self.phases.get(place)
            if phase and place is not None:
                self.phases[place] = phase
            if phase in (None, _ANSWER) and about.get("type") == "text":
                said.append(about.get("text") or "")
        return "".join(said)

    @override
    def ending(self) -> Ending:
        refusal = self.refusal or ("" if any(self.text) else refusal_in(self.about))
        return Ending(reason_in(self.about), refusal, self.calls_tool, self.ended.reported)

    @override
    def ends_with(self, error: Exception) -> bool:
        reason = reason_of(error)
        if reason is None:
            return False
        self.about["finish_reason"], self.whole = reason, False
        if not was_refused(error):
            self.text.append("")  # it was paid for
        return True

    @override
    def tier(self) -> Any:
        return self.about.get("service_tier")

    @override
    def model(self, configured: PricedModel) -> PricedModel:
        reported = PricedModel.from_reported(self.about.get("model_name"), self.about.get("model_provider"))
        return configured.replied(reported)


def _refusal_of(message: AIMessage) -> str:
    """Return the text of a refusal: OpenAI's clients keep it beside the content, or in a block of it."""
    blocks = message.content if isinstance(message.content, list) else []
    return "".join(map(refusal_in, [message.additional_kwargs, *blocks]))


def _with_more(counts: StepUsage, later: StepUsage) -> StepUsage:
    """Return the counts of a stream after a later piece: one that counts the prompt says all anew."""
    if not later.input_tokens:
        return counts + later
    return replace(
        later,
        cached_tokens=max(counts.cached_tokens, later.cached_tokens),
        cache_write_tokens=max(counts.cache_write_tokens, later.cache_write_tokens),
        cache_write_1h_tokens=max(counts.cache_write_1h_tokens, later.cache_write_1h_tokens),
    )


def _counts(reported: Mapping[str, Any]) -> StepUsage:
    about = reported.get("input_token_details")
    about = about if isinstance(about, Mapping) else {}

    def detail(name: str) -> int:
        """Return a count, under its own name or under that of a tier."""
        return max(as_count(about.get(f"{tier}{name}")) for tier in _TIERS)

    read = as_count(reported.get("input_tokens"))
    for_minutes, for_an_hour = (as_count(about.get(f"ephemeral_{time}_input_tokens")) for time in ("5m", "1h"))
    repeated = reported.get("total_cost") == 0  # so LangChain marks a reply from its own cache
    return StepUsage(
        read,
        written_of(read, reported.get("output_tokens"), reported.get("total_tokens")),
        read if repeated else detail("cache_read"),
        # Anthropic's models report these instead of "cache_creation", or beside it.
        cache_write_tokens=0 if repeated else max(detail("cache_creation"), for_minutes + for_an_hour),
        cache_write_1h_tokens=0 if repeated else for_an_hour,
        repeated=repeated,
    )


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

    `with_fallbacks` raises the error of the first model, whatever the others say.

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
