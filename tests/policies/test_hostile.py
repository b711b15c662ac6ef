"""What one user can make another pay is bounded, whatever a crowd asks and however its questions end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from budget_parts import Chains, Engines, Noting
from selfroute.policies import Budget

AT_ONCE = 16
FULL = pytest.mark.matrix


def ask_all(crowd: Chains | Engines, number: int) -> None:
    """Ask half of the questions from threads, and half from tasks, side by side."""

    async def tasks() -> None:
        turns, loop = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop()

        async def task(item: int) -> None:
            async with turns:
                await crowd.aask(item)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            threads = [loop.run_in_executor(pool, crowd.ask, item) for item in range(number // 2)]
            await asyncio.gather(*map(task, range(number // 2, number)), *threads)

    asyncio.run(tasks())


@pytest.mark.parametrize("limit", ["tokens", "usd"])
@pytest.mark.parametrize(
    ("crowd", "number"),
    [
        (Chains, 320),
        (Engines, 160),
        pytest.param(Chains, 10_000, marks=FULL),
        pytest.param(Engines, 3_000, marks=FULL),
    ],
)
def test_a_crowd_never_passes_a_budget_by_more_than_one_estimate_was_off(
    crowd: type[Chains | Engines], number: int, limit: str
) -> None:
    most: dict[str, Any] = {"tokens": number * 120} if limit == "tokens" else {"usd": Decimal(number) / 50_000}
    budget, noting = Budget(per="day", **most), Noting()
    ask_all(crowd(escalation=budget & noting), number)
    (tokens, dollars), (off, dollars_off) = noting.bill(), noting.most_off()
    assert len(noting.told) == len(noting.estimates), "nothing leaks"
    assert budget.spent["tokens"] == tokens
    assert Decimal(budget.spent["usd"]) == dollars
    if limit == "tokens":
        assert 0.9 * most["tokens"] <= tokens <= most["tokens"] + off
    else:
        assert 0.9 * float(most["usd"]) <= dollars <= most["usd"] + dollars_off
