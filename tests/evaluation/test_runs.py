"""A run asks every question for its looks, document by document, and scores only what came back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import langchain_parts
from look_parts import a_question
from scenarios import WHOLE
from selfroute.errors import InputError
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.runs import Asked, ask_looks, in_turn, score_of
from selfroute_workbench.evaluation.with_langchain import ChainPipeline

STRATEGIES = ("rag", "long_context")


def questions(count: int) -> list[Question]:
    return [a_question(f"({number})", answers=("seven",)) for number in range(count)]


@dataclass
class Model:
    """Answers "seven", or fails, and notes how often it is asked and how many times at once."""

    failing: Callable[[str], bool] = lambda _: False
    error: Exception = field(default_factory=lambda: TimeoutError("no reply"))
    asked: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def __call__(self, prompt: str) -> tuple[str]:
        with self.lock:
            self.asked.append(prompt)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        threading.Event().wait(0.002)
        with self.lock:
            self.at_once -= 1
        if self.failing(prompt):
            raise self.error
        return ("seven",)


def run(model: Model, count: int = 4, **options: Any) -> Asked:
    chain = langchain_parts.a_chain(draft=model, final=model, priced_as="openai:gpt-4o-mini", usage=True)
    with Replies() as replies:
        pipeline = ChainPipeline(chain, replies)
        return ask_looks(lambda _: pipeline, questions(count), STRATEGIES, **options)


def about(*numbers: int) -> Callable[[str], bool]:
    return lambda prompt: any(f"({number})" in prompt for number in numbers)


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_ask_looks_order(concurrency: int) -> None:
    model = Model()
    asked = run(model, 12, concurrency=concurrency)
    assert [(one.id, one.strategy) for one in asked.looks] == [
        (f"({n})", each) for n in range(12) for each in STRATEGIES
    ]
    assert {one.score for one in asked.looks} == {1.0}
    assert (model.most <= concurrency, len(model.asked), asked.stopped) == (True, 24, None)


def test_ask_looks_failures() -> None:
    def failing(prompt: str) -> bool:
        return about(1)(prompt) and WHOLE not in prompt

    asked = run(Model(failing))
    assert [(one.id, one.strategy, one.error) for one in asked.failures] == [("(1)", "rag", "no reply (TimeoutError)")]
    assert [one.step for one in asked.looks if one.id == "(1)"] == ["long_context"]
    assert len(asked.looks) == 7


def test_ask_looks_hopeless() -> None:
    model = Model(lambda _: True, PermissionError("wrong key sk-abcdefghijklmnop"))
    asked = run(model, 100, concurrency=2)
    assert asked.stopped == "the first 5 questions all failed, so the rest were not asked"
    assert (len(model.asked) < 40, asked.looks) == (True, [])
    assert not any("abcdefgh" in one.error for one in asked.failures)


def test_ask_looks_keys() -> None:
    for asked, says in (
        ([a_question()] * 2, "question '1' of 'minutes' is there twice"),
        ([], "there are no questions"),
    ):
        with pytest.raises(InputError, match=says):
            ask_looks(lambda _: pytest.fail("nothing may be asked"), asked, STRATEGIES)


@pytest.mark.parametrize(
    ("metric", "answers", "answer", "score"),
    [
        ("f1", ["seven"], "unanswerable", 0.0),
        ("f1", ["unanswerable"], "unanswerable", 1.0),  # as Qasper has it
        ("f1", [], "unanswerable", 1.0),
        ("f1", [], "unanswerable is a word", 0.0),
        ("choice", [], "B", 0.0),
        ("choice", ["the red one", "B"], "unanswerable", 0.0),
    ],
)
def test_score_of_refusals(metric: str, answers: list[str], answer: str, score: float) -> None:
    question = a_question(answers=tuple(answers), metric=metric)
    assert score_of(question, answer, declined=answer == "unanswerable") == score


# --- the order -----------------------------------------------------------------------------------------------------


def on(places: Sequence[tuple[str, str]]) -> list[Question]:
    """Return questions with the data set and the document of each."""
    return [
        Question(dataset, str(number), "Who?", ("x",), document=f"The text of {document}.")
        for number, (dataset, document) in enumerate(places)
    ]


def test_in_turn() -> None:
    assert in_turn(on([("a", "1"), ("a", "2"), ("b", "3"), ("a", "1"), ("b", "3"), ("a", "2")])) == [0, 3, 2, 4, 1, 5]
