"""An engine in LlamaIndex's query pipelines: alone, in a chain and in a graph. llama-index-core has them up to 0.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate

from llamaindex_parts import (
    AWAITED,
    KEYS,
    MODES,
    STREAMS,
    Asked,
    ScriptedLLM,
    ask,
    engine_for,
    model_of,
    pieces_of,
    recorded,
)
from llamaindex_selfroute import SelfRouteDecisionEvent
from scenarios import DECLINED, FOUND, NOTHING_RETRIEVED, PLAIN, QUESTION, SOME, Scenario

host = pytest.importorskip("llama_index.core.query_pipeline", reason="llama-index-core 0.12 was the last to have it")

every_mode = pytest.mark.parametrize("mode", MODES)
every_route = pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)


def a_pipeline(*chain: Any, **fields: Any) -> Any:
    with pytest.deprecated_call(match="QueryPipeline"):
        return host.QueryPipeline(chain=list(chain) or None, **fields)


async def run(pipeline: Any, mode: str, **inputs: Any) -> Any:
    """Return what a pipeline returns; the awaited modes await it."""
    return await pipeline.arun(**inputs) if mode in AWAITED else pipeline.run(**inputs)


async def read(response: Any, mode: str) -> Asked:
    return Asked(response, [piece async for piece in pieces_of(response, mode)])


PROMPT = PromptTemplate("Who chaired {what}")
CHAINS: dict[str, tuple[Callable[[Any], Any], dict[str, str]]] = {
    "alone": (a_pipeline, {"input": QUESTION}),
    "after a prompt": (lambda engine: a_pipeline(PROMPT, engine), {"what": "the meeting?"}),
    "before a function": (
        lambda engine: a_pipeline(engine, host.FnComponent(fn=lambda response: response)),
        {"input": QUESTION},
    ),
    "in a pipeline within a pipeline": (lambda engine: a_pipeline(a_pipeline(engine)), {"input": QUESTION}),
}


@every_mode
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("scenario", SOME, ids=str)
async def test_a_pipeline_answers_as_its_engine_does(scenario: Scenario, name: str, mode: str) -> None:
    make, given = CHAINS[name]
    asked = await read(await run(make(engine_for(scenario, mode)), mode, **given), mode)
    alone = await ask(engine_for(scenario, mode), QUESTION, mode)
    assert (asked.text, asked.metadata, asked.source_nodes) == (alone.text, alone.metadata, alone.source_nodes)
    assert (asked.text, asked.route, set(asked.metadata)) == (scenario.answer, scenario.route, KEYS)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in STREAMS])
@every_route
async def test_a_model_after_the_engine_reads_the_answer(mode: str, scenario: Scenario) -> None:
    translator = ScriptedLLM(draft=("C'est elle.",), is_chat=False)
    pipeline = a_pipeline(engine_for(scenario, mode), PromptTemplate("Translate: {answer}"), translator)
    assert str(await run(pipeline, mode, input=QUESTION)) == "C'est elle."
    assert [call.prompt for call in translator.calls] == [f"Translate: {scenario.answer}"]


@every_mode
async def test_engines_in_a_graph_each_take_their_own_route(mode: str) -> None:
    both = host.FnComponent(fn=lambda first, second: [first, second])
    modules = {"input": host.InputComponent(), "first": engine_for(PLAIN, mode), "second": engine_for(DECLINED, mode)}
    links = [host.Link("input", name, src_key="question", dest_key="input") for name in ("first", "second")]
    links += [host.Link(name, "both", dest_key=name) for name in ("first", "second")]
    responses = await run(a_pipeline(modules={**modules, "both": both}, links=links), mode, question=QUESTION)
    answered, declined = [await read(response, mode) for response in responses]
    assert (answered.text, answered.route, answered.usage["long_context"]) == (PLAIN.answer, "rag", None)
    assert (declined.text, declined.route, declined.decision["signal"]) == (FOUND, "long_context", "sentinel")
    assert [model_of(modules[name]).steps for name in ("first", "second")] == [["rag"], ["rag", "long_context"]]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "astream"])  # which knows it with the first text
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
async def test_a_link_goes_by_the_route(mode: str, scenario: Scenario) -> None:
    taken = {"rag": "cheap", "long_context": "dear"}
    modules = {"engine": engine_for(scenario, mode)}
    links = []
    for route, name in taken.items():
        modules[name] = host.FnComponent(fn=lambda response, name=name: f"{name}: {response}")
        links.append(
            host.Link("engine", name, condition_fn=lambda response, route=route: response.metadata["route"] == route)
        )
    pipeline = a_pipeline(modules=modules, links=links)
    assert await run(pipeline, mode, input=QUESTION) == f"{taken[scenario.route]}: {scenario.answer}"


@every_mode
async def test_a_pipelines_callback_manager_hears_the_query_and_an_error_leaves_it_as_it_is(mode: str) -> None:
    with recorded() as recording:
        pipeline = a_pipeline(engine_for(DECLINED, mode), callback_manager=recording.manager)
        await read(await run(pipeline, mode, input=QUESTION), mode)
    assert {("start", "query"), ("end", "query")} <= set(recording.callbacks.log)
    assert [event.route for event in recording.events.of(SelfRouteDecisionEvent)] == ["long_context"]
    error = TimeoutError("no reply")
    engine = engine_for(DECLINED, mode, failures={"long_context": [error]})
    with pytest.raises(TimeoutError) as caught:
        await read(await run(a_pipeline(engine), mode, input=QUESTION), mode)
    assert caught.value is error
    assert model_of(engine).steps == ["rag", "long_context"]
