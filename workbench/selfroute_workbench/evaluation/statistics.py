"""Bootstrap intervals over documents; the same data always give the same figures.

Questions on one document are not independent, so documents are resampled, each with all its questions (the cluster
bootstrap); resampling questions would claim too much. A handful of documents says nothing about others: below
`FEWEST_DOCUMENTS` the questions are resampled, and the interval holds for other questions on these documents only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, t  # type: ignore[import-untyped]

FEWEST_DOCUMENTS, FEWEST_QUESTIONS = 10, 50
CONFIDENCE = 0.95

Floats = NDArray[np.float64]
Interval = tuple[float, float]

_DRAWS, _BATCH = 5_000, 500  # in batches, for the memory that they take
_SEED = 240716833


class Units:
    """What is resampled: documents, or the questions of a few."""

    def __init__(self, documents: Sequence[str]) -> None:
        """Take the id of each question's document."""
        few = len(set(documents)) < FEWEST_DOCUMENTS
        numbers: dict[object, int] = {}
        ids: Sequence[object] = range(len(documents)) if few else documents
        self._unit_of = np.array([numbers.setdefault(each, len(numbers)) for each in ids], dtype=np.intp)
        self.count = len(numbers)

    @cached_property
    def sizes(self) -> Floats:
        """How many questions each unit has."""
        return self.sums(np.ones(len(self._unit_of)))

    def sums(self, values: ArrayLike) -> Floats:
        """Return the sum of each unit's values, of which there is one for each question."""
        sums: Floats = np.bincount(self._unit_of, np.asarray(values, dtype=np.float64), self.count).astype(np.float64)
        return sums

    def interval(self, values: ArrayLike) -> Interval | None:
        """Return the 95 % bootstrap interval of the mean over questions, from low to high.

        One unit less is drawn than there are (Rao and Wu, 1988); otherwise intervals of few would be too narrow. The
        percentiles are those of Student's t (Hesterberg, 2015).
        """
        if self.count < 2:  # noqa: PLR2004
            return None
        both = np.stack([self.sums(values), self.sizes], axis=1)
        drawn = np.concatenate([batch.astype(np.float64) @ both for batch in _samples(self.count)])
        means, middle = drawn[:, 0] / drawn[:, 1], float(np.mean(np.asarray(values, dtype=np.float64)))
        if np.allclose(means, middle, rtol=0, atol=1e-12):
            return None
        tail = norm.cdf(t.ppf((1 - CONFIDENCE) / 2, self.count - 1))
        low, high = np.quantile(means, [tail, 1 - tail])
        return min(float(low), middle), max(float(high), middle)

    def standard_error(self, values: ArrayLike) -> float:
        """Return the standard error of the mean over questions; 0 if there are fewer than two units."""
        if self.count < 2:  # noqa: PLR2004
            return 0.0
        sums, sizes = self.sums(values), self.sizes
        questions = len(self._unit_of)
        squares = float(np.sum((sums - sizes * (sums.sum() / questions)) ** 2))
        return sqrt(squares * self.count / (self.count - 1)) / questions


@lru_cache(maxsize=8)
def _samples(count: int) -> Sequence[NDArray[np.uint8]]:
    """Return how often each unit is in each sample; one that is in more than 255 is beyond all chance."""
    rng = np.random.default_rng([_SEED, 0])
    batches = []
    for _ in range(_DRAWS // _BATCH):
        chosen = rng.integers(count, size=(_BATCH, count - 1)) + count * np.arange(_BATCH)[:, None]
        batches.append(np.bincount(chosen.ravel(), minlength=_BATCH * count).reshape(_BATCH, count).astype(np.uint8))
    return batches
