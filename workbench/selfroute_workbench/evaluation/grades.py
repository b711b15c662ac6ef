"""Other people's grades, to compare a judge with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute_workbench.evaluation.judging import GRADES
from selfroute_workbench.evaluation.looks import OtherGrade
from selfroute_workbench.kept import rows

_OTHER_KEYS = ("id", "dataset", "model")


def load_grades(path: str | Path, *, model: str | None = None) -> list[OtherGrade]:
    """Read grades from a JSONL file: an object for each question, with a grade for each strategy.

    `{"id": "7", "rag": 0.5, "long_context": 1, "self_route": 1}`: the `id` of the question, perhaps its `dataset`, and
    grades of 1, 0.5 or 0 under the names of strategies; null is the same as no grade. Rows with a `model` hold for
    that model's answers.

    Args:
        path: The file.
        model: The model whose rows count, with or without its provider in front; None if the file has one model only.

    Raises:
        InputError: The file cannot be read, has no grade, grades an answer twice, or a line is not as described.
    """
    found: dict[tuple[str | None, str, str], OtherGrade] = {}
    others: set[str] = set()
    try:
        with Path(path).open("rb") as lines:
            for where, row in rows(lines, str(path)):
                if model is not None and row.get("model") not in (None, model, model.partition(":")[2]):
                    others.add(str(row["model"]))
                    continue
                for grade in _grades_in(where, row):
                    key = grade.dataset, grade.id, grade.strategy
                    if key in found:
                        msg = f"{where}: {grade.strategy} of question {grade.id!r} was graded before; grade it once"
                        raise InputError(msg + _hint(row))
                    found[key] = grade
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    if not found:
        msg = f"{path} holds no grade" + (f" for {model}, only for {', '.join(sorted(others))}" if others else "")
        raise InputError(msg)
    return list(found.values())


def _hint(row: Any) -> str:
    return ", or say which model's grades count (model= in with_grades)" if row.get("model") else ""


def _grades_in(where: str, row: Any) -> list[OtherGrade]:
    name, dataset = row.get("id"), row.get("dataset")
    if isinstance(name, bool) or not isinstance(name, str | int) or not isinstance(dataset, str | None):
        msg = f"{where}: write the question's id, and perhaps its dataset, as strings"
        raise InputError(msg)
    grades = {key: value for key, value in row.items() if key not in _OTHER_KEYS and value is not None}
    for key, value in grades.items():
        if isinstance(value, bool) or value not in GRADES:
            msg = f"{where}: {key} must be a grade, 1, 0.5 or 0; it is {value!r}"
            raise InputError(msg)
    return [OtherGrade(str(name), key, float(value), dataset) for key, value in grades.items()]
