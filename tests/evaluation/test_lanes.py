"""The order in which an evaluation asks: documents in turn, each by one worker as long as there are others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute.evaluation.asking.lanes import Lanes
from selfroute.evaluation.questions import Question


def questions(places: list[tuple[str, str]]) -> list[Question]:
    """Return questions with the data set and the document of each."""
    return [
        Question(dataset, str(number), "Who?", ("x",), document=f"The text of {document}.")
        for number, (dataset, document) in enumerate(places)
    ]


def test_a_worker_stays_with_a_document_and_the_data_sets_take_turns() -> None:
    lanes = Lanes(questions([("a", "1"), ("a", "2"), ("b", "3"), ("a", "1"), ("b", "3"), ("a", "2")]))
    assert [lanes.take(1) for _ in range(6)] == [0, 3, 2, 4, 1, 5]
    with pytest.raises(IndexError):
        lanes.take(1)


def test_who_has_no_document_left_helps_with_the_one_with_the_most_questions() -> None:
    lanes = Lanes(questions([("a", "1")] * 5 + [("a", "2")]))
    assert [lanes.take(worker) for worker in (1, 2, 2, 1, 2, 1)] == [0, 5, 1, 2, 3, 4]


def test_questions_without_a_document_of_their_own_come_in_their_order() -> None:
    lanes = Lanes([Question("a", str(number), "Who?", ("x",)) for number in range(4)])
    assert [lanes.take(1) for _ in range(4)] == [0, 1, 2, 3]


places = st.tuples(st.sampled_from("ab"), st.sampled_from("1234"))


@examples(100)
@given(st.lists(places, max_size=30), st.integers(1, 5), st.integers(0, 2**32))
def test_every_question_is_asked_once(asked: list[tuple[str, str]], workers: int, seed: int) -> None:
    lanes, random = Lanes(questions(asked)), Random(seed)  # noqa: S311
    taken = [lanes.take(random.randrange(workers)) for _ in asked]
    assert sorted(taken) == [*range(len(asked))]


def test_threads_take_each_question_once() -> None:
    lanes = Lanes(questions([("a", str(number % 7)) for number in range(2_000)]))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda number: lanes.take(number % 8), range(2_000)))
    assert sorted(taken) == [*range(2_000)]
