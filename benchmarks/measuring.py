"""Runs candidates interleaved, and judges figures by their targets."""

from __future__ import annotations

import random
import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

BLOCK, WARM_UP = 50, 20

C = TypeVar("C")
Runs = dict[tuple[str, str], list[int]]
"""What each run took in nanoseconds, by mode and candidate."""
Times = dict[str, dict[str, float]]
"""Medians in microseconds by mode and candidate."""


def blocks(keys: list[tuple[str, str]], runs: int, block: int) -> Iterator[tuple[tuple[str, str], bool]]:
    """Say what to run when: each key some times to warm up, then in shuffled blocks; True if the run counts."""
    for key in keys:
        yield from [(key, False)] * WARM_UP
    order = random.Random(0)  # noqa: S311
    for start in range(0, runs, block):
        order.shuffle(keys)
        for key in keys:
            yield from [(key, True)] * min(block, runs - start)


def interleaved(
    known: Mapping[str, C], modes: Mapping[str, Callable[[C], int]], *, runs: int, block: int = BLOCK
) -> Runs:
    """Run each candidate in each mode."""
    times: Runs = {(mode, name): [] for mode in modes for name in known}
    for (mode, name), counts in blocks(list(times), runs, block):
        taken = modes[mode](known[name])
        if counts:
            times[mode, name].append(taken)
    return times


async def ainterleaved(
    known: Mapping[str, C], modes: Mapping[str, Callable[[C], Awaitable[int]]], *, runs: int, block: int = BLOCK
) -> Runs:
    """As `interleaved`."""
    times: Runs = {(mode, name): [] for mode in modes for name in known}
    for (mode, name), counts in blocks(list(times), runs, block):
        taken = await modes[mode](known[name])
        if counts:
            times[mode, name].append(taken)
    return times


def medians(times: Runs) -> Times:
    """Return the medians in microseconds."""
    return {
        mode: {name: statistics.median(taken) / 1e3 for (of, name), taken in times.items() if of == mode}
        for mode in dict.fromkeys(mode for mode, _ in times)
    }


@dataclass(frozen=True)
class Target:
    """One figure to reach."""

    name: str
    value: float
    limit: float
    met: bool


def at_most(name: str, value: float, limit: float) -> Target:
    """Judge a figure by its limit."""
    return Target(name, round(value, 2), limit, value <= limit)


def at_least(name: str, value: float, limit: float) -> Target:
    """As `at_most`, the other way round."""
    return Target(name, round(value, 2), limit, value >= limit)


def target_table(found: list[Target]) -> list[str]:
    """Lay the targets out, and name those that are missed."""
    lines = ["", f"{'target':<64}{'value':>8}{'limit':>8}"]
    for target in found:
        verdict = "met" if target.met else "MISSED"
        lines.append(f"  {target.name:<62}{target.value:>8.2f}{target.limit:>8g}  {verdict}")
    missed = [target.name for target in found if not target.met]
    lines += ["", f"Missed: {'; '.join(missed)}." if missed else "All targets are met."]
    return lines
