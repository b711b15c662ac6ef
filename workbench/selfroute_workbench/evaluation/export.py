"""Writes the files of an evaluation: `results.json`, `results.csv` and `report.html`.

`results.json` holds everything but the texts of the documents, as one object: `selfroute` (the version), `settings`,
`stopped`, `verdict`, `options` (those that do best), `tables`, and the lists `questions`, `looks` and
`failures`, with the fields of their classes. The `document` of a question is its `document_id`. Money is a decimal
string in US dollars. `passages` has the text of each passage once; those of a look have its index.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from selfroute import __version__
from selfroute_workbench.evaluation.choosing import Options
from selfroute_workbench.evaluation.looks import Look
from selfroute_workbench.evaluation.page import page_of
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Table, printable
from selfroute_workbench.evaluation.verdict import Verdict
from selfroute_workbench.private import make_folder, open_file, write

FILES = ("results.json", "results.csv", "report.html")
_FORMULA = tuple("=+-@＝＋－＠\t\r")  # noqa: RUF001 - spreadsheets read the wide forms like the narrow ones


def save(
    evaluation: Record, folder: Path, *, verdict: Verdict, advice: Options | None, tables: Sequence[Table]
) -> None:
    """Write the files to a folder, which is made if need be; earlier ones are replaced."""
    make_folder(folder)
    # Models do send lone surrogates, which UTF-8 cannot hold; escaped they are JSON.
    whole = json.dumps(_as_json(evaluation, verdict, advice, tables), ensure_ascii=False, allow_nan=False, indent=1)
    write(folder / "results.json", whole, errors="backslashreplace")
    lines = advice.lines if advice else ()
    page = page_of(evaluation, verdict=verdict, advice=lines, tables=tables)
    write(folder / "report.html", page, errors="replace")
    with open_file(folder / "results.csv", "w", errors="replace") as file:
        for number, row in enumerate(result_rows(evaluation)):
            if not number:
                csv.writer(file).writerow(row)
            csv.writer(file).writerow(map(_cell, row.values()))


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


def _cell(value: object) -> object:
    """Return a value for a cell; a text that a spreadsheet would compute gets an apostrophe in front."""
    if not isinstance(value, str):
        return None if isinstance(value, float) and not isfinite(value) else value
    text = printable(value)
    return f"'{text}" if text.lstrip(" \n").startswith(_FORMULA) else text


def _as_json(evaluation: Record, verdict: Verdict, advice: Options | None, tables: Sequence[Table]) -> Any:
    texts: dict[str, int] = {}

    def numbered(look: Look) -> dict[str, Any]:
        passages = [{"text": texts.setdefault(each.text, len(texts)), "score": each.score} for each in look.passages]
        return {**asdict(replace(look, passages=())), "passages": passages}

    looks = [numbered(look) for look in evaluation.looks]
    return to_jsonable_python(
        {
            "selfroute": __version__,
            "settings": evaluation.settings,
            "stopped": evaluation.stopped,
            "verdict": verdict.data(),
            "options": advice,
            "tables": tables,
            "questions": [replace(one, document=one.document and one.document_id) for one in evaluation.questions],
            "looks": looks,
            "failures": evaluation.failures,
            "passages": list(texts),
        },
        inf_nan_mode="null",
        fallback=str,
    )
