"""Collect what LlamaIndex's models reply: the text, the token counts, and how a reply ended."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.llms import ChatResponse
from typing_extensions import override

from llamaindex_selfroute.models.clients import LLMResponse
from selfroute.answerability.ending import Ending, reason_in, refusal_in
from selfroute.languages.tokens import count_tokens
from selfroute.usage.account import Tally
from selfroute.usage.counts import StepUsage, as_count, written_of
from selfroute.usage.prices import PricedModel

_ENDED_EARLY = re.compile(r"terminated early: (\w+)")  # LlamaIndex's Gemini package raises this
_LATEST = 4  # the last text, the end and the counts may come in separate pieces
_ANSWER = "final_answer"  # the phase of the message that is the answer, in OpenAI's responses
_PROMPT = "prompt_tokens"


class ResponseTally(Tally):
    """Collect the text and the token counts of one model call from its responses.

    Attributes:
        last: The last response that has token counts; if none has any, the last response.
        latest: What the provider sent last, in its own form.
    """

    __slots__ = ("_phases", "last", "latest")

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self.last: LLMResponse | None = None
        self.latest: deque[Any] = deque(maxlen=_LATEST)
        self._phases: dict[int, str] = {}  # of the messages of OpenAI's responses, by their place

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
    def reason_of(self, error: Exception) -> str | None:
        found = _ENDED_EARLY.search(str(error)) if type(error) is RuntimeError else None
        return found[1] if found else super().reason_of(error)

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
