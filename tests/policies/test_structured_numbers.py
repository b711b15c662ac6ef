"""Structured reports with a bound have both numbers, in both frameworks; without a bound they have none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForChainRun
from llama_index.core.program.function_program import get_function_tool

import langchain_parts
import llamaindex_parts
from both_parts import EVERYWHERE, LANGCHAIN, Outcome, outcome
from langchain_selfroute.models.tally import MessageTally
from scenarios import FOUND
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.structured import Form, length_of, report_of, text_of
from selfroute.policies import Never
from steering import BY_NAME, LARGER, LIN, RUNG, VOTE
from structured_parts import Calling, Reporting

everywhere = pytest.mark.parametrize("where", EVERYWHERE)
BOUNDED: dict[str, Any] = {"answerability": "structured", "doubt_below": 50}
STOPPING: dict[str, Any] = {"answerability": "structured", "stop_below": 20}


def filled(answer: str, *, answerable: bool = True, **numbers: Any) -> tuple[str]:
    """A report as JSON."""
    return (json.dumps({**numbers, "answerable": answerable, "answer": answer}),)


async def reported(
    where: str, *, draft: Any, final: Any = None, by_instruction: bool = False, **options: Any
) -> Outcome:
    """Ask a model that fills in reports."""
    script = {"draft": draft, "looks": options.pop("looks", ()), "final": final}
    if where in LANGCHAIN:
        model: Any = Reporting(**script)
    else:
        model = (llamaindex_parts.ScriptedLLM if by_instruction else Calling)(**script)
    return await outcome(where, BY_NAME["a sure answer"], llm=model, **{**BOUNDED, **options})


def fields_of(call: Any) -> set[str]:
    """The fields of the report that a call asked for; each model is given them in its own way."""
    return set(call.options["tools"][0]["function"]["parameters"]["properties"])


PLAIN, NUMBERS = {"answerable", "answer"}, {"prospect", "confidence"}
DECLINED = filled("", answerable=False, prospect=60, confidence=0)


@everywhere
@pytest.mark.parametrize("options", [{}, BOUNDED, STOPPING], ids=["no bound", "doubt", "stop"])
async def test_report_has_numbers_with_a_bound(options: dict[str, Any], where: str) -> None:
    graded = NUMBERS if options else set()
    unbounded = {"doubt_below": None, "stop_below": None}
    found = await reported(where, draft=DECLINED, final=filled(FOUND), **{**unbounded, **options})
    assert [fields_of(call) for call in found.calls] == [PLAIN | graded, PLAIN]
    assert (found.route, found.answer) == ("long_context", FOUND)
    assert ("prospect" in found.decision) is bool(options)


@everywhere
@pytest.mark.parametrize("by_instruction", [False, True], ids=["by a call", "by instruction"])
async def test_report_numbers_decide(by_instruction: bool, where: str) -> None:
    draft = filled(LIN, prospect=80, confidence=42)
    found = await reported(where, draft=draft, final=filled(FOUND), by_instruction=by_instruction)
    assert (found.route, found.answer, found.decision) == (
        "long_context",
        FOUND,
        {"declined": False, "signal": "doubt", "evidence": "80 42", "ruling": None, "prospect": 80, "confidence": 42},
    )
    found = await reported(where, draft=filled(LIN, prospect=80, confidence=90), by_instruction=by_instruction)
    assert (found.route, found.answer, found.decision["signal"]) == ("rag", LIN, "answered")
    found = await reported(where, draft=draft, escalation=Never(), by_instruction=by_instruction)
    assert (found.route, found.answer, found.decision["ruling"]["by"]) == ("rag", LIN, "never")
    hopeless = filled("", answerable=False, prospect=10, confidence=0)
    found = await reported(where, draft=hopeless, **STOPPING, by_instruction=by_instruction)
    assert (found.route, found.answerable, found.decision["ruling"]["by"]) == ("rag", False, "prospect")


NOT_NUMBERS: dict[str, dict[str, Any]] = {
    "missing": {},
    "one": {"prospect": 80},
    "out of range": {"prospect": 80, "confidence": 142},
    "words": {"prospect": "high", "confidence": "low"},
    "true": {"prospect": True, "confidence": True},
}


@everywhere
@pytest.mark.parametrize("numbers", NOT_NUMBERS)
async def test_report_without_two_numbers(numbers: str, where: str) -> None:
    found = await reported(where, draft=filled(LIN, **NOT_NUMBERS[numbers]))
    assert (found.route, found.answer) == ("rag", LIN)
    assert found.decision == {"declined": False, "signal": "answered", "evidence": "", "ruling": None}


@everywhere
async def test_report_of_sections(where: str) -> None:
    draft = unsure = filled(LIN, prospect=80, confidence=42)
    sure = filled("By vote.", prospect=90, confidence=70)
    found = await reported(where, draft=draft, looks=(unsure, sure), sections=(RUNG, LARGER))
    assert (found.route, found.answer) == ("sections", "By vote.")
    assert all(VOTE in call.prompt for call in found.calls[1:])
    assert [fields_of(call) for call in found.calls] == [PLAIN | NUMBERS] * 3
    found = await reported(where, draft=DECLINED, looks=(unsure,), final=filled(FOUND), sections=RUNG)
    assert (found.route, found.answer) == ("long_context", FOUND)
    assert [fields_of(call) for call in found.calls] == [PLAIN | NUMBERS, PLAIN | NUMBERS, PLAIN]


async def test_report_as_a_policy_sees_it() -> None:
    for where in EVERYWHERE:
        drafts: list[str] = []
        await reported(where, draft=DECLINED, escalation=lambda case, drafts=drafts: bool(drafts.append(case.draft)))
        assert drafts == ["60 0\nunanswerable"]


def test_report_schema() -> None:
    for form in (Form(), Form(graded=True)):
        report = report_of(form)
        schema = report.model_json_schema()
        assert all(field.keys() <= {"description", "items", "title", "type"} for field in schema["properties"].values())
        assert [*schema["properties"]] == [*form.fields] == schema["required"]
        tool = get_function_tool(report)
        assert [*tool.metadata.get_parameters_dict()["properties"]] == [*form.fields]
    assert [*form.fields] == ["prospect", "confidence", "answerable", "answer"]
    assert (Form().name, Form(graded=True).name) == ("Report", "GradedReport")


def test_report_schema_counts_in_the_prompt() -> None:
    manager = CallbackManagerForChainRun.get_noop_manager()
    for options, forms in ((BOUNDED, (Form(graded=True), Form())), ({}, (None, None))):
        chain = langchain_parts.a_chain(llm=Reporting(draft=DECLINED, final=DECLINED), **options)
        engine = llamaindex_parts.an_engine(llm=Calling(draft=DECLINED, final=DECLINED), **options)
        for call in (chain._call("Who?", manager, None), engine._call("Who?")):
            schemas = [call.sending.prompt(step, ()).schema for step in ("rag", "long_context")]
            assert schemas == [length_of(form) if form else 0 for form in forms]


REPORTS: dict[str, tuple[dict[str, Any], str, Any]] = {  # the report, its text, its signal and whether it stops
    "sure": ({"prospect": 80, "confidence": 62, "answerable": True, "answer": "1912"}, "80 62\n1912", ("answered", 0)),
    "in doubt": ({"prospect": 5, "confidence": 42, "answerable": True, "answer": LIN}, f"5 42\n{LIN}", ("doubt", 0)),
    "a decline": (
        {"prospect": 60, "confidence": 0, "answerable": False, "answer": ""},
        "60 0\nunanswerable",
        ("sentinel", 0),
    ),
    "hopeless": (
        {"prospect": 49, "confidence": 0, "answerable": False, "answer": ""},
        "49 0\nunanswerable",
        ("sentinel", 1),
    ),
    "no number": ({"confidence": "low", "answerable": True, "answer": LIN}, LIN, ("answered", 0)),
    "a prospect alone": ({"prospect": 80, "answerable": True, "answer": LIN}, LIN, ("answered", 0)),
}


@pytest.mark.parametrize("name", REPORTS)
def test_report_of_a_rung(name: str) -> None:
    report, text, judged = REPORTS[name]
    form = Form(graded=True)
    assert text_of([report], "", tally=MessageTally(whole=True), refusal="unanswerable", form=form) == text
    gate = GradedGate(doubt_below=50, stop_below=50, numbers=1)
    for piece in text:
        gate.feed(piece)
    gate.end()
    assert gate.verdict is not None
    assert (gate.verdict.signal, gate.verdict.ruling is not None) == judged
