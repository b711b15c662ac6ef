"""A judge that reads its prompt as a model should: a program, so that its grades are known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

OPENING = "You compare answers with reference answers."


@dataclass(frozen=True)
class Asked:
    """What a judge's prompt asks: the question, the references, and the answers by number."""

    question: str
    references: list[str]
    answers: dict[int, str]


def is_judging(prompt: str) -> bool:
    """Whether a prompt is the judge's."""
    return OPENING in prompt


def read(prompt: str) -> Asked:
    """Read a judge's prompt: its data are the lines that are JSON objects."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in prompt.split("\n") if line.startswith("{")]
    questions = [row["question"] for row in rows if "question" in row]
    references = [row["reference"] for row in rows if "reference" in row]
    assert len(questions) == 1, rows
    return Asked(questions[0], references, {row["answer"]: row["text"] for row in rows if "answer" in row})


def grade(prompt: str) -> str:
    """Grade each answer: 1 if it holds a reference, 0.5 if it holds a word of one, else 0."""
    asked = read(prompt)
    return "\n".join(f"{number}: {_grade(text, asked.references)}" for number, text in asked.answers.items())


def _grade(text: str, references: list[str]) -> str:
    if any(each.casefold() in text.casefold() for each in references):
        return "1"
    words = {word for each in references for word in each.casefold().split()}
    return "0.5" if words & set(text.casefold().split()) else "0"
