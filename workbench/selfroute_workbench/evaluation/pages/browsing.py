"""What a page shows of each question: its answers, the steps that they took, and where they stand in the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from selfroute.answerability import Verdict, declines_anywhere
from selfroute_workbench.evaluation.looks import TITLES, Failure, Measure, Passage, Result, by_key
from selfroute_workbench.evaluation.pages.bars import Bar, bars_of
from selfroute_workbench.evaluation.pages.places import ROUTED, Places, Shown, places_of
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record

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
_MOST_PASSAGES = 10
_EQUAL = 1e-9  # scores that differ by less are equal but for rounding


@dataclass(frozen=True)
class Asked:
    """A question with its answers.

    Attributes:
        question: The question.
        answers: The answers, the one that it is listed with first.
        failures: The steps that could not be finished, each with its error.
        judged: Whether scores are a judge's grades.
        places: Where the answers stand.
    """

    question: Question
    answers: Sequence[Shown]
    failures: Sequence[Failure] = ()
    judged: bool = False
    places: Places = field(default_factory=Places)

    @property
    def main(self) -> Shown | None:
        """The answer that the question is listed with: Self-Route's, or of what comes next to it."""
        order = (*ROUTED, "rag", "long_context")
        return min(self.answers, key=lambda each: order.index(each.strategy), default=None)

    @property
    def routes(self) -> str:
        """The routes that the strategies with a choice of routes took."""
        return " ".join(sorted({each.route for each in self._of(*ROUTED) if each.route}))

    @property
    def passages(self) -> Sequence[Passage]:
        """The retrieved passages; they are the same for all strategies."""
        return next((each.passages for each in self.answers if each.passages), ())

    @cached_property
    def marks(self) -> Sequence[str]:
        """The keys of `MARKS` that are true of the question."""
        one = self.main
        found = {
            "lost": self.lost,
            "twice": one is not None and one.escalated and not one.answerable,
            "gained": one is not None and one.escalated and one.answerable and not self.lost,
            "stopped": any(each.is_stopped for each in self.answers),
            "worse": any(
                one < whole - _EQUAL
                for one in _scores(self._of("self_route"))
                for whole in _scores(self._of("long_context"))
            ),
            "disagree": bool(scores := _scores(self.answers)) and max(scores) - min(scores) > _EQUAL,
            "failed": bool(self.failures),
        }
        return [name for name in MARKS if found[name]]

    @property
    def lost(self) -> bool:
        """Whether more than the passages was read, and the answer is neither right nor better than the draft's."""
        one = self.main
        if one is None or not one.escalated or one.score is None:
            return False
        return one.score < 1 - _EQUAL and one.score <= max(_scores(self._of("rag")), default=0) + _EQUAL

    def bars(self, shown: Shown) -> Iterator[Bar]:
        """Return the tokens and the dollars of an answer, as bars on one scale for the question."""
        return bars_of(shown.usage, [each.usage for each in self.answers])

    def names_of(self, strategies: Iterable[str]) -> str:
        """Return the names of some strategies."""
        return ", ".join(dict.fromkeys(TITLES.get(name, name) for name in strategies))

    def _of(self, *strategies: str) -> list[Shown]:
        return [each for each in self.answers if each.strategy in strategies]


def _scores(some: Iterable[Shown]) -> list[float]:
    return [each.score for each in some if each.score is not None]


def browsed(evaluation: Record) -> list[Asked]:
    """Return the questions of an evaluation, each with its answers and with where they stand."""
    results, failures, known = by_key(evaluation.results), by_key(evaluation.failures), by_key(evaluation.excerpts)
    measure = evaluation.measure
    asked = [
        Asked(one, _shown(results.get(one.key, ()), measure), failures.get(one.key, ()), measure == "judged")
        for one in evaluation.questions
    ]
    # Questions on one document follow one another, so that it is taken apart once, however many documents there are.
    places = {
        one.question.key: places_of(
            one.question, one.answers, one.passages[:_MOST_PASSAGES], known.get(one.question.key, ())
        )
        for one in sorted(asked, key=lambda one: hash(one.question.document))
    }
    return [replace(one, places=places[one.question.key]) for one in asked]


def _shown(results: Sequence[Result], measure: Measure) -> list[Shown]:
    """Return the answers of a question; the long context's tokens and dollars are those of its own answer."""
    whole = next((each for each in results if each.strategy == "long_context"), None)
    return [_answer(each, whole, measure) for each in results]


def _answer(result: Result, whole: Result | None, measure: Measure) -> Shown:
    judged, draft = measure == "judged", result.paid[0]
    usage = result.usage.compared(whole.input_tokens, whole.usage.cost) if whole else result.usage
    has_draft = draft.route == "rag"
    verdict = Verdict(
        draft.declined,
        "sentinel" if draft.declined else "doubt" if len(result.paid) > 1 else "answered",
        declines_anywhere(draft.answer).evidence if draft.declined else "",
        draft.prospect,
        draft.confidence,
    )
    return Shown(
        result.strategy,
        result.answer,
        result.route,
        result.answerable,
        verdict.as_dict() if has_draft else {},
        usage.as_dict(),
        draft.answer if has_draft else None,
        result.passages,
        any(look.cut for look in result.paid),
        result.seconds,
        result.judged if judged else result.score,
        result.score if judged else None,
        judged and result.shown.judged_by == "rule",
    )


def page_values(questions: Sequence[Asked], *, most: int = MOST) -> dict[str, Any]:
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
        "names": TITLES,
        "routes": ROUTES,
        "signals": SIGNALS,
        "most_passages": _MOST_PASSAGES,
    }


def _worth_most(questions: Sequence[Asked], most: int) -> Sequence[Asked]:
    """Return the questions that are worth most to look at, in the order in which they were asked."""
    if len(questions) <= most:
        return questions

    def worth(item: tuple[int, Asked]) -> tuple[bool, float, int]:
        index, one = item
        usage = one.main.usage if one.main else {}
        expense = float(usage.get("cost") or 0) or float(usage.get("total_tokens") or 0) / 1e9
        return bool({"lost", "twice", "stopped", "failed"} & set(one.marks)), expense, -index

    chosen = sorted(enumerate(questions), key=worth, reverse=True)[:most]
    return [one for _, one in sorted(chosen, key=lambda item: item[0])]
