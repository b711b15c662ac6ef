"""The scenarios of what steers a question, on a host of no framework, in both loops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from plain_parts import PlainCall
from scenarios import cut, text_of
from selfroute.calls.drivers import arun, astream, run, stream
from selfroute.effects import Decided
from selfroute.errors import InputError
from steering import BY_NAME, STEERED, Steered

every_scenario = pytest.mark.parametrize("scenario", STEERED, ids=str)
WORLDS = ("sync", "async")
STEPS = ("rag", "sections", "long_context")
every_world = pytest.mark.parametrize("world", WORLDS)


def played(call: PlainCall, world: str) -> list[Any]:
    """What a loop yields."""

    async def items() -> list[Any]:
        return [item async for item in astream(await call.aflow(), call)]

    return list(stream(call.flow(), call)) if world == "sync" else asyncio.run(items())


def check(scenario: Steered, call: PlainCall, items: list[Any]) -> None:
    """Hold what a loop yielded against the scenario."""
    decided = [item for item in items if isinstance(item, Decided)]
    pieces, answer = [item for item in items if type(item) is str], items[-1]
    assert items == [*decided, *pieces, answer]
    assert all(pieces)
    assert "".join(pieces) == answer.text
    assert (decided[-1].route, decided[-1].decision) == (answer.route, answer.decision)
    scenario.check((answer.text, answer.route, answer.answerable), answer.decision.as_dict())
    assert list(answer.passages) == scenario.found
    scenario.check_read(answer.context)
    assert call.host.steps == scenario.steps
    assert call.host.announced == [item.route for item in decided]
    used = call.account.usage.as_dict()
    assert [step for step in STEPS if used[step]] == list(dict.fromkeys(scenario.steps))
    (entry,) = call.booked
    assert (entry.outcome, entry.route, entry.answerable) == ("answered", scenario.route, scenario.answerable)
    assert entry.declined is scenario.declined
    assert entry.stopped is (scenario.ruling is not None and not scenario.ruling[0])


@every_world
@every_scenario
def test_both_loops_play_every_scenario_as_the_table_says(scenario: Steered, world: str) -> None:
    call = PlainCall(scenario)
    check(scenario, call, played(call, world))


@every_scenario
def test_a_reply_in_one_piece_ends_as_a_stream_does(scenario: Steered) -> None:
    for loop in (run, lambda flow, call: asyncio.run(arun(flow, call))):
        call = PlainCall(scenario, whole=True)
        answer = loop(call.flow(), call)
        scenario.check((answer.text, answer.route, answer.answerable), answer.decision.as_dict())


@examples(200)
@given(scenario=st.sampled_from(STEERED), cuts=st.lists(st.integers(0, 60), max_size=12))
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(scenario: Steered, cuts: list[int]) -> None:
    for world in WORLDS:
        call = PlainCall(scenario)
        call.host.said = [cut(text_of(pieces), cuts) for pieces in call.host.said]
        check(scenario, call, played(call, world))


@every_world
@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u3000", "\u200b", "\ufeff \u00ad"], ids=ascii)
def test_a_blank_question_asks_nobody(question: str, world: str) -> None:
    call = PlainCall(BY_NAME["a sure answer"], question=question)
    with pytest.raises(InputError, match="blank"):
        played(call, world)
    assert (call.host.steps, call.reading.passages) == ([], ())
