"""What the question browser shows, in the report and in `selfroute view`: each question with all that became of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any, TypeVar

from selfroute.evaluation.questions import Question
from selfroute.evaluation.reasons import LETTERS
from selfroute.evaluation.records import Failure, Measure, Passage, Reason, Record, Result, Strategy
from selfroute.evaluation.reporting.bars import Bar, bars_of
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.evidence import Evidence, Piece, find_evidence, refusal_pieces
from selfroute.evaluation.reporting.plots import NAMES
from selfroute.usage.counts import STEPS

OfQuestion = TypeVar("OfQuestion", Result, Failure, Reason)

MOST = 1000
"""Questions on a page; with many more, a browser could hardly open it."""
MARKS: Mapping[str, str] = {
    "lost": "escalated and lost",
    "twice": "declined twice",
    "gained": "answered after a decline",
    "stopped": "stopped by a policy",
    "worse": "Self-Route worse than long context",
    "disagree": "strategies disagree",
    "failed": "failed",
}
"""What a question can be looked for by; `docs/evaluating.md` explains them."""
ROUTES: Mapping[str, str] = {"rag": "passages", "sections": "sections", "long_context": "whole document"}
SIGNALS: Mapping[str, str] = {
    "sentinel": "declined with the refusal word",
    "phrase": "declined in its own words",
    "empty": "declined with an empty reply",
    "no_passages": "nothing was retrieved",
    "doubt": "answered in doubt",
    "start": "began with the documents",
    "answered": "answered",
}
_ROUTED: tuple[Strategy, ...] = ("self_route", "sections", "graded", "graded_sections")
_MOST_PASSAGES = 10
_EQUAL = 1e-9  # scores that differ by less are equal but for rounding


@dataclass(frozen=True)
class QuestionResults:
    """A question with its results.

    Attributes:
        question: The question.
        results: The results of the strategies.
        failures: The tasks that could not be finished.
        reasons: Why drafts were declined.
        k: The k whose passages are shown.
        measure: The scores that are compared.
        evidence: Where the answers stand.
    """

    question: Question
    results: Sequence[Result]
    failures: Sequence[Failure]
    reasons: Sequence[Reason]
    k: int | None
    measure: Measure = "score"
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def routes(self) -> str:
        """The routes that the strategies with a choice of routes took."""
        return " ".join(sorted({result.route for result in self._of(*_ROUTED) if result.route}))

    @cached_property
    def main(self) -> Result | None:
        """The result that the question is listed with: Self-Route's, or of what comes next to it."""
        order = (*_ROUTED, "rag", "long_context", "closed_book")
        shown = [each for each in self.results if each.k in {self.k, None} and not each.based_only_on]
        return min(shown, key=lambda each: order.index(each.strategy), default=None)

    @property
    def first(self) -> Sequence[Result]:
        """The results at the main k, which are shown at once."""
        return [each for each in self.results if each.k in {self.k, None} and not each.based_only_on]

    @property
    def others(self) -> Sequence[Result]:
        """The other results."""
        return [each for each in self.results if each not in self.first]

    @cached_property
    def marks(self) -> Sequence[str]:
        """The keys of `MARKS` that are true of the question."""
        one = self.main
        twice = one is not None and _escalated(one) and not one.answerable
        found = {
            "lost": self.lost,
            "twice": twice,
            "gained": one is not None and _escalated(one) and one.answerable and not self.lost,
            "stopped": any(_is_stopped(each) for each in self.first),
            "worse": self.worse,
            "disagree": self.disagree,
            "failed": bool(self.failures),
        }
        return [name for name in MARKS if found[name]]

    @property
    def lost(self) -> bool:
        """Whether more than the passages was read, and the answer is neither right nor better than the draft's."""
        one = self.main
        if one is None or not _escalated(one) or not (scores := self._scores([one])):
            return False
        drafts = self._scores([each for each in self._of("rag") if each.k == one.k])
        return scores[0] < 1 - _EQUAL and scores[0] <= max(drafts, default=0) + _EQUAL

    @property
    def disagree(self) -> bool:
        """Whether the strategies score differently, with the same k."""
        alone = self._of("long_context")
        compared = self._of("rag", *_ROUTED)
        groups = [[each for each in compared if each.k == k] + alone for k in {each.k for each in compared}]
        scores = [self._scores(group) for group in groups]
        return any(of_group and max(of_group) - min(of_group) > _EQUAL for of_group in scores)

    @property
    def worse(self) -> bool:
        """Whether Self-Route scores less than the long context."""
        alone, routed = self._scores(self._of("long_context")), self._scores(self._of("self_route"))
        return any(one < score - _EQUAL for one in routed for score in alone)

    @property
    def passages(self) -> Sequence[Passage]:
        """The retrieved passages; they are the same for all strategies."""
        return _passages(self.results, self.k)

    def score_of(self, result: Result) -> float | None:
        """Return the score that counts, from 0 to 100; None if the result has none."""
        return next((100 * score for score in self._scores([result])), None)

    def bars(self, result: Result) -> Sequence[Bar]:
        """Return the tokens and the dollars of a result, as bars on one scale for the question."""
        return bars_of(result.usage, [each.usage for each in self.results])

    def names_of(self, strategies: Iterable[Strategy]) -> str:
        """Return the names of some strategies."""
        return ", ".join(dict.fromkeys(NAMES[strategy] for strategy in strategies))

    def _scores(self, results: Sequence[Result]) -> list[float]:
        scores = [getattr(each, self.measure) for each in results]
        return [score for score in scores if score is not None and not isnan(score)]

    def _of(self, *strategies: str) -> list[Result]:
        return [result for result in self.results if result.strategy in strategies and not result.based_only_on]


def browsed(record: Record) -> list[QuestionResults]:
    """Return the questions of a record, each with its results and with where its answers stand."""
    results = _by_question(each for each in record.results if each.retriever is None)
    failures = _by_question(record.failures)
    reasons, compared = _by_question(record.reasons), ComparedResults.of(record)
    k, measure = compared.ks[0], compared.measure
    evidence = find_evidence(
        (
            (one, [each for each in of_one if each.k in {k, None}], _passages(of_one, k)[:_MOST_PASSAGES])
            for one in record.questions
            for of_one in [results[one.key]]
        ),
        record.excerpts,
    )
    return [
        QuestionResults(one, results[one.key], failures[one.key], reasons[one.key], k, measure, evidence[one.key])
        for one in record.questions
    ]


def page_values(questions: Sequence[QuestionResults], *, most: int = MOST) -> dict[str, Any]:
    """Return what the templates of the browser are filled with.

    Args:
        questions: The questions.
        most: How many to show: those that a filter finds first, then the most expensive ones.
    """
    shown = _worth_most(questions, most)
    counts = Counter(mark for each in shown for mark in each.marks)
    return {
        "questions": shown,
        "left_out": len(questions) - len(shown),
        "marks": [(name, MARKS[name], counts[name]) for name in MARKS if counts[name]],
        "datasets": list(dict.fromkeys(each.question.dataset for each in shown)),
        "names": NAMES,
        "routes": ROUTES,
        "signals": SIGNALS,
        "reasons": LETTERS,
        "most_passages": _MOST_PASSAGES,
        "path_of": path_of,
        "draft_of": draft_of,
    }


def path_of(result: Result) -> list[str]:
    """Return the steps that ran, as the keys of `ROUTES`."""
    return [step for step in STEPS if result.usage.get(step)] if result.route else []


def draft_of(result: Result) -> Sequence[Piece]:
    """Return the draft in pieces, those words apart by which it declined; none if there was no draft to decline.

    For an accepted draft this is only the excerpt that raised a doubt.
    """
    decision = result.decision
    if result.draft is None:
        words = str(decision.get("evidence") or "")
        return [(words, True)] if decision.get("declined") and words else []
    if not decision.get("declined") and result.draft == result.answer:
        return []
    return refusal_pieces(result.draft, str(decision.get("evidence") or "") if decision.get("declined") else "")


def _escalated(result: Result) -> bool:
    """Return whether more was read than the passages, after a draft or for want of passages."""
    tried = bool(result.usage.get("rag")) or bool(result.decision.get("declined"))
    return result.strategy in _ROUTED and result.route in {"sections", "long_context"} and tried


def _is_stopped(result: Result) -> bool:
    return (result.decision.get("ruling") or {}).get("go") is False


def _worth_most(questions: Sequence[QuestionResults], most: int) -> Sequence[QuestionResults]:
    """Return the questions that are worth most to look at, in the order in which they were asked."""
    if len(questions) <= most:
        return questions

    def worth(item: tuple[int, QuestionResults]) -> tuple[bool, float, int]:
        index, one = item
        return bool({"lost", "twice", "stopped", "failed"} & set(one.marks)), _expense(one), -index

    chosen = sorted(enumerate(questions), key=worth, reverse=True)[:most]
    return [one for _, one in sorted(chosen, key=lambda item: item[0])]


def _expense(one: QuestionResults) -> float:
    usage = one.main.usage if one.main else {}
    return float(usage.get("cost") or 0) or float(usage.get("total_tokens") or 0) / 1e9


def _passages(results: Iterable[Result], k: int | None) -> Sequence[Passage]:
    return next((result.passages for result in results if result.passages and result.k == k), ())


def _by_question(some: Iterable[OfQuestion]) -> Mapping[tuple[str, str], list[OfQuestion]]:
    found = defaultdict(list)
    for each in some:
        found[each.dataset, each.id].append(each)
    return found
