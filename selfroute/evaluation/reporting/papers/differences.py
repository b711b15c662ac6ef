"""Tables of the papers on where RAG and the long context differ, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import copysign, floor
from statistics import fmean

from selfroute.evaluation.records import Result
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.notes import about_papers
from selfroute.evaluation.reporting.papers import paper as published
from selfroute.evaluation.table import Cell, Table

Pair = tuple[Result, Result]  # of RAG and of the long context
BIN_WIDTH = 10


def differences(compared: ComparedResults) -> Table | None:
    """Make Figure 2 as a table: how the scores of RAG and the long context differ, and how good both are."""
    pairs = papers_pairs(compared)
    if not pairs:
        return None
    bins: dict[int, list[float]] = {centre: [] for centre in range(-100, 101, BIN_WIDTH)}
    for rag, reader in pairs:
        bins[bin_of(rag, reader)].append(50 * (rag.score + reader.score))
    rows = tuple(
        (centre, len(scores), 100 * len(scores) / len(pairs), fmean(scores) if scores else "")
        for centre, scores in bins.items()
    )
    notes = (
        "The difference is RAG's score minus the long context's; each row is for the ten points around its number.",
        "average score is the mean of the two scores.",
        *compared.about_k,
    )
    columns = ("difference", "questions", "share %", "average score")
    return Table("differences", "Score of RAG minus the long context's (Figure 2 of the paper)", columns, rows, notes)


def agreement(compared: ComparedResults) -> Table | None:
    """Make the table for section 4.1: how often RAG and the long context agree."""
    pairs = papers_pairs(compared)
    if not pairs:
        return None
    identical = fmean(rag.answer.strip() == reader.answer.strip() for rag, reader in pairs)
    close = fmean(round(abs(difference_of(rag, reader)), 9) < BIN_WIDTH for rag, reader in pairs)
    names = compared.datasets
    with_paper = all(name in compared.papers and name in published.DATASETS for name in names)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("identical answers %", 100 * identical, *((published.IDENTICAL,) if with_paper else ())),
        ("scores less than 10 apart %", 100 * close, *((published.CLOSE,) if with_paper else ())),
    )
    columns = ("", "this run", *(("paper",) if with_paper else ()))
    notes = ("The paper's are over its nine data sets.", *about_papers(compared.counts(names))) if with_paper else ()
    title = "Agreement of RAG and the long context (section 4.1 of the paper)"
    return Table("agreement", title, columns, rows, (*notes, *compared.about_k))


def wins(compared: ComparedResults) -> Table | None:
    """Make Table 4 of Li et al. (2025): which one answers what the other does not."""
    pairs = all_pairs(compared)
    if not pairs:
        return None
    parts = {name: [pair for pair in pairs if pair[0].dataset == name] for name in compared.datasets}
    columns = ("LC correct", "RAG correct", "LC only", "RAG only", "LC better", "RAG better")
    rows: list[tuple[Cell, ...]] = []
    for name, part in (*parts.items(), ("Overall", pairs)):
        counts = count_wins(part)
        rows.append((name, len(part), *(counts[column] for column in columns)))
    notes = (
        "An answer is correct by the loose exact match of Li et al. (2025), of multiple choice by the score.",
        "Better means correct where the other is not or, if both are wrong, with the higher F1 over words.",
        *compared.about_k,
    )
    title = "RAG and the long context, question by question (Table 4 of Li et al., 2025)"
    return Table("wins", title, ("data set", "questions", *columns), tuple(rows), notes)


def decisions(compared: ComparedResults) -> Table | None:
    """Make the table of how the first step declines, and whether it is right to."""
    k = compared.ks[0]
    drafted = compared.drafts.get(k)
    if not drafted or not compared.has_papers:
        return None
    pairs = {rag.key: (rag, reader) for rag, reader in papers_pairs(compared)}
    signals = Counter(each.decision["signal"] for each in drafted.values())
    rows: list[tuple[Cell, ...]] = []
    for signal, count in signals.most_common():
        found = [pairs[key] for key, each in drafted.items() if each.decision["signal"] == signal and key in pairs]
        quality = _quality(found) if found else ("", "", "", "")
        rows.append((signal, count, 100 * count / len(drafted), *quality))
    columns = ("signal", "questions", "share %", "RAG", "long context", "long context better", "long context worse")
    notes = (
        "RAG and long context are mean scores over the questions of the row that both finished.",
        'Where the first step answered, "long context better" counts what reading on would have gained.',
        'Where it declined, "long context better" counts what reading on gained.',
        *compared.about_k,
    )
    return Table("decisions", "How the first step decides", columns, tuple(rows), notes)


def papers_pairs(compared: ComparedResults) -> list[Pair]:
    """Return what `all_pairs` does; none without a data set of the paper."""
    return all_pairs(compared) if compared.has_papers else []


def all_pairs(compared: ComparedResults) -> list[Pair]:
    """Return the results of RAG and the long context on the same questions."""
    rag, reader = compared.get("rag", compared.ks[0]), compared.get("long_context")
    return [(each, reader[key]) for key, each in rag.items() if key in reader]


def difference_of(rag: Result, reader: Result) -> float:
    """Return RAG's score minus the long context's, times 100."""
    return 100 * (rag.score - reader.score)


def bin_of(rag: Result, reader: Result) -> int:
    """Return the nearest multiple of ten of a difference; half-way, the one farther from 0."""
    difference = round(difference_of(rag, reader), 9)  # 0.35 - 0.3 is a little more than 0.05
    return int(copysign(BIN_WIDTH * floor(abs(difference) / BIN_WIDTH + 0.5), difference))


def count_wins(pairs: Sequence[Pair]) -> Counter[str]:
    """Count how often the long context and RAG are correct, the only one that is, and better than the other."""
    counts: Counter[str] = Counter()
    for rag, reader in pairs:
        right = (reader.exact == 1, rag.exact == 1)
        best = right if any(right) else (reader.set_f1 > rag.set_f1, rag.set_f1 > reader.set_f1)
        counts.update(name for name, holds in zip(("LC correct", "RAG correct"), right, strict=True) if holds)
        if right[0] != right[1]:
            counts["LC only" if right[0] else "RAG only"] += 1
        if best[0] != best[1]:
            counts["LC better" if best[0] else "RAG better"] += 1
    return counts


def _quality(pairs: Sequence[Pair]) -> tuple[float, float, int, int]:
    scores = [(rag.score, reader.score) for rag, reader in pairs]
    means = [100 * fmean(column) for column in zip(*scores, strict=True)]
    return means[0], means[1], sum(rag < reader for rag, reader in scores), sum(rag > reader for rag, reader in scores)
