"""Shows what a judge did: a sample of its grades, and how far others agree with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import sha256

from selfroute.errors import InputError
from selfroute.evaluation.grades import Agreement
from selfroute.evaluation.records import Answer, OtherGrade, Record, Result
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.table import Cell, Table

_SAMPLE = 24
_LONGEST = 500  # characters


def judged_sample(compared: ComparedResults) -> Table | None:
    """Make the table of a random sample of the judge's grades, to be checked by a person."""
    questions = {question.key: question for question in compared.record.questions}
    graded: list[Answer] = [*compared.record.results, *compared.record.looks]
    found = {(each.key, each.answer.strip()): each for each in graded if each.judged_by == "model"}
    if not found:
        return None
    drawn = sorted(found, key=lambda name: sha256(repr(name).encode(errors="surrogatepass")).digest())[:_SAMPLE]
    rows: list[tuple[Cell, ...]] = []
    for name in sorted(drawn):
        result, question = found[name], questions[name[0]]
        texts = (question.question, " | ".join(question.answers), result.answer.strip())
        rows.append((*result.key, *map(_shortened, texts), _grade(result.judged)))
    counts = Counter(_grade(each.judged) for each in found.values())
    shares = ", ".join(f"{grade}: {counts[grade]:,}" for grade in ("1", "0.5", "0"))
    notes = (
        f"{len(rows):,} of {len(found):,} grades, drawn at random; those that a rule gave are left out. All: {shares}.",
        "Read them before you trust the judge. A grades.jsonl of your own says how far you agree with it (--grades).",
    )
    columns = ("data set", "id", "question", "references", "answer", "grade")
    return Table("judged_sample", "A sample of the judge's grades", columns, tuple(rows), notes)


def judge_agreement(compared: ComparedResults) -> Table | None:
    """Make the table of how far the judge and other graders agree."""
    record = compared.record
    if not record.other_grades:
        return None
    k = compared.ks[0]
    pairs = _pairs(record, k)
    if not pairs:
        note = "The file grades no answer that the judge graded, too: its ids and strategies must be those of this run."
        return Table("judge_agreement", _AGREEMENT, ("", "answers"), (("all", 0),), (note,))
    parts = {"all": pairs, "without those by rule": [each for each in pairs if each[0].judged_by == "model"]}
    for strategy in dict.fromkeys(each.strategy for each, _ in pairs):
        parts[strategy] = [each for each in pairs if each[0].strategy == strategy]
    rows: list[tuple[Cell, ...]] = []
    for name, part in parts.items():
        if part:
            found = Agreement.of([(each.judged or 0.0, grade) for each, grade in part])
            rows.append((name, found.answers, 100 * found.equal, found.kappa, 100 * found.mean, 100 * found.other_mean))
    columns = ("", "answers", "equal %", "kappa", "judge's mean", "others' mean")
    notes = (
        "kappa is Cohen's: 1 if all grades are equal, 0 if they agree as often as by chance.",
        *compared.about_k,
    )
    return Table("judge_agreement", _AGREEMENT, columns, tuple(rows), notes)


_AGREEMENT = "The judge and the other grades"


def _pairs(record: Record, k: int | None) -> list[tuple[Result, float]]:
    """Pair the judged results at the main k with the others' grades.

    Raises:
        InputError: A grade names no data set, and its id is in several.
    """
    datasets: dict[str, set[str]] = defaultdict(set)
    for question in record.questions:
        datasets[question.id].add(question.dataset)
    grades = {(_dataset_of(each, datasets), each.id, each.strategy): each.grade for each in record.other_grades}
    return [
        (each, grades[each.dataset, each.id, each.strategy])
        for each in record.results
        if each.judged is not None and not each.based_only_on and each.k in (None, k)
        if (each.dataset, each.id, each.strategy) in grades
    ]


def _dataset_of(grade: OtherGrade, datasets: dict[str, set[str]]) -> str | None:
    if grade.dataset is not None:
        return grade.dataset
    names = datasets.get(grade.id, set())
    if len(names) > 1:
        msg = f"the id {grade.id!r} is in {', '.join(sorted(names))}: add the dataset to its grades"
        raise InputError(msg)
    return next(iter(names), None)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _grade(grade: float | None) -> str:
    return f"{grade:g}"
