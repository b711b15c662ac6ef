"""Opens a console, and shows progress in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from selfroute_workbench.evaluation.table import printable

PIPE_WIDTH = 110


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
    """Show the progress of something that takes a while: a bar in a terminal, one line elsewhere."""
    if not console.is_terminal:
        console.print(f"{title} ...")
        yield lambda _done: None
        return
    counter = [MofNCompleteColumn()] if total else []
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *counter, TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)
        progress.update(task, total=total or 1, completed=total or 1)
