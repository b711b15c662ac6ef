"""Call LlamaIndex's models, stop their streams, and read what they report: their names and the usage of a call."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms import LLM, ChatResponse, CompletionResponse, LLMMetadata
from typing_extensions import override

from llamaindex_selfroute.convert import ModelInput
from selfroute.answerability.ending import Ending, reason_in, reason_of, refusal_in, was_refused
from selfroute.calls.memory import Said
from selfroute.languages.tokens import count_tokens
from selfroute.usage.account import Tally
from selfroute.usage.addresses import address_of
from selfroute.usage.counts import StepUsage, as_count, written_of
from selfroute.usage.prices import PricedModel

LLMResponse: TypeAlias = ChatResponse | CompletionResponse

_ENDED_EARLY = re.compile(r"terminated early: (\w+)")  # LlamaIndex's Gemini package raises this
_LATEST = 4  # the last text, the end and the counts may come in separate pieces
_ANSWER = "final_answer"  # the phase of the message that is the answer, in OpenAI's responses
_PROMPT = "prompt_tokens"
_PACKAGES = "llama_index.llms."
_NAMELESS: str = LLMMetadata.model_fields["model_name"].default
_NO_USAGE = (
    "%s reported no token counts for a streamed reply, so they are estimated; use "
    'additional_kwargs={"stream_options": {"include_usage": True}} to have them reported'
)
_logger = logging.getLogger(__name__)


def ask(llm: LLM, prompt: ModelInput) -> LLMResponse:
    """Return the reply of a model as a whole."""
    return llm.complete(prompt, formatted=True) if isinstance(prompt, str) else llm.chat(prompt)


async def aask(llm: LLM, prompt: ModelInput) -> LLMResponse:
    """The async twin of `ask`."""
    return await llm.acomplete(prompt, formatted=True) if isinstance(prompt, str) else await llm.achat(prompt)


def ask_stream(llm: LLM, prompt: ModelInput) -> Generator[LLMResponse, None, None]:
    """Return the reply of a model as a stream of pieces."""
    return llm.stream_complete(prompt, formatted=True) if isinstance(prompt, str) else llm.stream_chat(prompt)


async def aask_stream(llm: LLM, prompt: ModelInput) -> AsyncGenerator[LLMResponse, None]:
    """The async twin of `ask_stream`."""
    if isinstance(prompt, str):
        return await llm.astream_complete(prompt, formatted=True)
    return await llm.astream_chat(prompt)


class ResponseTally(Tally):
    """Collect the text and the token counts of one model call from its responses.

    Attributes:
        last: The last response that has token counts; if none has any, the last response.
        latest: What the provider sent last, in its own form.
        calls_tool: Whether a response without text calls a tool.
        reason: How the reply ended, if an error said so.
        refusal: The text of a refusal that the provider sends beside the reply.
    """

    __slots__ = ("_phases", "calls_tool", "last", "latest", "reason", "refusal")

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self.last: LLMResponse | None = None
        self.latest: deque[Any] = deque(maxlen=_LATEST)
        self._phases: dict[int, str] = {}  # of the messages of OpenAI's responses, by their place
        self.reason: str | None = None
        self.calls_tool = False
        self.refusal = ""

    def add(self, reply: LLMResponse) -> str:
        """Add a whole reply and return its text."""
        self.last = reply
        text = (reply.message.content if isinstance(reply, ChatResponse) else reply.text) or ""
        self.text.append(text)
        self._note_ending(reply, text)
        output = _look(reply.raw, "output")
        messages = isinstance(output, list) and any(_look(one, "type") == "message" for one in output)
        return _answer_in(output) if messages and text else text

    def add_piece(self, chunk: LLMResponse) -> str:
        """Add a piece of a reply and return its text."""
        # Providers report the counts so far with every piece, or the total once near the end.
        if self.last is None or _PROMPT in chunk.additional_kwargs or _PROMPT not in self.last.additional_kwargs:
            self.last = chunk
        text = chunk.delta or ""
        self.text.append(text)
        self._note_ending(chunk, text)
        return "" if self._is_aside(chunk.raw) else text

    def _is_aside(self, event: Any) -> bool:
        """Return whether a piece belongs to a message before the answer, in the stream of OpenAI's responses."""
        place = _look(event, "output_index")
        if place is None:
            return False
        if phase := _look(event, "item", "phase"):
            self._phases[place] = phase
        return self._phases.get(place, _ANSWER) != _ANSWER

    def _note_ending(self, reply: LLMResponse, text: str) -> None:
        self.latest.append(_answer_of(reply.raw))
        if not text:
            self.calls_tool = self.calls_tool or _calls_tool(reply)
            self.refusal += refusal_in(reply.raw) or refusal_in(reply.additional_kwargs)

    @override
    def ending(self) -> Ending:
        reason = self.reason or next(filter(None, map(reason_in, reversed(self.latest))), None)
        silent = self.last is None and not reason
        return Ending(reason, self.refusal, self.calls_tool, self.ended.reported, silent)

    @override
    def ends_with(self, error: Exception) -> bool:
        found = _ENDED_EARLY.search(str(error)) if type(error) is RuntimeError else None
        reason = found[1] if found else reason_of(error)
        if reason is None:
            return False
        self.reason, self.whole = reason, False
        if not was_refused(error):
            self.text.append("")  # it was paid for
        return True

    @override
    def usage(self, prompt: Callable[[], str]) -> StepUsage | None:
        self.counts = _counts(self.last) if self.last else None
        self.whole = self.whole and not (self.last and _cut_short(self.last))
        if self.last and self.counts and _omits_cached(self.last):
            self.whole = False
            self.counts = replace(self.counts, input_tokens=max(self.counts.input_tokens, count_tokens(prompt())))
        return super().usage(prompt)

    @override
    def tier(self) -> Any:
        return next(filter(None, (_look(raw, "service_tier") for raw in reversed(self.latest))), None)

    @override
    def model(self, configured: PricedModel) -> PricedModel:
        raw = self.last and _answer_of(self.last.raw)
        name = _look(raw, "model") or _look(raw, "model_version")
        return configured.replied(PricedModel.from_reported(name, None))


def _answer_in(output: list[Any]) -> str:
    """Return the text of the messages that are the answer, which LlamaIndex joins with those before, some twice."""
    messages = [one for one in output if _look(one, "type") == "message" and _look(one, "phase") in (None, _ANSWER)]
    return "".join(str(_look(part, "text") or "") for one in messages for part in _look(one, "content") or ())


def _calls_tool(reply: LLMResponse) -> bool:
    if not isinstance(reply, ChatResponse):
        return False
    blocks = {type(block).__name__ for block in reply.message.blocks}
    return "ToolCallBlock" in blocks or bool(reply.message.additional_kwargs.get("tool_calls"))


def name_of(llm: LLM) -> PricedModel:
    """Return the name by which a model is priced, if it reports one; its package names the provider."""
    try:
        name: Any = llm.metadata.model_name
    except Exception:  # noqa: BLE001 - some models raise for a name that they do not know
        name = getattr(llm, "model", None)
    name = None if name == _NAMELESS else name
    return PricedModel.from_reported(name, _package(type(llm)), address_of(llm))


def window_of(llm: LLM) -> int | None:
    """Return a model's window in tokens; None if it does not know it, and has LlamaIndex's default, or -1."""
    ollama = _package(type(llm)) == "ollama"  # it sends its window to the server, even the default one
    options = getattr(llm, "additional_kwargs", None) if ollama else None
    window = (options or {}).get("num_ctx") or llm.metadata.context_window
    return None if window <= 0 or (window == DEFAULT_CONTEXT_WINDOW and not ollama) else window


def package_of(llm: LLM) -> str | None:
    """Return the integration that a model is from, such as `anthropic`; None if it is from no integration."""
    return _package(type(llm))


@cache
def _package(kind: type[LLM]) -> str | None:
    modules = (base.__module__ for base in kind.__mro__)
    packages = [name.removeprefix(_PACKAGES).split(".")[0] for name in modules if name.startswith(_PACKAGES)]
    return next((name for name in packages if name != "openai_like"), None)  # any provider with OpenAI's protocol


def log_missing_usage(llm: LLM, said: Said) -> None:
    """Log how to make a model report its token counts, if it can, unless that was said."""
    if "openai" in (_package(type(llm)) or ""):
        said.warn(_logger, _NO_USAGE, type(llm).__name__)


def _counts(reply: LLMResponse) -> StepUsage | None:
    reported = reply.additional_kwargs
    read, written = reported.get(_PROMPT), reported.get("completion_tokens")
    if not read:
        with suppress(TypeError, ValueError):  # it accepts only a mapping as `raw`
            read, written = get_tokens_from_response(reply)
    answer = _answer_of(reply.raw)
    usage, gemini = _look(answer, "usage"), _look(reply.raw, "usage_metadata")
    for asked, said in ((_PROMPT, "completion_tokens"), ("input_tokens", "output_tokens")):
        if not read and answer is not reply.raw:
            read, written = _look(usage, asked), _look(usage, said)
    if not as_count(read):
        return None
    cached = as_count(
        _look(usage, "prompt_tokens_details", "cached_tokens")
        or _look(usage, "input_tokens_details", "cached_tokens")
        or _look(usage, "prompt_cache_hit_tokens")
    )
    # Anthropic and Bedrock do not include these in the input tokens; LiteLLM does, under OpenAI's name.
    names = (f"cache_{kind}_input_tokens" for kind in ("read", "creation"))
    from_cache, to_cache = (as_count(_look(usage, name) or reported.get(name)) for name in names)
    included = _look(usage, "prompt_tokens") is not None
    return StepUsage(
        as_count(read) + (0 if included else from_cache + to_cache),
        written_of(read, written, _look(usage, "total_tokens")) + as_count(_look(gemini, "thoughts_token_count")),
        cached or from_cache or as_count(_look(gemini, "cached_content_token_count")),
        cache_write_tokens=to_cache or as_count(_look(usage, "prompt_tokens_details", "cache_write_tokens")),
        cache_write_1h_tokens=as_count(_look(usage, "cache_creation", "ephemeral_1h_input_tokens")),
    )


def _answer_of(raw: Any) -> Any:
    """Return the provider's own answer within an event: the last one of OpenAI's responses, or each of Mistral's."""
    data = _look(raw, "data")
    return _look(raw, "response") or (raw if _look(data, "choices") is None else data)


def _cut_short(reply: LLMResponse) -> bool:
    """Return whether Gemini's final counts are missing: LlamaIndex drops a last chunk without text."""
    raw = reply.raw
    return isinstance(raw, dict) and "finish_reason" in raw and raw["finish_reason"] is None


def _omits_cached(reply: LLMResponse) -> bool:
    """Return whether the counts at the end of Anthropic's stream omit those of the cache, as older servers' do.

    They are at the beginning of the stream then, which LlamaIndex does not pass on.
    """
    if _look(reply.raw, "type") != "message_delta":
        return False
    usage = _look(reply.raw, "usage")
    return all(_look(usage, f"cache_{kind}_input_tokens") is None for kind in ("read", "creation"))


def _look(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    return value
