"""What the command shows: progress, the rows and totals of the demo, an answer with its passages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text as Styled

from selfroute.command.figures import STEPS, by_step, dollars, ledger_rows
from selfroute.command.framework import Output, Read, Show
from selfroute.command.run import Models, Row
from selfroute.command.texts import Passage, Text
from selfroute.usage.ledger import Ledger

PIPE_WIDTH = 110
_INDENT = 10
_COLOURS = {"rag": "green", "long_context": "yellow"}
_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def open_console(stream: IO[str]) -> Console:
    """Make a console that prints text as it is: no markup, no emoji codes, no colours of its own."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")  # where the terminal's encoding lacks a character
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def shown(text: str) -> str:
    """Text without control characters, which could take the terminal over."""
    return text.translate(_CONTROL)


def shortened(text: str, size: int) -> str:
    """Cut a text to its beginning, on one line."""
    line = " ".join(shown(text).split())
    return line if len(line) <= size else f"{line[: size - 1].rstrip()}…"


@contextmanager
def stage(console: Console, title: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
    """Show that something takes a while: a bar in a terminal, one line elsewhere.

    Args:
        console: Where to show it.
        title: What is being done.
        total: In how many steps; None if nobody knows.

    Yields:
        To be told how many steps were done.
    """
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


def show_opening(  # noqa: PLR0913 - all that it says
    console: Console, *, texts: Sequence[Text], questions: int, k: int, framework: str, models: Models | None
) -> None:
    """Say what the demo is about to do and who answers."""
    words = sum(len(text.text.split()) for text in texts)
    console.print(Styled("Self-Route: passages first, the whole document only if they do not answer", style="bold"))
    console.print(
        f"{questions} questions over {len(texts)} documents of {words:,} words together, with {framework}. For each, "
        f"the {k} nearest passages are retrieved and read. If the reader declines to answer from them, it is given the "
        "whole documents that they are from. If it declines again, the documents do not say. Next to the tokens stands "
        "what these documents alone, without passages first, would have taken to read, and the ratio of the two."
    )
    console.print()
    show_reader(console, models)


def show_reader(console: Console, models: Models | None) -> None:
    """Say whether a language model answers."""
    if models and models.is_language_model:
        console.print(Styled("Answers come from ") + Styled(models.name, style="bold"))
    else:
        console.print(
            Styled("Answers come from the extractive reader, which is no language model: ", style="yellow")
            + Styled("it returns the sentence nearest to the question, or declines if none is near. ")
            + Styled("Ask a real model with --model, for example --model openai:gpt-4o-mini.")
        )
    console.print()


def show_header(console: Console) -> None:
    """Print the head of the demo's table."""
    table = _table()
    table.add_row("question and answer", "route", "match", "tokens", "LC alone", "ratio")
    for column in table.columns:
        column.style = "bold"
    console.print(table)
    console.rule(style="dim")


def show_row(console: Console, row: Row) -> None:
    """Print one question of the demo: the rows come one by one, so each is a table of its own."""
    usage = row.usage
    alone, ratio = usage["long_context_only"], usage["token_ratio"]
    answer = Styled(shortened(row.answer, 160), style="cyan" if row.answerable else "magenta")
    table = _table()
    table.add_row(
        Styled(shown(row.question.question)) + Styled("\n→ ", style="dim") + answer,
        Styled(STEPS[row.route], style=_COLOURS[row.route]),
        Styled("yes" if row.match else "no", style="green" if row.match else "dim"),
        f"{usage['total_tokens']:,}",
        "" if alone is None else f"{alone:,}",
        "" if ratio is None else f"{ratio:.0%}",
    )
    console.print(table)


def _table() -> Table:
    table = Table(box=None, show_header=False, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(ratio=1)
    for width in (12, 5):
        table.add_column(width=width)
    for width in (7, 9, 6):
        table.add_column(width=width, justify="right")
    return table


def show_totals(
    console: Console, sums: Mapping[str, int], ledger: Ledger, *, models: Models, seconds: Mapping[str, float]
) -> None:
    """Print the sums of the demo."""
    answered = sums["escalated"] - sums["unanswerable"]
    table = _sums()
    table.add_row("questions", str(sums["questions"]))
    table.add_row("answered by RAG", f"{sums['answered_by_rag']}   from passages alone")
    table.add_row("escalated", f"{sums['escalated']}   answered from whole documents: {answered}")
    table.add_row("unanswerable", f"{sums['unanswerable']}   escalated, and declined again")
    table.add_row("match", f"{sums['matches']}   contain a reference answer or rightly decline (a hint, no grading)")
    for name, figure in ledger_rows(ledger, models):
        table.add_row(name, figure)
    parts = ", ".join(f"{name} {time:.1f} s" for name, time in seconds.items())
    table.add_row("wall time", f"{sum(seconds.values()):.1f} s   ({parts})")
    console.rule(style="dim")
    console.print(table)
    if not models.is_language_model:
        console.print("\nThe extractive reader is no language model: look at the routes, not at the answers.")


def show_ledger(console: Console, ledger: Ledger, *, models: Models) -> None:
    """Print what all questions took together."""
    table = _sums()
    for name, figure in ledger_rows(ledger, models):
        table.add_row(name, figure)
    console.rule(style="dim")
    console.print(table)


def _sums() -> Table:
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)


def show_question(console: Console, question: str) -> None:
    """Print a question."""
    _show_field(console, "Question", question)


def show_answer(console: Console, ask: Callable[[Show], Output]) -> Output:
    """Print the route and then the answer as it comes; return what became of the question."""
    column = 0

    def show(route: str, text: str) -> None:
        nonlocal column
        if not column:
            console.print(Styled(f"{'Route':{_INDENT}}", style="bold") + Styled(STEPS[route], style=_COLOURS[route]))
            console.print(Styled(f"{'Answer':{_INDENT}}", style="bold"), end="")
            column = _INDENT
        column = _pour(console, shown(text), column)

    try:
        return ask(show)
    finally:
        console.print()  # an error, too, begins on a line of its own


def _pour(console: Console, text: str, column: int) -> int:
    """Print the next piece of a text, in a terminal broken between words; return the column it ends in."""
    for part in re.findall(r"\n|[^\S\n]+|\S+", text):
        if console.is_terminal and (part == "\n" or column + cell_len(part) > console.width):
            console.print(f"\n{' ' * _INDENT}", end="", soft_wrap=True)
            column = _INDENT
            if part.isspace():
                continue
        console.print(Styled(part), end="", soft_wrap=True)
        column += cell_len(part)
    return column


def show_reasons(
    console: Console,
    output: Output,
    *,
    models: Models,
    names: Mapping[str, str],
    passages: Sequence[Passage] | None,
) -> None:
    """Print why it took that route, what it took, and the passages that were retrieved if they are wanted."""
    _show_field(console, "Why", _reason(output, names))
    usage = output.usage
    estimated = ", partly estimated" if usage["estimated"] else ""
    _show_field(console, "Tokens", f"{usage['total_tokens']:,} ({by_step(usage)}{estimated})")
    if usage["token_ratio"] is not None:
        alone = f"{usage['long_context_only']:,}"
        _show_field(console, "Read", f"{usage['token_ratio']:.0%} of the {alone} tokens of the long context alone")
    elif usage["rag"]:
        _show_field(console, "Read", "the documents are being counted: what the long context takes is not known yet")
    if usage["cost"] is None:
        if models.has_list_price:
            _show_field(console, "Cost", f"not known: {usage['cost_unknown']}")
    else:
        only = usage["cost_long_context_only"]
        alone = f"; the long context alone {dollars(only)}" if only is not None else ""
        _show_field(console, "Cost", f"{dollars(usage['cost'])}{alone}")
    if passages is not None:
        _show_field(console, "Passages", f"{len(passages)} retrieved, nearest first")
        for number, passage in enumerate(passages, 1):
            place = f"{number:>4}  {names[passage.source]} at character {passage.start:,}"
            console.print(Styled(shown(place), style="dim"))
            console.print(Styled(f"      {shortened(passage.text, console.width - 6)}"))


def _reason(output: Output, names: Mapping[str, str]) -> str:
    decision = output.decision
    if not decision["declined"]:
        return "the retrieved passages answered it; no whole document was read"
    why = {
        "no_passages": "no passage was found",
        "empty": "the reply to the passages was empty",
    }.get(decision["signal"], f"from the passages alone it declined (“{shortened(decision['evidence'], 80)}”)")
    read = ", ".join(_how_much(document, names) for document in output.read)
    found = "" if output.answerable else ", which did not answer it either"
    return f"{why}, so it read {read}{found}" if read else f"{why}, and there was no document to read"


def _how_much(document: Read, names: Mapping[str, str]) -> str:
    return f"{'as much as the model takes' if document.trimmed else 'the whole'} of {names[document.source]}"


def _show_field(console: Console, name: str, text: str) -> None:
    table = Table(box=None, show_header=False, padding=0, pad_edge=False)
    table.add_column(width=_INDENT, style="bold")
    table.add_column()
    table.add_row(name, Styled(shown(text)))
    console.print(table)
