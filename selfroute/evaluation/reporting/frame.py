"""Makes a data frame of the results."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Record, Result

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_COLUMNS = (
    "dataset",
    "id",
    "strategy",
    "k",
    "based_only_on",
    "question",
    "answers",
    "answer",
    "route",
    "answerable",
    "signal",
    "prospect",
    "confidence",
    "score",
    "exact",
    "set_f1",
    "judged",
    "judged_by",
    "input_tokens",
    "output_tokens",
    "cost",
    "cut",
    "seconds",
    "draft",
)


def frame(record: Record) -> pd.DataFrame:
    """Return a row for each question and strategy; costs are decimals in US dollars, None if unknown."""
    import pandas as pd  # noqa: PLC0415

    questions = {question.key: question for question in record.questions}
    return pd.DataFrame([_row(result, questions[result.key]) for result in record.results], columns=_COLUMNS)


def _row(result: Result, question: Question) -> tuple[Any, ...]:
    cost = result.usage.get("cost")
    known = {
        "question": question.question,
        "answers": question.answers,
        **{name: result.decision.get(name) for name in ("signal", "prospect", "confidence")},
        "cost": None if cost is None else Decimal(cost),
    }
    return tuple(known[name] if name in known else getattr(result, name) for name in _COLUMNS)
