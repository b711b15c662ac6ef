"""Bootstrap intervals over documents, with the standard library alone; the same data always give the same figures.

The intervals are those of the evaluation's reports (`selfroute.evaluation.reporting.statistics`): documents are
resampled, each with all its questions, one less than there are, and the percentiles are those of Student's t. Below
`FEWEST_DOCUMENTS` questions are resampled, and the interval holds for other questions on these documents only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from math import sqrt
from operator import itemgetter
from statistics import NormalDist

FEWEST_DOCUMENTS = 10
CONFIDENCE = 0.95

Interval = tuple[float, float]

_DRAWS, _MOST_UNITS = 2_000, 1_000
_SEED = 240716833


class Units:
    """What is resampled: documents, or the questions of a few.

    Args:
        documents: The id of each question's document.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        few = len(set(documents)) < FEWEST_DOCUMENTS
        ids: Sequence[object] = range(len(documents)) if few else documents
        names = list(dict.fromkeys(ids))
        order = random.Random(_SEED)  # noqa: S311
        if len(names) > _MOST_UNITS:  # groups of documents, formed by chance, vary as their documents do
            order.shuffle(names)
        number = {name: index % _MOST_UNITS for index, name in enumerate(names)}
        self._unit_of = [number[each] for each in ids]
        self._count = min(len(names), _MOST_UNITS)
        self._order = order

    @cached_property
    def _sizes(self) -> list[float]:
        return self._sums(list(repeat(1.0, len(self._unit_of))))

    @cached_property
    def _draws(self) -> list[Callable[[Sequence[float]], Sequence[float]]]:
        among = range(self._count)
        # two at least, for then an itemgetter returns a tuple
        return [itemgetter(0, *self._order.choices(among, k=self._count - 1)) for _ in range(_DRAWS)]

    @cached_property
    def _drawn_sizes(self) -> list[float]:
        return [sum(draw(self._sizes)[1:]) for draw in self._draws]

    def mean(self, values: Sequence[float]) -> float:
        """Return the mean over questions."""
        return sum(values) / len(values)

    def interval(self, values: Sequence[float]) -> Interval | None:
        """Return the 95 % interval of the mean over questions, from low to high.

        Args:
            values: A value for each question. Differences of two strategies on the same questions are paired this way.

        Returns:
            The interval; None if there are fewer than two units, or all values are equal.
        """
        if self._count < 2 or len(set(values)) < 2:  # noqa: PLR2004
            return None
        sums, middle = self._sums(values), self.mean(values)
        drawn = sorted(sum(draw(sums)[1:]) / size for draw, size in zip(self._draws, self._drawn_sizes, strict=True))
        tail = NormalDist().cdf(-_t_quantile(self._count - 1))
        low, high = (drawn[min(_DRAWS - 1, max(0, round(share * (_DRAWS - 1))))] for share in (tail, 1 - tail))
        return min(low, middle), max(high, middle)

    def standard_error(self, values: Sequence[float]) -> float:
        """Return the standard error of the mean over questions; 0 if there are fewer than two units."""
        if self._count < 2:  # noqa: PLR2004
            return 0.0
        middle = self.mean(values)
        squares = sum((total - size * middle) ** 2 for total, size in zip(self._sums(values), self._sizes, strict=True))
        return sqrt(squares * self._count / (self._count - 1)) / len(values)

    def _sums(self, values: Sequence[float]) -> list[float]:
        sums = [0.0] * self._count
        for unit, value in zip(self._unit_of, values, strict=True):
            sums[unit] += value
        return sums


def _t_quantile(freedom: int) -> float:
    """Return the upper quantile of Student's t for a 95 % interval.

    This is Cornish and Fisher's expansion: from 5 degrees of freedom on it is right to a hundredth.
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
