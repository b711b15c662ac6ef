"""The table that shows whether a judge can be trusted: a sample of its grades."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

from selfroute_workbench.evaluation.looks import Key, Look
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
        "Read them before you trust the judge.",
    )
    columns = ("data set", "id", "question", "references", "answer", "grade")
    return Table("judged_sample", "A sample of the judge's grades", columns, tuple(rows), notes)
