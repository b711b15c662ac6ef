"""The hosts' `SelfRouteLedger` hears of every question once; against a server's book it is held in another file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher

import langchain_parts as lc
import langchain_selfroute
import llamaindex_parts as li
import llamaindex_selfroute
from both_parts import STREAMS, ledger_of, listening, pipeline
from scenarios import QUESTION

ANSWER = ("Mr Lin.",)


@pytest.mark.parametrize("mode", lc.MODES)
async def test_ledger_given_twice_counts_once(mode: str) -> None:
    ledger, other = langchain_selfroute.SelfRouteLedger(), langchain_selfroute.SelfRouteLedger()
    chain = lc.a_chain().with_config(callbacks=[ledger, other, ledger])
    await lc.ask(chain, QUESTION, mode, {"callbacks": [ledger]})
    assert ledger.to_dict()["queries"] == other.to_dict()["queries"] == 1


@pytest.mark.parametrize("where", STREAMS)
async def test_ledger_times_a_reader_who_leaves(where: str) -> None:
    one, ledger = pipeline(where), ledger_of(where)
    with listening(ledger, one):
        pieces = one.pieces()
        await anext(pieces)
        await pieces.aclose()  # type: ignore[attr-defined]
    seconds = ledger.to_dict()["seconds"]["long_context"]
    assert seconds["first_text"]["median"] > 0
    assert seconds["end"]["median"] is None


async def test_ledger_of_a_cancelled_task() -> None:
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
        for _ in range(2):  # as a notebook's cell that is run again
            get_dispatcher().add_event_handler(ledger)
        yield ledger


def test_ledger_listening_twice_counts_once(ledger: llamaindex_selfroute.SelfRouteLedger) -> None:
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
    "priced": (lambda: li.an_engine(usage=True, priced_as="openai:gpt-4o-mini"), "answered"),
    "of stored documents": (from_index, "answered"),
    "failed": (lambda: li.an_engine(failures={"rag": [TimeoutError()]}), "failed"),
}


@pytest.mark.parametrize(("make", "outcome"), QUERIES.values(), ids=QUERIES)
def test_query_event_has_figures_and_no_text(make: Any, outcome: str) -> None:
    with li.recorded() as recording, suppress(TimeoutError):
        make().query(QUESTION)
    (event,) = recording.events.of(llamaindex_selfroute.SelfRouteQueryEvent)
    told = event.model_dump()
    assert json.loads(event.model_dump_json())["entry"] == json.loads(json.dumps(told["entry"])) == told["entry"]
    assert (told["class_name"], told["entry"]["outcome"]) == ("SelfRouteQueryEvent", outcome)
    assert told["entry"]["usage"] == event.entry.usage.as_dict()
    assert told["entry"] == event.dict()["entry"]
    assert told["entry"].keys() == {field.name for field in fields(event.entry)}
    assert not any(word in event.model_dump_json() for word in (QUESTION, li.WHOLE, "chaired"))
