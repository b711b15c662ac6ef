"""Makes the page of `selfroute view`: an evaluation's results, or rows of results, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute.usage.counts import STEPS
from selfroute.usage.ledger import Ledger
from selfroute.usage.ledger_text import dollars, percent
from selfroute_workbench.evaluation.looks import TITLES
from selfroute_workbench.evaluation.pages.browsing import MOST, ROUTES, Asked, browsed, page_values
from selfroute_workbench.evaluation.pages.rendering import render
from selfroute_workbench.evaluation.pages.rows import read_rows
from selfroute_workbench.evaluation.saved import FILE, load

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
    stopped, skipped, is_rows = None, list[str](), not (path / FILE).is_file()
    if is_rows:
        questions, skipped = read_rows(path)
    else:
        evaluation = load(path)
        questions, stopped = browsed(evaluation), evaluation.stopped
    figures = figures_of(questions)
    return render(
        "view.html.jinja",
        script="browser.js",
        name=path.name or "results",
        figures=list(_tiles(questions, figures)),
        shares=_shares(figures),
        browser=page_values(questions, most=most),
        skipped=skipped,
        report=(path / "report.html").is_file() and not is_rows,
        why=stopped,
        is_rows=is_rows,
        strategy=next((TITLES[one.main.strategy] for one in questions if one.main), None),
    )


def figures_of(questions: Sequence[Asked]) -> dict[str, Any]:
    """Return the figures of a ledger of the answers that the questions are listed with, and of what failed."""
    rows: list[dict[str, Any]] = [
        {
            "route": each.route,
            "answerable": each.answerable,
            "decision": each.decision,
            "usage": each.usage,
            "seconds": each.seconds,
        }
        for one in questions
        if (each := one.main)
    ]
    rows += [{"error": one.failures[0].error} for one in questions if one.failures and not one.main]
    return Ledger.read(rows).to_dict()


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


def _tiles(questions: Sequence[Asked], figures: dict[str, Any]) -> Iterator[Tile]:
    queries, money, savings = figures["queries"], figures["money"], figures["savings"]
    failed = f"{figures['failed']:,} failed" if figures["failed"] else ""
    yield "Questions", f"{len(questions):,}", failed
    scores = [one.main.score for one in questions if one.main and one.main.score is not None]
    if scores:
        yield "Quality", f"{100 * sum(scores) / len(scores):.1f}", "mean over questions"
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
