"""The tables of a report: the paper's, for one's own run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from selfroute.evaluation.records import STRATEGIES, Record, Strategy
from selfroute.evaluation.reporting.compared import ComparedResults, mean
from selfroute.evaluation.reporting.money import money
from selfroute.evaluation.reporting.notes import about_intervals, about_main, about_papers
from selfroute.evaluation.reporting.papers import paper as published
from selfroute.evaluation.reporting.papers.ablations import based_only_on, by_k, closed_book, passkey, reasons
from selfroute.evaluation.reporting.papers.differences import agreement, decisions, declines, differences, wins
from selfroute.evaluation.reporting.statistics import interval
from selfroute.evaluation.table import Cell, Table

_PAIRS: tuple[tuple[Strategy, Strategy], ...] = (
    ("self_route", "long_context"),
    ("self_route", "rag"),
    ("rag", "long_context"),
)
_COMPARED = ("questions", "difference", "low", "high", "p", "better", "equal", "worse", "verdict")


def tables(record: Record) -> list[Table]:
    """All tables that the results allow."""
    compared = ComparedResults.of(record)
    makers: tuple[Callable[[ComparedResults], Table | None], ...] = (
        main,
        intervals,
        paper,
        comparisons,
        money,
        declines,
        by_k,
        comparisons_by_dataset,
        differences,
        agreement,
        wins,
        passkey,
        based_only_on,
        closed_book,
        reasons,
        failures,
        decisions,
    )
    return [table for maker in makers if (table := maker(compared))]


def main(compared: ComparedResults) -> Table | None:
    """Table 1: the scores, what the first step answers and the tokens, on average and for each data set."""
    if not compared.keys:
        return None
    first, *_ = compared.ks
    layout: list[tuple[str, int | None]] = [("long_context", first)]
    layout += [(row, k) for k in compared.ascending_ks for row in ("rag", "self_route", "answerable %", "token %")]
    layout += [("questions", first)]
    by_k = {k: compared.figures(k) for k in compared.ks}
    rows = []
    for row, k in layout:
        average, by_dataset = by_k[k]
        if row in average:
            depends = row not in {"long_context", "questions"} and k is not None
            head = (row, k if depends else "", average[row], *_interval(compared, row, k))
            rows.append((*head, *(figures[row] for figures in by_dataset.values())))
    columns = ("", "k", "Avg", "low", "high", *compared.datasets)
    title = "Scores, answerable questions and input tokens (Table 1 of the paper)"
    return Table("main", title, columns, tuple(rows), tuple(about_main(compared)))


def intervals(compared: ComparedResults) -> Table | None:
    """The interval of 95 % of each score."""
    rows: list[tuple[Cell, ...]] = []
    for (strategy, k), _ in compared.ascending_variants:
        average, by_dataset = compared.figures(k)
        parts = [(name, compared.of_dataset(name), figures) for name, figures in by_dataset.items()]
        for name, part, figures in [("Avg", compared, average), *parts]:
            head: tuple[Cell, ...] = (strategy, "" if k is None else k, name, figures[strategy])
            rows.append((*head, *_interval(part, strategy, k), len(part.keys)))
    columns = ("strategy", "k", "data set", "score", "low", "high", "questions")
    notes = about_intervals(compared)
    return Table("intervals", "Scores with intervals of 95 %", columns, tuple(rows), notes) if compared.keys else None


def paper(compared: ComparedResults) -> Table | None:
    """The same beside the paper's figures, for its data sets."""
    names = [name for name in compared.datasets if name in published.DATASETS and name in compared.papers]
    if not names:
        return None
    average, own = compared.figures(compared.ks[0])
    models = {"this run": {row: [own[name][row] for name in names] for row in published.ROWS if row in average}}
    for model, figures in published.MODELS.items():
        models[model] = {row: [line[name] for name in names] for row, line in figures.items()}
    rows = tuple((model, row, mean(line), *line) for model, lines in models.items() for row, line in lines.items())
    printed = ("The paper prints 35.32 where the row of GPT-3.5-Turbo's self_route averages 36.40.",)
    whole = set(names) == set(published.DATASETS)
    fewer = about_papers(compared.counts(names))
    notes = ("Avg is the average over these data sets.", *fewer, *(printed if whole else ()), *compared.about_k)
    title = "Beside the paper's figures (Tables 1 and 2)"
    return Table("paper", title, ("", "row", "Avg", *names), rows, notes)


def comparisons(compared: ComparedResults) -> Table | None:
    """The differences between strategies, question by question, on average over the data sets."""
    rows = tuple((name, *figures) for name, figures in _compared(compared))
    apart = "difference is the mean over the data sets; the table comparisons_by_dataset has each by itself."
    notes = (*((apart,) if len(compared.datasets) > 1 else ()), *_about_compared(compared))
    return Table("comparisons", "Strategies compared", ("comparison", *_COMPARED), rows, notes) if rows else None


def comparisons_by_dataset(compared: ComparedResults) -> Table | None:
    """The same for each of several data sets."""
    if len(compared.datasets) < 2:  # noqa: PLR2004
        return None
    parts = [(name, dict(_compared(compared.of_dataset(name)))) for name in compared.datasets]
    _, pairs = parts[0]
    rows = tuple((pair, name, *figures[pair]) for pair in pairs for name, figures in parts)
    columns, notes = ("comparison", "data set", *_COMPARED), _about_compared(compared)
    return Table("comparisons_by_dataset", "Strategies compared, by data set", columns, rows, notes) if rows else None


def _compared(compared: ComparedResults) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """The pairs that ran, with the figures of their comparison."""
    for first, second in _PAIRS:
        found = compared.compare(first, second)
        if found:
            low, high = (100 * end for end in found.interval) if found.interval else (None, None)
            counts = (found.better, found.equal, found.worse)
            head = (found.questions, 100 * found.difference, low, high)
            yield f"{first} - {second}", (*head, f"{found.p:.4f}", *counts, found.verdict)


def _about_compared(compared: ComparedResults) -> tuple[str, ...]:
    return (
        "The first is called better or worse where the interval leaves 0 out and p is at most 0.05.",
        "Of twenty pairs that are alike, one is called better or worse by chance.",
        *about_intervals(compared),
        *compared.about_k,
    )


def failures(compared: ComparedResults) -> Table | None:
    """What could not be finished, and why."""
    counts = Counter((each.strategy, "" if each.k is None else each.k, each.error) for each in compared.record.failures)
    rows = tuple((strategy, k, count, error) for (strategy, k, error), count in counts.most_common())
    notes = ("Failures are not scored.",)
    return Table("failures", "Failures", ("strategy", "k", "questions", "error"), rows, notes) if rows else None


def _interval(compared: ComparedResults, row: str, k: int | None) -> tuple[Cell, Cell]:
    """The interval of a row, times 100; empty where it is no score."""
    if row not in STRATEGIES:
        return "", ""
    found = interval({key: each.score for key, each in compared.get(row, k).items()}, compared.documents)
    return (100 * found[0], 100 * found[1]) if found else (None, None)
