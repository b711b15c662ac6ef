"""A lane leaves out cases, never a value of a parameter; the matrix no pair of values either."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

import lanes

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(lambda sizes: sorted(sizes, reverse=True))


@given(SIZES)
def test_diagonal_holds_each_value(sizes: list[int]) -> None:
    rows = lanes.diagonal(sizes)
    assert len(rows) == sizes[0]
    for axis, size in enumerate(sizes):
        assert {row[axis] for row in rows} == set(range(size))


def test_diagonal_pairs_neighbours_in_changing_ways() -> None:
    assert len({row[1:] for row in lanes.diagonal([20, 4, 2])}) == 8


@given(SIZES, st.sets(st.integers(0, 30)))
def test_pairs_hold_each_pair_of_values(sizes: list[int], left_out: set[int]) -> None:
    places = [place for n, place in enumerate(product(*map(range, sizes))) if n not in left_out or not n]
    first = lanes.diagonal(sizes).intersection(places)
    more = lanes.pairs(places, first)
    assert not more & first
    for one, other in combinations(range(len(sizes)), 2):
        assert {(row[one], row[other]) for row in first | more} == {(row[one], row[other]) for row in places}


def test_pairs_are_few() -> None:
    places = [*product(range(12), range(8), range(3), range(2))]
    assert len(lanes.pairs(places, set())) < 120
