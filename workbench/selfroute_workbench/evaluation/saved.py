"""Writes an evaluation to `results.json`, and reads it back.

It holds everything but the texts of the documents, of which it has excerpts, as one object:

* `selfroute`: the version that wrote it. `settings`, `stopped`: as `Evaluation` has them.
* `verdict`: what to do, with the figures behind it, from 0 to 1.
* `tables`: each with `name`, `title`, `columns`, `rows` and `notes`; floats are not rounded.
* `questions`, `looks`, `failures`, `other_grades`, `excerpts`: lists of objects with the fields of `Question`, `Look`,
  `Failure`, `OtherGrade` and `Excerpt`. The `document` of a question is its `document_id`. Money is a decimal string in
  US dollars.
* `passages`: the text of every passage, once. The `passages` of a look have the `score` and, for the `text`, the index
  into these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from selfroute import __version__
from selfroute.errors import InputError
from selfroute_workbench.evaluation.looks import STRATEGIES, Excerpt, Failure, Look, OtherGrade, Passage
from selfroute_workbench.evaluation.metrics import METRICS
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Table
from selfroute_workbench.evaluation.verdict import verdict
from selfroute_workbench.kept import make, parse
from selfroute_workbench.private import write
from selfroute_workbench.values import WRONG, amount, optional, text

FILE = "results.json"
_AGAIN = "evaluate again into that folder, which asks nothing anew"


def save_results(evaluation: Record, folder: Path, tables: Sequence[Table]) -> None:
    """Write `results.json` into a folder."""
    # Models do send lone surrogates, which UTF-8 cannot hold; escaped they are JSON.
    written = json.dumps(_as_json(evaluation, tables), ensure_ascii=False, allow_nan=False, indent=1)
    write(folder / FILE, written, errors="backslashreplace")


def load(folder: str | Path) -> Record:
    """Read the evaluation that was saved; the documents of its questions are ids.

    Raises:
        InputError: The folder holds none, or that of another version.
    """
    path = Path(folder) / FILE
    if not path.exists():
        started = any(Path(folder).glob("*.jsonl"))
        what = "an evaluation that did not finish: run it again to go on" if started else (
            "no evaluation: name a folder that `selfroute evaluate --out` or `Evaluation.save` wrote"
        )  # fmt: skip
        msg = f"{folder} has no {FILE}, so it holds {what}"
        raise InputError(msg)
    try:
        saved = parse(path.read_bytes(), str(path), todo=_AGAIN)
        return Record(
            [_question(each, str(path)) for each in saved["questions"]],
            [_look(each, saved["passages"], str(path)) for each in saved["looks"]],
            [make(Failure, each, str(path), todo=_AGAIN) for each in saved["failures"]],
            _settings(saved["settings"]),
            optional(text)(saved["stopped"]),
            tuple(make(OtherGrade, each, str(path), todo=_AGAIN) for each in saved["other_grades"]),
            tuple(make(Excerpt, each, str(path), todo=_AGAIN) for each in saved["excerpts"]),
        )
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    except WRONG as error:
        msg = f"{path} is damaged, or from another version ({type(error).__name__}): {_AGAIN}"
        raise InputError(msg) from error


def _settings(row: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(row)
    if not set(settings.get("strategies", ())) <= set(STRATEGIES):
        raise ValueError
    return settings


def _question(row: Mapping[str, Any], where: str) -> Question:
    question = make(
        Question, {**row, "answers": tuple(row["answers"]), "choices": tuple(row["choices"])}, where, todo=_AGAIN
    )
    if question.metric not in METRICS:
        raise ValueError
    return question


def _look(row: dict[str, Any], texts: Sequence[str], where: str) -> Look:
    look = make(Look, {**row, "passages": []}, where, todo=_AGAIN)
    amount(look.cost or "0")
    return replace(look, passages=tuple(Passage(texts[one["text"]], one["score"]) for one in row["passages"]))


def _as_json(evaluation: Record, tables: Sequence[Table]) -> Any:
    texts: dict[str, int] = {}

    def numbered(passage: Passage) -> dict[str, Any]:
        return {"text": texts.setdefault(passage.text, len(texts)), "score": passage.score}

    looks = [{**fields_of(look), "passages": list(map(numbered, look.passages))} for look in evaluation.looks]
    return plain(
        {
            "selfroute": __version__,
            "settings": evaluation.settings,
            "stopped": evaluation.stopped,
            "verdict": verdict(evaluation).data(),
            "tables": tables,
            "questions": [replace(one, document=one.document and one.document_id) for one in evaluation.questions],
            "looks": looks,
            "failures": evaluation.failures,
            "other_grades": evaluation.other_grades,
            "excerpts": evaluation.excerpts,
            "passages": list(texts),
        }
    )


def fields_of(data: Any) -> dict[str, Any]:
    """Return the fields of an object as they are, without copying what is in them."""
    return {field.name: getattr(data, field.name) for field in fields(data)}


def plain(value: Any) -> Any:
    """Return a value as plain JSON: floats that are not finite as None, data classes as objects, others as text."""
    if is_dataclass(value):
        return plain(fields_of(value))
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int) else str(value)
