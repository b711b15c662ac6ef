"""Self-Route in LangChain's `create_agent`: what is routed, what passes, and what a reader sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_selfroute import SelfRouteMiddleware, StoredDocuments
from langchain_stores import EMBEDDING, chunks_of, text_of
from loopback import LoopbackServer, Reply, Request
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget

QUESTION = "What does the crane lift?"
DRAFT = "The passages do not mention what it lifts."
WHOLE = "It lifts nets and barrels."
MODES = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Scripted(BaseChatModel):
    """Gives a reply to each kind of prompt: to passages, to sections, to whole documents, and to anything else."""

    replies: dict[str, Any]
    prompts: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        self.prompts.append(messages)
        last = messages[-1].text
        kind = (
            "sections" if "[...]" in last else "draft" if last.startswith("Passages") else
            "whole" if last.startswith("Read the following") else "other"
        )  # fmt: skip
        reply = self.replies[kind]
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)

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
    saver = options.pop("checkpointer", None)
    reading = SelfRouteMiddleware.from_vectorstore(store, **options)
    return create_agent(model, tools=list(tools), middleware=[reading], checkpointer=saver), model


async def answered(agent: Any, awaited: bool, text: str = QUESTION, **config: Any) -> dict[str, Any]:
    given = {"messages": [("user", text)]}
    found = await agent.ainvoke(given, config or None) if awaited else agent.invoke(given, config or None)
    return dict(found)


@MODES
async def test_a_draft_that_answers_is_the_answer(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"draft": "Nets."})
    state = await answered(agent, awaited)
    assert [message.text for message in state["messages"]] == [QUESTION, "Nets."]
    assert (state["selfroute"]["route"], state["selfroute"]["answerable"]) == ("rag", True)
    assert state["selfroute"]["usage"]["total_tokens"] == 105
    assert len(model.prompts) == 1
    assert QUESTION in model.prompts[0][-1].text


@MODES
async def test_after_a_decline_the_documents_are_read_and_the_draft_is_nowhere(store: Any, awaited: bool) -> None:
    agent, model = agent_of(store, {"draft": DRAFT, "whole": WHOLE})
    state = await answered(agent, awaited)
    assert [message.text for message in state["messages"]] == [QUESTION, WHOLE]
    assert state["selfroute"]["route"] == "long_context"
    assert state["selfroute"]["sources"] == ["crane.md"]
    assert (state["selfroute"]["usage"]["total_tokens"], len(model.prompts)) == (210, 2)
    assert DRAFT not in str(state["messages"])


@MODES
@pytest.mark.parametrize(
    ("draft", "shown"), [("Nets.", "Nets."), (DRAFT, WHOLE), ("20 10\nunanswerable", "unanswerable")]
)
async def test_a_stream_shows_the_answer_once_and_nothing_of_a_declined_draft(
    store: Any, awaited: bool, draft: str, shown: str
) -> None:
    graded = draft.startswith("20")
    agent, _ = agent_of(
        store, {"draft": draft, "whole": WHOLE}, **({"answerability": "graded", "stop_below": 30} if graded else {})
    )
    given = {"messages": [("user", QUESTION)]}
    if awaited:
        pieces = [piece async for piece, _ in agent.astream(given, stream_mode="messages")]
    else:
        pieces = [piece for piece, _ in agent.stream(given, stream_mode="messages")]
    told = [piece.text for piece in pieces if isinstance(piece, AIMessage)]
    assert "".join(told).strip() == shown
    assert (len(told) > 1) == (shown == WHOLE)
    updates = [update async for update in agent.astream(given, stream_mode="updates")]
    assert any("selfroute" in (one or {}) for update in updates for one in update.values())
    assert not graded or "20 10" not in str(updates)


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@MODES
@pytest.mark.parametrize(("step", "asked"), [("draft", 2), ("whole", 3)])
async def test_tools_are_called_as_without_it_and_the_call_after_them_is_not_routed(
    store: Any, awaited: bool, step: str, asked: int
) -> None:
    called = AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "1"}])
    agent, model = agent_of(store, {"draft": DRAFT, "other": "It is noon.", step: called}, [clock])
    state = await answered(agent, awaited, "What time is it?")
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].text == "It is noon."
    assert ("selfroute" in state, len(model.prompts)) == (False, asked)
    assert DRAFT not in str(state)


@MODES
async def test_a_conversation_goes_on_with_its_history_and_without_the_passages(store: Any, awaited: bool) -> None:
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
    with pytest.raises(ConfigurationError, match="the agent's model replies in text: set answerability to 'text' or"):
        SelfRouteMiddleware.from_vectorstore(store, answerability="structured")


async def test_a_model_that_fails_fails_the_agent(store: Any) -> None:
    agent, _ = agent_of(store, {})
    with pytest.raises(KeyError, match="draft"):
        await answered(agent, False)
    state = HumanMessage(" ")
    blank, _ = agent_of(store, {"other": "What is it?"})
    assert blank.invoke({"messages": [state]})["messages"][-1].text == "What is it?"


@MODES
async def test_through_a_providers_client_usage_is_the_servers_and_tools_stay_bound(store: Any, awaited: bool) -> None:
    @tool
    def clock() -> str:
        """Tell the time."""
        return "noon"

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


@MODES
async def test_a_structured_response_that_comes_as_a_tool_call_passes(store: Any, awaited: bool) -> None:
    class Lift(BaseModel):
        """What the crane lifts."""

        lifts: str

    called = AIMessage("", tool_calls=[{"name": "Lift", "args": {"lifts": "nets"}, "id": "1"}])
    model = Scripted(replies={"draft": called}, prompts=[])
    reading = SelfRouteMiddleware.from_vectorstore(store)
    agent = create_agent(model, middleware=[reading], response_format=ToolStrategy(Lift))
    state = await answered(agent, awaited)
    assert state["structured_response"] == Lift(lifts="nets")
    assert "Passages" in model.prompts[0][-1].text
