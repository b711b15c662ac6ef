"""Every scenario, through LangChain, in all four modes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanes import examples
from langchain_parts import DOCUMENTS, MODES, PASSAGES, QUESTION, STREAMS, Call, a_chain, ask, chain_for, chunks
from langchain_selfroute import SelfRouteChain
from scenarios import DECLINED, SCENARIOS, SOME, Scenario, cut, text_of

KEYS = ["input", "retrieved", "context", "route", "answer", "answerable", "finish_reason", "decision", "usage"]
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
some_scenarios = pytest.mark.parametrize("scenario", SOME, ids=str)
every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)


def check(scenario: Scenario, result: dict[str, Any]) -> None:
    """Hold a result against its scenario."""
    assert type(result["answer"]) is str
    assert (result["answer"], result["route"], result["answerable"]) == (
        scenario.answer,
        scenario.route,
        scenario.answerable,
    )
    decision = result["decision"]
    assert set(decision) == {"declined", "signal", "evidence", "ruling"}
    assert decision["ruling"] is None
    assert result["finish_reason"] == scenario.finish_reason
    assert (decision["declined"], decision["signal"]) == (scenario.declined, scenario.signal)
    assert scenario.evidence in decision["evidence"]
    if scenario.signal in {"answered", "empty", "no_passages"}:
        assert decision["evidence"] == ""
    passages = [] if scenario.draft is None else PASSAGES
    assert result["retrieved"] == passages
    assert result["context"] == (DOCUMENTS if scenario.route == "long_context" else passages)
    assert result["input"] == QUESTION


@every_mode
@every_scenario
async def test_a_scenario_ends_as_the_table_says(scenario: Scenario, mode: str) -> None:
    chain = chain_for(scenario)
    result = await ask(chain, QUESTION, mode)
    assert list(result) == KEYS
    check(scenario, result)
    steps = ["rag"] * (scenario.draft is not None) + ["long_context"] * (scenario.final is not None)
    assert chain.llm.steps == steps


@some_scenarios
async def test_the_decision_and_the_usage_are_plain_json(scenario: Scenario) -> None:
    result = await ask(chain_for(scenario, usage=True), QUESTION, "astream")
    for key in ("decision", "usage", "route", "answerable", "answer"):
        assert json.loads(json.dumps(result[key])) == result[key]


@every_stream
@some_scenarios
async def test_no_piece_of_a_decline_is_shown(scenario: Scenario, mode: str) -> None:
    shown = [chunk["answer"] for chunk in await chunks(chain_for(scenario), QUESTION, mode) if "answer" in chunk]
    assert "".join(shown) == scenario.answer
    assert all(shown)


@every_stream
@some_scenarios
async def test_keys_come_in_order_and_only_the_answer_comes_in_pieces(scenario: Scenario, mode: str) -> None:
    seen = [key for chunk in await chunks(chain_for(scenario), {"input": QUESTION, "year": 7}, mode) for key in chunk]
    first = seen.index("answer")
    assert seen[:first] == ["input", "year", "retrieved", "context", "route"]
    pieces = seen.count("answer")
    assert seen[first:] == ["answer"] * pieces + ["answerable", "finish_reason", "decision", "usage"]


async def watched(chain: SelfRouteChain, mode: str) -> list[tuple[Any, Call, int]]:
    """Each chunk with the model's last call and how much it had said by then."""
    seen = []
    if mode == "stream":
        for chunk in chain.stream(QUESTION):
            call = chain.llm.calls[-1]
            seen += [(chunk, call, call.emitted)]
    else:
        async for chunk in chain.astream(QUESTION):
            call = chain.llm.calls[-1]
            seen += [(chunk, call, call.emitted)]
    return seen


@every_stream
@some_scenarios
async def test_nothing_comes_before_the_step_that_answers_speaks(scenario: Scenario, mode: str) -> None:
    chain = chain_for(scenario)
    for _, call, said in await watched(chain, mode):
        assert call is chain.llm.calls[-1]
        assert said or not scenario.answerable


@every_mode
@pytest.mark.parametrize("given", [QUESTION, {"input": QUESTION}], ids=["string", "dict"])
async def test_a_string_stands_for_the_dict(given: Any, mode: str) -> None:
    check(DECLINED, await ask(chain_for(DECLINED), given, mode))


@some_scenarios
async def test_a_batch_ends_as_the_table_says(scenario: Scenario) -> None:
    chain = chain_for(scenario)
    for result in [*chain.batch([QUESTION, {"input": QUESTION}]), *await chain.abatch([QUESTION, QUESTION])]:
        check(scenario, result)


def _cuts(longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, longest), max_size=12)


@examples(150)
@example(scenario=DECLINED, draft=list(range(13)), final=[2])
@given(scenario=st.sampled_from(SCENARIOS), draft=_cuts(60), final=_cuts(40))
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(
    scenario: Scenario, draft: list[int], final: list[int]
) -> None:
    chain = chain_for(
        scenario,
        draft=None if scenario.draft is None else cut(text_of(scenario.draft), draft),
        final=None if scenario.final is None else cut(text_of(scenario.final), final),
    )
    check(scenario, asyncio.run(ask(chain, QUESTION, "stream")))
    check(scenario, asyncio.run(ask(chain, QUESTION, "astream")))


@pytest.mark.parametrize("step", ["rag", "long_context"])
@every_stream
async def test_an_answer_flows_while_it_is_written(step: str, mode: str) -> None:
    reply = ("Ms", " Okafor", " took", " the", " chair", *(f" word{n}" for n in range(40)), ".")
    chain = a_chain(reply) if step == "rag" else a_chain(final=reply)
    seen = [(said, chunk.get("answer", "")) for chunk, _, said in await watched(chain, mode)]
    assert seen[0][0] <= 8
    shown = ""
    for said, piece in seen[:-1]:
        shown += piece
        assert shown == "".join(reply[:said])


@pytest.mark.parametrize("reply", ["word " * 200, "The text, " * 100, "In the passages the " * 60])
def test_a_held_answer_is_released_after_some_two_hundred_characters(reply: str) -> None:
    chain = a_chain(tuple(reply), final=("Ms Okafor",))
    first = next(iter(chain.stream(QUESTION)))
    assert len(first["answer"]) <= 260
