"""Both hosts, all modes: a refusal of sections may say how likely the whole text holds an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

import llamaindex_parts
from both_parts import Outcome, everywhere, is_langchain, pipeline_for
from scenarios import FINAL, FOUND
from steering import BY_NAME, DENIED, LARGER, LIN, RUNG
from structured_parts import Calling, Reporting

DECLINED = BY_NAME["sections that decline"]
GRADED: dict[str, Any] = {"answerability": "graded", "sections": RUNG, "draft": ("60 0\n", "unanswerable")}
ENDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # a reply, and options
    "below the bound": (("49\n", "unanswerable"), {}),
    "in one piece": (("9\nunanswerable",), {}),
    "in single characters": (tuple("0\nunanswerable"), {}),
    "per cent": (("**12 %**\n", "unanswerable"), {}),
    "two numbers": (("5 0\n", "unanswerable"), {}),
    "below a bound of one's own": (("70\n", "unanswerable"), {"stop_below": (20, 71)}),
    "below a bound for all": (("29\n", "unanswerable"), {"stop_below": 30}),
}
GOES_ON: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "at the bound": (("50\n", "unanswerable"), {}),
    "above the bound": (("97\n", "unanswerable"), {}),
    "without a number": (("unanswerable",), {}),
    "in words of its own": (("5\n", DENIED), {}),
    "empty": (("5\n", "**"), {}),
    "at a bound of one's own": (("10\n", "unanswerable"), {"stop_below": (20, 10)}),
    "at a bound for all": (("30\n", "unanswerable"), {"stop_below": 30}),
    "as text": (("unanswerable",), {"answerability": "text", "draft": ("unanswerable",)}),
}


def check_ended(found: Outcome) -> None:
    """The question ended with sections; the decision is still that of the draft."""
    assert (found.route, found.answer, found.answerable) == ("sections", "unanswerable", False)
    assert "".join(found.pieces) == "unanswerable"
    assert (found.decision["signal"], found.decision["prospect"], found.decision["ruling"]) == ("sentinel", 60, None)
    assert found.usage["long_context"] is None


@everywhere
@pytest.mark.parametrize("name", ENDS)
async def test_a_hopeless_refusal_of_sections_ends_the_question(name: str, where: str) -> None:
    reply, options = ENDS[name]
    found = await pipeline_for(where, DECLINED, **{**GRADED, "looks": (reply,), "final": None, **options}).ask()
    assert found.steps == ["rag", "sections"]
    check_ended(found)


@everywhere
@pytest.mark.parametrize("name", GOES_ON)
async def test_other_refusals_of_sections_lead_to_the_documents(name: str, where: str) -> None:
    reply, options = GOES_ON[name]
    found = await pipeline_for(where, DECLINED, **{**GRADED, "looks": (reply,), "final": FINAL, **options}).ask()
    assert (found.steps, found.answer) == (["rag", "sections", "long_context"], FOUND)
    assert (found.decision["signal"], found.decision["ruling"]) == ("sentinel", None)
    assert found.decision.get("prospect") in (60, None)


@everywhere
async def test_a_second_reading_may_be_hopeless(where: str) -> None:
    looks = (("60\n", "unanswerable"), ("40\n", "unanswerable"))
    options = {**GRADED, "sections": (RUNG, LARGER), "looks": looks, "final": None}
    found = await pipeline_for(where, DECLINED, **options).ask()
    assert found.steps == ["rag", "sections", "sections"]
    check_ended(found)


@everywhere
async def test_a_doubt_is_given_up_by_hopeless_sections(where: str) -> None:
    options = {**GRADED, "draft": (f"80 42\n{LIN}",), "looks": (("10\nunanswerable",),), "final": None}
    found = await pipeline_for(where, DECLINED, **options).ask()
    assert (found.route, found.answer, found.answerable) == ("sections", "unanswerable", False)
    assert (found.decision["signal"], found.decision["prospect"], found.decision["ruling"]) == ("doubt", 80, None)


# Structured


def filled(answer: str = "", **fields: Any) -> tuple[str]:
    """A report as JSON."""
    return (json.dumps({**fields, "answerable": bool(answer), "answer": answer}),)


async def reported(where: str, prospect: int, *, by_instruction: bool, **options: Any) -> Outcome:
    script = {
        "draft": filled(prospect=60, confidence=0),
        "looks": (filled(prospect=prospect, confidence=0),),
        "final": filled(FOUND),
    }
    if is_langchain(where):
        model: Any = Reporting(**script)
    else:
        model = (llamaindex_parts.ScriptedLLM if by_instruction else Calling)(**script)
    fields = {"answerability": "structured", "sections": RUNG, "llm": model, **options}
    return await pipeline_for(where, DECLINED, **fields).ask()


@everywhere
@pytest.mark.parametrize("by_instruction", [False, True], ids=["by a call", "by instruction"])
@pytest.mark.parametrize("options", [{"stop_below": (20, 50)}, {"doubt_below": 70}], ids=["stop", "doubt"])
async def test_the_report_of_sections_has_both_numbers(
    options: dict[str, Any], by_instruction: bool, where: str
) -> None:
    found = await reported(where, 49, by_instruction=by_instruction, **options)
    assert found.steps == ["rag", "sections"]
    check_ended(found)
    if not by_instruction or is_langchain(where):
        (tool,) = found.calls[-1].options["tools"]
        names = set(tool["function"]["parameters"]["properties"])
        assert names == {"prospect", "confidence", "answerable", "answer"}
    found = await reported(where, 50, by_instruction=by_instruction, **options)
    assert (found.steps, found.answer) == (["rag", "sections", "long_context"], FOUND)
