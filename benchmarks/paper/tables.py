"""The papers' tables, and those that their figures draw, over the results of a study; beside them the papers' numbers.

Scores are times 100. Numbers of the papers stand beside the same questions only: data sets that were loaded as theirs,
and an average over several beside the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from selfroute_workbench.evaluation.looks import Key, Look, Result, Strategy
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.table import Cells, Table

from . import published
from .compared import WINS, Pair, counted, kept_of, known_of, pairs_of, question_word
from .datasets import DATASETS
from .metrics import SEQUEL
from .prompts import ANSWERED, LETTERS, UNREADABLE
from .study import STRATEGIES, Study

_TYPES = {"window": "index", "tree": "index", "raptor": "summaries"}
_WITHOUT_K = ("tree", "raptor")  # one chunk, and so many tokens
_CORRECT = (
    "Correct and better by the measures of the sequel's text, strict exact match and F1 over sets of words, and of its "
    "program, which is looser; choices by their scores."
)
_MEMORY = "A question is answered from memory if its answer without any text is exactly a reference."
_TOKENS = "Token %: the tokens of a data set, of the long context's; uncut: of what whole documents would have taken."
_BIN = 10

_ROWS: Mapping[Strategy, str] = {"long_context": "long context", "rag": "RAG", "paper": "Self-Route"}
_SHARES = (("token %", "paper"), ("RAG token %", "rag"))


def tables(study: Study, papers: Collection[str] = ()) -> list[Table]:
    """Return the tables that a study has results for, given the names of data sets that were loaded as the paper's."""
    results = next(iter(study.results.values()), None)
    if results is None:
        return []
    pairs, kept = pairs_of(study, results), kept_of(study)
    made = [main_table(study), _beside(study, papers), _by_k(study, papers)]
    made += [_differences(study, pairs, papers), _wins(study, kept), _kinds(kept), _retrievers(study, papers)]
    made += [_closed_book(study, papers), _filtered(study, papers), _only_on(study, papers), _reasons(study)]
    return [table for table in made if table and table.rows]


def main_table(study: Study) -> Table:
    """Return Table 1: scores, the share that the first step answered, and tokens, on average and by data set."""
    datasets = _datasets(study)
    rows: list[Cells] = []
    for variant, results in study.results.items():
        figures = _figures(study, results, datasets)
        rows += [(row, variant.retriever, variant.k, *line) for row, line in figures.items()]
    columns = ("", "retriever", "k", "Avg", *datasets)
    title = f"Scores, answerable share and tokens of {len(study.questions):,} questions (Table 1)"
    return Table("main", title, columns, tuple(rows), tuple(_notes(study)))


def _beside(study: Study, papers: Collection[str]) -> Table | None:
    names = [name for name in _datasets(study) if name in papers]
    if not names:
        return None
    figures = _figures(study, next(iter(study.results.values())), names)
    rows: list[Cells] = [("this run", row, *figures[row]) for row in (*published.ROWS, _WHOLE)]
    for model, of_model in published.MODELS.items():
        for row, line in of_model.items():
            if some := [line[name] for name in names if name in line]:
                rows.append((model, row, fmean(some), *map(line.get, names)))
    notes = ("Avg is the average over these data sets.", *_cuts(study), *_fewer(study, names))
    return Table("paper", "Beside the paper's figures (Tables 1 to 3)", ("", "row", "Avg", *names), tuple(rows), notes)


def _by_k(study: Study, papers: Collection[str]) -> Table | None:
    first, names = next(iter(study.results)).retriever, _datasets(study)
    by_k = {variant.k: results for variant, results in study.results.items() if variant.retriever == first}
    if len(by_k) == 1:
        return None
    are_papers = set(names) == set(published.LONGBENCH) <= set(papers)
    rows: list[Cells] = []
    for k, results in sorted(by_k.items()):
        figures = _figures(study, results, names)
        own = [figures[_row(study, row)][0] for row in ("rag", "paper", "long_context")]
        own += [figures[row][0] for row in ("RAG token %", "token %")]
        rows.append((k, *own, *(published.K.get(k, ("",) * 4) if are_papers else ())))
    columns = ("RAG", "Self-Route", "long context", "RAG token %", "Self-Route token %")
    theirs = tuple(f"paper {name}" for name in columns if name != "long context") if are_papers else ()
    notes = ("The paper's are Gemini-1.5-Pro's.", *_fewer(study, names)) if are_papers else ()
    title = "Scores and tokens by the number of passages (Table 7, Figure 3)"
    return Table("k", title, ("k", *columns, *theirs), tuple(rows), notes)


def _differences(study: Study, pairs: Sequence[Pair], papers: Collection[str]) -> Table | None:
    if not pairs:
        return None
    bins: dict[int, list[float]] = {centre: [] for centre in range(-100, 101, _BIN)}
    for pair in pairs:
        # Half-way goes away from 0; 0.35 - 0.3 is a little more than 0.05.
        scores = _score(study, pair.rag), _score(study, pair.whole)
        difference = round(scores[0] - scores[1], 9)
        centre = int((abs(difference) + _BIN / 2) // _BIN * _BIN * (1 if difference > 0 else -1))
        bins[centre].append(fmean(scores))
    rows = tuple(
        (centre, len(some), 100 * len(some) / len(pairs), fmean(some)) for centre, some in bins.items() if some
    )
    columns = ("difference", "questions", "share %", "average score")
    title = "RAG's score minus the long context's, within five of the number (Figure 2)"
    return Table("differences", title, columns, rows, (_agreement(study, pairs, papers),))


def _agreement(study: Study, pairs: Sequence[Pair], papers: Collection[str]) -> str:
    """Return the note on how RAG and the long context agree (section 4.1)."""
    same = fmean(one.rag.answer.strip() == one.whole.answer.strip() for one in pairs)
    close = fmean(round(abs(_score(study, one.rag) - _score(study, one.whole)), 9) < _BIN for one in pairs)
    theirs = f"; in the paper {published.IDENTICAL:g} % and {published.CLOSE:g} %"
    of_paper = set(_datasets(study)) == set(published.DATASETS) <= set(papers)
    ours = f"Identical answers: {100 * same:.0f} %; scores less than 10 apart: {100 * close:.0f} %"
    return f"{ours}{theirs if of_paper else ''}."


def _wins(study: Study, pairs: Sequence[Pair]) -> Table:
    parts = [list(part) for _, part in groupby(pairs, key=lambda pair: pair.question.dataset)]
    named = [(part[0].question.dataset, part) for part in parts] + ([("Overall", [*pairs])] if len(parts) > 1 else [])
    rows: tuple[Cells, ...] = tuple(
        (name, by, len(part), *counted(part, measures)) for by, measures in SEQUEL.items() for name, part in named
    )
    title = "RAG and the long context, question by question (the sequel's Table 4)"
    left_out = f"Left out: {len(known_of(study, SEQUEL['text'])):,} questions that are answered from memory."
    notes = (_CORRECT, *([left_out] if study.closed_book else ()), *_cuts(study))
    return Table("wins", title, ("", "by its", "questions", *WINS), rows, notes)


def _kinds(pairs: Sequence[Pair]) -> Table:
    names: Mapping[str, Callable[[Question], str | None]] = {
        "question": lambda one: question_word(one.question),
        "kind": lambda one: one.kind,
        "source": lambda one: one.source,
    }
    groups: dict[tuple[str, str], list[Pair]] = {}
    for what, name_of in names.items():
        for pair in pairs:
            if name := name_of(pair.question):
                groups.setdefault((what, name), []).append(pair)
    rows: tuple[Cells, ...] = tuple((*name, len(part), *counted(part, SEQUEL["text"])) for name, part in groups.items())
    title = "RAG and the long context by kind of question and source (the sequel's Figures 3 to 6)"
    notes = ("By the measures of the sequel's text.", "Few questions show little.")
    return Table("kinds", title, ("by", "", "questions", *WINS), rows, notes)


def _retrievers(study: Study, papers: Collection[str]) -> Table:
    rows: list[Cells] = []
    of_sequel = all(name in papers and name in published.OF_SEQUEL for name in _datasets(study))
    for by, measures in SEQUEL.items():
        for variant, results in study.results.items():
            if pairs := kept_of(study, results):
                k = None if variant.retriever in _WITHOUT_K else variant.k
                wins = counted(pairs, measures)
                theirs = (published.RETRIEVERS.get(variant.retriever),) if of_sequel else ()
                head = (variant.retriever, _TYPES.get(variant.retriever, "chunks"), k, by, len(pairs))
                rows.append((*head, 100 * wins[1] / len(pairs), *theirs, wins[3], wins[5]))
    columns = ("retriever", "of", "k", "by its", "questions", "correct %", *(("paper",) if of_sequel else ()))
    title = "RAG with each retriever, beside the long context (the sequel's Table 5)"
    notes = (_CORRECT, *(("The paper's are over its twelve data sets, of which six are here.",) if of_sequel else ()))
    return Table("retrievers", title, (*columns, "RAG only", "RAG better"), tuple(rows), notes)


def _closed_book(study: Study, papers: Collection[str]) -> Table | None:
    if not study.closed_book:
        return None
    results, known = next(iter(study.results.values())), known_of(study, SEQUEL["text"])
    rest = [result for result in results if result.key not in known]
    names = list(dict.fromkeys(result.key[0] for result in results))
    rows: list[Cells] = [("questions", *(len({one.key for one in some}) for some in (results, rest)))]
    whole, left = (_figures(study, some, names) for some in (results, rest))
    rows += [(row, whole[row][0], left[row][0]) for row in published.ROWS]
    columns: tuple[str, ...] = ("", "all", "not from memory")
    if names == ["musique"] and "musique" in papers:
        rows = [(*row, *published.CLOSED_BOOK[str(row[0])]) for row in rows]
        columns += ("Gemini-1.5-Pro", "not from memory", "GPT-3.5-Turbo", "not from memory")
    title = "Without the questions that are answered from memory (Table 5)"
    return Table("closed_book", title, columns, tuple(rows), (_MEMORY,))


def _filtered(study: Study, papers: Collection[str]) -> Table | None:
    asked = [question for question in study.questions if question.key in study.closed_book]
    known = {by: known_of(study, measures) for by, measures in SEQUEL.items()}
    rows: list[Cells] = []
    for name in dict.fromkeys(question.dataset for question in asked):
        some = [question for question in asked if question.dataset == name]
        kept, loosely = (sum(question.key not in known[by] for question in some) for by in ("text", "program"))
        words = fmean(len((question.document or "").split()) for question in some)
        modes = " and ".join(sorted({"choice" if question.choices else "open" for question in some}))
        size, share = published.OF_SEQUEL.get(name, (0, None))
        theirs = share if name in papers and size == len(some) else None
        rows.append((name, round(words), len(some), kept, 100 * kept / len(some), theirs, loosely, modes))
    columns = ("", "words of a document", "questions", "kept", "kept %", "paper", "kept by its program", "mode")
    title = "Questions that need their text (the sequel's Table 2)"
    return Table("filtered", title, columns, tuple(rows), (_MEMORY, "Its program drops more: its match is loose."))


def _only_on(study: Study, papers: Collection[str]) -> Table | None:
    first = next(iter(study.results.values()))
    given = {one.key: _score(study, one) for one in first if one.strategy == "long_context"}
    plain = {key: _score(study, look) for key, look in study.without.items() if key in given}
    rows = tuple(
        (name, _mean(plain[key] for key in some), _mean(given[key] for key in some), *theirs)
        for name in _datasets(study)
        if (some := [key for key in plain if key[0] == name])
        for theirs in [published.BASED_ONLY_ON.get(name, (None, None)) if name in papers else (None, None)]
    )
    title = "The long context without and with “based on the article” (Table 4)"
    columns = ("", "without", "with", "paper without", "paper with")
    notes = ("With is the run of Table 1.", *_cuts(study), *_fewer(study, [str(row[0]) for row in rows if row[3]]))
    return Table("based_only_on", title, columns, rows, notes)


def _reasons(study: Study) -> Table | None:
    counts = Counter((dataset, reason) for (dataset, _), reason in study.reasons.items())
    letters = [one for one in (*LETTERS, ANSWERED, UNREADABLE) if one in study.reasons.values()]
    names = dict.fromkeys(dataset for dataset, _ in study.reasons)
    rows: tuple[Cells, ...] = tuple((name, *(counts[name, one] for one in letters)) for name in names)
    columns = ("", *(f"{one} {LETTERS.get(one, '')}".strip() for one in letters))
    return Table("reasons", "Why the passages were not enough, in questions (Figure 4)", columns, rows)


_WHOLE = "token %, uncut"
JUDGED = ", judged"
"""Ends the names of the rows with scores by meaning."""


def _figures(study: Study, results: Sequence[Result], datasets: Sequence[str]) -> dict[str, list[float | None]]:
    """Return the rows of Table 1: each the average over data sets and the figure of each."""
    by: dict[str, dict[Key, Result]] = {
        strategy: {one.key: one for one in results if one.strategy == strategy} for strategy in STRATEGIES
    }
    values = {row: {key: 100 * one.score for key, one in by[of].items()} for of, row in _ROWS.items()}
    if study.measure == "judged":
        for strategy in _ROWS:
            values[_row(study, strategy)] = {key: _score(study, one) for key, one in by[strategy].items()}
    values["answerable %"] = {key: 100.0 * (one.route == "rag") for key, one in by["paper"].items()}
    lines = {
        row: [_mean(value for (dataset, _), value in of.items() if dataset == name) for name in datasets]
        for row, of in values.items()
    }
    for row, of, lost in (*((*each, {}) for each in _SHARES), (_WHOLE, "paper", study.lost)):
        both = [key for key in by[of] if key in by["long_context"]]
        lines[row] = [
            _share((by[of][key].input_tokens, by["long_context"][key].input_tokens + lost.get(key, 0)) for key in some)
            for name in datasets
            for some in [[key for key in both if key[0] == name]]
        ]
    return {row: [_mean(mean for mean in line if mean is not None), *line] for row, line in lines.items()}


def _share(counts: Iterable[tuple[int, int]]) -> float | None:
    """Return how many per cent the first numbers are of the second, all together (appendix B)."""
    some, whole = (sum(each) for each in zip((0, 0), *counts, strict=True))
    return 100 * some / whole if whole else None


def _row(study: Study, strategy: Strategy) -> str:
    return _ROWS[strategy] + (JUDGED if study.measure == "judged" else "")


def _score(study: Study, one: Result | Look) -> float:
    return 100 * ((one.judged if study.measure == "judged" else one.score) or 0.0)


def _datasets(study: Study) -> list[str]:
    return list(dict.fromkeys(question.dataset for question in study.questions))


def _mean(values: Iterable[float]) -> float | None:
    some = list(values)
    return fmean(some) if some else None


def _notes(study: Study) -> Iterator[str]:
    yield "Scores are times 100, by the data sets' own metrics; Avg is the average over the data sets."
    if study.measure == "judged":
        yield "Judged: whether an answer says what a reference says, by a model that does not know its strategy."
    yield _TOKENS
    yield from _cuts(study)
    if study.failures:
        yield f"Steps that failed, which are not scored: {len(study.failures):,}. The first: {study.failures[0].error}"
    if study.stopped:
        yield f"The run ended early: {study.stopped}."


def _cuts(study: Study) -> Iterator[str]:
    """Yield the note on documents that did not fit the window."""
    asked, cut = (Counter(name for name, _ in keys) for keys in ((one.key for one in study.questions), study.lost))
    if cut:
        of = ", ".join(f"{count:,} of {asked[name]:,} questions of {name}" for name, count in cut.items())
        yield f"The long context lost text at the {study.where}, to fit the model's window, for {of}."


def _fewer(study: Study, names: Sequence[str]) -> tuple[str, ...]:
    """Return the note for the paper's figures if this run has fewer questions."""
    counts = {name: [one.dataset for one in study.questions].count(name) for name in names}
    sizes = {name: DATASETS[name].size for name in names}
    fewer = [f"{counts[name]:,} of {sizes[name]:,} of {name}" for name in names if counts[name] < sizes[name]]
    return (f"This run has fewer questions than the paper: {', '.join(fewer)}.",) if fewer else ()
