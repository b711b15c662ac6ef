"""Every scenario, through LlamaIndex, in all four modes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse

from lanes import examples
from llamaindex_parts import (
    AWAITED,
    DOCUMENTS,
    KEYS,
    MODES,
    PASSAGES,
    STREAMS,
    Asked,
    Call,
    an_engine,
    ask,
    engine_for,
    model_of,
    pieces_of,
)
from llamaindex_selfroute import SelfRouteQueryEngine
from scenarios import DECLINED, FOUND, PLAIN, QUESTION, SCENARIOS, SOME, Scenario, cut, text_of
from selfroute.usage import Usage

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
some_scenarios = pytest.mark.parametrize("scenario", SOME, ids=str)
every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
STEP = {"input_tokens", "output_tokens", "cached_tokens"}


def check(scenario: Scenario, asked: Asked) -> None:
    """Hold a response against its scenario."""
    assert set(asked.metadata) == KEYS
    assert (asked.text, asked.route, asked.answerable) == (scenario.answer, scenario.route, scenario.answerable)
    assert set(asked.decision) == {"declined", "signal", "evidence", "ruling"}
    assert asked.decision["ruling"] is None
    assert asked.metadata["finish_reason"] == scenario.finish_reason
    assert (asked.decision["declined"], asked.decision["signal"]) == (scenario.declined, scenario.signal)
    assert scenario.evidence in asked.decision["evidence"]
    if scenario.signal in {"answered", "empty", "no_passages"}:
        assert asked.decision["evidence"] == ""
    check_sources(scenario, asked.response)
    assert set(asked.usage) == set(Usage().as_dict())
    assert (asked.usage["rag"] is None) is (scenario.draft is None)
    assert (asked.usage["long_context"] is None) is (scenario.final is None)
    steps = [asked.usage[step] for step in ("rag", "long_context") if asked.usage[step]]
    assert all(set(step) == STEP for step in steps)
    assert asked.usage["total_tokens"] == sum(step["input_tokens"] + step["output_tokens"] for step in steps)


def check_sources(scenario: Scenario, response: Any) -> None:
    """Check what a response says that it was read from."""
    passages = [] if scenario.draft is None else PASSAGES
    assert response.metadata["retrieved"] == [item.node.node_id for item in passages]
    read = [(item.node.node_id, item.node.get_content()) for item in response.source_nodes]
    if scenario.route == "long_context":
        assert read == [(document.node_id, document.text) for document in DOCUMENTS]
    else:
        assert response.source_nodes == passages
        assert [item.score for item in response.source_nodes] == [0.9, 0.8]


@every_mode
@every_scenario
async def test_a_scenario_ends_as_the_table_says(scenario: Scenario, mode: str) -> None:
    engine = engine_for(scenario, mode)
    check(scenario, await ask(engine, QUESTION, mode))
    steps = ["rag"] * (scenario.draft is not None) + ["long_context"] * (scenario.final is not None)
    assert model_of(engine).steps == steps


@some_scenarios
async def test_the_metadata_are_plain_json_and_fresh_for_each_response(scenario: Scenario) -> None:
    for mode in MODES:
        engine = engine_for(scenario, mode, usage=True)
        first = await ask(engine, QUESTION, mode)
        assert type(first.metadata) is dict
        assert json.loads(json.dumps(first.metadata)) == first.metadata
        kept = deepcopy(first.metadata)
        second = await ask(engine, QUESTION, mode)
        assert second.metadata == kept
        for inner in second.metadata.values():
            if isinstance(inner, dict | list):
                inner.clear()
        second.metadata.clear()
        second.source_nodes.clear()
        assert first.metadata == kept
        check(scenario, await ask(engine, QUESTION, mode))


CLASSES = {"query": Response, "aquery": Response, "stream": StreamingResponse, "astream": AsyncStreamingResponse}


@every_mode
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
async def test_the_response_is_of_the_host_s_class(scenario: Scenario, mode: str) -> None:
    asked = await ask(engine_for(scenario, mode), QUESTION, mode)
    assert isinstance(asked.response, CLASSES[mode])
    assert scenario.answer in {str(asked.response), asked.text}


@some_scenarios
def test_a_sync_stream_has_route_and_sources_when_the_query_returns(scenario: Scenario) -> None:
    response = engine_for(scenario, "stream").query(QUESTION)
    assert set(response.metadata) == KEYS
    assert (response.metadata["route"], response.metadata["answerable"]) == (scenario.route, scenario.answerable)
    assert response.metadata["decision"]["signal"] == scenario.signal
    check_sources(scenario, response)
    sources, metadata = response.source_nodes, response.metadata
    assert str(response) == scenario.answer
    assert (response.source_nodes is sources, response.metadata is metadata) == (True, True)


@some_scenarios
async def test_an_awaited_stream_decides_when_it_is_read_and_is_filled_in_place(scenario: Scenario) -> None:
    engine = engine_for(scenario, "astream")
    response = await engine.aquery(QUESTION)
    metadata, sources = response.metadata, response.source_nodes
    await asyncio.sleep(0)
    passages = [] if scenario.draft is None else PASSAGES
    assert (metadata, sources) == ({"retrieved": [item.node.node_id for item in passages]}, [])
    assert model_of(engine).calls == []
    pieces = response.async_response_gen()
    first = await anext(pieces)
    assert set(metadata) == KEYS
    assert (metadata["route"], metadata["answerable"]) == (scenario.route, scenario.answerable)
    check_sources(scenario, response)
    assert (response.metadata is metadata, response.source_nodes is sources) == (True, True)
    assert first + "".join([piece async for piece in pieces]) == scenario.answer
    assert (response.metadata is metadata, response.source_nodes is sources) == (True, True)
    check(scenario, Asked(response, [scenario.answer]))


@every_stream
@some_scenarios
async def test_no_piece_of_a_decline_is_shown(scenario: Scenario, mode: str) -> None:
    asked = await ask(engine_for(scenario, mode), QUESTION, mode)
    assert asked.text == scenario.answer
    assert all(asked.pieces)


async def watched(engine: SelfRouteQueryEngine, mode: str) -> AsyncIterator[tuple[str, Call, int]]:
    """Each piece with the model's last call and how much it had said by then."""
    response = engine.query(QUESTION) if mode == "stream" else await engine.aquery(QUESTION)
    async for piece in pieces_of(response, mode):
        call = model_of(engine).calls[-1]
        yield piece, call, call.emitted


@every_stream
@pytest.mark.parametrize("scenario", [DECLINED, PLAIN], ids=str)
async def test_nothing_comes_before_the_step_that_answers_speaks(scenario: Scenario, mode: str) -> None:
    engine = engine_for(scenario, mode)
    async for _, call, said in watched(engine, mode):
        assert call.step == scenario.route
        assert said


def _cuts(longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, longest), max_size=12)


@examples(150)
@example(scenario=DECLINED, draft=list(range(13)), final=[2], is_chat=False)
@given(scenario=st.sampled_from(SCENARIOS), draft=_cuts(60), final=_cuts(40), is_chat=st.booleans())
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(
    scenario: Scenario, draft: list[int], final: list[int], is_chat: bool
) -> None:
    for mode in STREAMS:
        engine = engine_for(
            scenario,
            mode,
            draft=None if scenario.draft is None else cut(text_of(scenario.draft), draft),
            final=None if scenario.final is None else cut(text_of(scenario.final), final),
            is_chat=is_chat,
        )
        check(scenario, asyncio.run(ask(engine, QUESTION, mode)))


@pytest.mark.parametrize("step", ["rag", "long_context"])
@every_stream
async def test_an_answer_flows_while_it_is_written(step: str, mode: str) -> None:
    reply = ("Ms", " Okafor", " took", " the", " chair", *(f" word{n}" for n in range(40)), ".")
    drafted = {"draft": reply} if step == "rag" else {"final": reply}
    seen = [(said, piece) async for piece, _, said in watched(an_engine(**drafted, streaming=True), mode)]
    assert seen[0][0] <= 8
    shown = ""
    for said, piece in seen:
        shown += piece
        assert shown == "".join(reply[:said])
    assert shown == "".join(reply)


@pytest.mark.parametrize("reply", ["word " * 200, "The text, " * 100, "In the passages the " * 60])
def test_a_held_answer_is_released_after_some_two_hundred_characters(reply: str) -> None:
    response = an_engine(tuple(reply), final=("Ms Okafor",), streaming=True).query(QUESTION)
    assert len(next(response.response_gen)) <= 260


@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
def test_a_stream_can_be_read_in_every_way_of_the_host(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    for read in ("str", "get_response", "print_response_stream"):
        response = engine_for(scenario, "stream").query(QUESTION)
        text = str(response) if read == "str" else getattr(response, read)()
        if read == "get_response":
            assert (text.metadata, text.source_nodes) == (response.metadata, response.source_nodes)
        assert str(text or capsys.readouterr().out) == scenario.answer
        assert str(response) == scenario.answer
        check(scenario, Asked(response, [str(response)]))


@pytest.mark.parametrize("read", ["str", "get_response", "print_response_stream", "response_gen", "twice"])
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
async def test_an_awaited_stream_can_be_read_in_every_way_of_the_host(
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
    check(scenario, Asked(response, [text]))


@pytest.mark.parametrize("mode", AWAITED)
def test_one_engine_serves_one_event_loop_after_another(mode: str) -> None:
    engine = an_engine(streaming=mode == "astream")
    for _ in range(3):
        assert asyncio.run(ask(engine, QUESTION, mode)).text == FOUND
