"""Opens a console, and shows progress in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import count, islice
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from selfroute_workbench.evaluation.table import printable

PIPE_WIDTH = 110
_MANY = 40  # steps


def open_console(stream: IO[str]) -> Console:
    """Make a console that prints text unchanged: without markup, emoji codes and highlighting."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")  # for characters that the terminal's encoding lacks
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def shortened(text: str, size: int) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= size else f"{line[: size - 1].rstrip()}…"


@contextmanager
def stage(console: Console, title: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
    """Show the progress of something that takes a while: a bar in a terminal, elsewhere a line, and one a quarter."""
    if not console.is_terminal:
        console.print(f"{title} ...")
        yield _quarters(console, title, total or 0)
        return
    counter = [MofNCompleteColumn()] if total else []
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *counter, TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)
        progress.update(task, total=total or 1, completed=total or 1)


def _quarters(console: Console, title: str, total: int) -> Callable[[int], None]:
    """Return a function that takes how many more steps are done, and prints a line after each quarter of many steps."""
    quarter = -(-total // 4) if total >= _MANY else total + 1
    done = count()

    def advance(steps: int) -> None:
        for number in islice(done, steps):
            if (number + 1) % quarter == 0 and number + 1 < total:
                console.print(f"{title}, {number + 1:,} of {total:,} ...")

    return advance
