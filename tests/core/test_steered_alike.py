"""Both frameworks, all modes: what steers a question leads to the same outcome, the same prompts and the same costs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import langchain_parts
import llamaindex_parts
from both_parts import EVERYWHERE, outcome
from scenarios import QUESTION
from selfroute.answerability.graded import GradedGate, Ungraded
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
        for step in {"rag", "sections", "long_context"} - hung_up:
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


@everywhere
async def test_ten_graded_drafts_in_a_row_without_numbers_are_worth_one_warning(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    framework, mode = where.split()
    parts: Any = langchain_parts if framework == "langchain" else llamaindex_parts
    scenario = BY_NAME["an answer without numbers"]
    for options, said in ((GRADED, 1), (GRADED, 1), ({"answerability": "text"}, 0)):
        if framework == "langchain":
            asked: Any = parts.steered_chain(scenario, **options)
        else:
            asked = parts.steered_engine(scenario, mode, **options)
        for number in range(23):
            assert len(_warned(caplog)) == (said if number >= 10 else 0)
            await parts.ask(asked, QUESTION, mode)
        for warning in _warned(caplog):
            assert "rag_prompt" in warning
            assert 'answerability to "structured"' in warning
        caplog.clear()


def _warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "graded replies" in record.getMessage()]


def test_a_draft_with_numbers_begins_the_count_anew(caplog: pytest.LogCaptureFixture) -> None:
    ungraded = Ungraded()
    for draft in ["Paris"] * 9 + ["80 90\nParis", "80 20\nParis"] + ["unanswerable", "12 and 15"] * 4 + [""]:
        gate = GradedGate(doubt_below=50, ungraded=ungraded)
        for piece in draft:
            gate.feed(piece)
        gate.end()
    assert _warned(caplog) == []
    GradedGate(ungraded=ungraded).feed("Paris, as the minutes say.")
    assert len(_warned(caplog)) == 1


def test_a_refusal_that_was_to_have_no_number_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    ungraded = Ungraded()
    for reply in ["Paris", "unanswerable"] * 9 + ["90\nParis", "unanswerable"] + ["unanswerable", "1912"] * 9:
        gate = GradedGate(doubt_below=50, numbers=1, ungraded=ungraded)
        gate.feed(reply)
        gate.end()
    assert _warned(caplog) == []
    GradedGate(numbers=1, ungraded=ungraded).feed("Paris, as the minutes say.")
    assert len(_warned(caplog)) == 1


def test_many_threads_are_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    ungraded = Ungraded()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: ungraded.note(graded=False), range(400)):
            pass
    assert len(_warned(caplog)) == 1
