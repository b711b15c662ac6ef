"""Ask many questions for their looks, several at a time, and score what comes back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Literal

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looking import Pipeline, look
from selfroute_workbench.evaluation.looks import Failure, Look, Strategy
from selfroute_workbench.evaluation.metrics import METRICS
from selfroute_workbench.evaluation.questions import Question, choice_lines
from selfroute_workbench.evaluation.spending import CostCapError

_HOPELESS = 5
"""A run ends after so many failed questions if none has succeeded: a wrong key would fail them all."""


@dataclass
class Asked:
    """What was asked, of one question or of all."""

    looks: list[Look] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    stopped: str | None = None


def ask_looks(  # noqa: PLR0913 - what there is to choose
    pipeline_of: Callable[[Question], Pipeline],
    questions: Sequence[Question],
    strategies: Sequence[Strategy],
    *,
    judge: ModelJudge | None = None,
    given: Callable[[Question], Any] | None = None,
    concurrency: int = 4,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Asked:
    """Ask questions as each strategy would.

    Questions on one document follow one another, so that they share the provider's prompt cache.

    Raises:
        ConfigurationError: The pipeline, a model or a price is missing or wrong, so that no question can be asked.
        InputError: There are no questions, or two have the same key.
    """
    check_keys(questions)
    parts = [Asked() for _ in questions]
    stop, whole = threading.Event(), Asked()
    ask = partial(_ask, pipeline_of, strategies=strategies, judge=judge, given=given or with_choices)

    def work(number: int) -> None:
        if stop.is_set():
            return
        try:
            ask(questions[number], parts[number])
        except BaseException:  # whatever ends the run; the provider's errors are among the failures
            stop.set()
            raise
        on_progress(1)
        if (why := _hopeless(parts)) and not stop.is_set():
            whole.stopped = f"{why}, so the rest were not asked"
            stop.set()

    threads = ThreadPoolExecutor(concurrency, thread_name_prefix="selfroute-evaluation")
    try:
        for future in as_completed([threads.submit(work, number) for number in in_turn(questions)]):
            try:
                future.result()
            except CostCapError as error:  # noqa: PERF203 - once a question
                whole.stopped = whole.stopped or str(error)
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)
    for part in parts:
        whole.looks += part.looks
        whole.failures += part.failures
    return whole


def with_choices(question: Question) -> str:
    """Return the question, with its choices below it."""
    return "\n".join(filter(None, (question.question, choice_lines(question.choices))))


def score_of(question: Question, answer: str, *, declined: bool) -> float:
    """Return the score of an answer by the question's own metric, from 0 to 1.

    Where the text has no answer, a decline scores 1 and all else 0, as in SQuAD.
    """
    squad = question.metric.startswith("squad")
    if declined:  # whatever it says besides; in SQuAD an empty answer is a decline
        answer = "" if squad else "unanswerable"
    if question.answers or squad:
        return METRICS[question.metric](answer, question.answers)
    return float(declined)


def check_keys(questions: Sequence[Question]) -> None:
    """Check that there are questions, each with a key of its own; `ask_looks` says what is raised."""
    if not questions:
        msg = "there are no questions: give at least one"
        raise InputError(msg)
    keys = Counter(question.key for question in questions)
    (dataset, name), count = keys.most_common(1)[0]
    if count > 1:
        msg = f"question {name!r} of {dataset!r} is there twice: give each question, or each file, its own name"
        raise InputError(msg)


def _ask(  # noqa: PLR0913 - what there is to ask
    pipeline_of: Callable[[Question], Pipeline],
    question: Question,
    asked: Asked,
    *,
    strategies: Sequence[Strategy],
    judge: ModelJudge | None,
    given: Callable[[Question], Any],
) -> None:
    """Ask one question. All answers are judged together and paid once, so only if none is missing."""
    for strategy in strategies:
        with failing(question, strategy, asked.failures):
            found = look(pipeline_of(question), question.key, given(question), strategy)
            asked.looks += [
                replace(each, score=score_of(question, each.answer, declined=each.declined)) for each in found
            ]
    if judge and not asked.failures:
        with failing(question, "judge", asked.failures):
            asked.looks = judge.grade(question, asked.looks)


@contextmanager
def failing(question: Question, strategy: Strategy | Literal["judge"], failures: list[Failure]) -> Iterator[None]:
    """List what a provider raises as a failure, not as a wrong answer; what ends the run passes through."""
    try:
        yield
    except (CostCapError, ConfigurationError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a provider raises
        failures.append(Failure(*question.key, strategy, one_line(error)))


def _hopeless(parts: Sequence[Asked]) -> str | None:
    """Return why asking on makes no sense; None if it does."""
    failed = [part for part in parts if part.failures]
    if len(failed) < _HOPELESS:
        return None
    if not any(part.looks for part in parts):
        return f"the first {_HOPELESS} questions all failed"
    ungraded = [part for part in failed if any(each.strategy == "judge" for each in part.failures)]
    if len(ungraded) >= _HOPELESS and not any(each.judged_by == "model" for part in parts for each in part.looks):
        return f"the judge failed on the first {_HOPELESS} questions"
    return None


def in_turn(questions: Sequence[Question]) -> list[int]:
    """Return the order in which questions are asked: those on one document follow one another.

    The data sets take turns, so that a run which is cut short has some of each.
    """
    by_document: dict[tuple[str, str], list[int]] = {}
    for number, question in enumerate(questions):
        by_document.setdefault((question.dataset, question.document_id), []).append(number)
    by_dataset: dict[str, list[list[int]]] = {}
    for (dataset, _), numbers in by_document.items():
        by_dataset.setdefault(dataset, []).append(numbers)
    turns = zip_longest(*by_dataset.values(), fillvalue=())
    return [number for turn in turns for numbers in turn for number in numbers]
