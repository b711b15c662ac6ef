"""Makes the page of `selfroute view`: an evaluation's results, or rows of results, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute.evaluation.records import Record
from selfroute.evaluation.reporting.browser import MOST, ROUTES, QuestionResults, browsed, page_values
from selfroute.evaluation.reporting.export import load
from selfroute.evaluation.reporting.pages import render
from selfroute.evaluation.reporting.plots import NAMES
from selfroute.evaluation.reporting.rows import read_rows
from selfroute.usage.counts import STEPS
from selfroute.usage.ledger import Ledger
from selfroute.usage.ledger_text import dollars, percent

_DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
Tile = tuple[str, str, str]
"""A figure: its name, the figure, and what else there is to say."""


def view(path: Path, *, most: int = MOST) -> str:
    """Return the page of a folder or a file.

    Args:
        path: A folder that `selfroute evaluate` wrote, or rows of results as `read_rows` takes them.
        most: How many questions to show.

    Raises:
        InputError: There are no results.
    """
    if not path.exists():
        msg = f"there is no {path}: give the folder that `selfroute evaluate --out` wrote, or .jsonl files of results"
        raise InputError(msg)
    if (path / "results.json").is_file():
        return _view_of_evaluation(path, most=most)
    found = read_rows(path)
    return view_of(found.record, name=path.name, most=most, skipped=found.skipped)


def view_of(record: Record, *, name: str, most: int = MOST, skipped: Sequence[str] = (), report: bool = False) -> str:
    """Return the page of a record.

    Args:
        record: The record.
        name: The name of the folder or file.
        most: How many questions to show.
        skipped: The files that were left out.
        report: Whether there is a report beside the page.
    """
    questions = browsed(record)
    figures = figures_of(questions)
    return render(
        "view.html.jinja",
        styles=("browser.css", "report.css"),
        scripts=("browser.js",),
        name=name or "results",
        tiles=list(_tiles(questions, figures)),
        shares=_shares(figures),
        browser=page_values(questions, most=most),
        skipped=skipped,
        report=report,
        stopped=record.stopped,
        is_rows=not record.settings,
        strategy=_strategy(questions),
    )


def figures_of(questions: Sequence[QuestionResults]) -> dict[str, Any]:
    """Return the figures of a ledger of the results that the questions are listed with, and of what failed."""
    results = (one.main for one in questions)
    rows: list[dict[str, Any]] = [
        {
            "route": each.route,
            "answerable": each.answerable,
            "decision": each.decision,
            "usage": each.usage,
            "seconds": None if isnan(each.seconds) else each.seconds,
        }
        for each in results
        if each
    ]
    rows += [{"error": one.failures[0].error} for one in questions if one.failures and not one.main]
    return Ledger.read(rows).to_dict()


def _view_of_evaluation(path: Path, *, most: int) -> str:
    try:
        return view_of(load(path), name=path.name, most=most, report=(path / "report.html").is_file())
    except _DAMAGED as error:
        msg = f"{path / 'results.json'} cannot be read: run the same `selfroute evaluate` again; it asks nothing anew"
        raise InputError(msg) from error


def _strategy(questions: Sequence[QuestionResults]) -> str | None:
    return next((NAMES[one.main.strategy] for one in questions if one.main), None)


def _shares(figures: dict[str, Any]) -> list[tuple[str, str, int, float, float]]:
    """Return the routes as one bar: class, name, number, where it begins and how wide it is, from 0 to 100."""
    shares: list[tuple[str, str, int, float, float]] = []
    total, at = sum(figures["routes"].values()), 0.0
    for route in STEPS:
        if number := figures["routes"][route]:
            width = 100 * number / total
            shares.append((route, ROUTES[route], number, round(at, 2), round(width, 2)))
            at += width
    return shares


def _tiles(questions: Sequence[QuestionResults], figures: dict[str, Any]) -> Iterator[Tile]:
    queries, money, savings = figures["queries"], figures["money"], figures["savings"]
    failed = f"{figures['failed']:,} failed" if figures["failed"] else ""
    yield "Questions", f"{len(questions):,}", failed
    scores = [score for one in questions if one.main and (score := one.score_of(one.main)) is not None]
    if scores:
        yield "Score", f"{sum(scores) / len(scores):.1f}", "mean over questions"
    if queries:
        twice = f"{figures['unanswerable']:,} declined in the end" if figures["unanswerable"] else ""
        known = all(one.main.decision for one in questions if one.main)  # not everybody keeps the decision
        share = figures["declined"] if known else queries - figures["routes"]["rag"]
        yield "Declined share" if known else "Escalated", percent(share / queries), twice
    if savings["token_ratio"] is not None:
        yield "Tokens", percent(savings["token_ratio"]), "of the long context's input"
    elif total := figures["tokens"]["total_tokens"]:
        yield "Tokens", f"{total:,}", ""
    if money["cost"] is not None:
        saved = money["compared"]["saved"]
        unpriced = sum(money["unpriced"].values())
        more = f"{dollars(saved)} saved" if saved is not None else f"{unpriced:,} without a price" if unpriced else ""
        if money["cost"] != "0" or not unpriced:
            yield "Cost", dollars(money["cost"]), more
    p95 = figures["seconds"]["all"]["end"]["p95"]
    if p95 is not None:
        yield "95 % answered within", f"{p95:,.1f} s", ""
