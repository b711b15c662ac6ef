"""A chain is at home where people have one: in a LangGraph, and in the place of `create_retrieval_chain`."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langchain_parts import (
    DOCUMENTS,
    MODES,
    PASSAGES,
    QUESTION,
    ListRetriever,
    ScriptedModel,
    a_chain,
    ask,
)
from scenarios import FOUND

every_mode = pytest.mark.parametrize("mode", MODES)
HISTORY = [HumanMessage("Was there a meeting?"), AIMessage("There was.")]


class State(TypedDict, total=False):
    """A state that names all that the chain returns."""

    input: str
    retrieved: list[Document]
    context: list[Document]
    answer: str
    route: str
    answerable: bool
    finish_reason: str | None
    decision: dict[str, Any]
    usage: dict[str, Any]


def a_graph(chain: Any, **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("ask", chain)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(**options)


@every_mode
async def test_output_keys_in_the_input_are_replaced(mode: str) -> None:
    before = await ask(a_chain(), QUESTION, "invoke")
    seen: list[Any] = []
    chain = a_chain(
        retriever=RunnableLambda(lambda given: seen.append(given) or PASSAGES),
        documents=lambda given: seen.append(given) or DOCUMENTS,
    )
    result = await ask(chain, {**before, "answer": "an old answer", "route": "rag"}, mode)
    assert seen == [{"input": QUESTION}, {"input": QUESTION, "retrieved": PASSAGES}]
    assert {**result, "usage": None} == {**before, "usage": None}
    assert not any("an old answer" in call.prompt for call in chain.llm.calls)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_messages_of_a_graph_bear_the_tag_of_the_step(mode: str) -> None:
    graph, given = a_graph(a_chain(("unans", "werable"))), {"input": QUESTION}
    if mode == "sync":
        messages = list(graph.stream(given, stream_mode="messages"))
    else:
        messages = [item async for item in graph.astream(given, stream_mode="messages")]
    said = {
        step: "".join(str(message.text) for message, about in messages if f"selfroute:{step}" in (about["tags"] or []))
        for step in ("rag", "long_context")
    }
    assert said == {"rag": "unanswerable", "long_context": FOUND}


def a_retrieval_chain(retriever: Any, model: Any) -> Any:
    prompt = ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", "{context}\n{input} {year}")])
    return create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))


INPUTS = {"input": QUESTION, "chat_history": HISTORY, "year": 1907}


@every_mode
async def test_chain_takes_and_returns_what_a_retrieval_chain_does(mode: str) -> None:
    theirs = await ask(a_retrieval_chain(ListRetriever(), ScriptedModel(draft=("Mr", " Lin."))), INPUTS, mode)
    ours = await ask(a_chain(("Mr", " Lin.")), INPUTS, mode)
    assert {key: ours[key] for key in theirs} == theirs
    assert set(ours) - set(theirs) == {"retrieved", "route", "answerable", "finish_reason", "decision", "usage"}


@every_mode
async def test_extra_inputs_reach_prompts_documents_and_output(mode: str) -> None:
    seen: list[Any] = []
    prompt = ChatPromptTemplate([MessagesPlaceholder("chat_history"), ("human", "{context}\n{input} In {year}?")])
    own = {"rag_prompt": prompt, "long_context_prompt": prompt}
    for fields, ending in ((own, "In 1907?"), ({}, "")):
        seen.clear()
        chain = a_chain(**fields, documents=lambda given: seen.append(given) or DOCUMENTS)
        result = await ask(chain, INPUTS, mode)
        for call in chain.llm.calls:
            assert (call.messages[:2], call.prompt.endswith(ending)) == (HISTORY, True)
            assert QUESTION in str(call.messages[-1].text)
        assert seen == [{**INPUTS, "retrieved": PASSAGES}]
        assert {key: result[key] for key in INPUTS} == INPUTS
