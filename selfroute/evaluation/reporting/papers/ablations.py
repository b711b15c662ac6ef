"""The tables of section 5 of the paper: other k, PassKey, questions answered from memory, reasons for declines."""

from __future__ import annotations

from collections import Counter

from selfroute.evaluation.reasons import ANSWERED, LETTERS, UNREADABLE
from selfroute.evaluation.records import ALL_STRATEGIES
from selfroute.evaluation.reporting.compared import ComparedResults, mean, tokens_row
from selfroute.evaluation.reporting.notes import about_papers
from selfroute.evaluation.reporting.papers import paper as published
from selfroute.evaluation.table import Cell, Table

_REASONS = {**{letter: f"{letter} {name}" for letter, name in LETTERS.items()}, ANSWERED: ANSWERED, UNREADABLE: "?"}


def by_k(compared: ComparedResults) -> Table | None:
    """Make Table 7: scores and tokens by the number of passages."""
    if len(compared.ks) < 2 or not compared.keys:  # noqa: PLR2004
        return None
    names = compared.datasets
    with_paper = all(name in compared.papers and name in published.LONGBENCH for name in names)
    strategies = list(dict.fromkeys(("rag", "self_route", *compared.reading_passages)))
    rows: list[tuple[Cell, ...]] = []
    for k in compared.ascending_ks:
        average, _ = compared.figures(k)
        own = (average.get(row) for row in (*strategies, *map(tokens_row, strategies)))
        rows.append((k, *own, *(published.K.get(k or 0, ("",) * 4) if with_paper else ())))
    columns: tuple[str, ...] = (*strategies, *(f"{strategy} token %" for strategy in strategies))
    notes = []
    average, _ = compared.figures(compared.ks[0])
    score = average.get("long_context")
    if score is not None:
        notes.append(f"The long context scores {score:.2f}.")
    if with_paper:
        columns += tuple(f"paper {name}" for name in ("rag", "self_route", "rag token %", "self_route token %"))
        of_seven = "Gemini-1.5-Pro's over the seven data sets of LongBench"
        notes.append(f"The paper's are {of_seven}; its long context scores {published.K_LONG_CONTEXT:.2f}.")
        if missing := [name for name in published.LONGBENCH if name not in names]:
            notes.append(f"This run's are without {', '.join(missing)}.")
        notes += about_papers(compared.counts(names))
    title = "Scores and input tokens by k (Table 7 and Figure 3 of the paper)"
    return Table("k", title, ("k", *columns), tuple(rows), tuple(notes))


def passkey(compared: ComparedResults) -> Table | None:
    """Make Table 3: PassKey and its variants."""
    names = [name for name in compared.datasets if name in published.PASSKEY and name in compared.papers]
    if not names:
        return None
    average, own = compared.figures(compared.ks[0])
    ran = [row for row in ALL_STRATEGIES if row in average]
    prices = [row for row in map(tokens_row, compared.reading_passages) if row in average]
    rows = tuple((name, *(own[name][row] for row in (*ran, *prices)), *published.PASSKEY[name]) for name in names)
    notes = ("The paper's are Gemini-1.5-Pro's.", *about_papers(compared.counts(names)), *compared.about_k)
    columns = ("data set", *ran, *prices, "paper rag", "paper long_context")
    return Table("passkey", "PassKey and its variants (Table 3 of the paper)", columns, rows, notes)


def based_only_on(compared: ComparedResults) -> Table | None:
    """Make Table 4: the long context without and with "based only on the provided passage"."""
    results = [each for each in compared.record.results if each.strategy == "long_context"]
    reader = [each for each in results if compared.measure == "score" or each.judged is not None]
    without, given = (
        {each.key: compared.value(each) for each in reader if each.based_only_on is asked} for asked in (False, True)
    )
    keys = [key for key in without if key in given]
    if not keys:
        return None
    counts = Counter(name for name, _ in keys)
    beside = {name: published.BASED_ONLY_ON[name] for name in compared.papers if name in published.BASED_ONLY_ON}
    with_paper = any(name in beside for name in counts)
    rows: list[tuple[Cell, ...]] = []
    for name, count in counts.items():
        own = (mean([100 * scores[key] for key in keys if key[0] == name]) for scores in (without, given))
        rows.append((name, count, *own, *(beside.get(name, ("", "")) if with_paper else ())))
    columns: tuple[str, ...] = ("data set", "questions", "without", "with")
    notes: tuple[str, ...] = ()
    if with_paper:
        columns += ("paper without", "paper with")
        fewer = about_papers({name: count for name, count in counts.items() if name in beside})
        notes = ("The paper's are Gemini-1.5-Pro's.", *fewer)
    title = 'The long context without and with "based only on the provided passage" (Table 4 of the paper)'
    return Table("based_only_on", title, columns, tuple(rows), notes)


def closed_book(compared: ComparedResults) -> Table | None:
    """Make Table 5: without the questions that the model answers from memory."""
    asked = {each.key: each for each in compared.record.results if each.strategy == "closed_book"}
    whole = compared.only(asked)
    if not whole.keys:
        return None
    # a decline is not knowledge, even if the reference says that there is no answer
    part = whole.only(key for key, each in asked.items() if not (each.answerable and each.exact == 1))
    (average, by_dataset), (rest_average, rest) = (some.figures(whole.ks[0]) for some in (whole, part))
    pairs = [("Avg", average, rest_average)] if len(by_dataset) > 1 else []
    pairs += [(name, figures, rest.get(name, {"questions": 0})) for name, figures in by_dataset.items()]
    with_paper = "musique" in by_dataset and "musique" in compared.papers
    rows: list[tuple[Cell, ...]] = []
    for name, figures, left in pairs:
        others = [row for strategy in compared.reading_passages for row in (strategy, tokens_row(strategy))]
        for row in dict.fromkeys((*published.CLOSED_BOOK, *others)):
            if row in figures:
                beside = published.CLOSED_BOOK.get(row, ("",) * 4) if name == "musique" else ("",) * 4
                own = (figures[row], left.get(row))
                rows.append((name, row, *own, *(beside if with_paper else ())))
    columns = ["data set", "", "all questions", "not from memory"]
    if with_paper:
        models = ("Gemini-1.5-Pro", "GPT-3.5-Turbo")
        columns += [f"{model} {part}" for model in models for part in ("all", "not from memory")]
    notes = (
        "A question is answered from memory if its answer without any text is a loose exact match.",
        "Questions that were not asked without text are left out.",
        *(about_papers(whole.counts(["musique"])) if with_paper else ()),
        *compared.about_k,
    )
    title = "Without the questions that the model answers from memory (Table 5 of the paper)"
    return Table("closed_book", title, tuple(columns), tuple(rows), notes)


def reasons(compared: ComparedResults) -> Table | None:
    """Make Figure 4 as a table: why the passages were not enough, according to the model."""
    found = [each for each in compared.record.reasons if each.k == compared.ks[0]]
    counts = Counter((each.dataset, each.letter) for each in found)
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(each.dataset for each in found):
        of_set = [counts[name, letter] for letter in _REASONS]
        rows.append((name, *of_set, sum(of_set)))
    notes = (
        "Answerable: when asked for a reason, the model answered after all. ?: its reply cannot be read.",
        *compared.about_k,
    )
    columns = ("data set", *_REASONS.values(), "questions")
    title = "Why the passages were not enough (Figure 4 of the paper)"
    return Table("reasons", title, columns, tuple(rows), notes) if rows else None
