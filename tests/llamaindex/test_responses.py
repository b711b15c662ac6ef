"""The responses of LlamaIndex: of its classes, read in all of its ways, and known when its users expect them to be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse

from both_parts import pipeline_for
from llamaindex_parts import (
    AWAITED,
    DOCUMENTS,
    KEYS,
    MODES,
    PASSAGES,
    STREAMS,
    an_engine,
    engine_for,
    model_of,
    pieces_of,
)
from llamaindex_selfroute import internals
from scenarios import DECLINED, PLAIN, QUESTION, SOME, Scenario
from steering import ONE_OF_EACH, Steered

some_scenarios = pytest.mark.parametrize("scenario", SOME, ids=str)
either = pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
one_of_each = pytest.mark.parametrize("scenario", ONE_OF_EACH, ids=str)
CLASSES = {"query": Response, "aquery": Response, "stream": StreamingResponse, "astream": AsyncStreamingResponse}


def check(scenario: Scenario, response: Any) -> None:
    """Check what a response says of itself, and that its sources are the nodes and documents of the user."""
    told = response.metadata
    assert (type(told), set(told)) == (dict, KEYS)
    assert (told["route"], told["answerable"]) == (scenario.route, scenario.answerable)
    assert told["decision"]["signal"] == scenario.signal
    passages = [] if scenario.draft is None else PASSAGES
    assert told["retrieved"] == [item.node.node_id for item in passages]
    if scenario.route == "long_context":
        read = [(item.node.node_id, item.node.get_content()) for item in response.source_nodes]
        assert read == [(document.node_id, document.text) for document in DOCUMENTS]
    else:
        assert response.source_nodes == passages
        assert [item.score for item in response.source_nodes] == [0.9, 0.8]


@pytest.mark.parametrize("given", ["a list that is emptied", "a generator"])
async def test_nodes_are_those_that_were_given_when_the_stream_began(given: str) -> None:
    nodes = list(PASSAGES)
    synthesizer = internals.parts_of(an_engine(streaming=True))[0]
    response = await synthesizer.asynthesize(QUESTION, nodes if given.startswith("a list") else (n for n in nodes))
    nodes.clear()
    _ = [piece async for piece in response.async_response_gen()]
    assert response.metadata["retrieved"] == [item.node.node_id for item in PASSAGES]


@pytest.mark.parametrize("mode", MODES)
@some_scenarios
async def test_response_is_of_the_host_s_class_and_filled_in_place(scenario: Scenario, mode: str) -> None:
    """A sync stream is settled when the query returns, an awaited one when it is read."""
    engine = engine_for(scenario, mode)
    response: Any = await engine.aquery(QUESTION) if mode in AWAITED else engine.query(QUESTION)
    assert isinstance(response, CLASSES[mode])
    sources, metadata = response.source_nodes, response.metadata
    if mode == "astream":
        await asyncio.sleep(0)
        passages = [] if scenario.draft is None else PASSAGES
        assert (metadata, sources) == ({"retrieved": [item.node.node_id for item in passages]}, [])
        assert model_of(engine).calls == []
    else:
        check(scenario, response)
    text = ""
    async for piece in pieces_of(response, mode):
        check(scenario, response)
        text += piece
    assert text == scenario.answer
    assert (response.source_nodes is sources, response.metadata is metadata) == (True, True)


@pytest.mark.parametrize("mode", STREAMS)
@one_of_each
async def test_route_and_sources_are_settled_with_the_first_text(scenario: Steered, mode: str) -> None:
    engine = pipeline_for(f"llamaindex {mode}", scenario).asked
    response = await engine.aquery(QUESTION) if mode == "astream" else engine.query(QUESTION)
    pieces = pieces_of(response, mode)
    await anext(pieces)
    assert (response.metadata["route"], response.metadata["decision"]["signal"]) == (scenario.route, scenario.signal)
    scenario.check_read([item.node.get_content() for item in response.source_nodes])
    if scenario.route != "long_context":  # a reply to documents is judged at its end
        assert response.metadata["answerable"] is scenario.answerable
    await pieces.aclose()


@either
@pytest.mark.parametrize("read", ["str", "get_response", "print_response_stream"])
def test_stream_is_read_in_every_way(scenario: Scenario, read: str, capsys: pytest.CaptureFixture[str]) -> None:
    response = engine_for(scenario, "stream").query(QUESTION)
    text = str(response) if read == "str" else getattr(response, read)()
    if read == "get_response":
        assert (text.metadata, text.source_nodes) == (response.metadata, response.source_nodes)
    assert str(text or capsys.readouterr().out) == scenario.answer == str(response)
    check(scenario, response)


@either
@pytest.mark.parametrize("read", ["str", "get_response", "print_response_stream", "response_gen", "twice"])
async def test_awaited_stream_is_read_in_every_way(
    scenario: Scenario, read: str, capsys: pytest.CaptureFixture[str]
) -> None:
    response = await engine_for(scenario, "astream", delay=0.001).aquery(QUESTION)
    if read == "str":
        text = str(response)  # as tools do it: the host reads it in another loop, in a thread
    elif read == "response_gen":
        text = "".join([piece async for piece in response.response_gen])
    elif read == "twice":
        assert [piece async for piece in response.async_response_gen()]
        text = "".join([piece async for piece in response.async_response_gen()])
    elif read == "get_response":
        whole = await response.get_response()
        assert (whole.metadata, whole.source_nodes) == (response.metadata, response.source_nodes)
        text = str(whole)
    else:
        await response.print_response_stream()
        text = capsys.readouterr().out.strip()
    assert text == scenario.answer
    check(scenario, response)


async def test_stream_outlives_a_switch() -> None:
    engine = an_engine(tuple(f"word{n} " for n in range(8)), streaming=True)
    response = await engine.aquery(QUESTION)
    engine._response_synthesizer._streaming = False  # as condense-question chat engines do
    assert len([piece async for piece in response.async_response_gen()]) > 1


@pytest.mark.parametrize("step", ["draft", "final"])
async def test_stream_raises_with_its_first_text(step: str) -> None:
    failing = {"rag" if step == "draft" else "long_context": [OSError("cut")]}
    with pytest.raises(OSError, match="cut"):
        an_engine(streaming=True, failures=failing).query(QUESTION)
    response = await an_engine(streaming=True, failures=failing).aquery(QUESTION)
    with pytest.raises(OSError, match="cut"):
        await anext(response.response_gen)
    assert (response.metadata["retrieved"], response.source_nodes) == (["passage-1", "passage-2"], [])
