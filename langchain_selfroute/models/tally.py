"""Collect what LangChain's models reply: the text, the token counts, and how a reply ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from typing_extensions import override

from langchain_selfroute.convert import text_of
from selfroute.answerability.ending import Ending, reason_in, refusal_in
from selfroute.usage.account import Tally
from selfroute.usage.counts import StepUsage, as_count, written_of
from selfroute.usage.prices import PricedModel

_ANSWER = "final_answer"  # the phase of the message that is the answer, in OpenAI's responses
_TIERS = ("", "flex_", "priority_")


class MessageTally(Tally):
    """Collect the text and the token counts of one model call from its messages.

    Attributes:
        about: The messages' metadata, merged; a later value replaces an earlier one.
        phases: The phases of the blocks of text, by their index.
    """

    __slots__ = ("about", "phases")

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self.about: dict[str, Any] = {}
        self.phases: dict[Any, str] = {}

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
        return Ending(self.reason or reason_in(self.about), refusal, self.calls_tool, self.ended.reported)

    @override
    def tier(self) -> Any:
        return self.about.get("service_tier")

    @override
    def model(self, configured: PricedModel) -> PricedModel:
        reported = PricedModel.from_reported(self.about.get("model_name"), self.about.get("model_provider"))
        return configured.replied(reported)


def _refusal_of(message: AIMessage) -> str:
    """Return the text of a refusal: OpenAI's clients keep it next to the content, or in a block of it."""
    blocks = message.content if isinstance(message.content, list) else []
    return "".join(map(refusal_in, [message.additional_kwargs, *blocks]))


def _with_more(counts: StepUsage, later: StepUsage) -> StepUsage:
    """Return the counts of a stream after a later piece: one that counts the prompt restates all."""
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
        # Anthropic's models report these instead of "cache_creation", or with it.
        cache_write_tokens=0 if repeated else max(detail("cache_creation"), for_minutes + for_an_hour),
        cache_write_1h_tokens=0 if repeated else for_an_hour,
        repeated=repeated,
    )
