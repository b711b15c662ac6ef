"""Shows sentences and tables in a terminal, without cutting any figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as Styled

from selfroute_workbench.evaluation.table import Table, as_text, is_figures, printable

_GAP, _PLAIN, _LONGEST = "  ", 100, 40  # columns


def show_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables with their titles and notes; one that is too wide is split, and each part names its rows."""
    for table in tables:
        console.print(Styled(printable(table.title), style="bold"))
        for part in _parts(table, console.width):
            console.print()
            for number, line in enumerate(part):
                console.print(Styled(line, style="" if number else "bold"), soft_wrap=True)
        if table.notes:
            console.print()
        for note in table.notes:
            console.print(Styled(printable(note), style="dim"))
        console.print()


def show_summary(console: Console, sentences: Iterable[str]) -> None:
    """Print sentences, each on a new line, and an empty line."""
    for sentence in sentences:
        console.print(Styled(printable(sentence)))
    console.print()


def as_plain(sentences: Iterable[str], tables: Iterable[Table]) -> str:
    """Return sentences and tables as plain text, a hundred columns wide."""
    text = StringIO()
    # In a notebook rich would display the text and return nothing.
    console = Console(file=text, width=_PLAIN, color_system=None, force_terminal=False, force_jupyter=False)
    show_summary(console, sentences)
    show_tables(console, tables)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip()


def _parts(table: Table, width: int) -> Iterator[list[str]]:
    """Yield the lines of a table, or of its parts: each has the first column, and as many others as fit."""
    columns = [
        _column(list(cells), is_first=not at) for at, cells in enumerate(zip(table.columns, *table.rows, strict=True))
    ]
    shown, room = [columns[0]], width - _width(columns[0])
    for column in columns[1:]:
        room -= _width(column) + len(_GAP)
        if room < 0 and len(shown) > 1:
            yield _lines(shown)
            shown, room = [columns[0]], width - _width(columns[0]) - _width(column) - len(_GAP)
        shown.append(column)
    yield _lines(shown)


def _column(cells: Sequence[str | float | None], *, is_first: bool) -> list[list[str]]:
    """Return the lines of each cell, all equally wide; long texts are wrapped."""
    to_right = not is_first and is_figures(cells[1:])
    lines = [
        [line for part in printable(as_text(cell)).split("\n") for line in wrap(part, _LONGEST) or [""]]
        for cell in cells
    ]
    widest = max(cell_len(line) for cell in lines for line in cell)
    return [[_padded(line, widest, to_right=to_right) for line in cell] for cell in lines]


def _padded(line: str, width: int, *, to_right: bool) -> str:
    space = " " * (width - cell_len(line))
    return space + line if to_right else line + space


def _width(column: Sequence[Sequence[str]]) -> int:
    return cell_len(column[0][0])


def _lines(columns: Sequence[list[list[str]]]) -> list[str]:
    found = []
    for cells in zip(*columns, strict=True):
        for line in zip_longest(*cells):
            parts = (
                part if part is not None else " " * _width(column) for part, column in zip(line, columns, strict=True)
            )
            found.append(_GAP.join(parts).rstrip())
    return found
