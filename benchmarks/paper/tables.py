"""The papers' tables and figures over the results of a study, with the papers' own numbers beside them.

Scores are times 100. Numbers of the papers stand beside those of data sets that were loaded as the papers' own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from selfroute_workbench.evaluation.looks import Key, Result, Strategy
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.table import Cell, Table

from . import published
from .datasets import DATASETS
from .metrics import set_f1
from .reasons import LETTERS
from .study import STRATEGIES, Study, is_correct

_TYPES = {"window": "index", "tree": "index", "raptor": "summaries"}
_WORDS = ("what", "who", "whom", "whose", "which", "where", "when", "why", "how")
_SAME = {"whom": "who", "whose": "who"}
_WINS = ("LC correct", "RAG correct", "LC only", "RAG only", "LC better", "RAG better")
_CORRECT = "An answer is correct by the sequel's loose exact match, a choice by its score; better is also a higher F1."
_MEMORY = "A question is answered from memory if its answer without any text is correct."
_BIN = 10

_ROWS: Mapping[Strategy, str] = {"rag": "RAG", "paper": "Self-Route", "long_context": "long context"}
Pair = tuple[Question, Result, Result]  # of RAG and of the long context


def tables(study: Study, papers: Collection[str] = ()) -> list[Table]:
    """Return the tables that a study has the results for.

    Args:
        study: The study.
        papers: The data sets that were loaded as the paper's; the user's own may have the same names.
    """
    first = next(iter(study.results), None)
    if first is None:
        return []
    pairs = _pairs(study, study.results[first])
    made = [main_table(study), _beside(study, papers), _by_k(study, papers), _passkey(study, papers)]
    made += [_differences(pairs), _agreement(pairs), _wins(pairs), _kinds(pairs), _retrievers(study, papers)]
    made += [_closed_book(study, papers), _filtered(study, papers), _only_on(study, papers), _reasons(study)]
    return [table for table in made if table and table.rows]


def main_table(study: Study) -> Table:
    """Return Table 1: scores, the share that the first step answered, and tokens, on average and by data set."""
    datasets = _datasets(study)
    rows: list[tuple[Cell, ...]] = []
    for variant, results in study.results.items():
        figures = _figures(results, datasets)
        rows += [(row, variant.retriever, variant.k, *line) for row, line in figures.items()]
    columns = ("", "retriever", "k", "Avg", *datasets)
    title = f"Scores, answerable share and tokens of {len(study.questions):,} questions (Table 1)"
    return Table("main", title, columns, tuple(rows), tuple(_notes(study)))


def _beside(study: Study, papers: Collection[str]) -> Table | None:
    names = [name for name in _datasets(study) if name in papers and name in published.DATASETS]
    if not names:
        return None
    rows: list[tuple[Cell, ...]] = [
        ("this run", row, *line) for row, line in _figures(next(iter(study.results.values())), names).items()
    ]
    for model, figures in published.MODELS.items():
        for row, line in figures.items():
            some = [line[name] for name in names]
            rows.append((model, row, fmean(some), *some))
    notes = ("Avg is the average over these data sets.", *_fewer(study, names))
    return Table("paper", "Beside the paper's figures (Tables 1 and 2)", ("", "row", "Avg", *names), tuple(rows), notes)


def _by_k(study: Study, papers: Collection[str]) -> Table | None:
    first = next(iter(study.results)).retriever
    by_k = {variant.k: results for variant, results in study.results.items() if variant.retriever == first}
    if len(by_k) == 1:
        return None
    names = _datasets(study)
    are_papers = all(name in papers and name in published.LONGBENCH for name in names)
    rows: list[tuple[Cell, ...]] = []
    for k, results in sorted(by_k.items()):
        figures = _figures(results, names)
        own = (figures[row][0] for row in ("RAG", "Self-Route", "RAG token %", "token %"))
        rows.append((k, *own, *(published.K.get(k, ("",) * 4) if are_papers else ())))
    columns: tuple[str, ...] = ("RAG", "Self-Route", "RAG token %", "Self-Route token %")
    columns = ("k", *columns, *((f"paper {name}" for name in columns) if are_papers else ()))
    notes = (
        ("The paper's are Gemini-1.5-Pro's over seven data sets of LongBench.", *_fewer(study, names))
        if are_papers
        else ()
    )
    return Table("k", "Scores and tokens by the number of passages (Table 7, Figure 3)", columns, tuple(rows), notes)


def _passkey(study: Study, papers: Collection[str]) -> Table | None:
    names = [name for name in _datasets(study) if name in papers and name in published.PASSKEY]
    figures = _figures(next(iter(study.results.values())), names)
    rows = tuple(
        (name, *(figures[row][number + 1] for row in ("RAG", "Self-Route", "long context")), *published.PASSKEY[name])
        for number, name in enumerate(names)
    )
    columns = ("", "RAG", "Self-Route", "long context", "paper RAG", "paper long context")
    return Table("passkey", "PassKey and its variants (Table 3)", columns, rows, _fewer(study, names))


def _differences(pairs: Sequence[Pair]) -> Table:
    bins: dict[int, list[float]] = {centre: [] for centre in range(-100, 101, _BIN)}
    for _, rag, whole in pairs:
        # Half-way goes away from 0; 0.35 - 0.3 is a little more than 0.05.
        difference = round(100 * (rag.score - whole.score), 9)
        bins[int((abs(difference) + _BIN / 2) // _BIN * _BIN * (1 if difference > 0 else -1))].append(
            50 * (rag.score + whole.score)
        )
    rows = tuple(
        (centre, len(some), 100 * len(some) / len(pairs), fmean(some)) for centre, some in bins.items() if some
    )
    columns = ("difference", "questions", "share %", "average score")
    title = "RAG's score minus the long context's, within five of the number (Figure 2)"
    return Table("differences", title, columns, rows)


def _agreement(pairs: Sequence[Pair]) -> Table | None:
    if not pairs:
        return None
    same = fmean(rag.answer.strip() == whole.answer.strip() for _, rag, whole in pairs)
    close = fmean(round(100 * abs(rag.score - whole.score), 9) < _BIN for _, rag, whole in pairs)
    rows = (
        ("identical answers %", 100 * same, published.IDENTICAL),
        ("scores less than 10 apart %", 100 * close, published.CLOSE),
    )
    return Table("agreement", "How RAG and the long context agree (section 4.1)", ("", "this run", "paper"), rows)


def _wins(pairs: Sequence[Pair]) -> Table:
    parts = {name: list(part) for name, part in groupby(pairs, key=lambda pair: pair[0].dataset)}
    rows = [(name, len(part), *_counted(part)) for name, part in parts.items()]
    if len(rows) > 1:
        rows.append(("Overall", len(pairs), *_counted(pairs)))
    title = "RAG and the long context, question by question (the sequel's Table 4)"
    return Table("wins", title, ("", "questions", *_WINS), tuple(rows), (_CORRECT,))


def _kinds(pairs: Sequence[Pair]) -> Table:
    groups: dict[tuple[str, str], list[Pair]] = {}
    for what in ("first word", "kind", "source"):
        for pair in pairs:
            question = pair[0]
            name = {"first word": first_word(question.question), "kind": question.kind, "source": question.source}[what]
            if name:
                groups.setdefault((what, name), []).append(pair)
    rows: tuple[tuple[Cell, ...], ...] = tuple((*names, len(part), *_counted(part)) for names, part in groups.items())
    title = "RAG and the long context by kind of question and source (the sequel's Figures 3 to 6)"
    return Table("kinds", title, ("by", "", "questions", *_WINS), rows, (_CORRECT, "Few questions show little."))


def _retrievers(study: Study, papers: Collection[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    is_papers = bool(papers) and all(name in papers for name in _datasets(study))
    for variant, results in study.results.items():
        pairs = _pairs(study, results)
        if pairs:
            right, wins = fmean(_is_correct(question, rag) for question, rag, _ in pairs), _counted(pairs)
            f1 = fmean(set_f1(_said(rag), question.answers) for question, rag, _ in pairs)
            theirs = (published.RETRIEVERS.get(variant.retriever, ""),) if is_papers else ()
            head = (variant.retriever, _TYPES.get(variant.retriever, "chunks"), variant.k, len(pairs))
            rows.append((*head, 100 * right, *theirs, wins[3], wins[5], 100 * f1))
    columns = ("retriever", "of", "k", "questions", "correct %", *(("paper",) if is_papers else ()))
    title = "RAG with each retriever, beside the long context (the sequel's Table 5)"
    return Table("retrievers", title, (*columns, "RAG only", "RAG better", "F1"), tuple(rows), (_CORRECT,))


def _closed_book(study: Study, papers: Collection[str]) -> Table | None:
    if not study.closed_book:
        return None
    results = [result for result in next(iter(study.results.values())) if result.key in study.closed_book]
    rest = [result for result in results if not study.closed_book[result.key]]
    names = list(dict.fromkeys(result.key[0] for result in results))
    rows: list[tuple[Cell, ...]] = [("questions", *(len({one.key for one in some}) for some in (results, rest)))]
    whole, left = (_figures(some, names) for some in (results, rest))
    rows += [(row, whole[row][0], left[row][0]) for row in published.ROWS]
    columns: tuple[str, ...] = ("", "all", "not from memory")
    if names == ["musique"] and "musique" in papers:
        rows = [(*row, *published.CLOSED_BOOK[str(row[0])]) for row in rows]
        columns += ("Gemini-1.5-Pro", "not from memory", "GPT-3.5-Turbo", "not from memory")
    title = "Without the questions that are answered from memory (Table 5)"
    return Table("closed_book", title, columns, tuple(rows), (_MEMORY,))


def _filtered(study: Study, papers: Collection[str]) -> Table | None:
    asked = [question for question in study.questions if question.key in study.closed_book]
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(question.dataset for question in asked):
        some = [question for question in asked if question.dataset == name]
        kept = sum(not study.closed_book[question.key] for question in some)
        words = fmean(len((question.document or "").split()) for question in some)
        modes = " and ".join(sorted({"choice" if question.choices else "open" for question in some}))
        theirs = published.KEPT.get(name) if name in papers else None
        rows.append((name, round(words), len(some), kept, 100 * kept / len(some), theirs, modes))
    columns = ("", "words of a document", "questions", "kept", "kept %", "paper", "mode")
    title = "Questions that need their text (the sequel's Tables 2 and 3)"
    return Table("filtered", title, columns, tuple(rows), (_MEMORY,))


def _only_on(study: Study, papers: Collection[str]) -> Table | None:
    plain = {one.key: 100 * one.score for one in next(iter(study.results.values())) if one.strategy == "long_context"}
    given = {key: 100 * score for key, score in study.based_only_on.items() if key in plain}
    rows = tuple(
        (name, _mean(plain[key] for key in some), _mean(given[key] for key in some), *theirs)
        for name in _datasets(study)
        if (some := [key for key in given if key[0] == name])
        for theirs in [published.BASED_ONLY_ON.get(name, (None, None)) if name in papers else (None, None)]
    )
    title = "The long context without and with “based only on the provided passage” (Table 4)"
    columns = ("", "without", "with", "paper without", "paper with")
    return Table("based_only_on", title, columns, rows, _fewer(study, [str(row[0]) for row in rows if row[3]]))


def _reasons(study: Study) -> Table | None:
    counts = Counter(study.reasons.values())
    rows = tuple((f"{letter} {LETTERS.get(letter, '')}".strip(), count) for letter, count in sorted(counts.items()))
    return Table("reasons", "Why the passages were not enough (Figure 4)", ("", "questions"), rows)


def _figures(results: Sequence[Result], datasets: Sequence[str]) -> dict[str, list[float | None]]:
    """Return the rows of Table 1: each the average over data sets and the figure of each."""
    by: dict[str, dict[Key, Result]] = {
        strategy: {one.key: one for one in results if one.strategy == strategy} for strategy in STRATEGIES
    }
    whole = {key: max(one.input_tokens, 1) for key, one in by["long_context"].items()}
    values: dict[str, Mapping[Key, float]] = {
        _ROWS[strategy]: {key: 100 * one.score for key, one in by[strategy].items()} for strategy in STRATEGIES
    }
    values["answerable %"] = {key: 100.0 * (one.route == "rag") for key, one in by["paper"].items()}
    for strategy, name in (("paper", "token %"), ("rag", "RAG token %")):
        values[name] = {key: 100 * one.input_tokens / whole[key] for key, one in by[strategy].items() if key in whole}
    found: dict[str, list[float | None]] = {}
    for row, of in values.items():
        means = [_mean(value for (dataset, _), value in of.items() if dataset == name) for name in datasets]
        found[row] = [_mean(mean for mean in means if mean is not None), *means]
    return found


def _pairs(study: Study, results: Sequence[Result]) -> list[Pair]:
    """Return the results of RAG and the long context on the same questions, by data set."""
    by = {(result.strategy, result.key): result for result in results}
    asked = sorted(study.questions, key=lambda question: _datasets(study).index(question.dataset))
    found = ((one, by.get(("rag", one.key)), by.get(("long_context", one.key))) for one in asked)
    return [(question, rag, whole) for question, rag, whole in found if rag and whole]


def _said(result: Result) -> str:
    return result.answer if result.answerable else ""


def _is_correct(question: Question, result: Result) -> bool:
    return is_correct(question, _said(result), result.score)


def _counted(pairs: Iterable[Pair]) -> tuple[int, ...]:
    """Count `_WINS`."""
    counts: Counter[str] = Counter()
    for question, rag, whole in pairs:
        right = (_is_correct(question, whole), _is_correct(question, rag))
        f1 = tuple(set_f1(_said(one), question.answers) for one in (whole, rag))
        best = right if any(right) else (f1[0] > f1[1], f1[1] > f1[0])
        holds = (*right, right == (True, False), right == (False, True), best == (True, False), best == (False, True))
        counts.update(name for name, does in zip(_WINS, holds, strict=True) if does)
    return tuple(counts[name] for name in _WINS)


def first_word(question: str) -> str:
    """Return the question word that a question begins with; "other" without one."""
    found = re.search(r"[a-z]+", question.lower())
    word = found.group() if found else ""
    return _SAME.get(word, word) if word in _WORDS else "other"


def _datasets(study: Study) -> list[str]:
    return list(dict.fromkeys(question.dataset for question in study.questions))


def _mean(values: Iterable[float]) -> float | None:
    some = list(values)
    return fmean(some) if some else None


def _notes(study: Study) -> Iterator[str]:
    yield "Scores are times 100, by the data sets' own metrics; Avg is the average over the data sets."
    if study.failures:
        yield f"Steps that failed, which are not scored: {len(study.failures):,}."
    if study.stopped:
        yield f"The run ended early: {study.stopped}."


def _fewer(study: Study, names: Sequence[str]) -> tuple[str, ...]:
    """Return the note for the paper's figures if this run has fewer questions."""
    counts = Counter(question.dataset for question in study.questions)
    fewer = [
        f"{counts[name]:,} of {DATASETS[name].size:,} of {name}" for name in names if counts[name] < DATASETS[name].size
    ]
    return (f"This run has fewer questions than the paper: {', '.join(fewer)}.",) if fewer else ()
