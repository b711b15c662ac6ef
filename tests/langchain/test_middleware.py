"""Self-Route in LangChain's `create_agent`: what is routed, what passes, and what a reader sees."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anyio
import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, after_model, before_model, hook_config
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputValidationError, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from langchain_selfroute import SelfRouteChain, SelfRouteLedger, SelfRouteMiddleware, StoredDocuments
from langchain_stores import EMBEDDING, chunks_of, text_of
from loopback import LoopbackServer, Reply, Request
from selfroute.errors import ConfigurationError
from selfroute.hangup import stop_when_left
from selfroute.policies import Budget

QUESTION = "What does the crane lift?"
DRAFT = "The passages do not mention what it lifts."
WHOLE = "It lifts nets and barrels."
HAS_CONFIG = sys.version_info >= (3, 11)  # before that an awaited agent is refused what would be routed
MODES = pytest.mark.parametrize(
    "awaited", [False, True] if HAS_CONFIG else [False], ids=["sync", "async"] if HAS_CONFIG else ["sync"]
)
CALLED = {"finish_reason": "tool_calls", "model_name": "gpt-4o-mini"}
CALLS = AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "1"}], response_metadata=CALLED)
CALLS_BADLY = AIMessage(
    "", invalid_tool_calls=[{"name": "clock", "args": "{", "id": "1", "error": None}], response_metadata=CALLED
)


def kind_of(prompt: list[BaseMessage]) -> str:
    last = next(message.text for message in reversed(prompt) if isinstance(message, HumanMessage))
    if last.startswith("Passages"):
        return "sections" if "[...]" in last else "draft"
    return "whole" if last.startswith("Read the following") else "other"


class Scripted(BaseChatModel):
    """Gives a reply to each kind of prompt: to passages, to sections, to whole documents, and to anything else.

    A reply to "draft, told" is given where a tool has told something since.
    """

    replies: dict[str, Any]
    prompts: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        self.prompts.append(messages)
        kind = kind_of(messages)
        told = f"{kind}, told" if isinstance(messages[-1], ToolMessage) else kind
        reply = self.replies.get(told) or self.replies[kind]
        return reply.model_copy() if isinstance(reply, AIMessage) else AIMessage(reply)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = self._reply(messages)
        message.usage_metadata = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        message = self._reply(messages)
        if message.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk(**message.model_dump(exclude={"type"})))
        for word in message.text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))


@pytest.fixture
def store() -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents(chunks_of(text_of("Haldon"), source="crane.md"), EMBEDDING)


def agent_of(store: Any, replies: dict[str, Any], tools: Any = (), **options: Any) -> tuple[Any, Scripted]:
    model = Scripted(replies=replies, prompts=[])
    of_agent = {name: options.pop(name) for name in ("checkpointer", "response_format") if name in options}
    others = options.pop("others", [])
    reading = SelfRouteMiddleware.from_vectorstore(store, **options)
    return create_agent(model, tools=list(tools), middleware=[*others, reading], **of_agent), model


async def answered(agent: Any, awaited: bool, text: str = QUESTION, **config: Any) -> dict[str, Any]:
    given, config = {"messages": [("user", text)]}, {"recursion_limit": 20, **config}
    return dict(await agent.ainvoke(given, config) if awaited else agent.invoke(given, config))


@MODES
@pytest.mark.parametrize(
    ("draft", "shown", "options"),
    [
        ("Nets.", "Nets.", {}),
        (DRAFT, WHOLE, {}),
        ("20 10\nunanswerable", "unanswerable", {"answerability": "graded", "stop_below": 30}),
    ],
)
async def test_middleware_shows_no_declined_draft(
    store: Any, awaited: bool, draft: str, shown: str, options: Any
) -> None:
    agent, model = agent_of(store, {"draft": draft, "whole": WHOLE}, **options)
    state = await answered(agent, awaited)
    assert [message.text for message in state["messages"]] == [QUESTION, shown]
    report, asked = state["selfroute"], 1 + (shown == WHOLE)
    assert (report["route"], report["answerable"]) == (("rag", "long_context")[asked - 1], not options)
    assert report["sources"] == (["crane.md"] if asked == 2 else report["sources"])
    assert (report["usage"]["total_tokens"], len(model.prompts)) == (105 * asked, asked)
    assert QUESTION in model.prompts[0][-1].text
    given = {"messages": [("user", QUESTION)]}
    if awaited:
        pieces = [piece async for piece, _ in agent.astream(given, stream_mode="messages")]
    else:
        pieces = [piece for piece, _ in agent.stream(given, stream_mode="messages")]
    told = [piece.text for piece in pieces if isinstance(piece, AIMessage)]
    assert "".join(told).strip() == shown
    assert (len(told) > 1) == (shown == WHOLE)
    updates = list(agent.stream(given, stream_mode="updates"))
    assert any("selfroute" in (one or {}) for update in updates for one in update.values())
    assert not options or "20 10" not in str(updates)


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@MODES
async def test_middleware_keeps_the_history(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"draft": "Nets."}, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    await answered(agent, awaited, **config)
    state = await answered(agent, awaited, "And what else?", **config)
    assert [message.text for message in state["messages"]] == [QUESTION, "Nets.", "And what else?", "Nets."]
    assert [message.text for message in model.prompts[1][:-1]] == [QUESTION, "Nets."]
    assert "And what else?" in model.prompts[1][-1].text


async def test_the_options_are_the_chains(store: Any) -> None:
    agent, _ = agent_of(store, {"draft": "90 20\nNets?", "sections": "80\nNets and barrels.", "whole": WHOLE},
                        answerability="graded", sections=1_000, citations=True)  # fmt: skip
    state = await answered(agent, False)
    assert state["selfroute"]["route"] in {"sections", "long_context"}
    assert "citations" in state["selfroute"]
    stopped, model = agent_of(store, {"draft": DRAFT}, escalation=Budget(tokens=110))
    state = await answered(stopped, False)
    assert (state["selfroute"]["route"], len(model.prompts)) == ("rag", 1)


@MODES
async def test_an_image_beside_the_question_is_sent_with_each_prompt(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"draft": DRAFT, "whole": WHOLE})
    image = {"type": "image_url", "image_url": {"url": "https://example.org/crane.png"}}
    given = {"messages": [HumanMessage([{"type": "text", "text": QUESTION}, image])]}
    await agent.ainvoke(given) if awaited else agent.invoke(given)
    assert [prompt[-1].content[1:] for prompt in model.prompts] == [[image], [image]]
    assert all(QUESTION in prompt[-1].text for prompt in model.prompts)


async def test_the_wall_holds_and_models_are_the_agents(store: Any) -> None:
    theirs = chunks_of(text_of("Orrin"), source="secret.md")
    store.add_documents(theirs)
    agent, model = agent_of(
        store, {"draft": DRAFT, "whole": WHOLE}, filter=lambda one: one.metadata["source"] == "crane.md", k=9
    )
    await answered(agent, False)
    assert "Orrin" not in str(model.prompts)
    with pytest.raises(ConfigurationError, match="llm is the agent's model: leave it out"):
        SelfRouteMiddleware(retriever=store.as_retriever(), documents=StoredDocuments(store), llm=model)
    with pytest.raises(ConfigurationError, match="llm is the agent's model: leave it out"):
        SelfRouteMiddleware.from_vectorstore(store, llm=model)
    with pytest.raises(ConfigurationError, match="leave answerability='structured' out"):
        SelfRouteMiddleware.from_vectorstore(store, answerability="structured")


async def test_a_model_that_fails_fails_the_agent(store: Any) -> None:
    agent, _ = agent_of(store, {})
    with pytest.raises(KeyError, match="draft"):
        await answered(agent, False)
    state = HumanMessage(" ")
    blank, _ = agent_of(store, {"other": "What is it?"})
    assert blank.invoke({"messages": [state]})["messages"][-1].text == "What is it?"


@MODES
async def test_middleware_over_a_provider_s_client(store: Any, awaited: bool) -> None:
    def reply(request: Request) -> Reply:
        return Reply(DRAFT if request.body["messages"][-1]["content"].startswith("Passages") else WHOLE)

    with LoopbackServer(reply) as server:
        model = ChatOpenAI(model="test", base_url=server.openai_url, api_key="none", max_retries=0, stream_usage=True)
        reading = SelfRouteMiddleware.from_vectorstore(store)
        agent = create_agent(model, tools=[clock], middleware=[reading], system_prompt="Be brief.")
        state = await answered(agent, awaited)
        asked = [entry.request.body for entry in server.book]
    assert state["messages"][-1].text == WHOLE
    assert state["selfroute"]["route"] == "long_context"
    assert state["selfroute"]["usage"]["estimated"] is False
    assert len(asked) == 2
    for body in asked:
        assert body["messages"][0]["content"] == "Be brief."
        assert [one["function"]["name"] for one in body["tools"]] == ["clock"]


@pytest.mark.parametrize(
    "is_agent",
    [pytest.param(True, marks=pytest.mark.skipif(not HAS_CONFIG, reason="an awaited agent is refused")), False],
    ids=["agent", "graph"],
)
@pytest.mark.parametrize("stream_mode", ["messages", "values"])
async def test_graph_that_is_left_stops_its_model(store: Any, is_agent: bool, stream_mode: str) -> None:
    reply = Reply(WHOLE, first_delay=0.1, hold_after=3)  # in the middle of a word
    with LoopbackServer(lambda request: DRAFT if "Passages" in str(request.body) else reply) as server:
        model = ChatOpenAI(model="test", base_url=server.openai_url, api_key="none", max_retries=0, streaming=True)
        graph: Any
        if is_agent:
            graph = create_agent(model, middleware=[SelfRouteMiddleware.from_vectorstore(store)])
        else:
            drawn = StateGraph(MessagesState)
            chain = SelfRouteChain.from_vectorstore(store, model)
            drawn.add_node(
                "ask", RunnableLambda(lambda _: QUESTION) | chain | (lambda one: {"messages": one["answer"]})
            )
            graph = drawn.set_entry_point("ask").compile()

        async def read() -> None:
            async for _ in stop_when_left(graph.astream({"messages": [("user", QUESTION)]}, stream_mode=stream_mode)):
                pass

        async with anyio.create_task_group() as requests:  # FastAPI drops a request like this
            requests.start_soon(read)
            while [entry.sent for entry in server.book] != [len(DRAFT.split()), 3]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            requests.cancel_scope.cancel()
        await asyncio.to_thread(server.settle)
        assert [entry.left for entry in server.book] == [False, True]


class Lift(BaseModel):
    """What the crane lifts."""

    lifts: str


@MODES
async def test_middleware_keeps_the_filter_and_the_ledger_of_a_call(store: Any, awaited: bool) -> None:
    store.add_documents(chunks_of(text_of("Orrin"), source="secret.md"))
    limits = ConfigurableField(id="search_kwargs")
    retriever = store.as_retriever(search_kwargs={"k": 9}).configurable_fields(search_kwargs=limits)
    model, ledger = Scripted(replies={"draft": DRAFT, "whole": WHOLE}, prompts=[]), SelfRouteLedger()
    reading = SelfRouteMiddleware(retriever=retriever, documents=StoredDocuments(store))
    mine = {"k": 9, "filter": lambda one: one.metadata["source"] == "crane.md"}
    agent = create_agent(model, middleware=[reading])
    await answered(agent, awaited, configurable={"search_kwargs": mine}, callbacks=[ledger])
    assert "Orrin" not in str(model.prompts)
    assert ledger.to_dict()["queries"] == 1


@pytest.mark.skipif(HAS_CONFIG, reason="from Python 3.11 on the config of a call is handed on")
async def test_middleware_refuses_to_be_awaited_on_python_310(store: Any) -> None:
    agent, model = agent_of(store, {"draft": "Nets.", "other": "Hello!"})
    with pytest.raises(ConfigurationError, match=r"call invoke or stream, or run it on Python 3\.11"):
        await answered(agent, True)
    assert not model.prompts
    assert (await answered(agent, True, "hello"))["messages"][-1].text == "Hello!"


@MODES
@pytest.mark.parametrize("call", [CALLS, CALLS_BADLY], ids=["valid", "invalid"])
@pytest.mark.parametrize(("step", "asked"), [("draft", 1), ("sections", 2), ("whole", 3)])
async def test_middleware_counts_a_reply_that_calls_a_tool(
    awaited: bool, step: str, asked: int, call: AIMessage
) -> None:
    text = text_of("Haldon", 60).replace("\n\n", f"\n\n{'Tea was served on the quay. ' * 3}\n\n")
    store = InMemoryVectorStore.from_documents(chunks_of(text, source="crane.md"), EMBEDDING)
    budget, ledger = Budget(tokens=100_000, per="hour"), SelfRouteLedger()
    replies = {"draft": DRAFT, "sections": DRAFT, "whole": WHOLE, f"{step}, told": "It is noon.", step: call}
    agent, model = agent_of(store, replies, [clock], k=1, sections=300, escalation=budget)
    state = await answered(agent, awaited, callbacks=[ledger])
    book = ledger.to_dict()
    assert (book["failed"], book["errors"]) == (0, {})
    assert book["tokens"]["total_tokens"] == 105 * len(model.prompts)
    read = [kind_of(prompt) for prompt in model.prompts if kind_of(prompt) != "draft"]
    assert budget.spent["tokens"] == 105 * len(read)
    if call is CALLS_BADLY:  # the agent ends with it, as without this middleware
        assert (state["messages"][-1].invalid_tool_calls, len(model.prompts)) == (call.invalid_tool_calls, asked)
        assert state["selfroute"] is None
    else:
        assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
        assert state["selfroute"]["usage"]["total_tokens"] == book["tokens"]["total_tokens"]
    assert DRAFT not in str(state)


@MODES
async def test_middleware_keeps_the_passages(store: Any, awaited: bool) -> None:
    replies = {"draft": CALLS, "draft, told": DRAFT, "whole, told": WHOLE}
    agent, model = agent_of(store, replies, [clock], priced_as="openai:gpt-4o-mini")
    state = await answered(agent, awaited)
    assert [kind_of(prompt) for prompt in model.prompts] == ["draft", "draft", "whole"]
    assert [[message.type for message in prompt] for prompt in model.prompts[1:]] == [["human", "ai", "tool"]] * 2
    assert all(QUESTION in prompt[0].text for prompt in model.prompts)
    report = state["selfroute"]
    assert (state["messages"][-1].text, report["route"], report["sources"]) == (WHOLE, "long_context", ["crane.md"])
    assert (report["usage"]["rag"]["input_tokens"], report["usage"]["long_context"]["input_tokens"]) == (200, 100)
    assert (report["usage"]["total_tokens"], report["usage"]["estimated"]) == (315, False)
    assert Decimal(report["usage"]["cost"]) == 3 * (100 * Decimal("0.15") + 5 * Decimal("0.6")) / 10**6
    assert list(report["usage"]["ledger"]["models"].values()) == [[300, 0, 0]]
    assert "selfroute_turn" not in state


@MODES
async def test_middleware_makes_no_second_draft(store: Any, awaited: bool) -> None:
    replies = {"draft": DRAFT, "whole": CALLS, "whole, told": WHOLE}
    agent, model = agent_of(store, replies, [clock])
    state = await answered(agent, awaited)
    assert [kind_of(prompt) for prompt in model.prompts] == ["draft", "whole", "whole"]
    usage = state["selfroute"]["usage"]
    assert (usage["total_tokens"], usage["cost"], bool(usage["cost_unknown"])) == (315, None, True)
    once = agent_of(
        store, {**replies, "draft, told": "Nets."}, [clock], escalation=lambda case: bool(case.usage["rag"])
    )
    state = await answered(once[0], awaited)
    assert [kind_of(prompt) for prompt in once[1].prompts] == ["draft", "whole", "draft"]
    assert (state["messages"][-1].text, state["selfroute"]["route"]) == ("Nets.", "rag")


@MODES
@pytest.mark.parametrize(("name", "text"), [("another", QUESTION), ("q", "And what else?")])
async def test_middleware_takes_nothing_over(store: Any, awaited: bool, name: str, text: str) -> None:
    replies = {"draft": DRAFT, "whole": CALLS, "draft, told": "Nets."}
    model = Scripted(replies=replies, prompts=[])
    reading = SelfRouteMiddleware.from_vectorstore(store)
    agent = create_agent(
        model, tools=[clock], middleware=[reading], checkpointer=InMemorySaver(), interrupt_before=["tools"]
    )
    config: Any = {"configurable": {"thread_id": "1"}}

    async def go_on(given: Any) -> Any:
        return await agent.ainvoke(given, config) if awaited else agent.invoke(given, config)

    _, called = (await go_on({"messages": [HumanMessage(QUESTION, id="q")]}))["messages"]
    told, later = (ToolMessage("noon", tool_call_id="1", id=name) for name in ("told", "later"))
    again = HumanMessage(text, id=name)
    since = [told] if name == "q" else [called.model_copy(update={"id": "c"}), later]
    await go_on({"messages": [again, *since] if name == "q" else [told, again, *since]})
    assert [kind_of(prompt) for prompt in model.prompts] == ["draft", "whole", "draft"]
    assert text in model.prompts[-1][-3].text
    assert agent.get_state(config).values["selfroute"]["usage"]["total_tokens"] == 105


@MODES
async def test_middleware_reports_on_this_turn(store: Any, awaited: bool) -> None:
    @before_model(can_jump_to=["end"])
    def guard(state: Any, runtime: Any) -> Any:
        return {"messages": [AIMessage("No.")], "jump_to": "end"} if state["messages"][-1].text == "Stop?" else None

    @after_model(can_jump_to=["model"])
    def twice(state: Any, runtime: Any) -> Any:
        return {"jump_to": "model"} if len(state["messages"]) == 2 else None

    class Outside(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("Kept.") if request.messages[-1].text == "Known?" else handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("Kept.") if request.messages[-1].text == "Known?" else await handler(request)

    replies = {"draft": "Nets.", "draft, told": "It is noon.", "other": "You are welcome."}
    agent, model = agent_of(store, replies, [clock], others=[guard, Outside()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for text, shown in [("thanks!", "You are welcome."), ("Stop?", "No."), ("Known?", "Kept.")]:
        assert (await answered(agent, awaited, **config))["selfroute"]["route"] == "rag"
        state = await answered(agent, awaited, text, **config)
        assert (state["messages"][-1].text, state["selfroute"]) == (shown, None)
    again, _ = agent_of(store, replies, others=[twice])
    assert (await answered(again, awaited))["selfroute"] is None  # the last answer was not routed
    model.replies["draft"] = CALLS
    reports = [
        state.get("selfroute")
        for state in agent.stream({"messages": [("user", QUESTION)]}, config, stream_mode="values")
    ]
    assert [report and report["route"] for report in reports[1:]] == [None] * (len(reports) - 2) + ["rag"]


TALK = ["hello", "Hi there!", "thanks a lot", "good morning", "ok, bye", "Hallo zusammen", "Vielen Dank!", "TSCHÜSS",
        "Bonjour à tous", "merci beaucoup !", "à bientôt", "¡Hola!", "Muchas gracias", "buenos dias", "你好",
        "谢谢您！", "再见", "こんにちは", "ありがとうございます。", "さようなら", "ok", "How are you?", "yes, please",
        "Alles klar!", "d'accord", "sí, claro", "好的", "了解です",
        "ça va ?", "你好吗？", "お元気ですか", "buenos dias", "adios", "A bientot"]  # fmt: skip
MARKS = [" ", "?", "\u200b", "\x00", "\ud800", "👍", "", "\u2060\u200d"]


@MODES
async def test_middleware_leaves_what_is_no_question_to_the_model(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"other": "Hello!"})
    image = {"type": "image_url", "image_url": {"url": "https://example.org/crane.png"}}
    for content in [*TALK, *MARKS, [image], [{"type": "text", "text": "\u200b"}]]:
        given = {"messages": [HumanMessage(content)]}
        state = await agent.ainvoke(given) if awaited else agent.invoke(given)
        assert (state["messages"][-1].text, state["selfroute"]) == ("Hello!", None), content
        assert model.prompts.pop()[-1].content == content


@MODES
@pytest.mark.parametrize(
    "text",
    ["Hello, who chaired the meeting?", "thanks, and the budget?", "Danke, und das Budget?", "merci, et le budget ?",
     "Gracias, ¿y quién la dirigió?", "谢谢，谁主持会议？", "ありがとう、予算は？", "Is bye a word?", "2024", "Why?",
     "And for this?", "Everyone?", "¿Y si no?", "Et si oui ?", "fine", "Toll", "¿Mil?", "好了吗？", "没问题吗？",
     "本当に？",
     "ok?", "no?", "Thanks for everything?",
     "hello " * 50],
)  # fmt: skip
async def test_middleware_routes_a_question_that_greets(store: Any, awaited: bool, text: str) -> None:
    agent, model = agent_of(store, {"draft": "Nets."})
    state = await answered(agent, awaited, text)
    assert (state["selfroute"]["route"], text in model.prompts[0][-1].text) == ("rag", True)


@MODES
async def test_middleware_asks_routes_what_a_question_is(store: Any, awaited: bool) -> None:
    heard: list[str] = []

    def routes(text: str) -> bool:
        heard.append(text)
        return text.endswith("!")

    agent, _ = agent_of(store, {"draft": "Nets.", "other": "Hello!"}, routes=routes)
    for text, shown in [("hello!", "Nets."), (QUESTION, "Hello!"), ("!", "Hello!")]:
        assert (await answered(agent, awaited, text))["messages"][-1].text == shown
    assert heard == ["hello!", QUESTION]


async def test_middleware_refuses_routes_that_cannot_be_asked(store: Any) -> None:
    async def awaited(text: str) -> bool:
        return bool(text)

    for routes, why in [
        ("hello", "not a text"),
        (awaited, "pass a sync one"),
        (lambda: True, "which yours does not take"),
    ]:
        with pytest.raises(ConfigurationError, match=f"routes .*{why}"):
            agent_of(store, {}, routes=routes)
        with pytest.raises(ConfigurationError, match=f"routes .*{why}"):
            SelfRouteMiddleware(retriever=store.as_retriever(), routes=routes)  # type: ignore[arg-type]


@MODES
async def test_middleware_sends_no_half_of_a_character(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"draft": DRAFT, "whole": WHOLE})
    state = await answered(agent, awaited, "What does \ud800 lift?")
    assert state["messages"][-1].text == WHOLE
    assert all("What does \ufffd lift?" in prompt[-1].text for prompt in model.prompts)


@MODES
async def test_middleware_prices_each_step_as_it_is_told(store: Any, awaited: bool) -> None:
    replies, mini = {"draft": DRAFT, "whole": WHOLE}, "openai:gpt-4o-mini"
    agent, _ = agent_of(store, replies, priced_as=mini, escalation=Budget(usd=5))
    report = (await answered(agent, awaited))["selfroute"]
    assert report["route"] == "long_context"
    assert Decimal(report["usage"]["cost"]) == 2 * (100 * Decimal("0.15") + 5 * Decimal("0.6")) / 10**6
    dearer, _ = agent_of(store, replies, priced_as={"llm": mini, "long_context_llm": "openai:gpt-4o"})
    usage = (await answered(dearer, awaited))["selfroute"]["usage"]
    assert set(usage["ledger"]["models"]) == {mini, "openai:gpt-4o"}


@MODES
@pytest.mark.parametrize(
    ("draft", "whole", "shown"),
    [("unanswerable", '{"lifts": "nets"}', Lift(lifts="nets")), ('{"lifts": "nets"}', "", Lift(lifts="nets")),
     ("unanswerable", "unanswerable", None), (DRAFT, DRAFT, None)],
)  # fmt: skip
async def test_middleware_judges_a_reply_that_cannot_be_parsed(
    store: Any, awaited: bool, draft: str, whole: str, shown: Any
) -> None:
    agent, model = agent_of(store, {"draft": draft, "whole": whole}, response_format=ProviderStrategy(Lift))
    state = await answered(agent, awaited)
    assert state.get("structured_response") == shown
    assert state["selfroute"]["answerable"] == (shown is not None)
    assert state["selfroute"]["usage"]["total_tokens"] == 105 * len(model.prompts)
    assert state["messages"][-1].text == (whole or draft)


@MODES
@pytest.mark.parametrize("step", ["draft", "whole"])
async def test_middleware_raises_that_an_answer_cannot_be_parsed(store: Any, awaited: bool, step: str) -> None:
    ledger = SelfRouteLedger()
    replies = {"draft": "unanswerable", step: "It lifts nets."}
    agent, model = agent_of(store, replies, response_format=ProviderStrategy(Lift))
    with pytest.raises(StructuredOutputValidationError, match="Lift"):
        await answered(agent, awaited, callbacks=[ledger])
    assert ledger.to_dict()["tokens"]["total_tokens"] == 105 * len(model.prompts) == 105 * (1 + (step == "whole"))


@after_model
def nothing(state: Any, runtime: Any) -> None:
    """Do nothing after a model, which changes how an agent without tools ends."""


def called(name: str, **given: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": given, "id": "1"}], response_metadata=CALLED)


def reported(answer: Any, answerable: bool = True) -> str:
    return json.dumps({"answerable": answerable, "answer": answer})


class Pair(BaseModel):
    """Two answers, of which one may not be there."""

    chair: str
    deputy: str


class Number(BaseModel):
    """An answer without a text."""

    tons: int


class Parts(BaseModel):
    """Names of the agent's schema that the report has, too."""

    answer: str
    confidence: int


LIKE_OURS = {"title": "Like", "type": "object", "properties": {}, "required": ["answerable", "answer"]}
OURS = {"answerable": True, "answer": {"of": "nets"}}
HALF = {"chair": "Ms Okafor", "deputy": "unknown"}
NETS, NONE = Lift(lifts="nets"), {"lifts": "unanswerable"}
PARTS = {"answer": "nets", "confidence": 3}


@MODES
@pytest.mark.parametrize(
    ("strategy", "draft", "whole", "shown"),
    [
        (ProviderStrategy(Lift), reported(None, False), reported({"lifts": "nets"}), NETS),
        (ProviderStrategy(Lift), reported({"lifts": "nets"}), "", NETS),
        (ProviderStrategy(Lift), reported({"lifts": "nets"}, False), reported(None, False), None),
        (ProviderStrategy(Lift), json.dumps(NONE), json.dumps(NONE), None),
        (ProviderStrategy(Parts), json.dumps(PARTS), "", Parts(answer="nets", confidence=3)),
        (ProviderStrategy(Parts), reported(None, False), reported(PARTS), Parts(answer="nets", confidence=3)),
        (ProviderStrategy(Parts.model_json_schema()), json.dumps(PARTS), "", PARTS),
        (ToolStrategy(Lift), called("not_in_the_documents"), called("Lift", lifts="nets"), NETS),
        (ToolStrategy(Lift), called("Lift", **NONE), called("Lift", **NONE), None),
        (ToolStrategy(Lift), called("Lift", lifts=DRAFT), called("Lift", lifts="nets"), NETS),
        (ProviderStrategy(Lift), reported({"lifts": DRAFT}), json.dumps({"lifts": "nets"}), NETS),
        (ProviderStrategy(Lift), reported({"lifts": "Das steht nicht im Text."}), reported({"lifts": "nets"}), NETS),
        (ToolStrategy(Number), called("Number", tons=3), "", Number(tons=3)),
        (ProviderStrategy(Number), reported({"tons": 3}), "", Number(tons=3)),
        (ToolStrategy(Pair), called("Pair", **HALF), "", Pair(**HALF)),
        (Lift, called("not_in_the_documents"), called("not_in_the_documents"), None),
        (ProviderStrategy(Lift), reported(NONE), reported({"lifts": "nets"}), NETS),
        (ProviderStrategy(LIKE_OURS), json.dumps(OURS), "", OURS),
    ],
)
async def test_middleware_reads_more_for_a_structured_answer(  # noqa: PLR0913, PLR0917
    store: Any, awaited: bool, strategy: Any, draft: Any, whole: Any, shown: Any
) -> None:
    tools = [clock] if awaited else []  # an agent without tools ends in another way
    replies = {"draft": draft, "whole": whole}
    agent, model = agent_of(store, replies, tools, response_format=strategy, others=[nothing])
    state = await answered(agent, awaited)
    report, last = state["selfroute"], state["messages"][-1]
    assert state.get("structured_response") == shown
    assert report["route"] == ("long_context" if whole else "rag")
    assert (report["answerable"], report["decision"]["declined"]) == (shown is not None, bool(whole))
    assert len(model.prompts) == 1 + bool(whole)
    assert shown is not None or (last.text, last.tool_calls) == ("unanswerable", [])
    assert shown == OURS or '"answerable"' not in last.text
    given = {"messages": [("user", QUESTION)]}
    pieces = [piece.text for piece, _ in agent.stream(given, stream_mode="messages") if isinstance(piece, AIMessage)]
    assert shown == OURS or not any('"answerable"' in text for text in pieces)


async def test_middleware_asks_the_provider_for_a_report(store: Any) -> None:
    replies = iter([reported(None, False), reported({"lifts": "nets"})])
    with LoopbackServer(lambda _: next(replies)) as server:
        model = ChatOpenAI(model="gpt-5-mini", base_url=server.openai_url, api_key="none", max_retries=0)
        agent = create_agent(model, middleware=[SelfRouteMiddleware.from_vectorstore(store)], response_format=Lift)
        assert (await answered(agent, False))["structured_response"] == NETS
        for entry in server.book:
            schema = entry.request.body["response_format"]["json_schema"]["schema"]
            assert set(schema["properties"]) == set(schema["required"]) == {"answerable", "answer"}
            own, none = schema["properties"]["answer"]["anyOf"]
            assert (list(own["properties"]), none) == (["lifts"], {"type": "null"})


@pytest.mark.parametrize("to", ["#", "#/properties/lifts", "#/$defs/Net", "#/definitions/Net"])
async def test_middleware_keeps_where_a_schema_refers_to(store: Any, to: str) -> None:
    schema = {"title": "Lift", "type": "object", "properties": {"lifts": {"type": "string"}, "more": {"$ref": to}}}
    schema |= {"$defs": {"Net": {"type": "string"}}, "definitions": {"Net": {"type": "string"}}}
    with LoopbackServer(lambda _: reported({"lifts": "nets"})) as server:
        model = ChatOpenAI(model="gpt-5-mini", base_url=server.openai_url, api_key="none", max_retries=0)
        agent = create_agent(model, middleware=[SelfRouteMiddleware.from_vectorstore(store)], response_format=schema)
        assert (await answered(agent, False))["structured_response"] == {"lifts": "nets"}
        sent: Any = server.book[0].request.body["response_format"]["json_schema"]["schema"]
    own = sent["properties"]["answer"]["anyOf"][0]
    found: Any = sent
    for part in own["properties"]["more"]["$ref"].split("/")[1:]:
        found = found[int(part) if isinstance(found, list) else part]
    assert found == (own if to == "#" else {"type": "string"})


@MODES
@pytest.mark.parametrize("nothing", ["declined", "not found"])
async def test_middleware_hands_a_question_back(store: Any, awaited: bool, nothing: str) -> None:
    replies = {"draft": DRAFT, "whole": "unanswerable", "other": CALLS, "other, told": "I do not know."}
    empty = InMemoryVectorStore(EMBEDDING) if nothing == "not found" else store
    agent, model = agent_of(empty, replies, [clock], otherwise="agent", checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    state = await answered(agent, awaited, **thread)
    assert [message.text for message in state["messages"]] == [QUESTION, "", "noon", "I do not know."]
    assert (state["selfroute"], state["messages"][0].text) == (None, QUESTION)
    read = ["draft", "whole"] if nothing == "declined" else []
    assert [kind_of(prompt) for prompt in model.prompts] == [*read, "other", "other"]
    model.replies["whole"] = WHOLE
    again = await answered(agent, awaited, **thread)  # the next turn is routed
    assert again["messages"][-1].text == (WHOLE if read else "I do not know.")
    given = {"messages": [("user", QUESTION)]}
    model.replies["whole"] = "unanswerable"
    pieces = [piece.text for piece, _ in agent.stream(given, thread, stream_mode="messages")]
    assert "unanswerable" not in " ".join(pieces)


@MODES
async def test_two_middlewares_in_one_agent(store: Any, awaited: bool) -> None:
    tea = InMemoryVectorStore.from_documents(
        [Document("Tea is served at nine.", metadata={"source": "tea.md"})], EMBEDDING
    )
    of_tea = SelfRouteMiddleware.from_vectorstore(tea, otherwise="agent")
    of_cranes = SelfRouteMiddleware.from_vectorstore(store, name="cranes")
    model = Scripted(replies={"draft": DRAFT, "whole": CALLS, "whole, told": WHOLE, "other": "Hello!"}, prompts=[])
    agent = create_agent(model, tools=[clock], middleware=[of_tea, of_cranes])
    state = await answered(agent, awaited)
    assert (state["messages"][-1].text, state["selfroute"]["sources"]) == (WHOLE, ["crane.md"])
    assert [kind_of(prompt) for prompt in model.prompts] == ["draft", "draft", "whole", "whole"]
    assert ["Tea" in str(prompt) for prompt in model.prompts] == [True, False, False, False]
    assert state["selfroute"]["usage"]["total_tokens"] == 4 * 105
    assert (await answered(agent, awaited, "hello"))["messages"][-1].text == "Hello!"
    model.replies["draft"] = "At nine."
    state = await answered(agent, awaited, "When is tea?")
    assert (state["messages"][-1].text, state["selfroute"]["sources"]) == ("At nine.", ["tea.md"])


async def test_two_middlewares_and_two_questions_in_a_turn(store: Any) -> None:
    class AsksOnce(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> Any:
            asked = [HumanMessage("Is it about tea?")]
            return {"messages": asked, "jump_to": "model"} if len(state["messages"]) == 2 else None

    for routes in (lambda text: "tea" not in text, lambda text: True):
        first = SelfRouteMiddleware.from_vectorstore(store, name="first", routes=routes)
        second = SelfRouteMiddleware.from_vectorstore(store, name="second")
        model = Scripted(replies={"draft": "Nets."}, prompts=[])
        agent = create_agent(model, middleware=[AsksOnce(), first, second])
        state = await answered(agent, False)
        assert [message.text for message in state["messages"]] == [QUESTION, "Nets.", "Is it about tea?", "Nets."]
        assert state["selfroute"]["sources"] == ["crane.md"]


async def test_two_middlewares_end_no_later_turn(store: Any) -> None:
    first = SelfRouteMiddleware.from_vectorstore(store, name="first", otherwise="agent")
    second = SelfRouteMiddleware.from_vectorstore(store, name="second")
    none, answer = called("not_in_the_documents"), called("Lift", lifts="nets")
    model = Scripted(replies={"draft": none, "whole": none}, prompts=[])
    middleware, thread = [first, second], {"configurable": {"thread_id": "1"}}
    agent: Any = create_agent(
        model, [clock], middleware=middleware, response_format=ToolStrategy(Lift), checkpointer=InMemorySaver()
    )
    assert (await answered(agent, False, **thread)).get("structured_response") is None
    model.replies |= {"draft": CALLS, "draft, told": answer}
    assert (await answered(agent, False, **thread))["structured_response"] == NETS


async def test_middleware_takes_bounds_beside_an_answer_by_a_tool(store: Any) -> None:
    replies = {"draft": called("Lift", lifts="nets")}
    for answerability in (None, "graded"):
        options: dict[str, Any] = {"doubt_below": 70, "stop_below": 20, "answerability": answerability}
        agent, _ = agent_of(store, replies, response_format=ToolStrategy(Lift), **options)
        assert (await answered(agent, False))["structured_response"] == NETS


async def test_middleware_checks_its_own_options(store: Any) -> None:
    for options, why in [({"otherwise": "model"}, "pass 'agent'"), ({"name": ""}, "name must be a text")]:
        with pytest.raises(ConfigurationError, match=why):
            SelfRouteMiddleware.from_vectorstore(store, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="routs"):
        SelfRouteMiddleware(retriever=store.as_retriever(), routs=bool)


@MODES
async def test_middleware_tags_each_step(store: Any, awaited: bool) -> None:
    seen: list[list[str]] = []

    class Watch(BaseCallbackHandler):
        def on_chat_model_start(self, *_: Any, tags: Any = (), **__: Any) -> None:
            seen.append(list(tags))

    agent, _ = agent_of(store, {"draft": DRAFT, "whole": WHOLE, "other": "Hello!"})
    await answered(agent, awaited, callbacks=[Watch()])
    await answered(agent, awaited, "hello", callbacks=[Watch()])
    routes = [[tag for tag in tags if tag.startswith("selfroute:")] for tags in seen]
    assert routes == [["selfroute:rag"], ["selfroute:long_context"], []]


@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
async def test_middleware_mentions_tools_in_its_own_prompts(own: bool) -> None:
    text = "Passages: {context}\n\nAnswer the question from them, or {refusal}: {input}"
    options = {"rag_prompt": ChatPromptTemplate.from_template(text), "answerability": "text"} if own else {}
    store = InMemoryVectorStore.from_texts(
        ["Answer:\n\nAnswer the question from memory."], EMBEDDING, [{"source": "a"}]
    )
    for tools in ([], [clock]):
        agent, model = agent_of(store, {"draft": "Nets."}, tools, **options)
        await answered(agent, False)
        _, passages, instruction = model.prompts[0][-1].text.partition("from memory.")
        assert ("your tools" in instruction) == (bool(tools) and not own)
        assert passages


@MODES
async def test_middleware_reads_a_structured_tool_call(store: Any, awaited: bool) -> None:
    right, wrong = called("Lift", lifts="nets"), called("Lift")
    for replies, asked in [({"draft": right}, 1), ({"draft": wrong, "draft, told": right}, 2)]:
        agent, model = agent_of(store, replies, response_format=ToolStrategy(Lift), citations=True)
        state = await answered(agent, awaited)
        assert state["structured_response"] == Lift(lifts="nets")
        assert (state["selfroute"]["route"], state["selfroute"]["citations"]) == ("rag", [])
        assert [kind_of(prompt) for prompt in model.prompts] == ["draft"] * asked
        assert state["selfroute"]["usage"]["total_tokens"] == 105 * asked
    strict, ledger = ToolStrategy(Lift, handle_errors=False), SelfRouteLedger()
    agent, _ = agent_of(store, {"draft": wrong}, response_format=strict)
    with pytest.raises(StructuredOutputValidationError, match="Lift"):
        await answered(agent, awaited, callbacks=[ledger])
    assert ledger.to_dict()["tokens"]["total_tokens"] == 105


async def test_middleware_expects_no_numbers_before_a_tool_call(store: Any, caplog: Any) -> None:
    agent, _ = agent_of(store, {"draft": CALLS, "draft, told": "90 90\nNets."}, [clock], answerability="graded")
    bad, _ = agent_of(store, {"draft": CALLS_BADLY}, [clock], answerability="graded")
    with caplog.at_level(logging.WARNING):
        for _ in range(12):
            await answered(bad, False)
        assert (await answered(agent, False))["messages"][-1].text == "Nets."
    assert "numbers" not in caplog.text


@MODES
async def test_middleware_keeps_a_summarized_question(store: Any, awaited: bool) -> None:
    """A summary may take the place of the question while its tools are called."""

    class Summarizes(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> Any:
            messages = state["messages"]
            if not isinstance(messages[-1], ToolMessage):
                return None
            summary = HumanMessage("Here is a summary", additional_kwargs={"lc_source": "summarization"})
            return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), summary, *messages[-2:]]}

    agent, model = agent_of(
        store, {"draft": CALLS, "draft, told": DRAFT, "whole, told": WHOLE}, [clock], others=[Summarizes()]
    )
    state = await answered(agent, awaited)
    assert [kind_of(prompt) for prompt in model.prompts] == ["draft", "draft", "whole"]
    assert all(QUESTION in prompt[-3].text and prompt[0].text == "Here is a summary" for prompt in model.prompts[1:])
    assert (state["messages"][-1].text, state["selfroute"]["usage"]["total_tokens"]) == (WHOLE, 315)


@MODES
async def test_middleware_streams_no_draft_of_another_model(store: Any, awaited: bool) -> None:
    """A middleware within may ask another model than that of the agent."""

    class Swaps(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model=other))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(model=other))

    other = Scripted(replies={"draft": DRAFT, "whole": WHOLE}, prompts=[])
    reading = SelfRouteMiddleware.from_vectorstore(store)
    agent = create_agent(Scripted(replies={}, prompts=[]), middleware=[reading, Swaps()])
    given: Any = {"messages": [("user", QUESTION)]}
    if awaited:
        shown = [one.text async for one, _ in agent.astream(given, stream_mode="messages")]
    else:
        shown = [one.text for one, _ in agent.stream(given, stream_mode="messages")]
    assert "".join(shown).strip() == WHOLE


@MODES
async def test_middleware_keeps_what_else_the_messages_hold(store: Any, awaited: bool) -> None:
    blocks: Any = [{"type": "reasoning", "reasoning": "Nets."}, {"type": "text", "text": "It lifts nets."}]
    agent, model = agent_of(store, {"draft": AIMessage(blocks)})
    asked = HumanMessage(QUESTION, name="Orla", id="7")
    state = await agent.ainvoke({"messages": [asked]}) if awaited else agent.invoke({"messages": [asked]})
    assert state["messages"][-1].content == blocks
    assert (model.prompts[0][-1].name, model.prompts[0][-1].id) == ("Orla", "7")
