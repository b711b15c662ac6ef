"""Questions made up for choosing rules: which step answers them, and what each is worth, is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

from evaluation_parts import a_question, a_result
from selfroute.evaluation.calibrating.rows import Look, Row
from selfroute.evaluation.records import Look as KeptLook
from selfroute.evaluation.records import LookStep, Result
from selfroute.evaluation.results import Evaluation

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
        prospect, confidence = (5.0 if without else 80.0), None if declined else 30.0 if half else 95.0
        whole = Look(float(not (without and invented)), WHOLE, without and not invented)
        sections = Look(1.0, MORE, without)
        rows.append(
            Row(
                document=f"d{number % documents}",
                rag=Look(quality, DRAFT, declined),
                long_context=whole,
                sections=sections if graded and declined else None,
                graded=Look(quality, DRAFT, declined, prospect, confidence) if graded else None,
                graded_sections=sections if graded and (declined or half) else None,
                answerable=not without,
            )
        )
    return rows


def evaluated(rows: Sequence[Row], *, judged: bool = True, **settings: Any) -> Evaluation:
    """Return an evaluation that found these rows, with the plain drafts and long contexts as its results.

    Args:
        rows: The rows.
        judged: Whether a judge graded the answers; if not, the scores are as good.
        settings: Further settings.
    """
    questions, results, looks = [], [], []
    for number, row in enumerate(rows):
        answers = ("the reference",) if row.answerable else ()
        questions.append(a_question(str(number), "own", answers=answers, document=f"The text of {row.document}."))
        steps: tuple[LookStep, ...] = ("rag", "sections", "graded", "graded_sections", "long_context")
        found = {step: look for step in steps if (look := getattr(row, step))}
        looks += [_look(step, str(number), look, judged=judged) for step, look in found.items()]
        results += [_result(strategy, str(number), found[strategy], judged=judged) for strategy in _PLAIN]
    return Evaluation(questions, results, settings={"k": [5], **settings}, looks=looks)


_PLAIN: tuple[Literal["rag"], Literal["long_context"]] = ("rag", "long_context")


def _result(strategy: Literal["rag", "long_context"], number: str, look: Look, *, judged: bool) -> Result:
    return a_result(
        strategy,
        look.quality,
        dataset="own",
        id=number,
        answerable=not look.declined,
        judged=look.quality if judged else None,
        judged_by="model" if judged else None,
    )


def _look(step: LookStep, number: str, look: Look, *, judged: bool) -> KeptLook:
    prospect, confidence = (None if each is None else int(each) for each in (look.prospect, look.confidence))
    return KeptLook(
        dataset="own",
        id=number,
        step=step,
        k=None if step == "long_context" else 5,
        answer="unanswerable" if look.declined else "an answer",
        declined=look.declined,
        prospect=prospect,
        confidence=confidence,
        input_tokens=int(look.tokens),
        output_tokens=2,
        cost=None if look.dollars is None else str(look.dollars),
        score=look.quality,
        judged=look.quality if judged else None,
        judged_by="model" if judged else None,
    )
