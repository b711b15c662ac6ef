"""Replies that end in the ways of LangChain's clients, as these make their messages."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from langchain_parts import MODES, QUESTION, a_chain, ask
from selfroute.errors import NoReplyError

every_mode = pytest.mark.parametrize("mode", MODES)
TOOL = {"name": "search", "args": {"q": "x"}, "id": "1"}
USE = {"type": "tool_use", "id": "1", "name": "search", "input": {}}
SAYS = {"type": "text", "text": "Mr Lin."}
THINKS = {"type": "thinking", "thinking": "unanswerable?"}
WHY = {"stop_reason": "refusal", "stop_details": {"explanation": "Not this."}}


def of(content: Any = "", metadata: Any = None, **more: Any) -> AIMessage:
    return AIMessage(content, response_metadata=metadata or {}, **more)


NO_REPLIES: dict[str, tuple[AIMessage, str | None, str]] = {
    "Anthropic says why": (of([], WHY), "refusal", "Not this."),
    "Anthropic's thoughts used the tokens up": (of([THINKS], {"stop_reason": "max_tokens"}), "max_tokens", ""),
    "Anthropic calls a tool": (of([USE], {"stop_reason": "tool_use"}, tool_calls=[TOOL]), "tool_use", ""),
    "Bedrock's guardrail": (of([], {"stopReason": "guardrail_intervened"}), "guardrail_intervened", ""),
    "Gemini blocks the prompt": (
        of("", {"prompt_feedback": {"block_reason": "PROHIBITED_CONTENT"}}),
        "PROHIBITED_CONTENT",
        "",
    ),
    "OpenAI's responses refuse": (
        of([{"type": "refusal", "refusal": "No."}], {"status": "completed"}),
        "completed",
        "No.",
    ),
    "a tool call that could not be read": (
        of(invalid_tool_calls=[{"name": "search", "args": "{", "id": "1", "error": "odd"}]),
        None,
        "",
    ),
}


@every_mode
@pytest.mark.parametrize("name", NO_REPLIES)
async def test_no_reply_is_no_verdict_whatever_client_says_so(name: str, mode: str) -> None:
    message, finish_reason, refusal = NO_REPLIES[name]
    with pytest.raises(NoReplyError) as raised:
        await ask(a_chain(llm=RunnableLambda(lambda _: message)), QUESTION, mode)
    assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)


REPLIES: dict[str, tuple[AIMessage | str, str | None]] = {
    "Anthropic thinks": (of([THINKS, SAYS], {"stop_reason": "end_turn"}), "end_turn"),
    "Anthropic cites": (
        of(
            [{"type": "text", "text": "Mr "}, {"type": "text", "text": "Lin.", "citations": []}],
            {"stop_reason": "max_tokens"},
        ),
        "max_tokens",
    ),
    "Ollama": (of("Mr Lin.", {"done": True, "done_reason": "stop"}), "stop"),
    "a client that says nothing": (of("Mr Lin."), None),
    "a model that writes strings": ("Mr Lin.", None),
}


@every_mode
@pytest.mark.parametrize("name", REPLIES)
async def test_how_it_ended_is_said_whatever_client_says_so(name: str, mode: str) -> None:
    message, finish_reason = REPLIES[name]
    result = await ask(a_chain(llm=RunnableLambda(lambda _: message)), QUESTION, mode)
    assert (result["answer"], result["finish_reason"]) == ("Mr Lin.", finish_reason)
