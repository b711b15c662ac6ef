"""`answerability="structured"` with LlamaIndex's prompts, events and ways to make an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.llms.openai import OpenAI

import loopback
from hosts_wires import KEY, llm
from llamaindex_parts import (
    MODES,
    QUESTION,
    STREAMS,
    ScriptedLLM,
    an_engine,
    ask,
    name_of,
    recorded,
)
from loopback import LoopbackServer

pytestmark = pytest.mark.usefixtures("frozen")

every_mode = pytest.mark.parametrize("mode", MODES)

MODELS: dict[str, Callable[..., Any]] = {
    "format": lambda server, **more: OpenAI(
        model="gpt-4o", api_base=server.openai_url, api_key=KEY, max_retries=0, **more
    ),
    "function": lambda server, **more: llm(server, "openai", is_function_calling_model=True, **more),
    "words": lambda server, **more: llm(server, "openai", **more),
    "completing": lambda server, **more: llm(server, "completions", **more),
    "gemini": lambda server, **more: llm(server, "gemini", **more),
}


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("client", MODELS)
async def test_report_keeps_the_prompts(server: LoopbackServer, client: str, awaited: bool) -> None:
    server.answer = lambda request: loopback.report(request, answerable=len(server.book) > 1, answer="Mr Lin.")
    messages = [
        ChatMessage(role=MessageRole.USER, content="Mind the tide."),
        ChatMessage(role=MessageRole.ASSISTANT, content="I do."),
        ChatMessage(role=MessageRole.USER, content="{context_str}\n{query_str}"),
    ]
    before = [message.model_copy(deep=True) for message in messages]
    prompt = ChatPromptTemplate(messages)
    model = MODELS[client](server, system_prompt="You are a harbour master.")
    engine = an_engine(llm=model, rag_prompt=prompt, long_context_prompt=prompt, answerability="structured")
    response = await engine.aquery(QUESTION) if awaited else await asyncio.to_thread(engine.query, QUESTION)
    assert str(response) == "Mr Lin."
    server.settle()
    assert (messages, len(server.book)) == (before, 2)
    for entry in server.book:
        for words in ("You are a harbour master.", "Mind the tide.", "I do.", QUESTION):
            assert entry.request.prompt.count(words) == 1


@every_mode
@pytest.mark.parametrize("first", [MessageRole.SYSTEM, MessageRole.USER])
async def test_the_schema_is_not_written_into_messages_of_others(first: MessageRole, mode: str) -> None:
    said = [ChatMessage(role=first, content="Mind the tide."), ChatMessage(role="user", content=QUESTION)]

    class Kept(ChatPromptTemplate):
        def format_messages(self, llm: Any = None, **_: Any) -> list[ChatMessage]:
            return said

    before = [message.model_copy(deep=True) for message in said]
    prompt = Kept([ChatMessage(role="user", content="{context_str} {query_str}")])
    model = ScriptedLLM(draft=("Mr Lin.",))
    engine = an_engine(llm=model, rag_prompt=prompt, answerability="structured", streaming=mode in STREAMS)
    for _ in range(2):
        await ask(engine, QUESTION, mode)
    assert said == before
    assert ["JSON schema" in call.prompt for call in model.calls] == [True, True]


@every_mode
@pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
async def test_events_and_callbacks_are_those_of_text(mode: str, is_chat: bool) -> None:
    seen = []
    whole = {"stream": "query", "astream": "aquery"}.get(mode, mode)
    for asked_as, fields in ((mode, {"answerability": "structured", "streaming": mode in STREAMS}), (whole, {})):
        with recorded() as recording:
            await ask(an_engine(is_chat=is_chat, callback_manager=recording.manager, **fields), QUESTION, asked_as)
        spans = sorted(name_of(span) for span in recording.spans.all if "ScriptedLLM" in name_of(span))
        seen.append((sorted(recording.events.names), spans, sorted(recording.callbacks.log)))
        assert not recording.spans.open_spans
        assert not recording.spans.dropped_spans
    assert seen[0] == seen[1]
