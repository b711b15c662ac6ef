"""What a reader of the tables must know to read them right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from selfroute.evaluation.datasets import DATASETS
from selfroute.evaluation.reporting.compared import ComparedResults, compared, named, run_of
from selfroute.evaluation.reporting.statistics import FEWEST_DOCUMENTS, with_few_documents
from selfroute.evaluation.results import Result

_FEW = 0.01  # of the questions can be left out without a word on whether the rest is a fair sample
_MANY = 0.1  # of the questions


def about_main(finished: ComparedResults) -> Iterator[str]:
    """The notes of the main table; what bears on all its figures comes first."""
    evaluation, asked = finished.evaluation, len(finished.documents)
    if finished.left_out > _MANY * asked:
        found = f"{len(finished.keys):,} of {asked:,} questions"
        yield f"Only {found} are compared: scores and tokens are of these alone."
    for run in finished.failed:
        yield f"{named(run)} was asked for and finished no question, so it has no figures."
    yield "Scores are times 100. Avg is the average over the data sets; low and high are its interval of 95 %."
    yield "answerable % is the share of questions that the first step answers, of all that have a draft."
    if len(finished.ks) > 1:
        yield f"Tables that are for one k are for the first that was asked for, k={finished.ks[0]}."
    yield from _about_tokens(finished)
    yield from _about_left_out(finished)
    if failed := len(evaluation.failures):
        yield f"Failures, which are not scored: {failed:,}."
    if empty := Counter(run_of(result.strategy, result.k) for result in compared(evaluation) if _is_empty(result)):
        runs = ", ".join(f"{named(run)} {count:,}" for run, count in empty.items())
        yield f"Replies that were empty, as a content filter or a reply of thoughts only leaves them: {runs}."
    readers = finished.get("long_context") or finished.get("self_route", finished.ks[0])
    if cut := sum(each.cut for each in readers.values()):
        shortened = "Documents that were cut in the middle or otherwise shortened to fit the model's window"
        yield f"{shortened}: {cut:,} of {len(finished.keys):,}."
    if evaluation.stopped:
        yield f"The run ended early: {evaluation.stopped.rstrip('.')}."
    yield from about_intervals(finished)


def about_intervals(finished: ComparedResults) -> tuple[str, ...]:
    """The note that tables with intervals bear."""
    names = with_few_documents(finished.keys, finished.documents)
    if not names:
        return ()
    where = "" if len(names) == len(finished.datasets) else f" of {', '.join(names)}"
    few = f"The questions{where} are on fewer than {FEWEST_DOCUMENTS} known documents"
    return (f"{few}: intervals speak for other questions on the same documents, not for other documents.",)


def about_papers(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The note that figures of the paper bear where only a part of its questions is behind one's own.

    Args:
        counts: How many questions of each of the paper's data sets are compared.
    """
    fewer = [
        f"{count:,} of {DATASETS[name].size:,} of {name}"
        for name, count in counts.items()
        if count < DATASETS[name].size
    ]
    return (
        (f"This run's figures are not on all questions that the paper's are on: {', '.join(fewer)}.",) if fewer else ()
    )


def _about_tokens(finished: ComparedResults) -> Iterator[str]:
    if finished.get("long_context"):
        yield "token % is Self-Route's input tokens over those of the long context."
    elif finished.get("self_route", finished.ks[0]):
        why = "finished no question" if ("long_context", None) in finished.failed else "was not run"
        yield f"The long context {why}: token % is an estimate of what it would have read, where that is known."


def _about_left_out(finished: ComparedResults) -> Iterator[str]:
    """How many questions are not compared, and what their first step said: they are seldom left out by chance."""
    if not finished.left_out:
        return
    missing = ", ".join(f"{named(run)} {count:,}" for run, count in finished.unfinished.items() if count)
    yield f"Questions left out because not every strategy finished them: {finished.left_out:,} ({missing})."
    if unseen := dict.fromkeys(name for name, _ in finished.documents if name not in finished.datasets):
        yield f"Data sets that are left out whole: {', '.join(unseen)}."
    k, kept = finished.ks[0], set(finished.keys)
    drafts = finished.drafts.get(k, {})
    if not drafts:
        return
    lost = [_declined(each) for key, each in drafts.items() if key not in kept]
    step = "the first step" if k is None else f"the first step (k={k})"
    unknown = finished.left_out - len(lost)
    counts = f"declined {sum(lost):,}, answered {len(lost) - sum(lost):,} and left no draft of {unknown:,}"
    yield f"Of those left out, {step} {counts}."
    more_often = sum(lost) * len(drafts) > sum(map(_declined, drafts.values())) * len(lost)
    if more_often and len(lost) > _FEW * len(drafts):
        yield "What is compared is no fair sample of all questions: those left out were declined more often."


def _declined(result: Result) -> bool:
    return bool(result.decision["declined"])


def _is_empty(result: Result) -> bool:
    """Whether the final answer or the draft is a reply without text."""
    replies = (result.answer if result.answerable else None, result.draft)
    return any(reply is not None and not reply.strip() for reply in replies)
