"""The document and questions that come with the package. They were written for it; every name is invented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from importlib.abc import Traversable

NAME = "demo"
"""The name of the data set."""

Kind = Literal["local", "steps", "whole", "unanswerable"]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question about the document."""

    id: str
    document: str
    kind: Kind
    question: str
    answers: tuple[str, ...]


_QUESTION = TypeAdapter(DemoQuestion)


def load_documents() -> dict[str, str]:
    """Return the texts by name: one long document."""
    return {entry.name: entry.read_text("utf-8") for entry in _entries(".md")}


def load_questions() -> list[DemoQuestion]:
    """Return the questions, in their order."""
    lines = (line for entry in _entries(".jsonl") for line in entry.read_text("utf-8").splitlines() if line.strip())
    return list(map(_QUESTION.validate_json, lines))


def question_of(name: str) -> str:
    """Return the question with this id."""
    return next(question.question for question in load_questions() if question.id == name)


def spread(questions: Sequence[Item], count: int | None) -> list[Item]:
    """Return so many of the questions, spread evenly over all; None for all."""
    if count is None or count >= len(questions):
        return list(questions)
    return [questions[number * len(questions) // count] for number in range(count)]


def _entries(suffix: str) -> list[Traversable]:
    folder = files("selfroute_workbench.demo") / "documents"
    return sorted((entry for entry in folder.iterdir() if entry.name.endswith(suffix)), key=lambda entry: entry.name)
