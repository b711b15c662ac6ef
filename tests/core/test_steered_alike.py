"""Both frameworks, all modes: what steers a question leads to the same outcome, the same prompts and the same costs."""

from __future__ import annotations

from typing import Any

import pytest

from both_parts import EVERYWHERE, outcome
from selfroute.errors import NoReplyError
from selfroute.policies import Never
from steering import BY_NAME, GRADED, LIN, STEERED, Steered, with_policy

everywhere = pytest.mark.parametrize("where", EVERYWHERE)
DOUBTED = BY_NAME["a doubt in one piece"]
KEPT = BY_NAME["a doubt that is refused"]
SURE = BY_NAME["a sure answer"]


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("scenario", STEERED, ids=str)
async def test_a_scenario_ends_alike_everywhere(scenario: Steered, counted: bool) -> None:
    found = {where: await outcome(where, scenario, usage=counted) for where in EVERYWHERE}
    expected = found["langchain invoke"]
    closed = {call.step for call in found["langchain stream"].calls if call.ended == "closed"}
    for where, one in found.items():
        assert (one.answer, one.route, one.answerable, one.decision, one.read) == (
            expected.answer,
            expected.route,
            expected.answerable,
            expected.decision,
            expected.read,
        )
        assert [call.prompt for call in one.calls] == [call.prompt for call in expected.calls], where
        hung_up = closed if where.endswith("stream") else set()
        for step in {"rag", "wider", "long_context"} - hung_up:
            assert one.usage[step] == expected.usage[step], where
        assert one.usage["estimated"] is bool(scenario.steps and (not counted or hung_up)), where


ENDED: dict[str, tuple[dict[str, Any], Any]] = {
    "a sure answer that was cut": ({"draft": ("80 90\n", "Mr Lin took")}, "length"),
    "an answer without numbers that was cut": ({"draft": ("Mr Lin took the chair", " at")}, "length"),
    "a doubt that is kept though it was cut": (
        {"draft": ("80 42\n", "Mr Lin took"), **with_policy(Never())},
        "length",
    ),
    "a doubt that is kept and ended by itself": ({"draft": ("80 42\n", LIN), **with_policy(Never())}, "stop"),
}


@everywhere
@pytest.mark.parametrize("name", ENDED)
async def test_how_a_reply_ended_is_said(name: str, where: str) -> None:
    fields, ending = ENDED[name]
    found = await outcome(where, SURE, **{**GRADED, **fields}, ends={"rag": ending})
    assert (found.route, found.finish_reason) == ("rag", ending)
    assert found.answer == "".join(fields["draft"]).split("\n")[-1]


NO_REPLY: dict[str, tuple[dict[str, Any], str]] = {
    "numbers and no more": ({"draft": ("80 90\n",)}, "length"),
    "numbers and white space": ({"draft": ("80 90\n", "\n ")}, "max_tokens"),
    "numbers that are filtered": ({"draft": ("80 90",)}, "content_filter"),
    "one number": ({"draft": ("80",)}, "content_filter"),
    "the first digit of a second number": ({"draft": ("80 4",)}, "length"),
    "a label and a number": ({"draft": ("Prospect: 80, conf",)}, "length"),
    "nothing": ({"draft": ("",)}, "SAFETY"),
    "a doubt that is kept but says nothing": ({"draft": ("80 42\n",), **with_policy(Never())}, "length"),
}


@everywhere
@pytest.mark.parametrize("name", NO_REPLY)
async def test_numbers_without_a_reply_are_no_reply(name: str, where: str) -> None:
    fields, ending = NO_REPLY[name]
    with pytest.raises(NoReplyError) as raised:
        await outcome(where, SURE, **{**GRADED, **fields}, ends={"rag": ending})
    assert (raised.value.step, raised.value.finish_reason) == ("rag", ending)


@everywhere
async def test_a_doubt_stands_however_the_draft_ended(where: str) -> None:
    found = await outcome(where, DOUBTED, draft=("80 42\n",), ends={"rag": "length"})
    assert (found.route, found.decision["signal"]) == ("long_context", "doubt")
