"""The scenarios of what steers a question, through LlamaIndex, in all modes, and by the synthesizer alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import QueryBundle

from lanes import examples
from llamaindex_parts import (
    KEYS,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    Asked,
    ListRetriever,
    ask,
    model_of,
    pieces_of,
    recorded,
    steered_engine,
)
from llamaindex_selfroute import SelfRouteDecisionEvent
from scenarios import cut, text_of
from selfroute.errors import InputError
from steering import BY_NAME, STEERED, Steered

STEPS = ("rag", "sections", "long_context")
every_scenario = pytest.mark.parametrize("scenario", STEERED, ids=str)
every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)


def check(scenario: Steered, asked: Asked) -> None:
    """Hold a response against its scenario."""
    assert set(asked.metadata) == KEYS
    scenario.check((asked.text, asked.route, asked.answerable), asked.decision)
    assert asked.retrieved == [item.node.node_id for item in PASSAGES[: len(scenario.found)]]
    scenario.check_read(asked.sources)
    assert [step for step in STEPS if asked.usage[step]] == list(dict.fromkeys(scenario.steps))
    steps = [asked.usage[step] for step in STEPS if asked.usage[step]]
    assert asked.usage["total_tokens"] == sum(step["input_tokens"] + step["output_tokens"] for step in steps)


@every_mode
@every_scenario
async def test_a_scenario_ends_as_the_table_says(scenario: Steered, mode: str) -> None:
    engine = steered_engine(scenario, mode)
    check(scenario, await ask(engine, QUESTION, mode))
    assert model_of(engine).steps == scenario.steps


@every_mode
@every_scenario
async def test_the_synthesizer_alone_ends_as_the_table_says(scenario: Steered, mode: str) -> None:
    synthesizer = steered_engine(scenario, mode)._response_synthesizer
    nodes = PASSAGES[: len(scenario.found)]
    if mode.startswith("a"):
        response = await synthesizer.asynthesize(QUESTION, nodes)
    else:
        response = synthesizer.synthesize(QUESTION, nodes)
    check(scenario, Asked(response, [piece async for piece in pieces_of(response, mode)]))


@every_stream
@every_scenario
async def test_route_and_sources_are_settled_with_the_first_text(scenario: Steered, mode: str) -> None:
    engine = steered_engine(scenario, mode)
    response = await engine.aquery(QUESTION) if mode == "astream" else engine.query(QUESTION)
    pieces = pieces_of(response, mode)
    await anext(pieces)
    assert response.metadata["route"] == scenario.route
    assert response.metadata["decision"]["signal"] == scenario.signal
    scenario.check_read([item.node.get_content() for item in response.source_nodes])
    if scenario.route != "long_context":  # a reply to documents is judged at its end
        assert response.metadata["answerable"] is scenario.answerable
    await pieces.aclose()


@every_mode
async def test_each_step_that_is_gone_to_is_announced(mode: str) -> None:
    with recorded() as recording:
        await ask(steered_engine(BY_NAME["a second reading that declines"], mode), QUESTION, mode)
    told = [event.route for event in recording.events.of(SelfRouteDecisionEvent)]
    assert told == ["sections", "sections", "long_context"]


@examples(60)
@given(scenario=st.sampled_from(STEERED), cuts=st.lists(st.integers(0, 60), max_size=12), is_chat=st.booleans())
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(scenario: Steered, cuts: list[int], is_chat: bool) -> None:
    said = {"draft": scenario.draft, "final": scenario.final}
    replies: dict[str, Any] = {name: pieces and cut(text_of(pieces), cuts) for name, pieces in said.items()}
    replies["looks"] = [cut(text_of(pieces), cuts) for pieces in scenario.looks]
    for mode in STREAMS:
        check(scenario, asyncio.run(ask(steered_engine(scenario, mode, **replies, is_chat=is_chat), QUESTION, mode)))


def never_asked(_: Any) -> Any:
    raise AssertionError


@every_mode
@pytest.mark.parametrize("question", ["", " \n", "\u200b", QueryBundle("\t")], ids=["empty", "white", "unseen", "tab"])
async def test_a_blank_question_asks_nobody(question: Any, mode: str) -> None:
    retriever = ListRetriever()
    engine = steered_engine(BY_NAME["a sure answer"], mode, retriever=retriever, start=never_asked)
    with pytest.raises(InputError, match="blank"):
        await ask(engine, question, mode)
    synthesizer = engine._response_synthesizer
    with pytest.raises(InputError, match="blank"):
        synthesizer.synthesize(question, PASSAGES)
    with pytest.raises(InputError, match="blank"):
        await synthesizer.asynthesize(question, PASSAGES)
    assert (model_of(engine).calls, retriever.queries) == ([], [])


@every_stream
async def test_a_doubted_draft_is_hung_up_on_as_soon_as_its_numbers_stand(mode: str) -> None:
    engine = steered_engine(BY_NAME["a doubt in single characters 80 42"], mode)
    asked = await ask(engine, QUESTION, mode)
    draft, _ = model_of(engine).calls
    assert draft.ended == "closed"
    assert len("80 42\n") <= draft.emitted <= len("80 42\nMr Lin")
    assert asked.usage["estimated"]
    assert 0 < asked.usage["rag"]["output_tokens"] <= 6
