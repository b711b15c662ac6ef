"""Makes the HTML report of an evaluation: verdict, tiles, a chart, three lines; then doubts, tables and questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any

from selfroute.usage.ledger_text import dollars
from selfroute_workbench.evaluation.caveats import caveats
from selfroute_workbench.evaluation.looks import TITLES, Strategy
from selfroute_workbench.evaluation.pages.browsing import Asked, browsed, page_values
from selfroute_workbench.evaluation.pages.rendering import plain, render
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Table
from selfroute_workbench.evaluation.tables import tables as tables_of
from selfroute_workbench.evaluation.trials import Figures, frontier_of
from selfroute_workbench.evaluation.verdict import Verdict
from selfroute_workbench.evaluation.verdict import verdict as verdict_on

_LEFT, _RIGHT, _TOP, _BOTTOM, _WIDTH, _HEIGHT = 44, 150, 12, 34, 640, 320
_LEAST_SHARE = 0.003
_NAME, _LINE = 130, 15  # about as wide and as high as a name


@dataclass(frozen=True, slots=True)
class Dot:
    """A strategy in the chart.

    Attributes:
        x: Where it stands.
        y: Where it stands.
        low: The lower end of its interval.
        high: The upper end.
        name: Its name; empty for other bounds of it, which are faint.
        strategy: The strategy.
        label: Its figures in words.
        at: Where its name stands.
    """

    x: float
    y: float
    low: float
    high: float
    name: str
    strategy: str
    label: str
    at: float


def html(evaluation: Record, *, questions: Sequence[Asked] | None = None, tables: Sequence[Table] | None = None) -> str:
    """Make the report.

    Args:
        evaluation: The evaluation.
        questions: What `browsed` returns; None to look for it.
        tables: The tables that the evaluation allows; None to make them.

    Returns:
        The page, to be saved as UTF-8.
    """
    verdict, judge = verdict_on(evaluation), evaluation.settings.get("judge")
    tables = list(tables_of(evaluation)) if tables is None else tables
    settings = {**evaluation.settings, "judge": judge and judge["model"]}
    return render(
        "report.html.jinja",
        script="browser.js",
        why=evaluation.stopped,
        verdict=verdict,
        figures=list(_tiles(evaluation, verdict)),
        lines=list(_lines(verdict)),
        chart=chart_of(evaluation, verdict),
        settings=[(name, plain(value)) for name, value in settings.items() if value is not None],
        judge=judge,
        caveats=[*caveats(evaluation), *next((table.notes for table in tables if table.name == "main"), ())[:1]],
        tables=tables,
        browser=page_values(browsed(evaluation) if questions is None else questions),
    )


def _tiles(evaluation: Record, verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Yield the figures of what is recommended, or of Self-Route: name, figure, and what else there is to say."""
    asked = len(evaluation.questions)
    documents = len({question.document_id for question in evaluation.questions if question.document})
    yield "Questions", f"{asked:,}", f"on {documents:,} documents" if documents else ""
    shown = [name for name in (verdict.strategy, "self_route") if name and name in verdict.figures][:1]
    for name in shown:
        found = verdict.figures[name]
        between = "" if found.low is None or found.high is None else f"{100 * found.low:.1f} to {100 * found.high:.1f}"
        yield f"Quality, {TITLES[name]}", f"{100 * found.quality:.1f}", between
        yield "Tokens", f"{100 * found.token_share:.3g} %", "of the long context's"
        if found.dollars is not None:
            yield "Cost", dollars(f"{1000 * found.dollars:.2f}"), "a thousand questions"


def _lines(verdict: Verdict) -> Iterator[str]:
    """Yield what each other strategy brings, beside what is recommended: three lines."""
    for name in ("rag", "self_route", "long_context"):
        if name in verdict.figures and name != verdict.strategy:
            yield f"{TITLES[name]}: {verdict.figures[name]}."


def chart_of(evaluation: Record, verdict: Verdict) -> dict[str, Any] | None:
    """Return the chart of quality against tokens; None if there is nothing to draw."""
    points = frontier_of(evaluation)
    if len(verdict.figures) < 2 or not points:  # noqa: PLR2004 - one point says nothing
        return None
    own = set(evaluation.rules.values())
    qualities = [figures.quality for _, figures, _ in points]
    ends = [end for each in verdict.figures.values() for end in (each.low, each.high) if end is not None]
    low, high = 100 * min([*qualities, *ends]) - 2, min(100 * max([*qualities, *ends]) + 2, 102)
    least = log10(max(min(figures.token_share for _, figures, _ in points) * 0.8, _LEAST_SHARE))
    most = log10(max(1.0, *(figures.token_share for _, figures, _ in points)))

    def x(share: float) -> float:
        along = (log10(max(share, _LEAST_SHARE)) - least) / (most - least or 1)
        return round(_LEFT + along * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(quality: float) -> float:
        return round(_HEIGHT - _BOTTOM - (quality - low) / (high - low) * (_HEIGHT - _BOTTOM - _TOP), 1)

    def dot(strategy: Strategy, figures: Figures, name: str) -> Dot:
        lower, upper = (figures.quality if end is None else end for end in (figures.low, figures.high))
        at = y(100 * figures.quality)
        label = f"{TITLES[strategy]}: {figures}"
        return Dot(x(figures.token_share), at, y(100 * lower), y(100 * upper), name, strategy, label, at + 4)

    clear = [dot(rule.strategy, each, TITLES[rule.strategy]) for rule, each, _ in points if rule in own]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "bottom": _HEIGHT - _BOTTOM,
        "faint": [dot(rule.strategy, each, "") for rule, each, _ in points if rule not in own],
        "dots": _apart(clear),
        "across": [
            (x(share / 100), f"{share:g} %")
            for share in (0.3, 1, 3, 10, 30, 100)
            if least <= log10(share / 100) <= most
        ],
        "up": [(y(quality), str(quality)) for quality in range(0, 101, 10) if low < quality < high],
        "title": f"Quality against tokens, {len(evaluation.compared):,} questions",
    }


def _apart(dots: Sequence[Dot]) -> list[Dot]:
    """Return dots whose names stand neither over one another nor over a dot."""
    placed: list[Dot] = []
    for each in sorted(dots, key=lambda one: (one.y, one.x)):
        behind = [one.y + 4 for one in dots if 0 < one.x - each.x < _NAME]
        near = [*behind, *(one.at for one in placed if abs(one.x - each.x) < _NAME)]
        at = each.at
        while any(abs(at - other) < _LINE for other in near):
            at += _LINE
        placed.append(replace(each, at=at))
    return placed
