"""Writes an evaluation to files, and reads it back.

`results.json` holds everything but the texts of the documents, of which it has excerpts, and the passages of one k
only, as one object:

* `selfroute`: the version that wrote it. `settings`, `stopped`: as `Evaluation` has them.
* `recommendation`: which strategy to take, in `words` and in `code`, with the figures behind it, from 0 to 1.
* `summary`: the results in a few sentences.
* `tables`: each with `name`, `title`, `columns`, `rows` and `notes`; floats are not rounded.
* `questions`, `results`, `failures`, `reasons`, `other_grades`, `looks`, `excerpts`: lists of objects with the fields
  of `Question`, `Result`, `Failure`, `Reason`, `OtherGrade`, `Look` and `Excerpt`. The `document` of a question is its
  `document_id`. Money is a decimal string in US dollars.
* `passages`: the text of every passage, once. The `passages` of a result have the `score` and, for the `text`, the
  index into these. Results of other k than the first that was asked for have none, here and in the report: with them,
  files would grow to gigabytes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any

from selfroute import __version__
from selfroute.errors import InputError
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import (
    ALL_STRATEGIES,
    Excerpt,
    Failure,
    Look,
    OtherGrade,
    Passage,
    Reason,
    Record,
    Result,
)
from selfroute.evaluation.reporting.advice import Advice, advise
from selfroute.evaluation.reporting.browser import browsed
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.plots import plots
from selfroute.evaluation.reporting.report import html
from selfroute.evaluation.reporting.summary import summary
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.table import Table, printable
from selfroute.kept import parse
from selfroute.private import make_folder, open_file, write

_FORMULA = tuple("=+-@＝＋－＠\t\r")  # noqa: RUF001 - spreadsheets read the wide forms like the narrow ones

_STRATEGIES = {*ALL_STRATEGIES, "closed_book", "reason", "judge"}


def save(record: Record, folder: str | Path) -> None:
    """Write `results.json`, `report.html`, `questions.csv`, `looks.csv`, `tables/*.csv` and `plots/*.png`.

    Earlier ones are replaced.

    Args:
        record: The record.
        folder: The folder; it is made if it does not exist.
    """
    folder = Path(folder)
    advice = advise(record)
    shown, drawn, questions = tables(record, advice), plots(record, advice), browsed(record)
    excerpts = tuple(excerpt for one in questions for excerpt in one.evidence.excerpts)
    for part in (folder / "tables", folder / "plots"):
        make_folder(part)
    # Models do send lone surrogates, which UTF-8 cannot hold; escaped they are JSON.
    written = json.dumps(
        _as_json(replace(record, excerpts=excerpts), shown, advice), ensure_ascii=False, allow_nan=False, indent=1
    )
    write(folder / "results.json", written, errors="backslashreplace")
    page = html(record, advice=advice, tables_=shown, plots_=drawn, questions=questions)
    write(folder / "report.html", page, errors="replace")
    for name, image in drawn.items():
        write(folder / "plots" / f"{name}.png", image)
    for table in shown:
        _write_csv(folder / "tables" / f"{table.name}.csv", [table.columns, *table.rows])
    for name, rows in (("questions", list(_question_rows(record))), ("looks", list(map(_fields, record.looks)))):
        _write_csv(folder / f"{name}.csv", [tuple(rows[0]), *(tuple(row.values()) for row in rows)] if rows else [])


def load(folder: str | Path) -> Record:
    """Read the record that `save` wrote; the documents of its questions are ids."""
    path = Path(folder) / "results.json"
    saved = parse(path.read_bytes(), str(path), todo="evaluate again into that folder, which asks nothing anew")
    if unknown := sorted({each["strategy"] for each in (*saved["results"], *saved["failures"])} - _STRATEGIES):
        msg = f"{path} is from another version, which had the strategies {', '.join(unknown)}: evaluate again"
        raise InputError(msg)
    texts = saved["passages"]
    return Record(
        questions=[
            Question(**{**each, "answers": tuple(each["answers"]), "choices": tuple(each["choices"])})
            for each in saved["questions"]
        ],
        results=[
            Result(**{**each, "passages": [Passage(texts[one["text"]], one["score"]) for one in each["passages"]]})
            for each in saved["results"]
        ],
        failures=[Failure(**each) for each in saved["failures"]],
        reasons=[Reason(**each) for each in saved["reasons"]],
        settings=saved["settings"],
        stopped=saved["stopped"],
        other_grades=tuple(OtherGrade(**each) for each in saved["other_grades"]),
        looks=tuple(Look(**each) for each in saved["looks"]),
        excerpts=tuple(Excerpt(**each) for each in saved.get("excerpts", ())),
    )


def _as_json(record: Record, shown: Sequence[Table], advice: Advice) -> dict[str, Any]:
    texts: dict[str, int] = {}
    k, *_ = ComparedResults.of(record).ks
    results = [
        {
            **_fields(result),
            "passages": [
                {"text": texts.setdefault(passage.text, len(texts)), "score": passage.score}
                for passage in (result.passages if result.k == k else ())
            ],
        }
        for result in record.results
    ]
    document: dict[str, Any] = _plain(
        {
            "selfroute": __version__,
            "settings": record.settings,
            "stopped": record.stopped,
            "recommendation": advice.data(),
            "summary": summary(record),
            "tables": [asdict(table) for table in shown],
            "questions": [
                {**_fields(question), "document": question.document and question.document_id}
                for question in record.questions
            ],
            "results": results,
            "failures": [asdict(failure) for failure in record.failures],
            "reasons": [asdict(reason) for reason in record.reasons],
            "other_grades": [asdict(grade) for grade in record.other_grades],
            "looks": [_fields(look) for look in record.looks],
            "excerpts": [_fields(excerpt) for excerpt in record.excerpts],
            "passages": list(texts),
        }
    )
    return document


def _fields(data: Question | Result | Failure | Look | Excerpt) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in fields(data)}


def _plain(value: Any) -> Any:
    """Return a value as plain JSON: floats that are not finite as None, objects as text."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def _question_rows(record: Record) -> Iterator[dict[str, Any]]:
    """Yield a row for each result and failure, all with the same columns."""
    questions = {question.key: question for question in record.questions}
    results: list[Result | Failure] = [*record.results, *record.failures]
    for result in results:
        question = questions.get((result.dataset, result.id))
        given = _fields(result)
        decision, usage = given.get("decision", {}), given.get("usage", {})
        yield {
            "dataset": result.dataset,
            "id": result.id,
            "strategy": result.strategy,
            "k": result.k,
            "based_only_on": result.based_only_on,
            "question": question and question.question,
            "answers": question and " | ".join(question.answers),
            **{name: given.get(name) for name in ("answer", "draft", "route", "answerable")},
            **{name: decision.get(name) for name in ("signal", "evidence", "prospect", "confidence")},
            **{name: given.get(name) for name in ("score", "exact", "set_f1", "judged", "judged_by")},
            "input_tokens": None if isinstance(result, Failure) else result.input_tokens,
            **{name: usage.get(name) for name in ("total_tokens", "long_context_only", "cost", "estimated")},
            **{name: given.get(name) for name in ("cut", "seconds", "error")},
        }


def _write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with open_file(path, "w", errors="replace") as file:
        csv.writer(file).writerows([_cell(value) for value in row] for row in rows)


def _cell(value: object) -> object:
    """Return a value for a cell; a text that a spreadsheet would compute gets an apostrophe in front."""
    if not isinstance(value, str):
        return None if isinstance(value, float) and not isfinite(value) else value
    text = printable(value)
    return f"'{text}" if text.lstrip(" \n").startswith(_FORMULA) else text
