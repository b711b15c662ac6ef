"""The hosts' `SelfRouteLedger` hears of every question once, however it is asked and however it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher

import langchain_parts as lc
import langchain_selfroute
import llamaindex_parts as li
import llamaindex_selfroute
from scenarios import QUESTION

ANSWER = ("Mr Lin.",)
READ = "input_tokens"


def billed(calls: Iterable[lc.Call | li.Call], step: str) -> int:
    """What the model itself would bill for the prompts of a step."""
    return sum(len(call.prompt.split()) for call in calls if call.step == step and call.ended == "exhausted")


@pytest.mark.parametrize("draft", [ANSWER, ("unanswerable",)], ids=["rag", "long_context"])
@pytest.mark.parametrize("mode", lc.MODES)
async def test_a_chain_is_told_of_in_every_mode(mode: str, draft: Any) -> None:
    chain, ledger = lc.a_chain(draft, usage=True), langchain_selfroute.SelfRouteLedger()
    for _ in range(3):
        await lc.ask(chain, QUESTION, mode, {"callbacks": [ledger]})
    figures, calls = ledger.to_dict(), chain.llm.calls
    assert figures["routes"] == {"rag": 3 * (draft == ANSWER), "sections": 0, "long_context": 3 * (draft != ANSWER)}
    for step in ("rag", "long_context"):
        assert figures["tokens"][step][READ] == billed(calls, step)
        assert figures["tokens"][step]["estimated_tokens"] == 0
    assert figures["savings"]["queries"] == 3
    assert figures["failed"] == figures["left"] == 0


def in_graph(chain: Runnable[Any, Any]) -> Runnable[Any, Any]:
    question = RunnableLambda(lambda state: state["messages"][-1].text)
    node = question | chain.pick("answer") | {"messages": StrOutputParser()}
    graph: Any = StateGraph(MessagesState)
    return graph.add_node("ask", node).add_edge(START, "ask").add_edge("ask", END).compile()


@pytest.mark.parametrize("mode", lc.MODES)
async def test_a_ledger_given_to_a_graph_hears_of_the_chain_in_it(mode: str) -> None:
    ledger = langchain_selfroute.SelfRouteLedger()
    await lc.chunks(in_graph(lc.a_chain()), {"messages": [QUESTION]}, mode, {"callbacks": [ledger]})
    assert ledger.to_dict()["routes"] == {"rag": 0, "sections": 0, "long_context": 1}


@pytest.mark.parametrize("mode", lc.MODES)
async def test_a_ledger_that_is_given_twice_counts_once(mode: str) -> None:
    ledger, other = langchain_selfroute.SelfRouteLedger(), langchain_selfroute.SelfRouteLedger()
    chain = lc.a_chain().with_config(callbacks=[ledger, other, ledger])
    await lc.ask(chain, QUESTION, mode, {"callbacks": [ledger]})
    assert ledger.to_dict()["queries"] == other.to_dict()["queries"] == 1


async def test_batches_in_threads_and_tasks_are_added_up() -> None:
    chain, ledger = lc.a_chain(usage=True), langchain_selfroute.SelfRouteLedger()
    bound = chain.with_config(callbacks=[ledger])
    bound.batch([QUESTION] * 40, {"max_concurrency": 8})
    await bound.abatch([QUESTION] * 40)
    assert ledger.to_dict()["queries"] == 80
    assert ledger.to_dict()["tokens"]["long_context"][READ] == billed(chain.llm.calls, "long_context")


@pytest.mark.parametrize("mode", lc.MODES)
async def test_a_query_that_is_retried_is_one_query_with_what_both_attempts_took(mode: str) -> None:
    chain, ledger = (
        lc.a_chain(usage=True, failures={"long_context": [TimeoutError()]}),
        langchain_selfroute.SelfRouteLedger(),
    )
    again = chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    if mode in lc.STREAMS:  # the host retries no stream
        with pytest.raises(TimeoutError):
            await lc.ask(again, QUESTION, mode, {"callbacks": [ledger]})
    await lc.ask(again, QUESTION, mode, {"callbacks": [ledger]})
    figures = ledger.to_dict()
    assert (figures["queries"], figures["declined"], figures["errors"]) == (1, 1, {"TimeoutError": 1})
    assert figures["tokens"]["rag"][READ] == billed(chain.llm.calls, "rag") > 0
    assert chain.llm.steps.count("rag") == 2


@pytest.mark.parametrize("mode", lc.MODES)
async def test_a_query_that_a_fallback_answers_is_one_query(mode: str) -> None:
    ledger = langchain_selfroute.SelfRouteLedger()
    chain, other = lc.a_chain(failures={"long_context": [TimeoutError()]}, usage=True), lc.a_chain(ANSWER, usage=True)
    await lc.ask(chain.with_fallbacks([other]), QUESTION, mode, {"callbacks": [ledger]})
    figures = ledger.to_dict()
    assert (figures["queries"], figures["routes"]["rag"], figures["failed"]) == (1, 1, 1)
    assert figures["tokens"]["rag"][READ] == billed([*chain.llm.calls, *other.llm.calls], "rag")


@pytest.mark.parametrize("mode", lc.STREAMS)
async def test_a_reader_who_leaves_is_counted_with_what_it_took(mode: str) -> None:
    chain, ledger = lc.a_chain(usage=True), langchain_selfroute.SelfRouteLedger()
    stream: Any = getattr(chain, mode)(QUESTION, {"callbacks": [ledger]})
    if mode == "astream":
        await anext(stream)
        await stream.aclose()
    else:
        next(stream)
        stream.close()
    figures = ledger.to_dict()
    assert (figures["queries"], figures["left"], figures["routes"]["long_context"]) == (1, 1, 1)
    assert figures["tokens"]["long_context"]["estimated_tokens"] > 0
    assert figures["seconds"]["long_context"]["first_text"]["median"] > 0
    assert figures["seconds"]["long_context"]["end"]["median"] is None


async def test_a_task_that_is_cancelled_was_left() -> None:
    asked, ledger = asyncio.Event(), langchain_selfroute.SelfRouteLedger()

    async def never(_: Any) -> str:
        asked.set()
        return await asyncio.Future()

    task = asyncio.create_task(lc.a_chain(llm=RunnableLambda(never)).ainvoke(QUESTION, {"callbacks": [ledger]}))
    await asked.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (ledger.to_dict()["left"], ledger.to_dict()["failed"]) == (1, 0)


@pytest.fixture
def ledger() -> Iterator[llamaindex_selfroute.SelfRouteLedger]:
    with li.recorded():
        ledger = llamaindex_selfroute.SelfRouteLedger()
        get_dispatcher().add_event_handler(ledger)
        yield ledger


@pytest.mark.parametrize("draft", [ANSWER, ("unanswerable",)], ids=["rag", "long_context"])
@pytest.mark.parametrize("mode", li.MODES)
async def test_an_engine_is_told_of_in_every_mode(
    mode: str, draft: Any, ledger: llamaindex_selfroute.SelfRouteLedger
) -> None:
    get_dispatcher().add_event_handler(ledger)  # as a notebook's cell that is run again
    engine = li.an_engine(draft, usage=True, streaming=mode in li.STREAMS)
    for _ in range(3):
        await li.ask(engine, QUESTION, mode)
    figures, calls = ledger.to_dict(), li.model_of(engine).calls
    assert figures["routes"] == {"rag": 3 * (draft == ANSWER), "sections": 0, "long_context": 3 * (draft != ANSWER)}
    for step in ("rag", "long_context"):
        assert figures["tokens"][step][READ] == billed(calls, step)
        assert figures["tokens"][step]["estimated_tokens"] == 0
    assert figures["failed"] == figures["left"] == 0


@pytest.mark.parametrize("mode", li.MODES)
async def test_an_engine_that_fails_is_counted_with_what_it_took(
    mode: str, ledger: llamaindex_selfroute.SelfRouteLedger
) -> None:
    failures = {"long_context": [TimeoutError()]}
    engine = li.an_engine(usage=True, streaming=mode in li.STREAMS, failures=failures)
    with pytest.raises(TimeoutError):
        await li.ask(engine, QUESTION, mode)
    figures = ledger.to_dict()
    assert (figures["queries"], figures["errors"]) == (0, {"TimeoutError": 1})
    assert figures["tokens"]["rag"][READ] == billed(li.model_of(engine).calls, "rag") > 0


@pytest.mark.parametrize("mode", li.STREAMS)
async def test_a_reader_who_leaves_an_engine_is_counted(
    mode: str, ledger: llamaindex_selfroute.SelfRouteLedger
) -> None:
    engine = li.an_engine(streaming=True)
    response: Any = await engine.aquery(QUESTION) if mode == "astream" else engine.query(QUESTION)
    if mode == "astream":
        pieces = response.async_response_gen()
        await anext(pieces)
        await pieces.aclose()
    else:
        pieces = response.response_gen
        next(pieces)
        pieces.close()
    assert (ledger.to_dict()["queries"], ledger.to_dict()["left"]) == (1, 1)


def test_threads_of_queries_are_added_up(ledger: llamaindex_selfroute.SelfRouteLedger) -> None:
    get_dispatcher().add_event_handler(ledger)
    engine = li.an_engine()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(engine.query, [QUESTION] * 40))
    assert ledger.to_dict()["queries"] == 40


def from_index(**fields: Any) -> Any:
    """An engine over stored documents, whose lengths are not known at first."""
    index = VectorStoreIndex.from_documents(
        [Document(text="Ms Okafor sat there.")], embed_model=MockEmbedding(embed_dim=2)
    )
    llm = li.ScriptedLLM(draft=ANSWER)
    return llamaindex_selfroute.SelfRouteQueryEngine.from_index(index, llm=llm, **fields)


QUERIES: dict[str, tuple[Any, str]] = {
    "answered": (lambda: li.an_engine(ANSWER), "answered"),
    "read": (li.an_engine, "answered"),
    "priced": (lambda: li.an_engine(usage=True, priced_as="openai:gpt-4o-mini"), "answered"),
    "of stored documents": (from_index, "answered"),
    "failed": (lambda: li.an_engine(failures={"rag": [TimeoutError()]}), "failed"),
}


@pytest.mark.parametrize(("make", "outcome"), QUERIES.values(), ids=QUERIES)
def test_the_event_of_a_query_is_plain_json_with_figures_and_no_text(make: Any, outcome: str) -> None:
    with li.recorded() as recording, suppress(TimeoutError):
        make().query(QUESTION)
    (event,) = recording.events.of(llamaindex_selfroute.SelfRouteQueryEvent)
    told = event.model_dump()
    assert json.loads(event.model_dump_json())["entry"] == json.loads(json.dumps(told["entry"])) == told["entry"]
    assert (told["class_name"], told["entry"]["outcome"]) == ("SelfRouteQueryEvent", outcome)
    assert told["entry"]["usage"] == event.entry.usage.as_dict()
    assert told["entry"] == event.dict()["entry"]
    assert told["entry"].keys() == {field.name for field in fields(event.entry)} - {"complete_later"}
    assert not any(word in event.model_dump_json() for word in (QUESTION, li.WHOLE, "chaired"))
