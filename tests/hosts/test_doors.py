"""A declined draft leaks through no door: one table of drafts, all doors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.callbacks.manager import CallbackManagerForChainRun
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, MockEmbedding, VectorStoreIndex

import langchain_parts
from langchain_selfroute import SelfRouteChain
from langchain_stores import EMBEDDING, chunks_of, text_of
from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute.lookup import Lookup

QUESTION, FINAL = "What does the crane lift?", ("Nets and ", "barrels.")
# A draft, and a part of it that nobody may see.
DRAFTS = {
    "the refusal": (("unanswer", "able"), "unanswer"),
    "its own words": (("The passages do ", "not mention what it lifts, ", "only the ferry."), "only the ferry"),
    "a refusal and a guess": (("unanswerable. ", "Perhaps stones."), "stones"),
    "thoughts": (("<think>Stones, ", "I guess.</think>", "unanswerable"), "Stones"),
}
MARKER = "Read the following"


def a_chain(draft: tuple[str, ...]) -> SelfRouteChain:
    store = InMemoryVectorStore.from_documents(chunks_of(text_of("Haldon"), source="crane"), EMBEDDING)
    return SelfRouteChain.from_vectorstore(
        store, langchain_parts.ScriptedModel(draft=draft, final=FINAL, marker=MARKER)
    )


def an_engine(draft: tuple[str, ...], *, streaming: bool = False) -> SelfRouteQueryEngine:
    index = VectorStoreIndex.from_documents([Document(text=text_of("Haldon"))], embed_model=MockEmbedding(8))
    llm = ScriptedLLM(draft=draft, final=FINAL, marker=MARKER)
    return SelfRouteQueryEngine.from_index(index, llm=llm, streaming=streaming)


async def by_chain(draft: tuple[str, ...]) -> str:
    return "".join([chunk.get("answer", "") async for chunk in a_chain(draft).astream(QUESTION)])


async def by_tool(draft: tuple[str, ...]) -> str:
    tool = a_chain(draft).as_tool(name="crane", description="Tells of the crane.")
    return str(await tool.ainvoke({"input": QUESTION}))


async def by_middleware(draft: tuple[str, ...]) -> str:
    agents = pytest.importorskip("langchain.agents")
    from langchain_selfroute import SelfRouteMiddleware  # noqa: PLC0415

    chain = a_chain(draft)
    reading = SelfRouteMiddleware(retriever=chain.retriever, documents=chain.documents)
    agent = agents.create_agent(chain.llm, middleware=[reading])
    given = {"messages": [("user", QUESTION)]}
    # not awaited, which Python 3.10 refuses
    shown = [str(piece.text) for piece, _ in agent.stream(given, stream_mode="messages")]
    values = [str(state["messages"]) for state in agent.stream(given, stream_mode="values")]
    return "".join(shown) + "".join(values)


async def by_engine(draft: tuple[str, ...]) -> str:
    response: Any = await an_engine(draft, streaming=True).aquery(QUESTION)
    return "".join([piece async for piece in response.async_response_gen()])


async def by_workflow(draft: tuple[str, ...]) -> str:
    from llamaindex_selfroute import SelfRouteWorkflow  # noqa: PLC0415

    handler = SelfRouteWorkflow(an_engine(draft, streaming=True)).run(question=QUESTION)
    shown = [getattr(event, "delta", "") async for event in handler.stream_events()]
    return "".join(shown) + str(await handler)


async def by_lookup(draft: tuple[str, ...]) -> str:
    """The tools ask no model at all."""
    make = a_chain(draft).calling(QUESTION, {})
    manager = CallbackManagerForChainRun.get_noop_manager()
    told = await Lookup(lambda: make(manager=manager, config=None, streaming=False).host).asearch()
    return f"{told} {''.join(FINAL)}"


DOORS: dict[str, Callable[[tuple[str, ...]], Awaitable[str]]] = {
    "chain": by_chain,
    "tool": by_tool,
    "middleware": by_middleware,
    "engine": by_engine,
    "workflow": by_workflow,
    "search": by_lookup,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", DRAFTS)
async def test_a_declined_draft_leaks_through_no_door(door: str, kind: str) -> None:
    draft, secret = DRAFTS[kind]
    shown = await DOORS[door](draft)
    assert "".join(FINAL) in shown
    assert secret not in shown
