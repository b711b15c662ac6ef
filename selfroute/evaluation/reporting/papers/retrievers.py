"""Tables of Li et al. (2025) on retrievers, and on kinds of questions and documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Record, Result
from selfroute.evaluation.reporting.compared import ComparedResults, Results, token_share
from selfroute.evaluation.reporting.notes import metric_names
from selfroute.evaluation.reporting.papers.differences import Pair, count_wins
from selfroute.evaluation.reporting.statistics import Key, compare
from selfroute.evaluation.table import Cell, Table

_TYPES: Mapping[str, str] = {"window": "index", "tree": "index", "raptor": "summarization"}
_WORDS = ("what", "who", "whom", "whose", "which", "where", "when", "why", "how")
_SAME = {"whom": "who", "whose": "who"}
_OTHER = "other"
_COLUMNS = ("LC correct", "RAG correct", "LC only", "RAG only", "LC better", "RAG better")
_CORRECT = (
    "An answer is correct by the loose exact match of Li et al. (2025), of multiple choice by the score.",
    "Better means correct where the other is not or, if both are wrong, with the higher F1 over words.",
)


def beside(record: Record, other: Record, *, retriever: str) -> Record:
    """Return a record with the results of another retriever, which are compared in a table of their own."""
    return replace(
        record,
        results=[*record.results, *(replace(each, retriever=retriever) for each in other.results)],
        failures=[*record.failures, *(replace(each, retriever=retriever) for each in other.failures)],
        stopped=record.stopped or other.stopped,
    )


def retrievers(compared: ComparedResults) -> Table | None:
    """Make Table 5 of Li et al. (2025): RAG with each retriever; None if there is only one."""
    by_name: dict[str, dict[tuple[str, str], Result]] = {}
    for each in compared.record.results:
        if each.retriever is not None:
            by_name.setdefault(each.retriever, {})[each.key] = each
    main = compared.get("rag", compared.ks[0])
    if not by_name or not main:
        return None
    first = str(compared.record.settings.get("retriever") or "the first")
    found = {first: dict(main), **by_name}
    reader = compared.get("long_context")
    keys = [key for key in main if all(key in results for results in found.values())]
    rows: list[tuple[Cell, ...]] = []
    for name, results in found.items():
        some = [results[key] for key in keys]
        right = sum(each.exact == 1 for each in some)
        score = 100 * sum(each.score for each in some) / len(keys) if keys else None
        head: tuple[Cell, ...] = (name, _TYPES.get(name, "chunk"), len(keys), score, right)
        tokens = token_share(some, [reader[key] for key in keys] if reader else None)
        wins = count_wins([(results[key], reader[key]) for key in keys]) if reader else {}
        beaten: tuple[Cell, ...] = (wins.get("RAG only", 0), wins.get("RAG better", 0)) if reader else ()
        verdict = _verdict(results, main, keys, compared) if results is not found[first] else ""
        rows.append((*head, 100 * right / len(keys) if keys else None, *beaten, tokens, verdict))
    columns: tuple[str, ...] = ("retriever", "type", "questions", "rag", "RAG correct", "RAG correct %")
    columns += ("RAG only", "RAG better") if reader else ()
    notes = [*_CORRECT, f"verdict compares RAG's scores with those with {first}, question by question."]
    if compared.measure == "judged":
        metrics = " and ".join(metric_names(compared.record))
        notes.append(f"rag is by {metrics}: the judge grades the answers with {first} only.")
    if left_out := len(main) - len(keys):
        notes.append(f"Questions left out because not every retriever finished them: {left_out:,}.")
    title = "RAG with each retriever (Table 5 of Li et al., 2025)"
    return Table("retrievers", title, (*columns, "rag token %", "verdict"), tuple(rows), (*notes, *compared.about_k))


def _verdict(results: Results, main: Results, keys: Sequence[Key], compared: ComparedResults) -> str | None:
    """Return what is said of a retriever against the first one; None if there is nothing to compare."""
    ours, theirs = ({key: of[key].score for key in keys} for of in (results, main))
    return compare(ours, theirs, documents=compared.documents).verdict if keys else None


def kinds(compared: ComparedResults) -> Table | None:
    """Make Figures 3 and 4 of Li et al. (2025) as a table: by first word, by kind of question, by kind of source.

    Without data of the paper it is made if the questions say of what kind they, or their sources, are.
    """
    rag, reader = compared.get("rag", compared.ks[0]), compared.get("long_context")
    said = any(question.kind or question.source for question in compared.record.questions)
    if not rag or not reader or not (said or compared.has_papers):
        return None
    asked = {question.key: question for question in compared.record.questions}
    groups: dict[tuple[str, str], list[Pair]] = {}
    for key, each in rag.items():
        question = asked[key]
        names = {"first word": first_word(question.question), "kind": question.kind, "source": question.source}
        for what, name in names.items():
            if name:
                groups.setdefault((what, name), []).append((each, reader[key]))
    order = ("first word", "kind", "source")
    rows: list[tuple[Cell, ...]] = []
    for (what, name), pairs in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]))):
        counts = count_wins(pairs)
        rows.append((what, name, len(pairs), *(counts[column] for column in _COLUMNS)))
    title = "RAG and the long context by kind of question and source (Figures 3 and 4 of Li et al., 2025)"
    notes = (*_CORRECT, "Few questions in a row show little.", *compared.about_k)
    return Table("kinds", title, ("by", "", "questions", *_COLUMNS), tuple(rows), notes)


def filtered(compared: ComparedResults) -> Table | None:
    """Make Tables 2 and 3 of Li et al. (2025): the questions that are left without those answered from memory."""
    asked = {each.key: each for each in compared.record.results if each.strategy == "closed_book"}
    questions = [each for each in compared.record.questions if each.key in asked]
    if not questions:
        return None
    by_dataset: dict[str, list[Question]] = {}
    for each in questions:
        by_dataset.setdefault(each.dataset, []).append(each)
    rows = [_filtered(name, some, asked) for name, some in by_dataset.items()]
    if len(rows) > 1:
        rows.append(_filtered("Total", questions, asked))
    notes = (
        "A question is answered from memory, and left out, if its answer without any text is a loose exact match.",
        "average length is that of a question's document, in words.",
    )
    title = "Questions that need their text (Tables 2 and 3 of Li et al., 2025)"
    columns = ("data set", "average length", "questions", "kept", "kept %", "mode")
    return Table("filtered", title, columns, tuple(rows), notes)


def _filtered(name: str, questions: Sequence[Question], asked: Mapping[Key, Result]) -> tuple[Cell, ...]:
    kept = sum(not (asked[each.key].answerable and asked[each.key].exact == 1) for each in questions)
    lengths = [len(each.document.split()) for each in questions if each.document]
    modes = {"choice" if each.choices else "open" for each in questions}
    average = sum(lengths) / len(lengths) if lengths else None
    return name, average, len(questions), kept, 100 * kept / len(questions), " and ".join(sorted(modes))


def first_word(question: str) -> str:
    """Return the question word that a question begins with; "other" without one."""
    first = re.search(r"[a-z]+", question.lower())
    word = first.group() if first else ""
    return _SAME.get(word, word) if word in _WORDS else _OTHER
