"""The tables that show whether a judge can be trusted: a sample of its grades, and other people's beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import sha256
from statistics import fmean

from selfroute.errors import InputError
from selfroute_workbench.evaluation.looks import TITLES, Key, Look, OtherGrade
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Cells, Table

_SAMPLE, _LONGEST = 24, 500  # grades, and characters of a text


def judged_sample(evaluation: Record) -> Table | None:
    """Make the table of a random sample of the judge's grades, to be checked by a person."""
    questions = {question.key: question for question in evaluation.questions}
    found: dict[tuple[Key, str], Look] = {
        (look.key, look.answer.strip()): look for look in evaluation.looks if look.judged_by == "model"
    }
    if not found:
        return None
    drawn = sorted(found, key=lambda name: sha256(repr(name).encode(errors="surrogatepass")).digest())[:_SAMPLE]
    rows: list[Cells] = []
    for name in sorted(drawn):
        look, question = found[name], questions[name[0]]
        texts = (question.question, " | ".join(question.answers), look.answer.strip())
        rows.append(
            (*look.key, *(text[:_LONGEST] + "..." * (len(text) > _LONGEST) for text in texts), f"{look.judged:g}")
        )
    counts = Counter(f"{look.judged:g}" for look in found.values())
    shares = ", ".join(f"{grade}: {counts[grade]:,}" for grade in ("1", "0.5", "0"))
    notes = (
        f"{len(rows):,} of {len(found):,} grades, drawn at random; those that a rule gave are left out. All: {shares}.",
        "Read them before you trust the judge. A grades.jsonl of your own says how far you agree with it (--grades).",
    )
    columns = ("data set", "id", "question", "references", "answer", "grade")
    return Table("judged_sample", "A sample of the judge's grades", columns, tuple(rows), notes)


def judge_agreement(evaluation: Record) -> Table | None:
    """Make the table of how far the judge and other graders agree."""
    title = "The judge and the other grades"
    if not evaluation.other_grades:
        return None
    grades = _keyed(evaluation)
    pairs = [
        (each, grades[each.key, each.strategy])
        for each in evaluation.results
        if each.judged is not None and (each.key, each.strategy) in grades
    ]
    if not pairs:
        note = "The file grades no answer that the judge graded, too: its ids and strategies must be those of this run."
        return Table("judge_agreement", title, ("", "answers"), (("all", 0),), (note,))
    groups = {"all": pairs, "without those by rule": [pair for pair in pairs if pair[0].shown.judged_by == "model"]}
    for strategy in dict.fromkeys(each.strategy for each, _ in pairs):
        groups[TITLES[strategy]] = [pair for pair in pairs if pair[0].strategy == strategy]
    rows: list[Cells] = []
    for name, group in groups.items():
        if group:
            both = [(each.judged or 0.0, grade) for each, grade in group]
            equal = 100 * fmean(one == other for one, other in both)
            means = (100 * fmean(of_one) for of_one in zip(*both, strict=True))
            rows.append((name, len(both), equal, kappa(both), *means))
    columns = ("", "answers", "equal %", "kappa", "judge's mean", "others' mean")
    note = "kappa is Cohen's: 1 if all grades are equal, 0 if they agree as often as by chance."
    return Table("judge_agreement", title, columns, tuple(rows), (note,))


def kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Cohen's kappa of two graders: 1 if all grades are equal, 0 if they agree as often as by chance.

    Args:
        pairs: The two grades of each answer.

    Returns:
        The kappa; None if both gave one and the same grade throughout, as then chance explains everything.
    """
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    equal = sum(one == other for one, other in pairs) / len(pairs)
    by_chance = sum(first[grade] * second[grade] for grade in first) / len(pairs) ** 2
    return None if by_chance == 1 else (equal - by_chance) / (1 - by_chance)


def _keyed(evaluation: Record) -> dict[tuple[Key, str], float]:
    """Return the other grades by question and strategy.

    Raises:
        InputError: A grade names no data set, and its id is in several.
    """
    datasets: dict[str, set[str]] = defaultdict(set)
    for question in evaluation.questions:
        datasets[question.id].add(question.dataset)

    def dataset_of(grade: OtherGrade) -> str:
        names = datasets.get(grade.id, set()) if grade.dataset is None else {grade.dataset}
        if len(names) > 1:
            msg = f"the id {grade.id!r} is in {', '.join(sorted(names))}: add the dataset to its grades"
            raise InputError(msg)
        return next(iter(names), "")

    return {((dataset_of(one), one.id), one.strategy): one.grade for one in evaluation.other_grades}
