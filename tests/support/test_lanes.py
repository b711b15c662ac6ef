"""The fast lane leaves out cases, never a value of a parameter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import lanes


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(lambda sizes: sorted(sizes, reverse=True)))
def test_each_value_of_each_parameter_is_in_the_fast_lane(sizes: list[int]) -> None:
    rows = lanes._diagonal(sizes)
    assert len(rows) == sizes[0]
    for axis, size in enumerate(sizes):
        assert {row[axis] for row in rows} == set(range(size))


def test_neighbours_are_paired_in_changing_ways() -> None:
    assert len({row[1:] for row in lanes._diagonal([20, 4, 2])}) == 8
