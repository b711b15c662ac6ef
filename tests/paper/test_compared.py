"""How the study compares RAG and the long context, question by question."""

from __future__ import annotations

import pytest

from look_parts import a_question
from paper.compared import Pair, kept_keys
from paper.datasets import resolve
from paper.metrics import SEQUEL
from paper.study import Study
from selfroute_workbench.evaluation.looks import Look, Result
from selfroute_workbench.evaluation.questions import Question


def pair(question: Question, rag: str, whole: str, *, declines: str = "") -> Pair:
    """Answers of both; one that is `declines` declines in its own words."""
    looks = [
        Look(
            dataset=question.dataset,
            id=question.id,
            strategy=strategy,
            step=step,
            answer=answer,
            declined=answer == declines,
            input_tokens=1,
            output_tokens=1,
            score=0.0,
        )
        for strategy, step, answer in (("rag", "rag", rag), ("long_context", "long_context", whole))
    ]
    return Pair(question, *(Result(look.strategy, (look,)) for look in looks))


def test_pair_correct_before_f1() -> None:
    """The program's match takes a reply with more words, whatever the F1 of a wrong one is."""
    found = pair(
        a_question(answers=("red boat harbour light",)), "red boat harbour light x y z w v u", "red boat harbour lamp"
    )
    assert found.wins(SEQUEL["program"]) == {"RAG correct", "RAG only", "RAG better"}
    assert found.wins(SEQUEL["text"]) == {"LC better"}


def test_pair_decline_in_own_words() -> None:
    found = pair(a_question(answers=("unanswerable",)), "It does not say.", "seven", declines="It does not say.")
    assert found.wins(SEQUEL["text"]) == {"RAG correct", "RAG only", "RAG better"}


@pytest.mark.parametrize(
    ("answers", "said", "score", "kept"),
    [
        (("seven",), "seven", 1.0, False),
        (("seven",), "It is seven.", 0.5, True),
        (("seven",), "", 0.0, True),
        ((), "", 1.0, True),
        (("unanswerable",), "", 1.0, True),
    ],
)
def test_kept_keys(answers: tuple[str, ...], said: str, score: float, kept: bool) -> None:
    question = a_question(answers=answers)
    study = Study([question], closed_book={question.key: (said, score)})
    assert (question.key in kept_keys(study, SEQUEL["text"])) == kept


def test_kept_keys_of_unasked() -> None:
    questions = [a_question("a"), a_question("b")]
    assert kept_keys(Study(questions), SEQUEL["text"]) == {one.key for one in questions}
    failed = Study(questions, closed_book={questions[0].key: ("", 0.0)})
    assert kept_keys(failed, SEQUEL["text"]) == {questions[0].key}, "a question whose reply failed is not compared"


def test_resolve_demo() -> None:
    questions = resolve("demo")
    assert {question.source for question in questions} == {"minutes"}
    assert {question.kind for question in questions} == {"local", "steps", "whole", "unanswerable"}
