"""Questions made up for choosing rules: which step answers them, and what each is worth, is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from look_parts import a_question
from look_parts import graded as a_graded_look
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.trials import Row

WHOLE, DRAFT, MORE = 1000.0, 90.0, 290.0


def made_up(  # noqa: PLR0913 - a world has many sides
    questions: int,
    documents: int,
    *,
    unanswerable: float = 0.2,
    incomplete: float = 0.2,
    missed: float = 0.2,
    invents: float = 0.0,
    graded: bool = True,
    seed: int = 0,
) -> list[Row]:
    """Return questions in a world where the long context answers all that can be answered.

    Args:
        questions: How many.
        documents: On how many documents.
        unanswerable: The share that the documents do not answer: every draft declines, and its prospect is 5.
        incomplete: The share whose draft is worth 0.5, with a confidence of 30; that of good drafts is 95.
        missed: The share whose draft declines although the document answers, with a prospect of 80.
        invents: How often the long context answers what cannot be answered.
        graded: Whether there are graded drafts and sections.
        seed: Decides which questions are which.
    """
    chance = random.Random(seed)  # noqa: S311
    rows = []
    for number in range(questions):
        kind, invented = chance.random(), chance.random() < invents
        without = kind < unanswerable
        declined = kind < unanswerable + missed
        half = not declined and kind < unanswerable + missed + incomplete
        quality = float(without) if declined else 0.5 if half else 1.0
        prospect, confidence = (5 if without else 80), None if declined else 30 if half else 95
        looks: dict[Any, Any] = {
            "rag": [a_graded_look(quality, DRAFT, declined)],
            "long_context": [a_graded_look(float(not (without and invented)), WHOLE, without and not invented)],
        }
        if graded:
            looks["graded"] = [a_graded_look(quality, DRAFT, declined, prospect, confidence)]
            looks |= {"sections": [a_graded_look(1.0, MORE, without)]} if declined else {}
            looks |= {"graded_sections": [a_graded_look(1.0, MORE, without)]} if declined or half else {}
        rows.append(Row(f"d{number % documents}", looks, not without))
    return rows


def without(row: Row, *steps: str) -> Row:
    """Return a row without the looks of some steps."""
    return replace(row, looks={step: looks for step, looks in row.looks.items() if step not in steps})


def confident(row: Row, confidence: int | None) -> Row:
    """Return a row whose graded draft has another confidence; one that declines has none."""
    (draft,) = row.looks["graded"]
    changed = replace(draft, confidence=None if draft.confidence is None else confidence)
    return replace(row, looks={**row.looks, "graded": [changed]})


def evaluated(rows: Sequence[Row], *, judged: bool = True, **settings: Any) -> Evaluation:
    """Return an evaluation that found these rows.

    Args:
        rows: The rows.
        judged: Whether a judge graded the answers; if not, the scores are as good.
        settings: Further settings.
    """
    questions, looks = [], []
    for number, row in enumerate(rows):
        answers = ("the reference",) if row.answerable else ()
        questions.append(a_question(str(number), answers=answers, document=f"The text of {row.document}."))
        for step, found in row.looks.items():
            for rung, look in enumerate(found):
                answer = "unanswerable" if look.declined else f"an answer of {step}"
                changed = replace(look, step=step, id=str(number), rung=rung, answer=answer)
                looks.append(changed if judged else replace(changed, judged=None, judged_by=None))
    ran = {"strategies": ["rag", "self_route", "sections", "graded", "graded_sections", "long_context"]}
    return Evaluation(questions, looks, (), {**ran, "sections": 4_000, **settings})
