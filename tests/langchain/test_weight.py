"""A whole document is recorded once, with the prompt that held it; an agent is given the answer, not the document."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.tracers.schemas import Run

from langchain_parts import MODES, QUESTION, TreeTracer, a_chain, ask
from langchain_selfroute.runs import recorded
from scenarios import DOCUMENT_TEXTS, FOUND

MARK = "The lamp was lit at nine."
HEAVY = [
    Document(f"{MARK} {DOCUMENT_TEXTS[0]} " + "Minutes were read. " * 500, metadata={"source": "May"}, id="d1"),
    Document(DOCUMENT_TEXTS[1], metadata={"source": "May"}),
    Document("Of unknown origin."),
]
every_mode = pytest.mark.parametrize("mode", MODES)


def copies(recorded: Any) -> int:
    """How often the marked document is in what was recorded."""
    return str(recorded).count(MARK)


def _runs(run: Run) -> list[Run]:
    return [run, *(below for child in run.child_runs for below in _runs(child))]


async def _traced(chain: Runnable[Any, Any], given: Any, mode: str) -> tuple[list[Run], Any]:
    tracer = TreeTracer()
    result = await ask(chain, given, mode, {"callbacks": [tracer]})
    return [run for root in tracer.roots for run in _runs(root)], result


def a_heavy_chain(**fields: Any) -> Any:
    return a_chain(**{"documents": HEAVY, **fields})


@every_mode
async def test_runs_hold_a_document_once(mode: str) -> None:
    for chain in (a_heavy_chain(), a_heavy_chain().with_config(tags=["mine"])):
        runs, result = await _traced(chain, QUESTION, mode)
        assert [run.name for run in runs if copies([run.inputs, run.outputs])] == ["long_context"]
        assert sum(copies([run.inputs, run.outputs]) for run in runs) == 1
        assert result["context"] == HEAVY
        told = runs[0].outputs or {}
        assert {**told, "context": None} == {**result, "context": None}
        assert [(one.id, one.metadata) for one in told["context"]] == [(one.id, one.metadata) for one in HEAVY]
        assert f"{len(HEAVY[0].page_content):,} characters" in told["context"][0].page_content


@pytest.mark.parametrize(("route", "kept"), [("rag", 1), ("sections", 1), ("long_context", 0)])
def test_runs_record_no_whole_documents(route: str, kept: int) -> None:
    assert copies(recorded({"route": route, "context": HEAVY})) == kept


@every_mode
async def test_runs_record_no_former_result(mode: str) -> None:
    last = await ask(a_heavy_chain(), {"input": QUESTION, "year": 1907}, mode)
    runs, _ = await _traced(a_heavy_chain(), last, mode)
    assert runs[0].inputs == {"input": QUESTION, "year": 1907}
    assert sum(copies([run.inputs, run.outputs]) for run in runs) == 1


def _tool(chain: Any) -> Any:
    return chain.as_tool(name="minutes", description="Answers from the minutes.")


async def _call(tool: Any, mode: str, given: Any, config: Any = None) -> Any:
    return await tool.ainvoke(given, config) if mode == "ainvoke" else tool.invoke(given, config)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize("route", ["rag", "long_context"])
async def test_a_tool_tells_the_answer_the_route_and_the_sources(route: str, mode: str) -> None:
    tool = _tool(a_heavy_chain(draft=("Mr Lin.",)) if route == "rag" else a_heavy_chain())
    told = await _call(tool, mode, {"input": QUESTION})
    answer, sources = ("Mr Lin.", []) if route == "rag" else (FOUND, ["May"])
    assert told == {"answer": answer, "route": route, "answerable": True, "sources": sources}


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_tool_message_is_short_and_its_artifact_has_all_keys(mode: str) -> None:
    tracer, tool = TreeTracer(), _tool(a_heavy_chain())
    call = {"name": "minutes", "args": {"input": QUESTION}, "id": "1", "type": "tool_call"}
    message = await _call(tool, mode, call, {"callbacks": [tracer]})
    assert json.loads(message.content)["answer"] == FOUND
    assert len(message.content) < 200
    assert message.artifact.keys() == a_heavy_chain().invoke(QUESTION).keys()
    assert message.artifact["usage"]["rag"]
    runs = [run for root in tracer.roots for run in _runs(root)]
    assert [run.name for run in runs if run.run_type == "chain"] == ["SelfRouteChain", "read_documents"]
    assert sum(copies([run.inputs, run.outputs]) for run in runs) == 1


def test_tool_names_each_source_once() -> None:
    documents = [Document("One.", metadata={"source": 7}), Document("Two.", metadata={"source": 7}), HEAVY[2]]
    documents.append(Document("Three.", id="d3"))
    told = _tool(a_chain(documents=documents)).invoke({"input": QUESTION})
    assert told["sources"] == ["7", "d3"]


def test_a_tool_takes_more_arguments_where_they_are_declared() -> None:
    seen: list[Any] = []
    chain = a_chain(documents=lambda given: seen.append(given["year"]) or HEAVY)
    tool = chain.as_tool(name="minutes", description="Answers.", arg_types={"input": str, "year": int})
    assert tool.invoke({"input": QUESTION, "year": 1907})["answer"] == FOUND
    assert (seen, set(tool.args)) == ([1907], {"input", "year"})


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_tools_hold_the_runs_of_the_chain(mode: str) -> None:
    chain, mine = a_heavy_chain(), uuid4()
    tools = [(_tool(chain), {"input": QUESTION}, "SelfRouteChain"), (chain.tools()[0], {"query": QUESTION}, "search")]
    for tool, given, name in tools:
        tracer = TreeTracer()
        await _call(tool, mode, given, {"callbacks": [tracer], "run_name": "mine", "run_id": mine, "tags": ["a"]})
        (root,) = tracer.roots
        assert (root.name, root.id, [run.name for run in root.child_runs]) == ("mine", mine, [name])
        assert root.child_runs[0].tags == ["a"]


def test_tool_says_what_its_argument_is() -> None:
    assert _tool(a_heavy_chain()).args == {
        "input": {"description": "The question, understandable by itself", "title": "Input", "type": "string"}
    }


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_tool_answers_a_blank_question(mode: str) -> None:
    assert "Nothing was asked" in await _call(_tool(a_heavy_chain()), mode, {"input": " "})
