"""Run candidates in turn, in shuffled blocks, and compare the figures with their targets."""

from __future__ import annotations

import random
import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

BLOCK, WARM_UP = 50, 20

C = TypeVar("C")
Runs = dict[tuple[str, str], list[int]]
"""The time of each run in nanoseconds, by mode and candidate."""
Times = dict[str, dict[str, float]]
"""Medians in microseconds by mode and candidate."""


def blocks(keys: list[tuple[str, str]], runs: int, block: int) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield what to run next: each key some times to warm up, then in shuffled blocks; True if the run counts."""
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
    """Run each candidate in each mode and return the times."""
    times: Runs = {(mode, name): [] for mode in modes for name in known}
    for (mode, name), counts in blocks(list(times), runs, block):
        taken = modes[mode](known[name])
        if counts:
            times[mode, name].append(taken)
    return times


async def ainterleaved(
    known: Mapping[str, C], modes: Mapping[str, Callable[[C], Awaitable[int]]], *, runs: int, block: int = BLOCK
) -> Runs:
    """Do the same as `interleaved` with coroutines."""
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
    """A figure with its limit."""

    name: str
    value: float
    limit: float
    met: bool


def at_most(name: str, value: float, limit: float) -> Target:
    """Make a target that is met if the figure is not above the limit."""
    return Target(name, round(value, 2), limit, value <= limit)


def at_least(name: str, value: float, limit: float) -> Target:
    """Make a target that is met if the figure is not below the limit."""
    return Target(name, round(value, 2), limit, value >= limit)


def target_table(found: list[Target]) -> list[str]:
    """Format the targets, and name those that are missed."""
    lines = ["", f"{'target':<64}{'value':>8}{'limit':>8}"]
    for target in found:
        verdict = "met" if target.met else "MISSED"
        lines.append(f"  {target.name:<62}{target.value:>8.2f}{target.limit:>8g}  {verdict}")
    missed = [target.name for target in found if not target.met]
    lines += ["", f"Missed: {'; '.join(missed)}." if missed else "All targets are met."]
    return lines
