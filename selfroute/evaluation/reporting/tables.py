"""The tables of an evaluation: the paper's Table 1, comparisons, cost, declines and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from selfroute.evaluation.judging import decline_is_right
from selfroute.evaluation.records import ALL_STRATEGIES, Record, Strategy
from selfroute.evaluation.reporting.advice import Advice, advise
from selfroute.evaluation.reporting.advice_tables import advice_tables
from selfroute.evaluation.reporting.compared import ComparedResults, mean, tokens_row
from selfroute.evaluation.reporting.decline_rules import decline_rules
from selfroute.evaluation.reporting.judged import judge_agreement, judged_sample
from selfroute.evaluation.reporting.money import money
from selfroute.evaluation.reporting.notes import about_intervals, about_main, metric_names
from selfroute.evaluation.reporting.papers.ablations import based_only_on, by_k, closed_book, passkey, reasons
from selfroute.evaluation.reporting.papers.differences import agreement, decisions, differences, wins
from selfroute.evaluation.reporting.papers.paper import beside_paper
from selfroute.evaluation.reporting.papers.retrievers import filtered, kinds, retrievers
from selfroute.evaluation.table import Cell, Table

_STEERED: tuple[Strategy, ...] = ("sections", "graded", "graded_sections")
_OTHERS: tuple[Strategy, ...] = ("long_context", "self_route", "rag")
_PAIRS: tuple[tuple[Strategy, Strategy], ...] = (
    ("self_route", "long_context"),
    ("self_route", "rag"),
    ("rag", "long_context"),
    *((steered, other) for steered in _STEERED for other in _OTHERS),
    ("graded_sections", "graded"),
)
_Maker = Callable[[ComparedResults], Table | None]
_TOKENS = ("first's token %", "second's token %")
_COMPARED = ("questions", "difference", "low", "high", "p", "better", "equal", "worse", *_TOKENS, "verdict")


def tables(record: Record, advice: Advice | None = None) -> list[Table]:
    """Return all tables that the results allow; those of `papers` only if its data sets or ablations were run.

    With a judge, the tables are about what it says; `..._own_metric` are the same by the questions' own metrics. So are
    those of `papers`, where there are figures of the paper to stand beside.

    Args:
        record: The record.
        advice: Which strategy to take; None to find out.
    """
    compared = ComparedResults.of(record)
    own = compared if compared.measure == "score" else ComparedResults.of(record, "score")
    papers = own if own.has_papers else compared
    makers: tuple[tuple[ComparedResults, tuple[_Maker, ...]], ...] = (
        (compared, (main, intervals)),
        (own, () if own is compared else (_own(main), _own(intervals), _own(comparisons))),
        (papers, (beside_paper,)),
        (compared, (comparisons, money, declines, decline_rules, judge_agreement, judged_sample)),
        (papers, (by_k,)),
        (compared, (comparisons_by_dataset, retrievers, kinds)),
        (papers, (differences, agreement, wins, passkey, based_only_on, closed_book, filtered)),
        (compared, (reasons, failures)),
        (papers, (decisions,)),
    )
    made = [table for given, some in makers for maker in some if (table := maker(given))]
    return [*made[:1], *advice_tables(advice or advise(record)), *made[1:]]


def _own(maker: _Maker) -> _Maker:
    """Return a maker of the same table under another name, for the questions' own metrics."""

    def make(compared: ComparedResults) -> Table | None:
        table = maker(compared)
        if table is None:
            return None
        title = f"{table.title}: by {', '.join(metric_names(compared.record))}"
        return replace(table, name=f"{table.name}_own_metric", title=title)

    return make


def main(compared: ComparedResults) -> Table | None:
    """Make Table 1: scores, questions that the first step answered, and tokens, on average and for each data set."""
    if not compared.keys:
        return None
    first, *_ = compared.ks
    layout: list[tuple[str, int | None]] = [("long_context", first)]
    rows_of_k = ["rag", "self_route", "answerable %", "token %", "rag token %"]
    rows_of_k += [row for strategy in _STEERED for row in (strategy, tokens_row(strategy))]
    layout += [(row, k) for k in compared.ascending_ks for row in rows_of_k]
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
    score = "Scores" if compared.measure == "score" else "Judged correctness"
    title = f"{score}, answerable questions and input tokens"
    if compared.has_papers:
        title += " (Table 1 of the paper)"
    return Table("main", title, columns, tuple(rows), tuple(about_main(compared)))


def intervals(compared: ComparedResults) -> Table | None:
    """Make the table of the 95 % intervals of all scores."""
    rows: list[tuple[Cell, ...]] = []
    for (strategy, k), _ in compared.ascending_variants:
        average, by_dataset = compared.figures(k)
        parts = [(name, compared.of_dataset(name), figures) for name, figures in by_dataset.items()]
        for name, part, figures in [("Avg", compared, average), *parts]:
            head: tuple[Cell, ...] = (strategy, "" if k is None else k, name, figures[strategy])
            tokens = 100.0 if strategy == "long_context" else figures[tokens_row(strategy)]
            rows.append((*head, *_interval(part, strategy, k), tokens, len(part.keys)))
    columns = ("strategy", "k", "data set", "score", "low", "high", "token %", "questions")
    notes = about_intervals(compared)
    return Table("intervals", "Scores with 95 % intervals", columns, tuple(rows), notes) if compared.keys else None


def comparisons(compared: ComparedResults) -> Table | None:
    """Make the table of the differences between strategies, on average over the data sets."""
    rows = tuple((name, *figures) for name, figures in _compared(compared))
    apart = "difference is the mean over the data sets; the table comparisons_by_dataset has each of them."
    notes = (*((apart,) if len(compared.datasets) > 1 else ()), *_about_compared(compared))
    return Table("comparisons", "Strategies compared", ("comparison", *_COMPARED), rows, notes) if rows else None


def comparisons_by_dataset(compared: ComparedResults) -> Table | None:
    """Make the same for each data set, if there are several."""
    if len(compared.datasets) < 2:  # noqa: PLR2004
        return None
    parts = [(name, dict(_compared(compared.of_dataset(name)))) for name in compared.datasets]
    _, pairs = parts[0]
    rows = tuple((pair, name, *figures[pair]) for pair in pairs for name, figures in parts)
    columns, notes = ("comparison", "data set", *_COMPARED), _about_compared(compared)
    return Table("comparisons_by_dataset", "Strategies compared, by data set", columns, rows, notes) if rows else None


def _compared(compared: ComparedResults) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Yield the pairs of strategies that ran, with the figures of their comparison."""
    for first, second in _PAIRS:
        found = compared.compare(first, second)
        if found:
            low, high = (100 * end for end in found.interval) if found.interval else (None, None)
            counts = (found.better, found.equal, found.worse)
            head = (found.questions, 100 * found.difference, low, high)
            tokens = tuple(compared.tokens(strategy) for strategy in (first, second))
            yield f"{first} - {second}", (*head, f"{found.p:.4f}", *counts, *tokens, found.verdict)


def _about_compared(compared: ComparedResults) -> tuple[str, ...]:
    return (
        "The first is called better or worse if the interval excludes 0 and p is at most 0.05.",
        "About one comparison in twenty of equally good strategies is a false alarm.",
        *about_intervals(compared),
        *compared.about_k,
    )


def declines(compared: ComparedResults) -> Table | None:
    """Make the table of the questions that were declined: rightly, if their references are empty or decline, too."""
    if not compared.keys:
        return None
    bare = {each.key for each in compared.record.questions if decline_is_right(each)}
    some = any(key in bare for key in compared.keys)
    rows: list[tuple[Cell, ...]] = []
    for (strategy, k), results in compared.by_variant.items():
        if k in (None, compared.ks[0]):
            without, given = (
                [each for key, each in results.items() if (key in bare) is is_bare] for is_bare in (True, False)
            )
            wrongly, rightly = (mean([100.0 * (not each.answerable) for each in part]) for part in (given, without))
            head: tuple[Cell, ...] = (strategy, "" if k is None else k, len(given), wrongly)
            missed = None if rightly is None else 100 - rightly
            tokens = compared.tokens(strategy)
            rows.append((*head, *((len(without), rightly, missed) if some else ()), tokens))
    columns: tuple[str, ...] = ("strategy", "k", "with an answer", "declined wrongly %")
    if some:
        columns += ("without an answer", "declined rightly %", "answered all the same %")
    columns += ("token %",)
    notes = (
        *(("A question is without an answer if it has no reference, or one that says so.",) if some else ()),
        "The final answer counts; where the passages hold no answer, RAG alone can only decline.",
        *compared.about_k,
    )
    return Table("declines", "Questions that were declined", columns, tuple(rows), notes)


def failures(compared: ComparedResults) -> Table | None:
    """Make the table of what could not be finished, and why."""
    counts = Counter((each.strategy, "" if each.k is None else each.k, each.error) for each in compared.record.failures)
    rows = tuple((strategy, k, count, error) for (strategy, k, error), count in counts.most_common())
    notes = ("Failures are not scored.",)
    return Table("failures", "Failures", ("strategy", "k", "questions", "error"), rows, notes) if rows else None


def _interval(compared: ComparedResults, row: str, k: int | None) -> tuple[Cell, Cell]:
    """Return the interval of a row, times 100; empty if the row is not a score."""
    if row not in ALL_STRATEGIES:
        return "", ""
    found = compared.interval(row, k)
    return (100 * found[0], 100 * found[1]) if found else (None, None)
