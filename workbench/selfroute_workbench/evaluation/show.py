"""Shows sentences and tables in a terminal, without cutting any figure."""
# ruff: noqa: PLC0415 - rich is imported when something is shown

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from selfroute_workbench.evaluation.table import Cell, Table, as_text, is_figures, printable

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2  # between columns
_PLAIN = 100  # columns
_LONG = 20  # a longer word may be broken


def show_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables with their titles and notes.

    A table that is too wide for the console is split into parts.
    """
    from rich.text import Text as Styled

    for table in tables:
        console.print(Styled(printable(table.title), style="bold"))
        for part in _parts(table, console.width):
            console.print()
            _print(console, part)
        if table.notes:
            console.print()
        for note in table.notes:
            console.print(Styled(printable(note), style="dim"))
        console.print()


def show_summary(console: Console, sentences: Iterable[str]) -> None:
    """Print sentences, each on a new line, and an empty line."""
    from rich.text import Text as Styled

    for sentence in sentences:
        console.print(Styled(printable(sentence)))
    console.print()


def as_plain(sentences: Iterable[str], tables: Iterable[Table]) -> str:
    """Return sentences and tables as plain text, a hundred columns wide."""
    from rich.console import Console

    text = StringIO()
    # In a notebook rich would display the text and return nothing.
    console = Console(file=text, width=_PLAIN, color_system=None, force_terminal=False, force_jupyter=False)
    show_summary(console, sentences)
    show_tables(console, tables)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip()


def _parts(table: Table, width: int) -> Iterator[Table]:
    """Split a table: each part has the columns that name the rows, and as many others as fit, at least one."""
    needs, names = _needs(table), list(range(_naming(table, width)))
    kept = list(names)
    for index in range(len(names), len(needs)):
        if len(kept) > len(names) and _sum([needs[each] for each in [*kept, index]]) > width:
            yield _only(table, kept)
            kept = list(names)
        kept.append(index)
    yield _only(table, kept)


def _naming(table: Table, width: int) -> int:
    """Return how many columns name the rows: the first, and text columns next to it within half of the width."""
    needs = _needs(table)
    for index in range(1, len(needs)):
        if is_figures(row[index] for row in table.rows) or _sum(needs[: index + 1]) > width / 2:
            return index
    return 1


def _only(table: Table, kept: Sequence[int]) -> Table:
    rows = (tuple(row[index] for index in kept) for row in table.rows)
    return Table(table.name, table.title, tuple(table.columns[index] for index in kept), tuple(rows))


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _needs(table: Table) -> list[int]:
    """Return the least width of each column: figures stay whole, and only long words may be broken."""
    return [max(map(_need, column)) for column in zip(table.columns, *table.rows, strict=True)]


def _need(cell: Cell) -> int:
    text = as_text(cell)
    return len(text) if is_figures([cell]) else min(max(map(_cells, text.split()), default=0), _LONG)


def _widths(table: Table, width: int) -> list[int]:
    """Return the widths of the columns: spare width goes first to those that lack the least."""
    widths = _needs(table)
    wanted = [
        max(_cells(line) for cell in column for line in as_text(cell).split("\n"))
        for column in zip(table.columns, *table.rows, strict=True)
    ]
    left = max(width - _sum(widths), 0)
    for index in sorted(range(len(widths)), key=lambda index: wanted[index] - widths[index]):
        more = min(wanted[index] - widths[index], left)
        widths[index] += more
        left -= more
    return widths


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _print(console: Console, table: Table) -> None:
    from rich.table import Table as Grid
    from rich.text import Text as Styled

    grid = Grid(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for index, (head, width) in enumerate(zip(table.columns, _widths(table, console.width), strict=True)):
        cells = [row[index] for row in table.rows]
        grid.add_column(
            Styled(printable(head)),
            justify="right" if index and is_figures(cells) else "left",
            width=max(width, 1),
            overflow="fold",
        )
    for row in table.rows:
        grid.add_row(*(Styled(printable(as_text(cell))) for cell in row))
    console.print(grid)
