"""A table of figures, whatever shows it: terminal, CSV, JSON or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

Cell = str | int | float | None
_UNKNOWN = "-"
_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+")


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows.

    Attributes:
        name: A short name, for file names and JSON keys.
        title: What it shows.
        columns: The heads of the columns.
        rows: The rows, each with as many cells as there are columns. A float is shown with two decimals, None as
            unknown.
        notes: What a reader must know to read it right.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def as_text(cell: Cell, *, unknown: str = _UNKNOWN) -> str:
    """A cell as people read it: two decimals, thousands parted.

    Args:
        cell: The cell.
        unknown: What stands for None, and for a float that is no number.
    """
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.2f}" if isfinite(cell) else unknown
    if cell is None:
        return unknown
    return f"{cell:,}" if isinstance(cell, int) else cell


def is_figures(cells: Iterable[Cell]) -> bool:
    """Whether the cells of a column are numbers, those written as text and none at all among them."""
    return all(not isinstance(cell, str) or not cell or _NUMBER.fullmatch(cell) for cell in cells)
