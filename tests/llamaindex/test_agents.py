"""An engine is at home in tools, agents, chat engines and workflows, as a `RetrieverQueryEngine` is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, WorkflowTimeoutError, step

from llamaindex_agents_parts import (
    ANSWERS,
    CHATS,
    KINDS,
    LONG,
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
    DOCUMENTS,
    KEYS,
    MODES,
    QUESTION,
    ask,
    model_of,
)
from scenarios import text_of

every_mode = pytest.mark.parametrize("mode", MODES)
every_await = pytest.mark.parametrize("mode", AWAITED)
every_kind = pytest.mark.parametrize("kind", KINDS)
either_route = pytest.mark.parametrize("kind", list(ROUTES))

# All of the host's own making: a workflow looks up every attribute of an agent, for one, which is a pydantic model.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecationWarning",
    "ignore:is_running called from within a step",
    "ignore:Skipping serialization of known unserializable key. memory",
    "ignore:ServiceManager is deprecated",
)

CONDENSED = "Who chaired the meeting of May?"


@every_mode
@every_kind
async def test_an_engine_is_a_tool(kind: str, mode: str) -> None:
    tool = a_tool(engine_of(kind, mode))
    for given in ((QUESTION,), {"input": QUESTION}):
        args, named = ((), given) if isinstance(given, dict) else (given, {})
        output = await tool.acall(*args, **named) if mode in AWAITED else tool.call(*args, **named)
        assert (output.content, output.raw_input) == (ANSWERS[kind], {"input": QUESTION})
        if kind in ROUTES:
            assert set(output.raw_output.metadata) == KEYS
            assert output.raw_output.metadata["route"] == ROUTES[kind]
        assert texts_of(output.raw_output) == READ[kind]


@every_kind
async def test_a_streaming_tool_can_be_awaited_many_times_at_once(kind: str) -> None:
    tool = a_tool(engine_of(kind, "astream", draft=LONG, final=LONG))  # drained in loops of their own
    outputs = await asyncio.gather(*(tool.acall(QUESTION) for _ in range(4)))
    assert [output.content for output in outputs] == [text_of(LONG)] * 4


async def _run(agent: Any, **given: Any) -> tuple[Any, list[Any]]:
    handler = agent.run(QUESTION, memory=a_memory(), **given)
    events = [event async for event in handler.stream_events()]
    return await handler, events


def _told(events: list[Any]) -> list[str]:
    return [event.tool_output.content for event in events if isinstance(event, ToolCallResult)]


FINALLY = "It was Ms Okafor."
AGENTS: dict[str, Callable[[Any], Any]] = {
    "calls functions": lambda tool: FunctionAgent(
        tools=[tool], llm=calls_tools(calling(("minutes", {"input": QUESTION})), FINALLY), streaming=False
    ),
    "calls functions and streams": lambda tool: FunctionAgent(
        tools=[tool], llm=calls_tools(calling(("minutes", {"input": QUESTION})), FINALLY), streaming=True
    ),
    "reasons": lambda tool: ReActAgent(
        tools=[tool],
        llm=says(
            f'Thought: I need a tool.\nAction: minutes\nAction Input: {{"input": "{QUESTION}"}}',
            f"Thought: I can answer without using any more tools.\nAnswer: {FINALLY}",
        ),
    ),
}


@every_await
@every_kind
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_reads_an_engine(name: str, kind: str, mode: str) -> None:
    agent = AGENTS[name](a_tool(engine_of(kind, mode)))
    context = Context(agent)
    response, events = await _run(agent, ctx=context)
    assert (str(response), _told(events)) == (FINALLY, [ANSWERS[kind]])
    assert agent.llm.calls[1].messages[-1].content.endswith(ANSWERS[kind])
    if kind in ROUTES:
        (call,) = [event for event in events if isinstance(event, ToolCallResult)]
        assert call.tool_output.raw_output.metadata["route"] == ROUTES[kind]
    if mode == "aquery":  # the log of llama-index-core 0.12 cannot hold a stream, whosoever
        assert json.dumps(context.to_dict())


@every_await
async def test_an_agent_asks_engines_of_either_route_at_once(mode: str) -> None:
    llm = calls_tools(calling(*((kind, {"input": QUESTION}) for kind in KINDS)), FINALLY)
    agent = FunctionAgent(tools=[a_tool(engine_of(kind, mode), kind) for kind in KINDS], llm=llm)
    response, events = await _run(agent)
    assert (str(response), sorted(_told(events))) == (FINALLY, sorted(ANSWERS.values()))


def _chat(engine: Any) -> CondenseQuestionChatEngine:
    return CondenseQuestionChatEngine.from_defaults(engine, llm=says(CONDENSED), memory=a_memory())


@every_kind
@pytest.mark.parametrize("way", CHATS)
@pytest.mark.parametrize("mode", ["query", "stream"])
async def test_a_chat_engine_condenses_what_was_said_and_asks_the_engine(kind: str, way: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    chat = _chat(engine)
    for message in (QUESTION, "And in May?"):
        pieces, response = await say(chat, message, way)
        assert "".join(pieces) == ANSWERS[kind]
        [source] = response.sources
        assert engine._response_synthesizer._streaming is (mode == "stream")  # as it was built
        if kind in ROUTES:
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


@every_kind
@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
async def test_a_chat_engine_streams_from_an_engine_that_was_not_built_to(kind: str, way: str) -> None:
    pieces, _ = await say(_chat(engine_of(kind, draft=LONG, final=LONG)), QUESTION, way)
    assert "".join(pieces) == text_of(LONG)
    assert len(pieces) >= 9


class _Piece(Event):
    text: str


class _Question(Event):
    text: str


class _Answered(Event):
    response: Any


class _Answering(Workflow):
    """One step that asks an engine, and shows the text as it comes."""

    engine: Any

    @step
    async def answer(self, ctx: Context, event: StartEvent) -> StopEvent:
        response = await self.engine.aquery(event.question)
        if isinstance(response, AsyncStreamingResponse):
            async for text in response.async_response_gen():
                ctx.write_event_to_stream(_Piece(text=text))
        return StopEvent(result=response)


class _FanningOut(Workflow):
    """Asks eight questions at once."""

    engine: Any

    @step
    async def ask(self, ctx: Context, event: StartEvent) -> _Question | None:
        for text in event.questions:
            ctx.send_event(_Question(text=text))

    @step(num_workers=8)
    async def answer(self, event: _Question) -> _Answered:
        return _Answered(response=await self.engine.aquery(event.text))

    @step
    async def gather(self, ctx: Context, event: _Answered) -> StopEvent | None:
        answered = ctx.collect_events(event, [_Answered] * 8)
        return None if answered is None else StopEvent(result=[each.response for each in answered])


def _workflow(kind: type[Workflow], engine: Any, timeout: float = 20.0) -> Any:
    workflow: Any = kind(timeout=timeout)
    workflow.engine = engine
    return workflow


@every_await
@every_kind
async def test_an_engine_answers_in_a_step_of_a_workflow(kind: str, mode: str) -> None:
    handler = _workflow(_Answering, engine_of(kind, mode, draft=LONG, final=LONG)).run(question=QUESTION)
    shown = [event.text async for event in handler.stream_events() if isinstance(event, _Piece)]
    response = await handler
    assert str(response) == text_of(LONG)
    assert ("".join(shown), len(shown) >= 9) == ((text_of(LONG), True) if mode == "astream" else ("", False))
    if kind in ROUTES:
        assert response.metadata["route"] == ROUTES[kind]


async def test_the_steps_of_a_workflow_ask_one_engine_at_once() -> None:
    arrived, everyone = 0, asyncio.Event()

    async def documents(*_: Any) -> list[Document]:
        nonlocal arrived
        arrived += 1
        if arrived == 8:
            everyone.set()
        await everyone.wait()  # forever, were they asked one after the other
        return DOCUMENTS

    def final(prompt: str) -> tuple[str, ...]:
        return (f"It was {re.search('Question: question (.)', prompt)[1]}.",)

    engine = engine_of("declined", final=final, documents=documents)
    workflow = _workflow(_FanningOut, engine)
    responses = await workflow.run(questions=[f"question {n}?" for n in range(8)])
    assert sorted(str(response) for response in responses) == [f"It was {n}." for n in range(8)]
    assert len({id(response.metadata) for response in responses}) == 8


@every_await
@either_route
async def test_a_workflow_that_runs_out_of_time_stops_the_model(kind: str, mode: str) -> None:
    engine = engine_of(kind, mode, delay=30.0)
    with pytest.raises(WorkflowTimeoutError):
        await _workflow(_Answering, engine, timeout=0.05).run(question=QUESTION)
    await asyncio.sleep(0)
    assert model_of(engine).endings == ["closed"]
    model_of(engine).delay = 0.0
    assert (await ask(engine, QUESTION, mode)).text == ANSWERS[kind]
