"""Questions made up for choosing rules: which step answers them, and what each is worth, is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from look_parts import a_question
from look_parts import graded as a_look
from selfroute.calls.plan import DOUBT_BELOW, STOP_BELOW
from selfroute.paper import PAPER
from selfroute_workbench.evaluation.looks import TRIED, Look, Strategy
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.trials import Case

WHOLE, DRAFT, WIDE, MORE = 1000.0, 90.0, 270.0, 290.0
OPTIONS: dict[Any, Any] = {
    "yours": {},
    "rag": {"answerability": "text", "sections": None, "max_documents": 0},
    "rag_20": {"answerability": "text", "sections": None, "max_documents": 0, "draft_passages": 20, "reach": 20},
    "paper": dict(PAPER),
    "long_context": {**PAPER, "start": "long_context"},
    "tried": {},
}
"""The options that an evaluation of the default setting says of each strategy."""


def made_up(  # noqa: PLR0913 - a world has many sides
    questions: int,
    documents: int,
    *,
    unanswerable: float = 0.2,
    incomplete: float = 0.2,
    missed: float = 0.2,
    invents: float = 0.0,
    far: float = 1.0,
    graded: bool = True,
    seed: int = 0,
) -> list[Case]:
    """Return questions in a world where the long context answers all that can be answered.

    Args:
        questions: How many.
        documents: On how many documents.
        unanswerable: The share that the documents do not answer: every draft declines, and its prospect is 5.
        incomplete: The share whose draft is worth 0.5, with a confidence of 30; that of good drafts is 95.
        missed: The share whose draft declines although the document answers, with a prospect of 80.
        invents: How often the long context answers what cannot be answered.
        far: How often 20 passages do no better than the draft; else they answer all that can be answered.
        graded: Whether yours asks for numbers and reads sections; else it follows the paper's rule.
        seed: Decides which questions are which.
    """
    chance = random.Random(seed)  # noqa: S311
    cases = []
    for number in range(questions):
        kind, invented, is_far = chance.random(), chance.random() < invents, chance.random() < far
        bare = kind < unanswerable
        declined = kind < unanswerable + missed
        half = not declined and kind < unanswerable + missed + incomplete
        quality = float(bare) if declined else 0.5 if half else 1.0
        prospect, confidence = (5 if bare else 80), None if declined else 30 if half else 95
        draft = a_look(quality, DRAFT, declined)
        wide = a_look(quality if is_far else 1.0, WIDE, declined if is_far else bare)
        whole = a_look(float(not (bare and invented)), WHOLE, bare and not invented, step="long_context")
        looks: dict[Strategy, Sequence[Look]] = {
            "rag": [draft],
            "rag_20": [wide],
            "paper": [draft, whole] if declined else [draft],
            "long_context": [whole],
        }
        if graded:
            numbered = a_look(quality, DRAFT + 5, declined, prospect, confidence)
            rung = a_look(1.0, MORE, bare, confidence=None if bare else 95, step="sections")
            # Bounds that trust no draft read sections, and where these decline the documents, too.
            looks[TRIED] = [numbered, *([rung] if declined or half else []), *([whole] if bare else [])]
            looks["yours"] = Rule(TRIED, DOUBT_BELOW, STOP_BELOW).follow(looks, 1) or ()
        else:
            looks["yours"] = looks["paper"]
        cases.append(Case(f"d{number % documents}", looks, not bare))
    return cases


def without(case: Case, *strategies: str) -> Case:
    """Return a case without some strategies."""
    return replace(case, looks={name: looks for name, looks in case.looks.items() if name not in strategies})


def confident(case: Case, confidence: int | None) -> Case:
    """Return a case whose numbered draft has another confidence; one that declines has none."""
    draft, *others = case.looks[TRIED]
    changed = replace(draft, confidence=None if draft.confidence is None else confidence)
    rest = others or [a_look(1.0, MORE, confidence=95, step="sections")]
    tried = {TRIED: [changed, *rest]}
    return replace(case, looks={**case.looks, **tried, "yours": Rule().follow(tried, 1) or ()})  # type: ignore[arg-type]


def evaluated(cases: Sequence[Case], *, judged: bool = True, **settings: Any) -> Evaluation:
    """Return an evaluation that found these cases.

    Args:
        cases: The cases.
        judged: Whether a judge graded the answers; if not, the scores are as good.
        settings: Further settings.
    """
    questions, looks = [], []
    for number, case in enumerate(cases):
        answers = ("the reference",) if case.answerable else ()
        questions.append(a_question(str(number), answers=answers, document=f"The text of {case.document}."))
        for strategy, found in case.looks.items():
            for look in found:
                answer = "unanswerable" if look.declined else f"an answer of {look.step}"
                changed = replace(look, strategy=strategy, id=str(number), answer=answer)
                looks.append(changed if judged else replace(changed, judged=None, judged_by=None))
    strategies = [name for name in OPTIONS if name != TRIED]
    return Evaluation(questions, looks, (), {"strategies": strategies, "options": OPTIONS, **settings})
