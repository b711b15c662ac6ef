"""A run asks every question by every strategy, and scores only what came back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.budget import CostCapError
from selfroute.evaluation.asking.runner import Task, TaskOutcome, measure, scored, tasks_of
from selfroute.evaluation.metrics import METRICS
from selfroute.evaluation.questions import Question
from selfroute.evaluation.reasons import letter_in
from selfroute.evaluation.records import STRATEGIES, Passage, Record, Strategy
from selfroute.evaluation.reporting.compared import ComparedResults

NO_ANSWER = {"declined": True, "signal": "sentinel", "evidence": "unanswerable"}
ANSWERED = {"declined": False, "signal": "answered", "evidence": ""}


def question(number: int, metric: str = "f1", answers: Sequence[str] = ("seven",)) -> Question:
    return Question("harbour", str(number), f"When does ferry {number} leave?", tuple(answers), metric=metric)


def outcome(answer: str = "seven", *, declined: bool = False) -> TaskOutcome:
    decision = NO_ANSWER if declined else ANSWERED
    return TaskOutcome(answer, "rag", answer != "unanswerable", decision, {}, "draft", [Passage("text")])


class Scripted:
    """A pipeline with a scripted end for each question."""

    def __init__(self, fail: Sequence[int] = (), error: Exception | None = None, *, declined: bool = False) -> None:
        self.fail, self.error, self.declined = set(map(str, fail)), error or TimeoutError("no reply"), declined
        self.asked: list[Task] = []
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def ask(self, task: Task) -> TaskOutcome:
        with self.lock:
            self.asked.append(task)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        threading.Event().wait(0.002)
        with self.lock:
            self.at_once -= 1
        if task.question.id in self.fail:
            raise self.error
        return outcome(declined=self.declined)

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        return f'{{"answerable": false, "reason": "{"ABCDE"[int(task.question.id) % 5]}"}}'


def run(pipeline: Scripted, count: int = 4, strategies: Sequence[Strategy] = STRATEGIES, **options: object) -> Record:
    questions = [question(number) for number in range(count)]
    return measure(pipeline, questions, strategies=strategies, settings={}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_results_stand_in_the_order_of_the_questions_however_many_are_asked_at_a_time(concurrency: int) -> None:
    pipeline = Scripted()
    evaluation = run(pipeline, 12, concurrency=concurrency)
    assert [one.id for one in evaluation.results] == [str(number) for number in range(12) for _ in STRATEGIES]
    assert pipeline.most <= concurrency
    assert evaluation.stopped is None


def test_what_reads_no_passages_is_asked_once_whatever_k() -> None:
    one = question(0)
    tasks = tasks_of(one, STRATEGIES, ks=(1, 5), closed_book=True, based_only_on=True)
    assert [(task.strategy, task.k, task.based_only_on) for task in tasks] == [
        ("closed_book", None, False),
        ("rag", 1, False),
        ("self_route", 1, False),
        ("rag", 5, False),
        ("self_route", 5, False),
        ("long_context", None, False),
        ("long_context", None, True),
    ]


def test_what_fails_is_listed_and_scored_nowhere() -> None:
    evaluation = run(Scripted(fail=[1]))
    assert {one.id for one in evaluation.results} == {"0", "2", "3"}
    assert [(one.id, one.strategy, one.error) for one in evaluation.failures] == [
        ("1", strategy, "no reply (TimeoutError)") for strategy in ("rag", "self_route", "long_context")
    ]


def test_a_run_in_which_the_first_questions_all_fail_asks_no_more() -> None:
    pipeline = Scripted(fail=range(100), error=PermissionError("wrong key sk-abcdefghijklmnop"))
    evaluation = run(pipeline, 100, concurrency=2)
    assert evaluation.stopped is not None
    assert len(pipeline.asked) < 40
    assert not evaluation.results
    assert not any("abcdefgh" in one.error for one in evaluation.failures)


def test_a_run_goes_on_where_some_questions_fail_for_good() -> None:
    evaluation = run(Scripted(fail=range(1, 30)), 40, concurrency=1)
    assert (len(evaluation.results), len(evaluation.failures), evaluation.stopped) == (33, 87, None)


def test_the_cap_ends_a_run_and_what_is_done_is_kept() -> None:
    pipeline = Scripted(fail=[2], error=CostCapError("the cap of $1 is reached"))
    evaluation = run(pipeline, 50, concurrency=1)
    assert evaluation.stopped == "the cap of $1 is reached"
    assert {one.id for one in evaluation.results} == {"0", "1"}
    assert not evaluation.failures
    assert len(pipeline.asked) < 20


def test_a_part_that_cannot_work_is_an_error_at_once() -> None:
    with pytest.raises(ConfigurationError, match="no price"):
        run(Scripted(fail=[0], error=ConfigurationError("no price")), concurrency=1)


def test_the_model_is_asked_for_its_reason_once_for_each_draft_that_it_declined() -> None:
    reasons = run(Scripted(declined=True), explain_declines=True).reasons
    assert [(one.id, one.letter) for one in reasons] == [("0", "A"), ("1", "B"), ("2", "C"), ("3", "D")]
    assert not run(Scripted(), explain_declines=True).reasons


class SilentOnReasons(Scripted):
    """Declines, and fails when it is asked why."""

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        raise TimeoutError


def test_a_reason_that_cannot_be_had_takes_nothing_from_the_answer() -> None:
    evaluation = run(SilentOnReasons(declined=True), explain_declines=True)
    assert len(evaluation.results) == 4 * len(STRATEGIES)
    assert [(one.id, one.strategy, one.error) for one in evaluation.failures] == [
        (str(number), "reason", "TimeoutError") for number in range(4)
    ]
    finished = ComparedResults.of(evaluation)
    assert (len(finished.keys), finished.left_out, finished.failed) == (4, 0, [])


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ('{"answerable": false, "answer": "", "reason": "B"}', "B"),
        ('```json\n{"answerable": false, "reason": "d. implicit"}\n```', "D"),
        ('{"answerable": true, "answer": "seven"}', "answerable"),
        ('{"answerable": true, "answer": "seven", "reason": ""}', "answerable"),
        ('{"answerable": false}', "?"),
        ('{"answerable": false, "reason": null}', "?"),
        ('{"reason": ["A"]}', "?"),
        ("C.", "C"),
        ("The reason is A.", "A"),
        ("A or B.", "?"),
        ("", "?"),
        ("[1]", "?"),
    ],
)
def test_the_reason_is_read_out_of_whatever_the_model_writes(reply: str, letter: str) -> None:
    assert letter_in(reply) == letter


@pytest.mark.parametrize(
    ("metric", "answers", "answer", "score"),
    [
        ("f1", ["seven"], "unanswerable", 0.0),
        ("f1", ["unanswerable"], "unanswerable", 1.0),  # as Qasper has it
        ("f1", [], "unanswerable", 1.0),
        ("f1", [], "unanswerable is a word", 0.0),
        ("rouge_l", [], "unanswerable", 1.0),
        ("choice", [], "B", 0.0),
        ("squad_f1", [], "unanswerable", 1.0),
        ("squad_em", [], "seven", 0.0),
        ("squad_f1", ["seven"], "unanswerable", 0.0),
        ("squad_f1", ["seven"], "seven", 1.0),
        ("passkey", ["71432"], "unanswerable", 0.0),
        ("choice", ["the red one", "B"], "unanswerable", 0.0),
    ],
)
def test_a_refusal_is_scored_as_the_data_sets_own_metric_has_it(
    metric: str, answers: list[str], answer: str, score: float
) -> None:
    result = scored(Task(question(0, metric, answers), "rag"), outcome(answer))
    assert result.score == score
    assert metric in METRICS
