"""Marks in prompts on the wire: where the documents end, at Anthropic's own address, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import StructuredTool
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import Document as LlamaDocument

import langchain_parts
import llamaindex_parts
import own_addresses
from both_parts import EVERYWHERE, HOSTS, pipeline
from langchain_selfroute import SelfRouteChain
from loopback import LoopbackServer

WHOLE = "The whole minutes of May. Ms Okafor chaired the meeting, and Mr Lin took the notes."
QUESTIONS = ("Who chaired the meeting?", "Who took the notes?")
ANSWER = "It is in the minutes."

pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: ANSWER if WHOLE in request.prompt else "unanswerable") as started:
        yield started


def chat(server: LoopbackServer, client: str = "anthropic", **fields: Any) -> Any:
    return own_addresses.chat_model(server, client, **fields)


def chain_over(llm: Any, **fields: Any) -> SelfRouteChain:
    return langchain_parts.a_chain(llm=llm, **{"documents": [Document(WHOLE)], "prompt_cache": "5m", **fields})


def engine_over(llm: Any, **fields: Any) -> Any:
    return llamaindex_parts.an_engine(
        llm=llm, documents=[LlamaDocument(text=WHOLE)], **{"prompt_cache": "5m", **fields}
    )


def bodies(server: LoopbackServer) -> list[dict[str, Any]]:
    server.settle()
    return [entry.request.body for entry in server.book]


def blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    content = body["messages"][-1]["content"]
    return [{"text": content}] if isinstance(content, str) else content


def marked(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the text of each marked block, with its mark."""
    return [(block["text"], block["cache_control"]) for block in blocks(body) if "cache_control" in block]


WISHES = [(where, "5m") for where in EVERYWHERE] + [(where, "auto") for where in HOSTS]
WISHES += [pytest.param(where, wish, marks=pytest.mark.matrix) for where in HOSTS for wish in ("1h", "off")]  # type: ignore[arg-type]


@pytest.mark.parametrize(("where", "wish"), WISHES)
async def test_marks_end_with_the_documents(server: LoopbackServer, where: str, wish: str) -> None:
    for question in QUESTIONS:
        llm = own_addresses.model(where, server, "anthropic")
        found = await pipeline(where, llm=llm, documents=[WHOLE], prompt_cache=wish).ask(question)
        assert found.answer == ANSWER
    draft, first, *_, second = bodies(server)
    assert marked(draft) == []
    if wish in ("auto", "off"):
        assert "cache_control" not in json.dumps(bodies(server))
        return
    assert marked(first) == marked(second)  # whatever the question is
    ((text, mark),) = marked(first)
    assert mark == {"type": "ephemeral", "ttl": wish}
    assert text.endswith(WHOLE)
    for question, body in zip(QUESTIONS, (first, second), strict=True):
        assert question in "".join(block["text"] for block in blocks(body)[1:])


CARRIED: dict[str, Callable[[LoopbackServer], Any]] = {
    "retry and bind": lambda server: chat(server).bind(stop=["x"]).with_retry(),
    "a fallback of its kind": lambda server: chat(server).with_fallbacks([chat(server, model="claude-sonnet-4-5")]),
    "configurable_fields": lambda server: chat(server).configurable_fields(
        temperature=ConfigurableField(id="temperature")
    ),
    "a parser behind it": lambda server: chat(server) | StrOutputParser(),
}


@pytest.mark.parametrize("name", CARRIED)
def test_marks_go_through_what_is_built_around_a_model(server: LoopbackServer, name: str) -> None:
    assert chain_over(CARRIED[name](server)).invoke(QUESTIONS[0])["answer"] == ANSWER
    draft, read = bodies(server)
    assert (marked(draft), [text[-len(WHOLE) :] for text, _ in marked(read)]) == ([], [WHOLE])


def test_marks_go_through_an_agent_with_tools(server: LoopbackServer) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langchain_selfroute import SelfRouteMiddleware  # noqa: PLC0415 - it needs langchain

    reading = SelfRouteMiddleware(
        retriever=RunnableLambda(lambda _: [Document("The minutes.")]), documents=[Document(WHOLE)], prompt_cache="5m"
    )
    clock = StructuredTool.from_function(lambda: "noon", name="clock", description="Tells the time.")
    agent = agents.create_agent(chat(server), tools=[clock], middleware=[reading])
    assert agent.invoke({"messages": [("user", QUESTIONS[0])]})["messages"][-1].text == ANSWER
    draft, read = bodies(server)
    assert (marked(draft), [text[-len(WHOLE) :] for text, _ in marked(read)]) == ([], [WHOLE])
    assert "your tools" in blocks(read)[1]["text"]


def test_marks_of_a_prompt_of_ones_own(server: LoopbackServer) -> None:
    prompt = ChatPromptTemplate([("system", "Answer shortly."), ("human", "<doc>{context}</doc>\n{input}")])
    chain_over(chat(server), long_context_prompt=prompt).invoke(QUESTIONS[0])
    assert [block["text"] for block in blocks(bodies(server)[1])] == [f"<doc>{WHOLE}", f"</doc>\n{QUESTIONS[0]}"]


QUESTION_FIRST = ChatPromptTemplate([("human", "Answer {input} from this:\n{context}")])
IN_PARTS = ChatPromptTemplate([("human", [{"type": "text", "text": "{context}"}, {"type": "text", "text": "{input}"}])])
HISTORY = {"input": QUESTIONS[0], "chat_history": [HumanMessage("Hello."), AIMessage("Hello!")]}
TOOL = {
    "name": "look_up",
    "description": "Looks up.",
    "input_schema": {"type": "object", "properties": {}},
    "cache_control": {"type": "ephemeral"},
}
# Where a mark would be refused, useless, or not ours to make: the model, the options, and what is asked.
UNMARKED: dict[str, Callable[[LoopbackServer], tuple[Any, ...]]] = {
    "another address priced as Anthropic's": lambda server: (
        chat(server, anthropic_api_url=server.openai_url.removesuffix("/v1")),
        {"priced_as": "anthropic:claude-haiku-4-5"},
    ),
    "a history in front": lambda server: (chat(server), {}, HISTORY),
    "the question before the documents": lambda server: (chat(server), {"long_context_prompt": QUESTION_FIRST}),
    "a prompt in parts": lambda server: (chat(server), {"long_context_prompt": IN_PARTS}),
    "a fallback of another kind": lambda server: (chat(server).with_fallbacks([chat(server, "openai")]), {}),
    "a function before the model": lambda server: (RunnableLambda(lambda prompt: prompt) | chat(server), {}),
    "a mark of the user's on a tool": lambda server: (chat(server).bind_tools([TOOL]), {}),
    "LlamaIndex, a question first": lambda server: (
        own_addresses.llm(server, "anthropic"),
        {"long_context_prompt": PromptTemplate("{query_str} Read this:\n{context_str}")},
    ),
    "LlamaIndex, its own switch": lambda server: (own_addresses.llm(server, "anthropic", cache_idx=-1), {}),
}


@pytest.mark.parametrize("name", UNMARKED)
def test_marks_are_not_sent(server: LoopbackServer, name: str) -> None:
    llm, fields, *inputs = UNMARKED[name](server)
    if name.startswith("LlamaIndex"):
        assert str(engine_over(llm, **fields).query(QUESTIONS[0])) == ANSWER
    else:
        assert chain_over(llm, **fields).invoke(*inputs or [QUESTIONS[0]])["answer"] == ANSWER
    assert len(bodies(server)) == 2
    assert '"ttl"' not in json.dumps(bodies(server))
