"""The tables behind a recommendation: the strategies, unanswerable questions, routes, and the frontier."""

from __future__ import annotations

from collections.abc import Iterator

from selfroute.evaluation.calibrating.recommendation import Recommendation
from selfroute.evaluation.calibrating.rows import GRADED
from selfroute.evaluation.reporting.advice import Advice
from selfroute.evaluation.table import Cell, Table
from selfroute.policies.calibration import Figures, tokens_text

_PRICE = ("quality", "low", "high", "token %", "dollars a question")


def advice_tables(advice: Advice) -> Iterator[Table]:
    """Yield the tables that there are figures for; none without a recommendation."""
    if found := advice.found:
        yield from (_strategies(found), _break_even(found), _routes(found), _frontier(advice))


def _strategies(found: Recommendation) -> Table:
    """Make the table of what each strategy brings, and how far it is from the best."""
    rows: list[tuple[Cell, ...]] = []
    for name, figures in found.figures.items():
        behind = found.behind[name]
        apart = (None, None, None) if name == found.best else _points(behind.gain, behind.low, behind.high)
        said = "recommended" if name == found.strategy else "best" if name == found.best else ""
        rows.append((name, *_shown(figures), *apart, said))
    columns = ("strategy", *_PRICE, "difference", "difference low", "difference high", "")
    notes = (
        "quality is times 100, with its 95 % interval; token % is input tokens as a percentage of the long context's.",
        "difference compares each strategy with the best, question by question.",
        "calibrated is the best rule within Self-Route's tokens, calibrated_for_quality the best at any price.",
        "The figures of these two come from documents that did not take part in the choice.",
    )
    return Table("strategies", "What each strategy brings", columns, tuple(rows), notes)


def _break_even(recommended: Recommendation) -> Table:
    """Make the table of the share of unanswerable questions up to which Self-Route pays, and the share in this run."""
    found = recommended.break_even
    rows: tuple[tuple[Cell, ...], ...] = (
        ("Self-Route is as good as RAG at", *_points(found.share, found.low, found.high)),
        ("these questions", *_points(found.own, None, None)),
    )
    notes = (
        "Below the first share, Self-Route is better than RAG.",
        "It compares what escalating gains on answerable questions with what it loses on others, so it needs both.",
    )
    columns = ("", "unanswerable %", "low", "high")
    return Table("break_even", "Unanswerable questions: up to what share Self-Route pays", columns, rows, notes)


def _routes(recommended: Recommendation) -> Table:
    """Make the confusion matrix of the routes."""
    rows: list[tuple[Cell, ...]] = []
    for name, found in recommended.routes.items():
        for needed, escalated, kept in (
            ("yes", found.needed_escalated, found.needed_kept),
            ("no", found.idle_escalated, found.idle_kept),
        ):
            total = escalated + kept
            rows.append((name, needed, escalated, kept, 100 * escalated / total if total else None))
    notes = (
        "A question needed the documents if the long context's answer to it is better than the draft's.",
        "Escalated means that the draft was not final: more passages were read, or the documents.",
        "An unneeded escalation costs tokens; a missing one costs quality.",
    )
    columns = ("strategy", "needed the documents", "escalated", "kept the draft", "escalated %")
    return Table("routes", "Was the document needed, and was it read?", columns, tuple(rows), notes)


def _frontier(advice: Advice) -> Table:
    """Make the table of all strategies and bounds."""
    rows: list[tuple[Cell, ...]] = []
    for point in advice.frontier:
        rule = point.rule
        bounds = (rule.doubt_below, rule.stop_below) if rule.strategy in GRADED else ("", "")
        head = (rule.strategy, "" if point.k is None else point.k, *bounds, tokens_text(point.sections))
        said = "recommended" if advice.recommends(point) else ""
        rows.append((*head, *_shown(point.figures), "yes" if point.efficient else "", said))
    price = "dollars" if advice.is_priced else "tokens"
    notes = (
        f"The cheapest first. efficient: nothing that costs as few {price}, or fewer, is better.",
        "All rows are computed from the replies of this run, so the best of many bounds looks better here than it is.",
    )
    columns = ("strategy", "k", "doubt_below", "stop_below", "sections", *_PRICE, "efficient", "")
    return Table("frontier", "All strategies and bounds", columns, tuple(rows), notes)


def _shown(figures: Figures) -> tuple[Cell, ...]:
    dollars = None if figures.dollars is None else f"{figures.dollars:.6f}"
    return (*_points(figures.quality, figures.low, figures.high), 100 * figures.token_share, dollars)


def _points(*values: float | None) -> tuple[Cell, ...]:
    """Return values times 100."""
    return tuple(None if value is None else 100 * value for value in values)
