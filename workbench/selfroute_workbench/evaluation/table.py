"""A table of figures, for the terminal, CSV, JSON or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

Cell = str | int | float | None
Cells = tuple[Cell, ...]
_UNKNOWN = "-"
_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+")
CONTROL = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows.

    Attributes:
        name: A short name, for file names and JSON keys.
        title: Its title.
        columns: The heads of the columns.
        rows: The rows, each with a cell for each column. A float is shown with two decimals, None as unknown.
        notes: Notes on how to read it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    notes: tuple[str, ...] = ()


def as_text(cell: Cell, *, unknown: str = _UNKNOWN) -> str:
    """Return a cell as text for people: with two decimals, and commas between thousands.

    Args:
        cell: The cell.
        unknown: The text for None, and for a float that is not finite.
    """
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.2f}" if isfinite(cell) else unknown
    if cell is None:
        return unknown
    return f"{cell:,}" if isinstance(cell, int) else cell


def printable(text: str) -> str:
    """Return a text without control characters, which could change the terminal."""
    return text.translate(dict.fromkeys(CONTROL))


def is_figures(cells: Iterable[Cell]) -> bool:
    """Return whether the cells of a column are numbers; numbers in text, empty and unknown cells are, too."""
    return all(not isinstance(cell, str) or cell in ("", _UNKNOWN) or _NUMBER.fullmatch(cell) for cell in cells)
