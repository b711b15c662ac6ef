"""What is seen of providers over their own wires, in both hosts: the rows of `docs/providers.md`.

Rows whose package is not among those of the tests run where it is installed: see `benchmarks/providers_table.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hosts_parts import MODES, STREAMS
from providers import CELLS, PIPELINE, ROWS, Row, seen
from providers_table import PAGE, line, put, stale

pytestmark = [
    pytest.mark.usefixtures("frozen"),
    # OpenAI's client, of a list of contents in a stream, as Mistral sends it
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]


def cases() -> Iterator[Any]:
    """Yield each cell of each row in one mode for the fast lane, and in the others for the matrix."""
    for at, row in enumerate(ROWS):
        for n, cell in enumerate(CELLS):
            modes = STREAMS if cell == "hang-up" else MODES
            for mode in modes:
                fast = mode == modes[(at + n) % len(modes)] and row.wire is not PIPELINE  # torch takes long to load
                marks = () if fast else pytest.mark.matrix
                yield pytest.param(row, cell, mode, id=f"{row.name} {cell} {mode}", marks=marks)


@pytest.mark.parametrize(("row", "cell", "mode"), [*cases()])
def test_providers_as_they_are_seen(row: Row, cell: str, mode: str) -> None:
    if row.lacks:
        pytest.skip(f"needs {row.lacks}")
    assert seen(row, cell, mode) == row.expected(cell, mode)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_providers_page_has_what_is_expected(row: Row) -> None:
    page = PAGE.read_text("utf-8")
    assert stale([line(row, Row.expected)], page) == []


def test_providers_page_keeps_rows_that_are_not_made_here() -> None:
    here, there = ROWS[0], ROWS[1]
    page = put([line(here, Row.expected), line(there, Row.expected)], PAGE.read_text("utf-8"))
    assert page == PAGE.read_text("utf-8")
    changed = put([line(here, lambda *_: "odd")], page)
    assert stale([line(here, Row.expected)], changed) == [line(here, Row.expected)]
    assert stale([line(there, Row.expected)], changed) == []
