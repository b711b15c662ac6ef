"""Replies that end in the ways of LangChain's clients, as these make their messages."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from langchain_parts import MODES, QUESTION, a_chain, ask
from selfroute.errors import NoReplyError

TOOL = {"name": "search", "args": {"q": "x"}, "id": "1"}
USE = {"type": "tool_use", "id": "1", "name": "search", "input": {}}
NO_REPLIES: dict[str, tuple[AIMessage, str | None, str]] = {
    "Anthropic refuses": (AIMessage([], response_metadata={"stop_reason": "refusal"}), "refusal", ""),
    "Anthropic says why": (
        AIMessage([], response_metadata={"stop_reason": "refusal", "stop_details": {"explanation": "Not this."}}),
        "refusal",
        "Not this.",
    ),
    "Anthropic's thoughts used the tokens up": (
        AIMessage([{"type": "thinking", "thinking": "Let me see"}], response_metadata={"stop_reason": "max_tokens"}),
        "max_tokens",
        "",
    ),
    "Anthropic calls a tool": (
        AIMessage([USE], tool_calls=[TOOL], response_metadata={"stop_reason": "tool_use"}),
        "tool_use",
        "",
    ),
    "Ollama's thoughts used the tokens up": (
        AIMessage("", additional_kwargs={"reasoning_content": "hm"}, response_metadata={"done_reason": "length"}),
        "length",
        "",
    ),
    "Bedrock's guardrail": (
        AIMessage([], response_metadata={"stopReason": "guardrail_intervened"}),
        "guardrail_intervened",
        "",
    ),
    "Gemini blocks the prompt": (
        AIMessage("", response_metadata={"prompt_feedback": {"block_reason": "PROHIBITED_CONTENT"}}),
        "PROHIBITED_CONTENT",
        "",
    ),
    "OpenAI's responses refuse": (
        AIMessage([{"type": "refusal", "refusal": "No."}], response_metadata={"status": "completed"}),
        "completed",
        "No.",
    ),
    "a tool call that could not be read": (
        AIMessage("", invalid_tool_calls=[{"name": "search", "args": "{", "id": "1", "error": "odd"}]),
        None,
        "",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NO_REPLIES)
async def test_no_reply_is_no_verdict_whatever_client_says_so(name: str, mode: str) -> None:
    message, finish_reason, refusal = NO_REPLIES[name]
    with pytest.raises(NoReplyError) as raised:
        await ask(a_chain(llm=RunnableLambda(lambda _: message)), QUESTION, mode)
    assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)


REPLIES: dict[str, tuple[AIMessage, str | None]] = {
    "Anthropic thinks": (
        AIMessage(
            [{"type": "thinking", "thinking": "unanswerable?"}, {"type": "text", "text": "Mr Lin."}],
            response_metadata={"stop_reason": "end_turn"},
        ),
        "end_turn",
    ),
    "Anthropic's thoughts are redacted": (
        AIMessage(
            [{"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": "Mr Lin."}],
            response_metadata={"stop_reason": "end_turn"},
        ),
        "end_turn",
    ),
    "Anthropic cites": (
        AIMessage(
            [{"type": "text", "text": "Mr "}, {"type": "text", "text": "Lin.", "citations": []}],
            response_metadata={"stop_reason": "max_tokens"},
        ),
        "max_tokens",
    ),
    "Ollama": (AIMessage("Mr Lin.", response_metadata={"done": True, "done_reason": "stop"}), "stop"),
    "Bedrock": (AIMessage("Mr Lin.", response_metadata={"stopReason": "end_turn"}), "end_turn"),
    "a client that says nothing": (AIMessage("Mr Lin."), None),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REPLIES)
async def test_how_it_ended_is_said_whatever_client_says_so(name: str, mode: str) -> None:
    message, finish_reason = REPLIES[name]
    result: Any = await ask(a_chain(llm=RunnableLambda(lambda _: message)), QUESTION, mode)
    assert (result["answer"], result["finish_reason"]) == ("Mr Lin.", finish_reason)


async def test_a_string_says_nothing_of_its_end() -> None:
    result = await ask(a_chain(llm=RunnableLambda(lambda _: "Mr Lin.")), QUESTION, "invoke")
    assert result["finish_reason"] is None
