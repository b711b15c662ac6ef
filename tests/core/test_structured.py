"""`answerability="structured"` in both frameworks: the same report takes the same route."""

from __future__ import annotations

import json
from typing import Any

import pytest

from both_parts import EVERYWHERE, LANGCHAIN, pipeline_for
from llamaindex_parts import ScriptedLLM
from scenarios import Scenario
from selfroute.answerability import declines
from selfroute.answerability.structured import json_in
from structured_parts import Calling, Reporting


def filled(answerable: bool, answer: str | None = "") -> tuple[str]:
    return (json.dumps({"answerable": answerable, "answer": answer}),)


FOUND = filled(True, "Ms Okafor.")
DECLINED = filled(False)


def answered(name: str, answer: str, **fields: Any) -> Scenario:
    return Scenario(name, filled(True, answer), None, answer, "rag", "answered", **fields)


def declined(name: str, draft: tuple[str], *, signal: str = "sentinel", evidence: str = "", **fields: Any) -> Scenario:
    return Scenario(name, draft, FOUND, "Ms Okafor.", "long_context", signal, evidence, **fields)


NOT_SAID = "The text does not mention the chair."
ONLY = "The report covers 2024 only."


def neither(name: str, final: tuple[str], *, answer: str = "", refusal: str = "unanswerable") -> Scenario:
    evidence = declines(refusal, refusal).evidence
    return Scenario(
        name,
        DECLINED,
        final,
        answer or refusal,
        "long_context",
        "sentinel",
        evidence,
        answerable=False,
        refusal=refusal,
    )


REPORTS = [
    answered("an answer", "Mr Lin."),
    answered("an answer with braces", 'The form is {name}, {{context}} or {"answerable": false}.'),
    answered("an answer that quotes the refusal", "S4 is unanswerable in theory."),
    answered("an answer beside another refusal", "Mr Lin.", refusal="NO ANSWER"),
    declined("a decline", DECLINED, evidence="unanswerable"),
    declined("a decline that names a candidate", filled(False, "Perhaps Mr Lin."), evidence="unanswerable"),
    declined("a decline without an answer", filled(False, None), evidence="unanswerable"),
    declined("a decline and nothing else", ('{"answerable": false}',), evidence="unanswerable"),
    declined("an answer that is blank", filled(True, " \n"), evidence="unanswerable"),
    declined("an answer that is missing", filled(True, None), evidence="unanswerable"),
    declined("an answer that is the refusal", filled(True, "Unanswerable."), evidence="Unanswerable"),
    declined(
        "an answer that declines in words",
        filled(True, "The passages do not mention who chaired the meeting."),
        signal="phrase",
        evidence="The passages do not mention",
    ),
    declined("two words as the refusal", DECLINED, evidence="NO ANSWER", refusal="NO ANSWER"),
    declined("a refusal with regex characters", DECLINED, evidence="(a|b)+", refusal="(a|b)+"),
    declined("a refusal in another script", DECLINED, evidence="不明", refusal="不明"),
    neither("both steps decline", DECLINED),
    neither("the second answer is blank", filled(True, "")),
    neither("the second answer declines in words", filled(True, NOT_SAID), answer=NOT_SAID),
    neither("the second declines and says what there is", filled(False, ONLY), answer=ONLY),
    Scenario("nothing is retrieved", None, FOUND, "Ms Okafor.", "long_context", "no_passages"),
]
IN_TURN = [(scenario, EVERYWHERE[at % 8], at % 3 > 0) for at, scenario in enumerate(REPORTS)]


@pytest.mark.parametrize(("scenario", "where", "counted"), IN_TURN, ids=str)
async def test_report_ends_as_the_table_says(scenario: Scenario, where: str, counted: bool) -> None:
    """It is recorded as a text is; it costs what is counted or estimated."""
    kinds = (Reporting,) if where in LANGCHAIN else (Calling, ScriptedLLM)  # which calls no function
    for kind in kinds:
        llm = kind(draft=scenario.draft, final=scenario.final, usage=counted)
        told = await pipeline_for(where, scenario, llm=llm, answerability="structured").ask()
        assert told.pieces == [scenario.answer]  # in one piece
        assert (told.route, told.answerable) == (scenario.route, scenario.answerable)
        assert (told.decision["declined"], told.decision["signal"]) == (scenario.declined, scenario.signal)
        assert scenario.evidence in told.decision["evidence"]
        assert told.steps == ["rag"] * (scenario.draft is not None) + ["long_context"] * (scenario.final is not None)
        assert told.usage["estimated"] is not counted
        assert told.usage["long_context_only"] > 0  # the schema is part of the prompt
        for step, prompt in zip(told.steps, told.prompts, strict=True):
            assert told.usage[step]["output_tokens"] > 0
            assert not counted or told.usage[step]["input_tokens"] == len(prompt.split())


@pytest.mark.parametrize("text", ["", "{", "}", "}{", "[]", "{]}", "null", '{"a": }', "{" * 100_000])
def test_what_is_no_object_is_none(text: str) -> None:
    assert json_in(text) is None
