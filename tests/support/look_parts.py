"""Small questions and looks, for the tests of `selfroute_workbench.evaluation`."""

from __future__ import annotations

from typing import Any

from selfroute.effects import Route
from selfroute_workbench.evaluation.looks import Look
from selfroute_workbench.evaluation.questions import Question


def a_question(id: str = "1", dataset: str = "minutes", **fields: Any) -> Question:  # noqa: A002
    """A question on a document of its own."""
    given = {"answers": (f"answer {id}",), "document": f"The document of {dataset} {id}.", **fields}
    return Question(dataset, id, f"What is {id}?", **given)


def a_look(step: Route = "rag", answer: str = "answer 1", **fields: Any) -> Look:
    """A look at the first question, an answer unless its fields say that it declines."""
    usual: dict[str, Any] = {
        "dataset": "minutes",
        "id": "1",
        "strategy": "rag",
        "declined": False,
        "input_tokens": 100 if step == "long_context" else 10,
        "output_tokens": 1,
        "score": 1.0,
    }
    return Look(step=step, answer=answer, **{**usual, **fields})


def graded(  # noqa: PLR0913, PLR0917 - what a look is worth
    quality: float,
    tokens: float,
    declined: bool = False,
    prospect: int | None = None,
    confidence: int | None = None,
    dollars: float | None = None,
    step: Route = "rag",
) -> Look:
    """A look of so many tokens, as good by the judge as by the metric."""
    return a_look(
        step,
        "unanswerable" if declined else f"an answer of {step}",
        declined=declined,
        input_tokens=int(tokens) - 2,
        output_tokens=2,
        prospect=prospect,
        confidence=confidence,
        cost=None if dollars is None else str(dollars),
        score=quality,
        judged=quality,
        judged_by="model",
    )
