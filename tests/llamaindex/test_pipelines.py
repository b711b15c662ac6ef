"""An engine in LlamaIndex's query pipelines: alone, in a chain and in a graph. llama-index-core has them up to 0.12."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.base.response.schema import Response

from llamaindex_parts import (
    AWAITED,
    KEYS,
    MODES,
    STREAMS,
    Asked,
    ListRetriever,
    ScriptedLLM,
    an_engine,
    ask,
    engine_for,
    model_of,
    pieces_of,
    recorded,
)
from llamaindex_selfroute import SelfRouteDecisionEvent
from scenarios import DECLINED, DECLINES, FOUND, NOTHING_RETRIEVED, PLAIN, QUESTION, SCENARIOS, Scenario

host = pytest.importorskip("llama_index.core.query_pipeline", reason="llama-index-core 0.12 was the last to have it")

every_mode = pytest.mark.parametrize("mode", MODES)
both_routes = pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
STEPS = {"rag": ["rag"], "long_context": ["rag", "long_context"]}


def a_pipeline(**fields: Any) -> Any:
    with pytest.deprecated_call(match="QueryPipeline"):
        return host.QueryPipeline(**fields)


async def run(pipeline: Any, mode: str, **inputs: Any) -> Any:
    """What a pipeline returns; the awaited modes await it."""
    return await pipeline.arun(**inputs) if mode in AWAITED else pipeline.run(**inputs)


async def read(response: Any, mode: str) -> Asked:
    return Asked(response, [piece async for piece in pieces_of(response, mode)])


def told(asked: Asked) -> tuple[Any, ...]:
    """All that a response says."""
    return asked.text, asked.metadata, asked.sources, asked.response.source_nodes


def test_the_component_takes_an_input_and_gives_an_output() -> None:
    component = an_engine().as_query_component()
    assert component.free_req_input_keys == {"input"}
    assert component.output_keys.required_keys == {"output"}
    output = component.run_component(input=QUESTION)
    assert isinstance(output["output"], Response)
    assert (str(output["output"]), set(output["output"].metadata)) == (FOUND, KEYS)


@every_mode
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_pipeline_of_an_engine_answers_as_the_engine_does(mode: str, scenario: Scenario) -> None:
    pipeline = a_pipeline(chain=[engine_for(scenario, mode)])
    asked = await read(await run(pipeline, mode, input=QUESTION), mode)
    assert told(asked) == told(await ask(engine_for(scenario, mode), QUESTION, mode))
    assert (asked.text, asked.route, asked.answerable) == (scenario.answer, scenario.route, scenario.answerable)


@every_mode
@both_routes
async def test_a_prompt_before_the_engine_writes_its_question(mode: str, scenario: Scenario) -> None:
    retriever = ListRetriever([]) if scenario is NOTHING_RETRIEVED else ListRetriever()
    engine = engine_for(scenario, mode, retriever=retriever)
    pipeline = a_pipeline(chain=[PromptTemplate("Who chaired the meeting in {month}?"), engine])
    asked = await read(await run(pipeline, mode, month="May"), mode)
    assert (asked.text, asked.route) == (scenario.answer, scenario.route)
    assert [query.query_str for query in retriever.queries] == ["Who chaired the meeting in May?"]
    assert all("Who chaired the meeting in May?" in call.prompt for call in model_of(engine).calls)


@every_mode
@both_routes
async def test_a_function_after_the_engine_is_given_the_response(mode: str, scenario: Scenario) -> None:
    given = []

    def keep(response: Any) -> str:
        given.append(response)
        return "kept"

    pipeline = a_pipeline(chain=[engine_for(scenario, mode), host.FnComponent(fn=keep)])
    assert await run(pipeline, mode, input=QUESTION) == "kept"
    (asked,) = [await read(response, mode) for response in given]
    assert (asked.text, asked.route, set(asked.metadata)) == (scenario.answer, scenario.route, KEYS)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in STREAMS])
@both_routes
async def test_a_model_after_the_engine_reads_the_answer(mode: str, scenario: Scenario) -> None:
    translator = ScriptedLLM(draft=("C'est elle.",), is_chat=False)
    translate = PromptTemplate("Translate: {answer}")
    pipeline = a_pipeline(chain=[engine_for(scenario, mode), translate, translator])
    assert str(await run(pipeline, mode, input=QUESTION)) == "C'est elle."
    assert [call.prompt for call in translator.calls] == [f"Translate: {scenario.answer}"]


def report(question: str, first: Any, second: Any) -> dict[str, Any]:
    return {"question": question, "responses": [first, second]}


def a_graph(first: Any, second: Any) -> Any:
    """A pipeline that asks two engines the same question, and reports on both."""
    modules = {
        "input": host.InputComponent(),
        "first": first,
        "second": second,
        "report": host.FnComponent(fn=report),
    }
    links = [
        host.Link("input", "first", src_key="question", dest_key="input"),
        host.Link("input", "second", src_key="question", dest_key="input"),
        host.Link("input", "report", src_key="question", dest_key="question"),
        host.Link("first", "report", dest_key="first"),
        host.Link("second", "report", dest_key="second"),
    ]
    return a_pipeline(modules=modules, links=links)


@every_mode
@pytest.mark.parametrize("scenario", DECLINES, ids=str)
async def test_engines_in_a_graph_each_take_their_own_route(mode: str, scenario: Scenario) -> None:
    engines = [engine_for(PLAIN, mode), engine_for(scenario, mode)]
    reported = await run(a_graph(*engines), mode, question=QUESTION)
    assert reported["question"] == QUESTION
    answered, declined = [await read(response, mode) for response in reported["responses"]]
    assert (answered.text, answered.route, answered.usage["long_context"]) == (PLAIN.answer, "rag", None)
    assert (declined.text, declined.route, declined.decision["signal"]) == (FOUND, "long_context", scenario.signal)
    assert [model_of(engine).steps for engine in engines] == [STEPS["rag"], STEPS["long_context"]]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "astream"])  # which knows it with the first text
async def test_a_link_goes_by_the_route(mode: str) -> None:

    async def taken(scenario: Scenario) -> str:
        pipeline = a_pipeline(
            modules={
                "engine": engine_for(scenario, mode),
                "cheap": host.FnComponent(fn=lambda response: f"cheap: {response}"),
                "dear": host.FnComponent(fn=lambda response: f"dear: {response}"),
            },
            links=[
                host.Link("engine", "cheap", condition_fn=lambda response: response.metadata["route"] == "rag"),
                host.Link("engine", "dear", condition_fn=lambda response: response.metadata["route"] != "rag"),
            ],
        )
        return await run(pipeline, mode, input=QUESTION)

    assert await taken(PLAIN) == f"cheap: {PLAIN.answer}"
    assert await taken(DECLINED) == f"dear: {FOUND}"


@every_mode
async def test_a_pipeline_within_a_pipeline_finds_the_engine(mode: str) -> None:
    inner = a_pipeline(chain=[engine_for(DECLINED, mode)])
    asked = await read(await run(a_pipeline(chain=[inner]), mode, input=QUESTION), mode)
    assert (asked.text, asked.route) == (FOUND, "long_context")


@every_mode
async def test_a_pipelines_callback_manager_hears_the_query(mode: str) -> None:
    with recorded() as recording:
        pipeline = a_pipeline(chain=[engine_for(DECLINED, mode)], callback_manager=recording.manager)
        await read(await run(pipeline, mode, input=QUESTION), mode)
    assert ("start", "query") in recording.callbacks.log
    assert ("end", "query") in recording.callbacks.log
    assert [event.route for event in recording.events.of(SelfRouteDecisionEvent)] == ["long_context"]


@every_mode
async def test_an_error_of_the_model_leaves_the_pipeline_as_it_is(mode: str) -> None:
    error = TimeoutError("no reply")
    engine = engine_for(DECLINED, mode, failures={"long_context": [error]})
    pipeline = a_pipeline(chain=[engine])
    with pytest.raises(TimeoutError) as caught:
        await read(await run(pipeline, mode, input=QUESTION), mode)
    assert caught.value is error
    assert model_of(engine).steps == STEPS["long_context"]
