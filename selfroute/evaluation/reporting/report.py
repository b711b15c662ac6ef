"""Makes the HTML report of an evaluation."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence

from selfroute.evaluation.records import Record
from selfroute.evaluation.reporting.advice import Advice, advise
from selfroute.evaluation.reporting.browser import QuestionResults, browsed, page_values
from selfroute.evaluation.reporting.notes import judge_cost
from selfroute.evaluation.reporting.pages import render
from selfroute.evaluation.reporting.plots import CAPTIONS, plots
from selfroute.evaluation.reporting.summary import summary
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.table import Table

_OPEN = ("main", "strategies", "comparisons")
"""The tables that are not folded."""


def html(
    record: Record,
    *,
    advice: Advice | None = None,
    tables_: Sequence[Table] | None = None,
    plots_: Mapping[str, bytes] | None = None,
    questions: Sequence[QuestionResults] | None = None,
) -> str:
    """Make the report: first what to do and the plot of quality against cost, then the rest.

    Args:
        record: The record.
        advice: Which strategy to take; None to find out.
        tables_: Its tables; None to make them.
        plots_: Its plots; None to draw them.
        questions: What `browsed` returns; None to look for it.

    Returns:
        The page, to be saved as UTF-8.
    """
    advice = advice or advise(record)
    images = (plots(record, advice) if plots_ is None else plots_).items()
    judge = record.settings.get("judge")
    return render(
        "report.html.jinja",
        styles=("browser.css", "report.css"),
        scripts=("browser.js",),
        record=record,
        settings={name: value for name, value in record.settings.items() if name != "judge" and value is not None},
        judge=judge,
        judge_cost=judge and judge_cost(judge),
        advice=advice,
        summary=summary(record),
        tables=tables(record, advice) if tables_ is None else tables_,
        open_tables=_OPEN,
        plots=[(CAPTIONS[name], b64encode(image).decode()) for name, image in images],
        browser=page_values(browsed(record) if questions is None else questions),
    )
