"""Turns what an evaluation keeps of each step into rows to calibrate by.

A question becomes a row if `rag` and the strategy `long_context` finished it. Its row holds a look for each step that
was tried, at the first k that was asked for: `rag`, `sections`, `graded`, `graded_sections` and `long_context`, with
numbers, tokens, cost and grades as in `selfroute.evaluation.records.Look`. Whatever the strategies decided, other
bounds can be computed from these, so a look should be read to its end, and sections be read after every draft that some
bound could doubt. Where there is none, the documents are taken to be read at once.

Quality is what the judge says, if it graded anything; else it is the questions' own metric, mostly F1, and a decline is
right if the text has no answer. Of the settings these are used, if known: `k`, `sections` (their tokens),
`model` and `prompts` (the templates of `rag`, `graded` and `long_context`, as a chain gives them to
`Calibrated.check_prompts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from selfroute.calls.settings import Sections, checked
from selfroute.errors import ConfigurationError
from selfroute.evaluation import records
from selfroute.evaluation.calibrating.rows import Look, Row
from selfroute.evaluation.judging import answers_of, decline_is_right
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import SECTIONS, Record, measure_of

Key = tuple[str, str]  # as in `Question.key`
Looks = Mapping[str, records.Look]  # of one question, by step


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an evaluation has to calibrate by.

    Attributes:
        rows: A row for each question that has what it takes.
        sections: The tokens of the sections.
        model: The model that answered; None if it is not known.
        prompts: The prompts of the steps; None if they are not known.
        remarks: What these rows cannot show, in sentences.
    """

    rows: Sequence[Row]
    sections: Sections
    model: str | None
    prompts: Mapping[str, str] | None
    remarks: Sequence[str]


def material_of(record: Record) -> Material:
    """Return what an evaluation has to calibrate by.

    Raises:
        ConfigurationError: No question was finished by both `rag` and `long_context`.
    """
    judged = measure_of(record) == "judged"
    # Self-Route reads documents, too, but only those of the questions that it could not answer without.
    read = {result.key for result in record.results if result.strategy == "long_context" and not result.based_only_on}
    found = _by_question(record)
    rows = [
        row
        for question in record.questions
        if question.key in read and (row := _row(question, found[question.key], judged=judged))
    ]
    if not rows:
        ran = ", ".join(dict.fromkeys(result.strategy for result in record.results)) or "nothing"
        msg = (
            "calibrating needs questions that both rag and long_context finished, and there are none "
            f"(finished: {ran}): evaluate with both strategies, as by default"
        )
        raise ConfigurationError(msg)
    settings = record.settings
    model, prompts = settings.get("model"), settings.get("prompts")
    return Material(
        rows=rows,
        sections=_sections(settings.get("sections")),
        model=model if isinstance(model, str) else None,
        prompts=prompts if isinstance(prompts, Mapping) else None,
        remarks=tuple(_remarks(record, rows, judged=judged)),
    )


def _sections(tokens: Any) -> Sections:
    """Return the tokens of the sections, as far as they are known; else those that are tried by default."""
    with suppress(ConfigurationError):
        return checked("sections", tokens) or SECTIONS
    return SECTIONS


def _by_question(record: Record) -> Mapping[Key, Looks]:
    """Return the looks of each question at the first k that was asked for."""
    asked = record.settings.get("k")
    ran = [look.k for look in record.looks if look.step != "long_context"]
    ks = [*(asked if isinstance(asked, list | tuple) else ()), *ran]
    k = next((each for each in ks if each in ran), None)
    found: dict[Key, dict[str, records.Look]] = defaultdict(dict)
    for look in record.looks:
        of_step = found[look.key]
        if look.k == k or (look.step == "long_context" and look.step not in of_step):
            of_step[look.step] = look
    return found


def _row(question: Question, looks: Looks, *, judged: bool) -> Row | None:
    """Return the row of a question; None if it lacks a look that every row needs, or its grade."""
    found = {step: _look(question, look, judged=judged) for step, look in looks.items()}
    rag, long_context = found.get("rag"), found.get("long_context")
    if rag is None or long_context is None:
        return None
    return Row(
        document=question.document_id,
        rag=rag,
        long_context=long_context,
        sections=found.get("sections"),
        graded=found.get("graded"),
        graded_sections=found.get("graded_sections"),
        answerable=bool(answers_of(question)),
    )


def _look(question: Question, look: records.Look, *, judged: bool) -> Look | None:
    """Return a look as rows have it; None if a judge graded others only."""
    quality = look.judged if judged else float(decline_is_right(question)) if look.declined else look.score
    if quality is None:
        return None
    dollars = None if look.cost is None else float(look.cost)
    return Look(quality, look.input_tokens, look.declined, look.prospect, look.confidence, dollars)


def _remarks(record: Record, rows: Sequence[Row], *, judged: bool) -> Iterator[str]:
    """Yield what these rows cannot show."""
    if not judged:
        yield (
            "No judge graded the answers, so quality is the questions' own metric, mostly F1: it scores brevity and "
            "wording, and an incomplete answer can score as high as a complete one. So it hardly sees what doubts are "
            "worth: evaluate with --judge (judge=True in Python)."
        )
    if not any(row.graded for row in rows):
        yield (
            "Graded answerability was not tried, so neither bound could be chosen: evaluate with the strategy graded, "
            "too."
        )
    if len(rows) < len(record.questions):
        missing = "are not finished by rag and long_context" + (", or not graded" if judged else "")
        yield f"{len(record.questions) - len(rows):,} of {len(record.questions):,} questions {missing}: left out."
    if rows and all(question.document is None for question in record.questions):
        yield (
            "The questions do not say which document they are about, so all count as being about one: give each the "
            "text of its document, under the key document."
        )
