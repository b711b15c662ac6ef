"""The laws: documents are the units, the same data give the same interval, and intervals hold what they promise."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from selfroute.evaluation.sampling import Units


def chances(count: int) -> list[float]:
    chance = random.Random(0)  # noqa: S311
    return [chance.random() for _ in range(count)]


def test_the_same_data_give_the_same_interval() -> None:
    documents, values = [f"d{n % 20}" for n in range(100)], chances(100)
    assert Units(documents).interval(values) == Units(documents).interval(values)


def test_repeating_a_documents_question_does_not_narrow_the_interval() -> None:
    values = chances(30)
    once = Units([f"d{n}" for n in range(30)]).interval(values)
    often = Units([f"d{n // 8}" for n in range(240)]).interval([values[n // 8] for n in range(240)])
    assert once is not None
    assert often == pytest.approx(once)


def test_few_documents_are_resampled_by_question() -> None:
    values = chances(60)
    few = Units([f"d{n % 6}" for n in range(60)]).interval(values)
    assert few == Units([str(n) for n in range(60)]).interval(values)


@pytest.mark.parametrize("values", [[0.5], [0.5] * 40], ids=["one value", "all equal"])
def test_there_is_no_interval_without_variation(values: list[float]) -> None:
    assert Units([str(n) for n in range(len(values))]).interval(values) is None


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    chance, covered, tries = random.Random(1), 0, 40  # noqa: S311
    for _ in range(tries):
        shifts = [chance.gauss(0, 1) for _ in range(15)]
        values = [shifts[n % 15] + chance.gauss(0, 1) for n in range(60)]
        low, high = Units([str(n % 15) for n in range(60)]).interval(values) or (0, 0)
        covered += low <= 0 <= high
    assert covered >= 0.85 * tries


def test_the_standard_error_is_about_a_quarter_of_the_interval() -> None:
    values = chances(400)
    units = Units([f"d{n % 50}" for n in range(400)])
    low, high = units.interval(values) or (0, 0)
    assert units.standard_error(values) == pytest.approx((high - low) / 4, rel=0.15)


def test_many_documents_are_resampled_in_groups() -> None:
    values = [float(n % 2) for n in range(5_000)]
    low, high = Units([str(n) for n in range(5_000)]).interval(values) or (0, 0)
    assert low < fmean(values) < high
    assert high - low == pytest.approx(4 * 0.5 / 5_000**0.5, rel=0.2)
