"""Two lanes: every law once, which is `make test`, and the matrices, which `make test-matrix` adds.

Where a test has several parameters, say every mode with every client with every store, the fast lane takes a diagonal
through them: each value of each parameter comes up at least once. The matrix lane adds, marked `matrix`, so many cases
that each value also meets each value of each other parameter; products of three parameters and more are never made.
Marked so is also what a test's author marked because it is slow. Of properties, the fast lane draws a few examples, and
the matrix lane as many as `examples` is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import hypothesis
import pytest

FEW = 10
Place = tuple[int, ...]


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


def _places(axes: list[tuple[str, ...]], cases: Sequence[Mapping[str, object]]) -> list[Place]:
    """Return for each case of a test the number of its value on each axis, the longest axis first."""
    columns = []
    for names in axes:
        values = [tuple(id(case[name]) for name in names) for case in cases]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        columns.append([numbers[value] for value in values])
    return list(zip(*sorted(columns, key=max, reverse=True), strict=True))


def diagonal(sizes: list[int]) -> set[Place]:
    """Return places that hold each number of each axis, the longest first, and pair them in changing ways."""
    return {
        tuple((row + row // longer) % size for longer, size in zip([sizes[0], *sizes], sizes, strict=False))
        for row in range(sizes[0])
    }


def pairs(places: Sequence[Place], chosen: set[Place]) -> set[Place]:
    """Return places that, with those that are chosen, hold each pair of numbers of two axes that any place holds."""

    def of(place: Place) -> set[tuple[tuple[int, int], ...]]:
        return set(combinations(enumerate(place), 2))

    if len(places[0]) == 2:  # each is a pair of its own
        return {*places} - chosen
    missing = set().union(*map(of, places)) - set().union(*map(of, chosen))
    found = set[Place]()
    for many in range(len(places[0]) ** 2, 0, -1):  # first those that hold the most that is missing
        for place in places:
            if len(new := of(place) & missing) >= many:
                found.add(place)
                missing -= new
    return found


def choose_cases(metafunc: pytest.Metafunc, *, fast: bool) -> None:
    """Make only the cases of the lane, after all parameters of a test are known, and mark those of the matrix."""
    calls = metafunc._calls  # pytest offers no other way to make fewer
    is_slow = [any(mark.name == "matrix" for mark in call.marks) for call in calls]
    others = [call for call, slow in zip(calls, is_slow, strict=True) if not slow]
    if len(others) > 1:
        axes = _axes(metafunc.definition.iter_markers("parametrize"), others[0].params)
        places = _places(axes, [call.params for call in others])
        first = diagonal([1 + max(column) for column in zip(*places, strict=True)])
        more = set() if fast else pairs(places, first.intersection(places))
        for call, place in zip(others, places, strict=True):
            if place in more:
                call.marks.append(pytest.mark.matrix.mark)
        others = [call for call, place in zip(others, places, strict=True) if place in first | more]
    left_out = fast and bool(others)
    metafunc._calls = [*others, *(call for call, slow in zip(calls, is_slow, strict=True) if slow and not left_out)]
