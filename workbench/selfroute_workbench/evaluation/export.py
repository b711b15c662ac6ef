"""Writes the files of an evaluation: `results.json`, the report, and rows and tables as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from selfroute_workbench.evaluation.pages.browsing import browsed
from selfroute_workbench.evaluation.pages.report import html
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.saved import fields_of, save_results
from selfroute_workbench.evaluation.table import printable
from selfroute_workbench.evaluation.tables import tables
from selfroute_workbench.private import make_folder, open_file, write

_FORMULA = tuple("=+-@＝＋－＠\t\r")  # noqa: RUF001 - spreadsheets read the wide forms like the narrow ones


def save(evaluation: Record, folder: str | Path) -> None:
    """Write `results.json`, `report.html`, `results.csv`, `looks.csv` and `tables/*.csv`; earlier ones are replaced.

    Args:
        evaluation: The evaluation.
        folder: The folder; it is made if it does not exist.
    """
    folder = Path(folder)
    questions = browsed(evaluation)
    evaluation = replace(evaluation, excerpts=tuple(each for one in questions for each in one.places.excerpts))
    make_folder(folder / "tables")
    shown = list(tables(evaluation))
    save_results(evaluation, folder, shown)
    write(folder / "report.html", html(evaluation, questions=questions, tables=shown), errors="replace")
    for table in shown:
        _write_csv(folder / "tables" / f"{table.name}.csv", [table.columns, *table.rows])
    looks = [{**fields_of(look), "passages": len(look.passages)} for look in evaluation.looks]
    for name, rows in (("results", list(result_rows(evaluation))), ("looks", looks)):
        _write_csv(folder / f"{name}.csv", [tuple(rows[0]), *(tuple(row.values()) for row in rows)] if rows else [])


def result_rows(evaluation: Record) -> Iterator[dict[str, Any]]:
    """Yield a row for each question and strategy, all with the same keys; costs are Decimals in US dollars."""
    questions = {question.key: question for question in evaluation.questions}
    for result in evaluation.results:
        question, draft = questions[result.key], result.paid[0]
        yield {
            "dataset": question.dataset,
            "id": question.id,
            "strategy": result.strategy,
            "question": question.question,
            "answers": " | ".join(question.answers),
            **{name: getattr(result, name) for name in ("answer", "route", "answerable", "score", "judged")},
            "prospect": draft.prospect,
            "confidence": result.shown.confidence,
            **{name: getattr(result, name) for name in ("input_tokens", "output_tokens", "cost", "seconds")},
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
