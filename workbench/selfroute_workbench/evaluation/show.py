"""Shows sentences and tables in a terminal, without cutting any figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute_workbench.evaluation.table import Table, as_text, is_figures, printable

_GAP, _PLAIN, _LONGEST = 2, 100, 40  # columns


def show_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables with their titles and notes; one that is too wide is split, and each part names its rows."""
    for table in tables:
        console.print(Styled(printable(table.title), style="bold"))
        for part in _parts(table, console.width):
            console.print()
            console.print(part)
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


def _parts(table: Table, width: int) -> Iterator[Grid]:
    """Yield a table, or its parts: each has the first column, and as many others as fit."""
    columns = [[printable(as_text(cell)) for cell in cells] for cells in zip(table.columns, *table.rows, strict=True)]
    widths = [min(max(map(cell_len, cells)), _LONGEST) + _GAP for cells in columns]
    parts: list[list[int]] = [[]]
    for at in range(1, len(columns)):
        if parts[-1] and widths[0] + sum(widths[each] for each in parts[-1]) + widths[at] - _GAP > width:
            parts.append([])
        parts[-1].append(at)
    for part in parts:
        grid = Grid(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        for at in (0, *part):
            to_right = at and is_figures(columns[at][1:])
            grid.add_column(
                Styled(columns[at][0]), justify="right" if to_right else "left", max_width=_LONGEST, overflow="fold"
            )
        for number in range(1, len(columns[0])):
            grid.add_row(*(Styled(columns[at][number]) for at in (0, *part)))
        yield grid
