"""An engine is at home in tools, agents, chat engines and workflows, as a `RetrieverQueryEngine` is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.workflow import Context

from llamaindex_agents_parts import (
    ANSWERS,
    CHATS,
    READ,
    ROUTES,
    a_memory,
    a_tool,
    calling,
    calls_tools,
    engine_of,
    retriever_of,
    say,
    says,
    texts_of,
)
from llamaindex_parts import (
    AWAITED,
    KEYS,
    MODES,
    QUESTION,
)

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", ROUTES)

# All of the host's own making: a workflow looks up every attribute of an agent, for one, which is a pydantic model.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecationWarning",
    "ignore:is_running called from within a step",
    "ignore:Skipping serialization of known unserializable key. memory",
    "ignore:ServiceManager is deprecated",
)

CONDENSED, FINALLY = "Who chaired the meeting of May?", "It was Ms Okafor."


@every_mode
@every_kind
async def test_engine_is_a_tool(kind: str, mode: str) -> None:
    tool = a_tool(engine_of(kind, mode))
    for args, named in (((QUESTION,), {}), ((), {"input": QUESTION})):
        output = await tool.acall(*args, **named) if mode in AWAITED else tool.call(*args, **named)
        assert (output.content, output.raw_input) == (ANSWERS[kind], {"input": QUESTION})
        assert set(output.raw_output.metadata) == KEYS
        assert output.raw_output.metadata["route"] == ROUTES[kind]
        assert texts_of(output.raw_output) == READ[kind]


@pytest.mark.parametrize("mode", AWAITED)
@every_kind
async def test_agent_reads_an_engine(kind: str, mode: str) -> None:
    llm = calls_tools(calling(("minutes", {"input": QUESTION})), FINALLY)
    agent = FunctionAgent(tools=[a_tool(engine_of(kind, mode))], llm=llm)
    context = Context(agent)
    handler = agent.run(QUESTION, memory=a_memory(), ctx=context)
    (call,) = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
    assert (str(await handler), call.tool_output.content) == (FINALLY, ANSWERS[kind])
    assert llm.calls[1].messages[-1].content.endswith(ANSWERS[kind])
    assert call.tool_output.raw_output.metadata["route"] == ROUTES[kind]
    if mode == "aquery":  # the log of llama-index-core 0.12 cannot hold a stream, whosoever
        assert json.dumps(context.to_dict())


def _chat(engine: Any) -> CondenseQuestionChatEngine:
    return CondenseQuestionChatEngine.from_defaults(engine, llm=says(CONDENSED), memory=a_memory())


@every_kind
@pytest.mark.parametrize("way", CHATS)
@pytest.mark.parametrize("mode", ["query", "stream"])
async def test_chat_engine_condenses_and_asks_the_engine(kind: str, way: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    chat = _chat(engine)
    for message in (QUESTION, "And in May?"):
        pieces, response = await say(chat, message, way)
        assert "".join(pieces) == ANSWERS[kind]
        [source] = response.sources
        assert engine._response_synthesizer._streaming is (mode == "stream")  # as it was built
        assert set(source.raw_output.metadata) == KEYS
        assert source.raw_output.metadata["route"] == ROUTES[kind]
        assert texts_of(source.raw_output) == READ[kind]
        if way != "astream_chat":  # the host does not look into an async stream
            assert texts_of(response) == READ[kind]
    assert [query.query_str for query in retriever_of(engine).queries] == [QUESTION, CONDENSED]
    assert [message.content for message in chat.chat_history] == [
        QUESTION,
        ANSWERS[kind],
        "And in May?",
        ANSWERS[kind],
    ]
