"""Bootstrap intervals and paired comparisons; the same data always give the same figures.

Questions on one document are not independent, so documents are resampled, each with all its questions (the cluster
bootstrap); resampling questions would claim too much. A handful of documents says nothing about others: below
`FEWEST_DOCUMENTS` the questions are resampled, and the interval holds for other questions on these documents only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Key = tuple[str, str]  # the data set and the question's name within it, as in `Question.key`
Floats = NDArray[np.float64]
Value = TypeVar("Value")

FEWEST_DOCUMENTS = 10
CONFIDENCE = 0.95
SAME = "no difference shown"

_DRAWS, _BATCH = 5_000, 500  # in batches, for the memory that they take
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
    """

    questions: int
    difference: float
    interval: tuple[float, float] | None
    p: float
    better: int
    equal: int
    worse: int

    @property
    def verdict(self) -> str:
        """In words: a difference only if the interval excludes 0 and p is small."""
        low, high = self.interval or (self.difference, self.difference)
        if low <= 0 <= high or self.p > 1 - CONFIDENCE:
            return SAME
        return "better" if self.difference > 0 else "worse"


def average(scores: Mapping[Key, float]) -> float:
    """Return the average over data sets of their mean scores, as in the paper's tables.

    Raises:
        statistics.StatisticsError: There are no scores.
    """
    return fmean(fmean(of_set) for of_set in _by_dataset(scores).values())


def interval(
    scores: Mapping[Key, float], documents: Mapping[Key, str] | None = None, *, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Return a bootstrap interval of the average over data sets of the mean score.

    Each data set is resampled separately. One unit less is drawn than there are (Rao and Wu, 1988), and the percentiles
    are those of Student's t (Hesterberg, 2015); otherwise intervals of few questions would be too narrow.

    Args:
        scores: The score of each question.
        documents: The id of each question's document; None if each question has its own.
        confidence: The share of such intervals that contain the true average.

    Returns:
        The interval, from low to high; None if a data set has fewer than two questions, or all scores are equal.
    """
    from scipy.stats import norm, t  # type: ignore[import-untyped]  # noqa: PLC0415

    units = list(_units(scores, documents).values())
    if not units or any(len(sums) < 2 for sums, _ in units):  # noqa: PLR2004
        return None
    rng = np.random.default_rng(_SEED)
    drawn = np.mean([_means(sums, sizes, rng) for sums, sizes in units], axis=0)
    middle = average(scores)
    if np.allclose(drawn, middle, rtol=0, atol=1e-12):
        return None
    tail = norm.cdf(t.ppf((1 - confidence) / 2, sum(len(sums) - 1 for sums, _ in units)))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return min(float(low), middle), max(float(high), middle)


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


def _units(scores: Mapping[Key, float], documents: Mapping[Key, str] | None) -> dict[str, tuple[Floats, Floats]]:
    """Return what is resampled, by data set: the sum of the scores and the number of questions of each unit."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, score in scores.items():
        found[key[0]][documents[key] if documents else key[1]].append(score)
    units = {}
    for name, by_document in found.items():
        alone = len(by_document) < FEWEST_DOCUMENTS
        parts = [[score] for part in by_document.values() for score in part] if alone else list(by_document.values())
        units[name] = np.array([sum(part) for part in parts]), np.array([float(len(part)) for part in parts])
    return units


def _means(sums: Floats, sizes: Floats, rng: np.random.Generator) -> Floats:
    """Return the mean scores of samples of one data set."""
    drawn = []
    for _ in range(_DRAWS // _BATCH):
        chosen = rng.integers(len(sums), size=(_BATCH, len(sums) - 1))
        drawn.append(sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1))
    return np.concatenate(drawn)


def _p(differences: Mapping[Key, float], documents: Mapping[Key, str] | None) -> float:
    from scipy.stats import permutation_test  # noqa: PLC0415

    units = _units(differences, documents).values()
    shares = np.concatenate([sums / sizes.sum() for sums, sizes in units])
    shares = shares[shares != 0]  # where swapping changes nothing
    if len(shares) < 2:  # noqa: PLR2004 - swapped or not, one is as far apart
        return 1.0
    tested = permutation_test(
        (shares,), np.sum, permutation_type="samples", vectorized=True, n_resamples=_DRAWS, batch=_BATCH, rng=_SEED
    )
    return float(tested.pvalue)
