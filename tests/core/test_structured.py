"""`answerability="structured"`, both frameworks, all eight modes: the same report takes the same route."""

from __future__ import annotations

import json
from typing import Any

import pytest

from both_parts import EVERYWHERE, LANGCHAIN, Outcome, pipeline_for
from llamaindex_parts import ScriptedLLM
from scenarios import SOME, WHOLE, Scenario
from selfroute.answerability import declines
from selfroute.answerability.structured import json_in
from structured_parts import Calling, Reporting


async def outcomes(scenario: Scenario, **fields: Any) -> dict[str, Outcome]:
    """What a scenario comes to in both frameworks and all modes; LlamaIndex also with models that call no function."""
    script = {"draft": scenario.draft, "final": scenario.final, **fields}
    found = {}
    for where in EVERYWHERE:
        for kind in (Reporting,) if where in LANGCHAIN else (Calling, ScriptedLLM):
            one = pipeline_for(where, scenario, llm=kind(**script), answerability="structured")
            found[f"{kind.__name__} {where}"] = await one.ask()
    return found


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
# A model that fills nothing in is judged by what it writes.
TEXTS = [scenario for scenario in SOME if scenario.refusal == "unanswerable"]


@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("scenario", [*REPORTS, *TEXTS], ids=str)
async def test_a_report_ends_alike_in_both_frameworks_and_all_modes(scenario: Scenario, usage: bool) -> None:
    """It is recorded as a text is, and asked for with the same prompts; it costs what is counted or estimated."""
    found = await outcomes(scenario, usage=usage)
    told = found["Reporting langchain invoke"]
    fields = json.loads(scenario.draft[0] or "") if scenario in REPORTS and scenario.draft else None
    if fields:
        text = fields["answer"] if fields["answerable"] and (fields["answer"] or "").strip() else scenario.refusal
        assert told.decision == declines(text, scenario.refusal).as_dict()
    steps = ["rag"] * (scenario.draft is not None) + ["long_context"] * (scenario.final is not None)
    for mode, outcome in found.items():
        assert outcome.pieces == [scenario.answer], mode  # in one piece
        assert (outcome.route, outcome.answerable) == (scenario.route, scenario.answerable), mode
        assert (outcome.decision["declined"], outcome.decision["signal"]) == (scenario.declined, scenario.signal), mode
        assert scenario.evidence in outcome.decision["evidence"], mode
        assert outcome.decision == told.decision, mode
        assert ["long_context" if WHOLE in prompt else "rag" for prompt in outcome.prompts] == steps, mode
        for prompt, expected in zip(outcome.prompts, told.prompts, strict=True):
            assert prompt == expected or (mode.startswith("ScriptedLLM") and prompt.startswith(expected)), mode
        assert outcome.usage["estimated"] is not usage, mode
        ran = [outcome.usage[step] for step in ("rag", "long_context") if outcome.usage[step]]
        for counts, prompt in zip(ran, outcome.prompts, strict=True):
            assert counts["output_tokens"] > 0 or scenario not in REPORTS, mode
            assert not usage or counts["input_tokens"] == len(prompt.split()), mode


@pytest.mark.parametrize("text", ["", "{", "}", "}{", "[]", "{]}", "null", '{"a": }', "{" * 100_000])
def test_what_is_no_object_is_none(text: str) -> None:
    assert json_in(text) is None
