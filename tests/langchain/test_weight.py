"""A whole document is recorded once, with the prompt that held it; an agent is given the answer, not the document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnablePick
from langchain_core.tracers.schemas import Run

from langchain_parts import LONG_DOCUMENTS, MODES, QUESTION, STREAMS, TreeTracer, a_chain, ask, chunks, steered_chain
from scenarios import DOCUMENT_TEXTS, FOUND
from steering import BY_NAME

MARK = "The lamp was lit at nine."
HEAVY = [
    Document(f"{MARK} {DOCUMENT_TEXTS[0]} " + "Minutes were read. " * 500, metadata={"source": "May"}, id="d1"),
    Document(DOCUMENT_TEXTS[1], metadata={"source": "May"}),
    Document("Of unknown origin."),
]
every_mode = pytest.mark.parametrize("mode", MODES)
whole_modes = pytest.mark.parametrize("mode", ["invoke", "ainvoke"])


def copies(recorded: Any) -> int:
    """Return how often the marked document is in what was recorded."""
    return str(recorded).count(MARK)


def _runs(run: Run) -> list[Run]:
    return [run, *(below for child in run.child_runs for below in _runs(child))]


async def _traced(chain: Runnable[Any, Any], given: Any, mode: str) -> tuple[list[Run], Any]:
    tracer = TreeTracer()
    result = await ask(chain, given, mode, {"callbacks": [tracer]})
    return [run for root in tracer.roots for run in _runs(root)], result


def check_once(runs: list[Run]) -> None:
    """The model's run alone holds the document, and holds it once."""
    assert {run.name: copies([run.inputs, run.outputs]) for run in runs if copies([run.inputs, run.outputs])} == {
        "long_context": 1
    }


def a_heavy_chain(**fields: Any) -> Any:
    return a_chain(**{"documents": HEAVY, **fields})


LIGHT = {
    "chain": a_heavy_chain,
    "with config": lambda: a_heavy_chain().with_config(tags=["mine"]),
    "one key": lambda: a_heavy_chain().pick("answer"),
    "some keys": lambda: a_heavy_chain().pick(["answer", "route"]),
}


@every_mode
@pytest.mark.parametrize("form", LIGHT)
async def test_the_runs_of_a_question_hold_a_document_once(form: str, mode: str) -> None:
    check_once((await _traced(LIGHT[form](), QUESTION, mode))[0])


@every_mode
async def test_the_result_is_whole_whatever_is_recorded_and_is_no_input_when_it_is_passed_in_again(mode: str) -> None:
    runs, result = await _traced(a_heavy_chain(), {"input": QUESTION, "year": 1907}, mode)
    assert result["context"] == HEAVY
    told = runs[0].outputs or {}
    assert {**told, "context": None} == {**result, "context": None}
    assert [(one.id, one.metadata) for one in told["context"]] == [(one.id, one.metadata) for one in HEAVY]
    assert f"{len(HEAVY[0].page_content):,} characters" in told["context"][0].page_content
    runs, _ = await _traced(a_heavy_chain(), result, mode)
    assert runs[0].inputs == {"input": QUESTION, "year": 1907}
    check_once(runs)


@every_mode
@pytest.mark.parametrize("name", ["a plain answer", "sections that answer"])
async def test_passages_and_sections_are_recorded_with_the_answer_that_was_read_from_them(name: str, mode: str) -> None:
    sections = name != "a plain answer"
    chain = steered_chain(BY_NAME[name]) if sections else a_heavy_chain(draft=("Mr Lin.",))
    runs, result = await _traced(chain, QUESTION, mode)
    assert runs[0].outputs == result
    assert result["route"] == ("sections" if sections else "rag")
    assert result["context"] != LONG_DOCUMENTS


@pytest.mark.parametrize("form", ["chain", "with config"])
async def test_events_hold_a_document_once(form: str) -> None:
    events = [event async for event in LIGHT[form]().astream_events(QUESTION, version="v2")]
    holding = {(event["event"], event["name"]): copies(event["data"]) for event in events if copies(event["data"])}
    assert holding == {("on_chat_model_start", "long_context"): 1}
    assert events[-1]["data"]["output"]["answer"] == FOUND
    assert [one.metadata for one in events[-1]["data"]["output"]["context"]] == [one.metadata for one in HEAVY]


@every_mode
@pytest.mark.parametrize("keys", ["answer", ["answer", "route"], ["nothing"]], ids=str)
async def test_picked_keys_are_those_that_the_host_picks(keys: Any, mode: str) -> None:
    picked = a_heavy_chain().pick(keys)
    if keys == ["nothing"] and mode in STREAMS:
        assert await chunks(picked, QUESTION, mode) == []
    else:
        assert await ask(picked, QUESTION, mode) == RunnablePick(keys).invoke(a_heavy_chain().invoke(QUESTION))


def _tool(chain: Any, **more: Any) -> Any:
    return chain.as_tool(name="minutes", description="Answers from the minutes.", **more)


async def _call(tool: Any, mode: str, given: Any, config: Any = None) -> Any:
    return await tool.ainvoke(given, config) if mode == "ainvoke" else tool.invoke(given, config)


@whole_modes
@pytest.mark.parametrize("route", ["rag", "long_context"])
async def test_a_tool_tells_the_answer_the_route_and_the_sources(route: str, mode: str) -> None:
    answer, sources = ("Mr Lin.", []) if route == "rag" else (FOUND, ["May"])
    chain = a_heavy_chain(**({"draft": (answer,)} if route == "rag" else {}))
    told = await _call(_tool(chain), mode, {"input": QUESTION})
    assert told == {"answer": answer, "route": route, "answerable": True, "sources": sources}


@whole_modes
async def test_a_tool_message_is_short_and_its_artifact_has_all_keys(mode: str) -> None:
    tracer = TreeTracer()
    call = {"name": "minutes", "args": {"input": QUESTION}, "id": "1", "type": "tool_call"}
    message = await _call(_tool(a_heavy_chain()), mode, call, {"callbacks": [tracer]})
    assert json.loads(message.content)["answer"] == FOUND
    assert len(message.content) < 200
    assert message.artifact.keys() == a_heavy_chain().invoke(QUESTION).keys()
    assert message.artifact["usage"]["rag"]
    runs = [run for root in tracer.roots for run in _runs(root)]
    assert [run.name for run in runs if run.run_type == "chain"] == ["SelfRouteChain", "read_documents"]
    check_once(runs)


def test_a_tool_names_each_source_once_by_its_key_or_its_id_and_takes_declared_arguments() -> None:
    documents = [*(Document(text, metadata={"source": 7}) for text in ("One.", "Two.")), HEAVY[2]]
    seen: list[Any] = []

    def read(given: Any) -> list[Document]:
        seen.append(given["year"])
        return [*documents, Document("Three.", id="d3")]

    tool = _tool(a_chain(documents=read), arg_types={"input": str, "year": int})
    assert tool.invoke({"input": QUESTION, "year": 1907})["sources"] == ["7", "d3"]
    assert (seen, set(tool.args)) == ([1907], {"input", "year"})
