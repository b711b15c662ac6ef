"""Strategies that are equally good on documents of a kind are seldom called better on the documents of one run."""

from __future__ import annotations

import numpy as np
import pytest

from selfroute.evaluation.reporting.statistics import SAME, Key, compare

MOST = 0.06
FEW, MANY = 25, 500


def verdicts(documents: int, *, sets: int = 1, skewed: bool = False, runs: int) -> list[str]:
    """Compare two strategies that are equal over all documents, though each document favours one of them."""
    rng = np.random.default_rng(documents)
    found = []
    for _ in range(runs):
        first: dict[Key, float] = {}
        second: dict[Key, float] = {}
        sources: dict[Key, str] = {}
        for name in "abc"[:sets]:
            for document in range(documents):
                favour = rng.exponential(0.3) - 0.3 if skewed else rng.normal(0, 0.4)
                for number in range(1 + rng.poisson(7)):
                    key = (name, f"{document}-{number}")
                    sources[key] = str(document)
                    first[key], second[key] = (
                        rng.random(2) < np.clip([0.5 + favour / 2, 0.5 - favour / 2], 0, 1)
                    ) * 1.0
        found.append(compare(first, second, documents=sources).verdict)
    return found


@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.matrix)])
@pytest.mark.parametrize("options", [{"sets": 3}, {"skewed": True}, {}], ids=["three sets", "skewed", "one set"])
@pytest.mark.parametrize("documents", [10, 12, 20, 40])
def test_equal_strategies_are_seldom_told_apart(documents: int, options: dict[str, int], runs: int) -> None:
    found = verdicts(documents, **options, runs=runs)
    spare = 0 if runs == MANY else 2  # a few runs are no more than a sample
    assert found.count("better") <= MOST * runs + spare
    assert sum(verdict != SAME for verdict in found) <= MOST * runs + spare


@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.matrix)])
@pytest.mark.parametrize("documents", [1, 2, 4, 9])
def test_on_a_few_documents_nothing_is_said_of_others(documents: int, runs: int) -> None:
    found = set(verdicts(documents, runs=runs))
    assert found <= {SAME, "better on these documents", "worse on these documents"}
    assert len(found) > 1  # which is why
