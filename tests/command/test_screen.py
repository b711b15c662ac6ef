"""What the command says of an answer and of many, whatever way they took."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from selfroute.answerability import Verdict
from selfroute.answerability.ending import ANSWERED, EMPTY, NO_PASSAGES, STARTED
from selfroute.usage import Entry, Ledger, StepUsage, Usage
from selfroute_workbench.command.answers import show_reasons
from selfroute_workbench.command.citing import FileRead, FileSection
from selfroute_workbench.command.demo_answers import DemoAnswer, totals
from selfroute_workbench.command.demo_screen import show_demo_answer, show_totals
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.sessions import Output
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.demo.corpus import DemoQuestion

DECLINED = Verdict(declined=True, signal="sentinel", evidence="unanswerable")
DOUBT = Verdict(declined=False, signal="doubt", evidence="80 42", prospect=80, confidence=42)
NO = {"go": False, "by": "budget", "reason": "nothing is left of $5"}
DRAFT = Usage(StepUsage(100, 5), long_context_only=1000)
LOOKED = replace(DRAFT, sections=StepUsage(300, 5))
READ = replace(DRAFT, long_context=StepUsage(1000, 5))
ALL = replace(LOOKED, long_context=StepUsage(1000, 5))
SECTIONS = [
    FileRead("a", trimmed=False, sections=[FileSection("a", None, 0, 1_200), FileSection("a", None, 5_000, 6_100)]),
    FileRead("b", trimmed=False, sections=[FileSection("b", 7, 90_000, 91_000)]),
]
QUESTION = DemoQuestion("a", "b", "local", "?", ("!",))
MODELS = Models(None, None, "gpt-4o-mini")

WENT_NO_FURTHER = replace(DECLINED, ruling=NO)
# The verdict on the draft, what was used, whether it was answered, and why.
REASONS: dict[str, tuple[Verdict, Usage, bool, str]] = {
    "answered": (ANSWERED, DRAFT, True, "the retrieved passages answered it, so no whole document was read"),
    "declined": (
        DECLINED, READ, True, "declined to answer from the passages (“unanswerable”), so it read the whole of a"
    ),
    "twice": (DECLINED, READ, False, "so it read the whole of a, which did not answer it either"),
    "empty": (EMPTY, READ, True, "the reply to the passages was empty, so it read the whole of a"),
    "no passages": (NO_PASSAGES, Usage(), False, "no passage was found, and there was no document to read"),
    "sections": (DECLINED, LOOKED, True, "so it read 2 sections of a, 1 section of b"),
    "sections and documents": (DECLINED, ALL, True, "so it read sections, then the whole of a"),
    "in doubt": (DOUBT, READ, True, "in doubt of its answer from the passages (prospect 80, confidence 42), so it"),
    "start": (STARTED, replace(READ, rag=None), True, "goes to the documents at once, so it read the whole of a"),
    "stopped": (WENT_NO_FURTHER, DRAFT, False, "(“unanswerable”); it went no further: nothing is left of $5"),
    "stopped after sections": (WENT_NO_FURTHER, LOOKED, False, "2 sections of a, 1 section of b; it went no further:"),
    "stopped without a word": (replace(DOUBT, ruling={**NO, "reason": ""}), DRAFT, True, "it went no further: budget"),
    "allowed": (replace(DECLINED, ruling={**NO, "go": True}), READ, True, "so it read the whole of a"),
}  # fmt: skip


def route_of(usage: Usage) -> Any:
    return list(usage.steps)[-1] if usage.steps else "rag"


@pytest.mark.parametrize(("verdict", "usage", "answerable", "told"), REASONS.values(), ids=REASONS)
def test_show_reasons(verdict: Verdict, usage: Usage, told: str, *, answerable: bool) -> None:
    read = [FileRead("a", trimmed=False)] if usage.long_context else SECTIONS if usage.sections else []
    output = Output("?", "!", route_of(usage), answerable, verdict.as_dict(), usage.as_dict(), [], read)
    stream = StringIO()
    show_reasons(open_console(stream), output, models=MODELS)
    why, _, tokens = " ".join(stream.getvalue().split()).partition(" Tokens ")
    why, *places = why.split(" Sections ")
    assert told in why
    assert why.endswith(told) or told not in {REASONS["sections"][-1], REASONS["answered"][-1]}
    assert places == (["a, characters 0 to 1,200, 5,000 to 6,100", "b, page 7"] if read is SECTIONS else [])
    for step in ("rag", "sections", "long context"):
        assert (f"{step} " in tokens.partition(" Read ")[0]) is (step.replace(" ", "_") in usage.steps)


WAYS: dict[str, dict[str, Any]] = {
    "rag": {"usage": DRAFT},
    "sections": {"usage": LOOKED, "declined": True},
    "long_context": {"usage": READ, "declined": True},
    "stopped": {"usage": DRAFT, "declined": True, "stopped": True, "answerable": False},
}


@pytest.mark.parametrize("ways", [["rag", "long_context"], list(WAYS)], ids=["plain", "all"])
def test_show_totals(ways: list[str]) -> None:
    ledger, answers, stream = Ledger(), list[DemoAnswer](), StringIO()
    for way in ways:
        route = route_of(WAYS[way]["usage"])
        entry = Entry(**{"outcome": "answered", "seconds": 2.0, "route": route, "answerable": True, **WAYS[way]})
        ledger.add(entry)
        answers.append(DemoAnswer(QUESTION, route, bool(entry.answerable), "!", True, None, entry.usage.as_dict()))
    more = int("sections" in ways)
    counted = totals(answers, ledger.to_dict())
    assert counted == {
        "questions": len(ways),
        "answered_by_rag": 1,
        "answered_by_sections": more,
        "escalated": 1,
        "stopped": more,
        "unanswerable": 0,
        "matches": len(ways),
        "tokens": ledger.to_dict()["tokens"]["total_tokens"],
    }
    console = open_console(stream)
    for answer in answers:
        show_demo_answer(console, answer)
    show_totals(console, counted, ledger, models=MODELS, seconds={})
    shown = [line.partition("  ")[0] for line in stream.getvalue().splitlines()]
    assert [line for line in shown if line in {"by sections", "stopped"}] == ["by sections", "stopped"] * more


@pytest.mark.parametrize(
    ("total", "shown"),
    [
        (270, ["Asking ...", *(f"Asking, {done} of 270 ..." for done in (68, 136, 204))]),
        (30, ["Asking ..."]),
        (None, ["Asking ..."]),
    ],
)
def test_stage_in_a_file(total: int | None, shown: list[str]) -> None:
    stream = StringIO()
    with stage(Console(file=stream, width=80), "Asking", total) as advance:
        for _ in range(total or 0):
            advance(1)
    assert stream.getvalue().splitlines() == shown
