"""Asks the questions of the demo, and adds up the answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from selfroute.usage.ledger import Ledger
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.sessions import Output, Session
from selfroute_workbench.demo.corpus import DemoQuestion
from selfroute_workbench.demo.recorded import Recording


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """The answer to a question of the demo."""

    question: DemoQuestion
    route: str
    answerable: bool
    answer: str
    match: bool
    grade: float | None
    usage: Mapping[str, Any]
    decision: Mapping[str, Any] = field(default_factory=dict)


def answer_all(session: Session, questions: Sequence[DemoQuestion], *, models: Models) -> Iterator[DemoAnswer]:
    """Ask the questions, a few at a time, and yield the answers in order."""
    with ThreadPoolExecutor(models.at_once) as threads:
        for start in range(0, len(questions), models.at_once):
            some = questions[start : start + models.at_once]
            outputs = threads.map(session.ask, [question.question for question in some])
            for question, output in zip(some, outputs, strict=True):
                yield _answer(question, output, models.recording)


def _answer(question: DemoQuestion, output: Output, recording: Recording | None) -> DemoAnswer:
    declined = not output.answerable
    is_right = float(question.kind == "unanswerable")  # of a decline
    return DemoAnswer(
        question=question,
        route=output.route,
        answerable=output.answerable,
        answer=output.answer,
        match=bool(is_right) if declined else _matches(output.answer, question.answers),
        grade=None if recording is None else is_right if declined else recording.grade(question.id, output.answer),
        usage=output.usage,
        decision=output.decision,
    )


def _matches(answer: str, references: Sequence[str]) -> bool:
    """Return whether the answer contains a reference; parts between commas may be in different places."""
    words = f" {_plain(answer)} "
    return any(all(f" {_plain(part)} " in words for part in reference.split(", ")) for reference in references)


def _plain(text: str) -> str:
    """Return a text without case, punctuation and articles."""
    words = re.findall(r"\w+", re.sub(r"(?<=\d),(?=\d)|['’]", "", text.lower()))  # noqa: RUF001
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def totals(answers: Sequence[DemoAnswer], figures: Mapping[str, Any]) -> dict[str, int]:
    """Return the totals of the demo, given the ledger's figures as plain JSON."""
    answered = Counter(answer.route for answer in answers if answer.answerable)
    return {
        "questions": figures["queries"],
        "answered_by_rag": answered["rag"],
        "answered_by_sections": answered["sections"],
        "escalated": figures["routes"]["long_context"],
        "stopped": figures["stopped"],
        "unanswerable": figures["unanswerable"],
        "matches": sum(answer.match for answer in answers),
        "tokens": figures["tokens"]["total_tokens"],
    }


class Compared(NamedTuple):
    """What one strategy made of the questions: the sum of the grades, all tokens, and dollars; None if unknown."""

    right: float
    tokens: int
    cost: Decimal | None

    @classmethod
    def of(cls, answers: Sequence[DemoAnswer], ledger: Ledger) -> Compared:
        """Add up the grades of the answers, and take the rest from the ledger that counted them."""
        figures = ledger.to_dict()
        cost = figures["money"]["cost"]
        right = sum(answer.grade or 0.0 for answer in answers)
        return cls(right, figures["tokens"]["total_tokens"], None if cost is None else Decimal(str(cost)))


def as_json(
    answers: Sequence[DemoAnswer],
    ledger: Ledger,
    compared: Mapping[str, Compared],
    *,
    models: Models,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Turn a run of the demo, and what each strategy made of it, into plain JSON."""
    figures, rows = ledger.to_dict(), [asdict(answer) for answer in answers]
    return {
        "reader": models.name,
        "language_model": models.is_language_model,
        "questions": [{**row.pop("question"), **row} for row in rows],
        "totals": totals(answers, figures),
        "ledger": figures,
        "seconds": {name: round(time, 3) for name, time in seconds.items()},
        "strategies": {name: {**one._asdict(), "cost": one.cost and str(one.cost)} for name, one in compared.items()},
    }
