"""Two lanes: every law once, which is `make test`, and the matrices, which `make test-matrix` adds.

Where a test has several parameters, say every mode with every client with every store, the fast lane takes a diagonal
through them: each value of each parameter comes up at least once. The rest is marked `matrix`, as is what a test's
author marked so because it is slow. Of properties, the fast lane draws a few examples, and the matrix lane as many as
`examples` is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import hypothesis
import pytest

FEW = 10


def load_profile() -> None:
    """Give no property a deadline; `--hypothesis-profile=matrix` draws all examples."""
    hypothesis.settings.register_profile("fast", deadline=None, max_examples=FEW)
    hypothesis.settings.register_profile("matrix", deadline=None)
    hypothesis.settings.load_profile("fast")


def examples(number: int) -> hypothesis.settings:
    """Draw this many examples of a property in the matrix lane, and a few in the fast one."""
    few = hypothesis.settings.get_current_profile_name() == "fast"
    return hypothesis.settings(max_examples=min(number, FEW) if few else number)


def _axes(case: pytest.Function) -> list[tuple[str, ...]]:
    """Return the names of the parameters of a case, those that are given together as one."""
    together = []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0]
        together.append(tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names))
    alone = case.callspec.params.keys() - {name for names in together for name in names}
    return sorted([*together, *((name,) for name in alone)])


def _places(cases: list[pytest.Function]) -> list[tuple[int, ...]]:
    """Return where each case is in the matrix of its test: the number of its value on each axis, the longest first."""
    columns = []
    for names in _axes(cases[0]):
        values = [tuple(id(case.callspec.params[name]) for name in names) for case in cases]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        columns.append([numbers[value] for value in values])
    return list(zip(*sorted(columns, key=max, reverse=True), strict=True))


def _diagonal(sizes: list[int]) -> set[tuple[int, ...]]:
    """Return places that hold each number of each axis, the longest first, and pair them in changing ways."""
    return {
        tuple((row + row // longer) % size for longer, size in zip([sizes[0], *sizes], sizes, strict=False))
        for row in range(sizes[0])
    }


def mark_matrices(items: Iterable[pytest.Item]) -> None:
    """Mark as `matrix` the cases of each test that lie off its diagonal."""
    tests = defaultdict(list)
    for item in items:
        marked = item.get_closest_marker("matrix") or item.get_closest_marker("browser")
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not marked:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        places = _places(cases)
        diagonal = _diagonal([1 + max(column) for column in zip(*places, strict=True)])
        for case, place in zip(cases, places, strict=True):
            if place not in diagonal:
                case.add_marker(pytest.mark.matrix)
