"""Two lanes: every law once, which is `make test`, and the matrices, which `make test-matrix` adds.

Where a test has several parameters, say every mode with every client with every store, the fast lane takes a diagonal
through them: each value of each parameter comes up at least once. The rest is marked `matrix`, as is what a test's
author marked so because it is slow. `-m "not matrix"` does not even make these, which takes longer than many a test. Of
properties, the fast lane draws a few examples, and the matrix lane as many as `examples` is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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


def _axes(tables: Iterable[pytest.Mark], names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the names of the parameters of a test, those that are given together as one."""
    given = (mark.args[0] for mark in tables)
    together = [
        tuple(name.strip() for name in each.split(",")) if isinstance(each, str) else (*each,) for each in given
    ]
    alone = set(names) - {name for axis in together for name in axis}
    return sorted([*together, *((name,) for name in alone)])


def _diagonal(sizes: list[int]) -> set[tuple[int, ...]]:
    """Return places that hold each number of each axis, the longest first, and pair them in changing ways."""
    return {
        tuple((row + row // longer) % size for longer, size in zip([sizes[0], *sizes], sizes, strict=False))
        for row in range(sizes[0])
    }


def fast_ones(axes: list[tuple[str, ...]], cases: Sequence[Mapping[str, object]]) -> list[bool]:
    """Return for each case of a test whether it is on the diagonal.

    Args:
        axes: The names of the parameters that vary together.
        cases: The parameters of each case.
    """
    columns = []
    for names in axes:
        values = [tuple(id(case[name]) for name in names) for case in cases]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        columns.append([numbers[value] for value in values])
    places = list(zip(*sorted(columns, key=max, reverse=True), strict=True))
    diagonal = _diagonal([1 + max(column) for column in zip(*places, strict=True)])
    return [place in diagonal for place in places]


def leave_out_matrix(metafunc: pytest.Metafunc) -> None:
    """Make only the cases of the fast lane, after all parameters of a test are known."""
    calls = metafunc._calls  # pytest offers no other way to make fewer
    marked = [any(mark.name == "matrix" for mark in call.marks) for call in calls]
    fast = [call for call, is_marked in zip(calls, marked, strict=True) if not is_marked]
    if len(fast) > 1:
        axes = _axes(metafunc.definition.iter_markers("parametrize"), fast[0].params)
        chosen = fast_ones(axes, [call.params for call in fast])
        fast = [call for call, is_chosen in zip(fast, chosen, strict=True) if is_chosen]
    metafunc._calls = fast or calls[:1]


def mark_matrix(items: Iterable[pytest.Item]) -> None:
    """Mark as `matrix` the cases of each test that lie off its diagonal."""
    tests = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not item.get_closest_marker("matrix"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        axes = _axes(cases[0].iter_markers("parametrize"), cases[0].callspec.params)
        for case, is_fast in zip(cases, fast_ones(axes, [case.callspec.params for case in cases]), strict=True):
            if not is_fast:
                case.add_marker(pytest.mark.matrix)
