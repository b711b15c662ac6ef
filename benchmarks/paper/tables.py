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
from selfroute_workbench.evaluation.table import Cell, Cells, Table

from . import published
from .compared import WINS, Pair, counted, kept_keys, kept_of, pairs_of, question_word, shared_keys
from .datasets import DATASETS
from .metrics import SEQUEL
from .prompts import ANSWERED, LETTERS, UNREADABLE
from .study import REFUSAL, STRATEGIES, WITHOUT_K, Study, Variant

_TYPES = {"window": "index", "tree": "index", "raptor": "summaries"}
_CORRECT = (
    "Correct and better by the measures of the sequel's text, strict exact match and F1 over sets of words, and of its "
    "program, which is looser; choices by their scores."
)
_MEMORY = "A question is answered from memory if its answer without any text is exactly a reference."
_TOKENS = "Token %: a data set's tokens together, of those of the long context; uncut: of those of whole documents."
_BIN = 10

_STRATEGY: Strategy = "long_context"
_ROWS: Mapping[Strategy, str] = {"long_context": "long context", "rag": "RAG", "paper": "Self-Route"}
_SHARES: tuple[tuple[str, Strategy], ...] = (("token %", "paper"), ("RAG token %", "rag"))


def tables(study: Study, papers: Collection[str] = ()) -> list[Table]:
    """Return the tables that a study has results for, given the names of data sets that were loaded as the paper's."""
    results = next(iter(study.results.values()), None)
    if results is None:
        return []
    pairs, kept = pairs_of(study, results), kept_of(study)
    made = [main_table(study), _beside(study, papers), _by_k(study, papers)]
    made += [_differences(study, pairs, papers), _wins(study, kept), _kinds(kept), _retrievers(study)]
    made += [_closed_book(study, papers), _filtered(study, papers), _only_on(study, papers), _reasons(study)]
    return [table for table in made if table and table.rows]


def main_table(study: Study) -> Table:
    """Return Table 1: scores, the share that the first step answered, and tokens, on average and by data set."""
    datasets = _datasets(study)
    rows: list[Cells] = []
    for number, (variant, results) in enumerate(study.results.items()):
        figures = _figures(study, results, datasets)
        lines = [(row, line) for row, line in figures.items() if not number or not row.startswith(_LC)]
        if asked := study.index_tokens.get(variant.retriever):
            whole = sum(one.input_tokens for one in results if one.strategy == "long_context")
            lines.append(("index token %", [_share([(asked, whole)])] + [None] * len(datasets)))
        rows += [(row, variant.retriever, _k(variant), *line) for row, line in lines]
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
                rows.append((model, row, fmean(some) if len(some) == len(names) else None, *map(line.get, names)))
    notes = ("Avg is the average over these data sets.", *_cuts(study), *_fewer(study, names))
    title = f"{next(iter(study.results)).label}, beside the paper's figures, k=5 (Tables 1 to 3)"
    return Table("paper", title, ("", "row", "Avg", *names), tuple(rows), notes)


def _by_k(study: Study, papers: Collection[str]) -> Table | None:
    first, names = next(iter(study.results)).retriever, _datasets(study)
    by_k = {variant.k: results for variant, results in study.results.items() if variant.retriever == first}
    if len(by_k) == 1:
        return None
    are_papers = set(names) == set(published.LONGBENCH) <= set(papers)
    rows: list[Cells] = []
    for k, results in sorted(by_k.items()):
        figures = _figures(study, results, names)
        ending = "" if are_papers else _by(study)
        own = [figures[row + ending][0] for row in ("RAG", "Self-Route", _LC)]
        own += [figures[row][0] for row in ("RAG token %", "token %")]
        rows.append((k, *own, *(published.K.get(k, (None,) * 4) if are_papers else ())))
    columns = ("RAG", "Self-Route", "long context", "RAG token %", "Self-Route token %")
    theirs = tuple(f"paper {name}" for name in columns if name != "long context") if are_papers else ()
    notes = ("The paper's are Gemini-1.5-Pro's.", *_fewer(study, names)) if are_papers else ()
    title = f"Scores{'' if are_papers else _by(study)} and tokens by the number of passages (Table 7, Figure 3)"
    return Table("k", title, ("k", *columns, *theirs), tuple(rows), notes)


def _differences(study: Study, pairs: Sequence[Pair], papers: Collection[str]) -> Table | None:
    of_paper = set(_datasets(study)) == set(published.DATASETS) <= set(papers)
    ending = "" if of_paper else _by(study)
    scores = [(pair, _score(pair.rag, ending), _score(pair.whole, ending)) for pair in pairs]
    known = [(pair, rag, whole) for pair, rag, whole in scores if rag is not None and whole is not None]
    if not known:
        return None
    bins: dict[int, list[float]] = {centre: [] for centre in range(-100, 101, _BIN)}
    close = 0
    for _, rag, whole in known:
        # Half-way goes away from 0; 0.35 - 0.3 is a little more than 0.05.
        difference = round(rag - whole, 9)
        centre = int((abs(difference) + _BIN / 2) // _BIN * _BIN * (1 if difference > 0 else -1))
        bins[centre].append(fmean((rag, whole)))
        close += abs(difference) < _BIN
    rows = tuple((at, len(some), 100 * len(some) / len(known), fmean(some)) for at, some in bins.items() if some)
    same = fmean(pair.rag.answer.strip() == pair.whole.answer.strip() for pair, *_ in known)
    note = f"Identical answers: {100 * same:.0f} %; scores less than 10 apart: {100 * close / len(known):.0f} %"
    theirs = f"; in the paper {published.IDENTICAL:g} % and {published.CLOSE:g} %" if of_paper else ""
    columns = ("difference", "questions", "share %", "average score")
    title = f"RAG's score minus the long context's{ending}, within five of the number (Figure 2, section 4.1)"
    return Table("differences", title, columns, rows, (f"{note}{theirs}.",))


def _wins(study: Study, pairs: Sequence[Pair]) -> Table:
    parts = [list(part) for _, part in groupby(pairs, key=lambda pair: pair.question.dataset)]
    named = [(part[0].question.dataset, part) for part in parts] + ([("Overall", [*pairs])] if len(parts) > 1 else [])
    rows: tuple[Cells, ...] = tuple(
        (name, by, len(part), *counted(part, measures)) for by, measures in SEQUEL.items() for name, part in named
    )
    title = "RAG and the long context, question by question (the sequel's Table 4)"
    gone = len(study.questions) - len(kept_keys(study, SEQUEL["text"]))
    notes = (_CORRECT, *([f"Left out, as known from memory or not asked: {gone:,}."] if gone else ()), *_cuts(study))
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
    notes = ("By the measures of the sequel's text, strict exact match before all. Few questions show little.",)
    return Table("kinds", title, ("by", "", "questions", *WINS), rows, notes)


def _retrievers(study: Study) -> Table:
    rows: list[Cells] = []
    for by, measures in SEQUEL.items():
        for variant, results in study.results.items():
            if pairs := kept_of(study, results):
                wins, type_ = counted(pairs, measures), _TYPES.get(variant.retriever, "chunks")
                head = (variant.retriever, type_, _k(variant), by, len(pairs), 100 * wins[1] / len(pairs))
                rows.append((*head, wins[3], wins[5]))
    columns = ("retriever", "of", "k", "by its", "questions", "correct %", "RAG only", "RAG better")
    title = "RAG with each retriever, beside the long context (the sequel's Table 5)"
    return Table("retrievers", title, columns, tuple(rows), (_CORRECT,))


def _k(variant: Variant) -> Cell:
    return "" if variant.retriever in WITHOUT_K else variant.k


def _closed_book(study: Study, papers: Collection[str]) -> Table | None:
    if study.closed_book is None:
        return None
    kept, known = kept_keys(study, SEQUEL["text"]), shared_keys(study) & study.closed_book.keys()
    results = [result for result in next(iter(study.results.values())) if result.key in known]
    rest = [result for result in results if result.key in kept]
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
    asked = [question for question in study.questions if question.key in (study.closed_book or {})]
    kept_by = {by: kept_keys(study, measures) for by, measures in SEQUEL.items()}
    rows: list[Cells] = []
    for name in dict.fromkeys(question.dataset for question in asked):
        some = [question for question in asked if question.dataset == name]
        kept, loosely = (sum(question.key in kept_by[by] for question in some) for by in ("text", "program"))
        words = fmean(len((question.document or "").split()) for question in some)
        modes = " and ".join(sorted({"choice" if question.choices else "open" for question in some}))
        size, share = published.OF_SEQUEL.get(name, (0, None))
        theirs = share if name in papers and size == len(some) else None
        rows.append((name, round(words), len(some), kept, 100 * kept / len(some), theirs, loosely, modes))
    columns = ("", "words of a document", "questions", "kept", "kept %", "paper", "kept by its program", "mode")
    title = "Questions that need their text (the sequel's Table 2)"
    return Table("filtered", title, columns, tuple(rows), (_MEMORY, "Its program drops more: its match is loose."))


def _only_on(study: Study, papers: Collection[str]) -> Table | None:
    first, names = next(iter(study.results.values())), _datasets(study)
    are_papers = any(name in papers and name in published.BASED_ONLY_ON for name in names)
    ending = "" if are_papers else _by(study)
    given = {one.key: _score(one, ending) for one in first if one.strategy == "long_context"}
    plain = {key: _score(look, ending) for key, look in study.without.items()}
    both = [key for key in plain if plain[key] is not None and given.get(key) is not None]
    rows = tuple(
        (name, _mean(plain[key] for key in some), _mean(given[key] for key in some), *theirs)
        for name in names
        if (some := [key for key in both if key[0] == name])
        for theirs in [published.BASED_ONLY_ON.get(name, (None, None)) if name in papers else (None, None)]
    )
    title = f"The long context without and with “based on the article”{ending} (Table 4)"
    columns = ("", "without", "with", "paper without", "paper with")
    notes = ("With is the prompt of Table 1.", *_cuts(study), *_fewer(study, [str(row[0]) for row in rows if row[3]]))
    return Table("based_only_on", title, columns, rows, notes)


def _reasons(study: Study) -> Table | None:
    if not study.reasons:
        return None
    counts = Counter((dataset, reason) for (dataset, _), reason in study.reasons.items())
    letters = [one for one in (*LETTERS, ANSWERED, UNREADABLE) if one in LETTERS or one in study.reasons.values()]
    names = dict.fromkeys(dataset for dataset, _ in study.reasons)
    rows: tuple[Cells, ...] = tuple((name, *(counts[name, one] for one in letters)) for name in names)
    asked = [question.answers for question in study.questions if question.key in study.reasons]
    empty = sum(not answers or REFUSAL in answers for answers in asked)
    notes = (f"{empty:,} of the {len(asked):,} declined questions have no answer in the text.",)
    columns = ("", *(f"{one} {LETTERS.get(one, '')}".strip() for one in letters))
    return Table("reasons", "Why the passages were not enough, in questions (Figure 4)", columns, rows, notes)


_LC, _WHOLE = "long context", "token %, uncut"
JUDGED = ", judged"
"""Ends the names of rows, and the titles of tables, with scores by meaning."""


def _figures(study: Study, results: Sequence[Result], datasets: Sequence[str]) -> dict[str, list[float | None]]:
    """Return Table 1's rows, over the questions that all finished: the average over data sets, and each one's."""
    by: dict[Strategy, dict[Key, Result]] = {
        strategy: {one.key: one for one in results if one.strategy == strategy} for strategy in STRATEGIES
    }
    shared = shared_keys(study)
    keys = {name: [key for key in by["paper"] if key in shared and key[0] == name] for name in datasets}
    lines: dict[str, list[float | None]] = {}
    for ending in dict.fromkeys(("", _by(study))):
        scores = {of: {key: _score(one, ending) for key, one in by[of].items()} for of in _ROWS}
        both = [key for key in by["paper"] if key in shared and None not in (of[key] for of in scores.values())]
        for of, row in _ROWS.items():
            lines[row + ending] = [_mean(scores[of][key] for key in both if key[0] == name) for name in datasets]
    lines["answerable %"] = [_mean(100.0 * (by["paper"][key].route == "rag") for key in some) for some in keys.values()]
    for row, strategy, lost in (*((*each, {}) for each in _SHARES), (_WHOLE, "paper", study.lost)):
        lines[row] = [
            _share((by[strategy][key].input_tokens, by[_STRATEGY][key].input_tokens + lost.get(key, 0)) for key in some)
            for some in keys.values()
        ]
    return {row: [None if None in line else _mean(line), *line] for row, line in lines.items()}


def _share(counts: Iterable[tuple[int, int]]) -> float | None:
    """Return how many per cent the first numbers are of the second, all together (appendix B)."""
    some, whole = (sum(each) for each in zip((0, 0), *counts, strict=True))
    return 100 * some / whole if whole else None


def _by(study: Study) -> str:
    return JUDGED if study.measure == "judged" else ""


def _score(one: Result | Look, ending: str) -> float | None:
    """Return a score times 100; None if it was to be judged, and was not."""
    value = one.judged if ending else one.score
    return None if value is None else 100 * value


def _datasets(study: Study) -> list[str]:
    return list(dict.fromkeys(question.dataset for question in study.questions))


def _mean(values: Iterable[float | None]) -> float | None:
    some = [value for value in values if value is not None]
    return fmean(some) if some else None


def _notes(study: Study) -> Iterator[str]:
    yield "Scores are times 100, by the data sets' own metrics; Avg is the average over the data sets."
    if study.measure == "judged":
        yield "Judged: whether an answer says what a reference says, by a model that does not know its strategy."
    yield _TOKENS
    yield from _cuts(study)
    if study.index_tokens:
        yield "Index token %: what an index asked the model itself, for its summaries and its choices."
    for variant, dropped in study.dropped.items():
        if dropped:
            yield f"With {variant.label}, {dropped:,} drafts lost passages, to fit the window."
    if study.failures:
        yield f"Steps that failed: {len(study.failures):,}, the first: {study.failures[0].error}"
    if (count := len(shared_keys(study))) < len(study.questions):
        yield f"The rows are over {count:,} questions, which each draft and the long context finished."
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
    size, own = sum(DATASETS[name].size for name in names), sum(key[0] in names for key in shared_keys(study))
    return (f"The paper's are over {size:,} questions, this run's over {own:,}.",) if own < size else ()
