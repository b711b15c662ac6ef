"""Averages over data sets, their intervals, and paired comparisons; the same data always give the same figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np

from selfroute.evaluation.sampling import CONFIDENCE, FEWEST_DOCUMENTS, Interval, Units, interval_of

Key = tuple[str, str]  # the data set and the question's name within it, as in `Question.key`
Value = TypeVar("Value")

SAME = "no difference shown"

_SWAPS, _BATCH = 5_000, 500  # in batches, for the memory that they take
_SEED = 240716833


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two strategies, on the questions that both answered.

    Attributes:
        questions: The number of these questions.
        difference: The first one's score minus the second's: the average over data sets of the mean difference.
        interval: Its 95 % interval; None if there is none (see `interval`).
        p: The probability that equal strategies differ at least as much (a two-sided permutation test, which swaps the
            two on whole documents or questions).
        better: The number of questions where the first has the higher score.
        equal: The number of questions where the scores are equal.
        worse: The number of questions where the second has the higher score.
        of_few_documents: Whether interval and p hold for other questions on these documents only: on other documents,
            equal strategies would be told apart far too often.
    """

    questions: int
    difference: float
    interval: Interval | None
    p: float
    better: int
    equal: int
    worse: int
    of_few_documents: bool = False

    @property
    def shows_difference(self) -> bool:
        """Whether there is more than chance: the interval excludes 0, and p is small."""
        low, high = self.interval or (self.difference, self.difference)
        return not low <= 0 <= high and self.p <= 1 - CONFIDENCE

    @property
    def verdict(self) -> str:
        """In words: better, worse or no difference shown, and whether that holds on these documents only."""
        if not self.shows_difference:
            return SAME
        return f"{'better' if self.difference > 0 else 'worse'}{self.where}"

    @property
    def where(self) -> str:
        """Where a difference holds, to be put after it in a sentence; empty for documents of this kind in general."""
        return " on these documents" if self.of_few_documents else ""


def average(scores: Mapping[Key, float]) -> float:
    """Return the average over data sets of their mean scores, as in the paper's tables.

    Raises:
        statistics.StatisticsError: There are no scores.
    """
    return fmean(fmean(of_set) for of_set in _by_dataset(scores).values())


def interval(
    scores: Mapping[Key, float], documents: Mapping[Key, str] | None = None, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return a bootstrap interval of the average over data sets of the mean score.

    Args:
        scores: The score of each question.
        documents: The id of each question's document; None if each question has its own.
        confidence: The share of such intervals that contain the true average.

    Returns:
        The interval, from low to high; None if a data set has fewer than two questions, or all scores are equal.
    """
    return interval_of(_units(scores, documents), confidence=confidence)


def compare(
    first: Mapping[Key, float], second: Mapping[Key, float], *, documents: Mapping[Key, str] | None = None
) -> Comparison:
    """Compare the scores of two strategies, question by question.

    Args:
        first: The score of each question by the first strategy.
        second: The score of each question by the second; questions that only one answered are left out.
        documents: The id of each question's document; None if each question has its own.

    Raises:
        statistics.StatisticsError: There is no question that both answered.
    """
    differences = {key: score - second[key] for key, score in first.items() if key in second}
    better, worse = (sum(sign * each > 0 for each in differences.values()) for sign in (1, -1))
    return Comparison(
        len(differences),
        average(differences),
        interval(differences, documents),
        _p(differences, documents),
        better,
        len(differences) - better - worse,
        worse,
        bool(documents and with_few_documents(differences, documents)),
    )


def with_few_documents(keys: Iterable[Key], documents: Mapping[Key, str]) -> list[str]:
    """Return the data sets whose intervals hold for their documents only: several questions on a few documents."""
    of_set = _by_dataset({key: documents[key] for key in keys})
    return [name for name, found in of_set.items() if len(set(found)) < min(len(found), FEWEST_DOCUMENTS)]


def _by_dataset(values: Mapping[Key, Value]) -> dict[str, list[Value]]:
    found = defaultdict(list)
    for (name, _), value in values.items():
        found[name].append(value)
    return found


def _units(scores: Mapping[Key, float], documents: Mapping[Key, str] | None) -> list[tuple[Units, list[float]]]:
    """Return what is resampled of each data set, with the score of each question."""
    found: dict[str, list[Key]] = defaultdict(list)
    for key in scores:
        found[key[0]].append(key)
    return [
        (Units([documents[key] if documents else key[1] for key in keys]), [scores[key] for key in keys])
        for keys in found.values()
    ]


def _p(differences: Mapping[Key, float], documents: Mapping[Key, str] | None) -> float:
    from scipy.stats import permutation_test  # type: ignore[import-untyped]  # noqa: PLC0415

    shares = np.concatenate([units.sums(each) / len(each) for units, each in _units(differences, documents)])
    shares = shares[shares != 0]  # where swapping changes nothing
    if len(shares) < 2:  # noqa: PLR2004 - swapped or not, one is as far apart
        return 1.0
    tested = permutation_test(
        (shares,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_SWAPS,
        batch=_BATCH,
        rng=_SEED,
    )
    return float(tested.pvalue)
