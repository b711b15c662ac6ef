"""Asks questions by every strategy, several at a time, and scores the answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError, InputError
from selfroute.evaluation.asking.budget import CostCapError
from selfroute.evaluation.asking.lanes import Lanes
from selfroute.evaluation.asking.strategies import StepReply
from selfroute.evaluation.metrics import METRICS
from selfroute.evaluation.prompts import choice_lines
from selfroute.evaluation.questions import Question
from selfroute.evaluation.reasons import letter_in
from selfroute.evaluation.records import Answer, Failure, Look, Passage, Reason, Record, Result, Strategy
from selfroute.flow import Route

_HOPELESS = 5
"""A run ends after so many failed questions if none has succeeded: a wrong key would fail them all."""

_LOOSE = {
    "squad_f1": ("squad_em", "squad_f1"),
    "squad_em": ("squad_em", "squad_f1"),
    "choice": ("choice", "choice"),
    "passkey": ("passkey", "passkey"),
    "first_or_second": ("first_or_second", "first_or_second"),
}
"""The metrics used in place of those of Li et al. (2025) where those do not suit a data set's answers."""


@dataclass(frozen=True, slots=True)
class Task:
    """A strategy to try on a question; the attributes are those of `Result`."""

    question: Question
    strategy: Strategy
    k: int | None = None
    based_only_on: bool = False


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a pipeline answered a task, before it is scored; the attributes are those of `Result`.

    Attributes:
        looks: The replies of all steps, also of those that the strategy does not show.
    """

    answer: str
    route: Route | None
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    draft: str | None = None
    passages: Sequence[Passage] = ()
    cut: bool = False
    seconds: float = 0.0
    looks: Sequence[StepReply] = ()


class Pipeline(Protocol):
    """Something to evaluate: it answers questions by each strategy, and is called from several threads at once."""

    def ask(self, task: Task) -> TaskOutcome:
        """Answer a task's question by its strategy."""

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the model why passages do not answer a task's question (the prompt of the paper's Table 8)."""


class Judge(Protocol):
    """Somebody who says whether answers are right; called from several threads at once."""

    def grade(self, question: Question, answers: Sequence[Answer]) -> list[Answer]:
        """Return all results and looks of a question with `judged` and `judged_by` filled in."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Who it is, what it was asked and what that took so far, as plain JSON."""


def with_choices(question: Question) -> str:
    """Return the question, with its choices below it."""
    return "\n".join(filter(None, (question.question, choice_lines(question.choices))))


def tasks_of(
    question: Question,
    strategies: Sequence[Strategy],
    *,
    ks: Sequence[int | None],
    closed_book: bool,
    based_only_on: bool,
) -> list[Task]:
    """List the tasks of a question: once for each k where passages are read, once where they are not."""
    tasks = [Task(question, "closed_book")] if closed_book else []
    tasks += [Task(question, one, k) for k in ks for one in strategies if one != "long_context"]
    once: list[Strategy] = [one for one in strategies if one == "long_context"]
    return tasks + [
        Task(question, one, based_only_on=wanted) for one in once for wanted in (False, True)[: 1 + based_only_on]
    ]


@dataclass
class _Progress:
    """What has been asked so far, for one question or for all; the attributes are those of `Record`."""

    results: list[Result] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    stopped: str | None = None


def measure(  # noqa: PLR0913 - what there is to choose
    pipeline: Pipeline,
    questions: Sequence[Question],
    *,
    strategies: Sequence[Strategy],
    ks: Sequence[int | None] = (None,),
    closed_book: bool = False,
    based_only_on: bool = False,
    explain_declines: bool = False,
    judge: Judge | None = None,
    concurrency: int = 4,
    settings: Mapping[str, Any],
    on_progress: Callable[[int], object] = lambda _: None,
) -> Record:
    """Ask questions by each strategy, and score what comes back.

    Args:
        pipeline: The pipeline to evaluate.
        questions: The questions.
        strategies: The strategies.
        ks: How many passages to retrieve; each number is tried.
        closed_book: Whether to ask each question without any text, too.
        based_only_on: Whether to read documents also with a prompt that says "based only on the provided passage".
        explain_declines: Whether to ask the model why it declined.
        judge: Grades the answers of each question that every strategy finished; that is one task more for each
            question. None to leave them ungraded.
        concurrency: How many questions are asked at a time.
        settings: What is run, as plain JSON.
        on_progress: Called with the number of tasks that have just been done.

    Raises:
        ConfigurationError: The pipeline, a model or a price is missing or wrong, so that no question can be asked.
        InputError: There are no questions, or two have the same key.
    """
    if not questions:
        msg = "there are no questions: give at least one"
        raise InputError(msg)
    keys = Counter(question.key for question in questions)
    dataset, name = max(keys, key=keys.__getitem__)
    if keys[dataset, name] > 1:
        msg = f"question {name!r} of {dataset!r} is there twice: give each question, or each file, its own name"
        raise InputError(msg)
    tasks = partial(tasks_of, strategies=strategies, ks=ks, closed_book=closed_book, based_only_on=based_only_on)
    perform = partial(_perform, pipeline, explain_declines=explain_declines)

    def steps(question: Question, progress: _Progress) -> Iterator[Callable[[], None]]:
        # all of them: only questions that every strategy finished can be compared
        yield from (partial(perform, task, progress) for task in tasks(question))
        if judge:
            yield partial(_judge, judge, question, progress)

    done = _run(questions, steps=steps, concurrency=concurrency, on_progress=on_progress)
    about = {"strategies": list(strategies), "k": [k for k in ks if k], "concurrency": concurrency, **settings}
    if judge:
        about["judge"] = judge.settings
    return Record(questions, done.results, done.failures, done.reasons, about, done.stopped, looks=tuple(done.looks))


def _run(
    questions: Sequence[Question],
    *,
    steps: Callable[[Question, _Progress], Iterable[Callable[[], None]]],
    concurrency: int,
    on_progress: Callable[[int], object],
) -> _Progress:
    """Ask several questions at a time; the steps of one question run in turn, so that they share replies.

    The questions on one document follow one another as well, so that they share the provider's prompt cache.
    """
    done = [_Progress() for _ in questions]
    stop = threading.Event()
    ended = _Progress()
    lanes = Lanes(questions)

    def ask() -> None:
        if stop.is_set():
            return
        number = lanes.take(threading.get_ident())
        for step in steps(questions[number], done[number]):
            try:
                step()
            except BaseException:  # whatever ends the run; the provider's errors are among the failures
                stop.set()
                raise
            on_progress(1)

    threads = ThreadPoolExecutor(concurrency, thread_name_prefix="selfroute-evaluation")
    try:
        for future in as_completed([threads.submit(ask) for _ in questions]):
            try:
                future.result()
            except CostCapError as error:
                ended.stopped = ended.stopped or str(error)
            if (why := _hopeless(done)) and not stop.is_set():
                ended.stopped = f"{why}, so the rest were not asked"
                stop.set()
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)
    for own in done:
        ended.results += own.results
        ended.failures += own.failures
        ended.reasons += own.reasons
        ended.looks += own.looks
    return ended


def _perform(pipeline: Pipeline, task: Task, progress: _Progress, *, explain_declines: bool) -> None:
    question = task.question
    asked: Strategy | Literal["reason"] = task.strategy
    try:
        outcome = pipeline.ask(task)
        progress.results.append(scored(task, outcome))
        _keep_looks(task, outcome, progress)
        if explain_declines and asked == "self_route" and outcome.passages and outcome.decision["declined"]:
            asked = "reason"
            reply = pipeline.explain(task, outcome.passages)
            progress.reasons.append(Reason(question.dataset, question.id, task.k, letter_in(reply), reply))
    except (CostCapError, ConfigurationError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a provider raises is listed as a failure, not scored as a wrong answer
        where = (question.dataset, question.id, asked, task.k, task.based_only_on)
        progress.failures.append(Failure(*where, one_line(error)))


def _judge(judge: Judge, question: Question, progress: _Progress) -> None:
    """Have the answers of a question judged, unless one is missing: all of them are judged together, and paid once."""
    if any(each.strategy != "reason" for each in progress.failures):
        return
    try:
        results: list[Answer] = [*progress.results, *progress.looks]
        graded = judge.grade(question, results)
        progress.results[:] = [each for each in graded if isinstance(each, Result)]
        progress.looks[:] = [each for each in graded if isinstance(each, Look)]
    except (CostCapError, ConfigurationError):
        raise
    except Exception as error:  # noqa: BLE001 - as above: a grade that is missing is not a wrong answer
        progress.failures.append(Failure(*question.key, "judge", None, False, one_line(error)))


def _hopeless(progress: Sequence[_Progress]) -> str | None:
    """Return why asking on makes no sense; None if it does."""
    failed = [one for one in progress if one.failures]
    if len(failed) >= _HOPELESS and not any(one.results for one in progress):
        return f"the first {_HOPELESS} questions all failed"
    ungraded = [one for one in failed if any(each.strategy == "judge" for each in one.failures)]
    if len(ungraded) >= _HOPELESS and not any(each.judged_by == "model" for one in progress for each in one.results):
        return f"the judge failed on the first {_HOPELESS} questions"
    return None


def _keep_looks(task: Task, outcome: TaskOutcome, progress: _Progress) -> None:
    """Keep the replies of the steps, each once: strategies share them."""
    question, known = task.question, {(each.step, each.k) for each in progress.looks}
    if task.based_only_on:
        return
    for look in outcome.looks:
        if (look.step, task.k) not in known:
            score, *_ = _scores(question, look.answer, declined=look.declined)
            found = Look(
                dataset=question.dataset,
                id=question.id,
                step=look.step,
                k=task.k,
                answer=look.answer,
                declined=look.declined,
                prospect=look.prospect,
                confidence=look.confidence,
                input_tokens=look.usage.input_tokens,
                output_tokens=look.usage.output_tokens,
                cost=look.usage.cost.as_text(),
                score=score,
            )
            progress.looks.append(found)


def _scores(question: Question, answer: str, *, declined: bool) -> Sequence[float]:
    """Score an answer by the question's own metric, and by both of Li et al. (2025).

    Where the text has no answer, a decline scores 1 and all else 0, as SQuAD's own metrics have it.
    """
    squad = question.metric.startswith("squad")
    prediction = answer
    if declined:  # whatever it says besides; in SQuAD an empty answer says that there is none
        prediction = "" if squad else "unanswerable"
    names = (question.metric, *_LOOSE.get(question.metric, ("exact_loose", "set_f1")))
    if question.answers or squad:
        return [METRICS[name](prediction, question.answers) for name in names]
    return [float(declined)] * len(names)


def scored(task: Task, outcome: TaskOutcome) -> Result:
    """Score an answer by the question's own metric, and by those of Li et al. (2025)."""
    question, answer = task.question, outcome.answer
    score, exact, set_f1 = _scores(question, answer, declined=not outcome.answerable)
    return Result(
        dataset=question.dataset,
        id=question.id,
        strategy=task.strategy,
        k=task.k,
        based_only_on=task.based_only_on,
        answer=answer,
        route=outcome.route,
        answerable=outcome.answerable,
        decision=outcome.decision,
        usage=outcome.usage,
        draft=outcome.draft,
        passages=outcome.passages,
        cut=outcome.cut,
        seconds=outcome.seconds,
        score=score,
        exact=exact,
        set_f1=set_f1,
    )
