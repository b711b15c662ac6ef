"""Shows the answers and totals of the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute.command.answers import COLOURS, reason, show_field, show_reader, totals_grid
from selfroute.command.figures import STEP_NAMES, by_step, ledger_rows
from selfroute.command.framework import Output
from selfroute.command.run import DemoAnswer, Models
from selfroute.command.steering import Steering
from selfroute.command.terminal import shortened
from selfroute.command.texts import Text
from selfroute.evaluation.table import printable
from selfroute.usage.ledger import Ledger

_GRADED = (
    "Before each draft it writes two numbers from 0 to 100: how likely the whole text holds an answer (the prospect), "
    "and how sure it is of its own (the confidence). An answer with little confidence reads more; a decline with "
    "little prospect ends there."
)


def show_opening(  # noqa: PLR0913 - each is shown
    console: Console,
    *,
    texts: Sequence[Text],
    questions: int,
    k: int,
    framework: str,
    models: Models | None,
    steering: Steering,
) -> None:
    """Say what the demo is about to do, and which model answers."""
    words = sum(len(text.text.split()) for text in texts)
    console.print(
        Styled("Self-Route: passages first, whole documents only if the passages do not answer", style="bold")
    )
    console.print(
        f"{questions} questions over {len(texts)} documents of {words:,} words in all, with {framework}. For each, "
        f"the {k} nearest passages are retrieved and read. If the reader declines to answer from them, it reads the "
        "whole documents that they are from; if it declines again, the question is unanswerable. The columns on the "
        "right show the tokens that were used, those of reading these documents at once (LC alone), and the ratio."
    )
    if steering.widen:
        console.print(f"Before whole documents it looks at the {steering.widen} nearest passages.")
    if steering.graded:
        console.print(_GRADED)
    console.print()
    show_reader(console, models)


def show_header(console: Console) -> None:
    """Print the head of the demo's answers."""
    grid = _row_grid()
    grid.add_row("question and answer", "route", "match", "tokens", "LC alone", "ratio")
    for column in grid.columns:
        column.style = "bold"
    console.print(grid)
    console.rule(style="dim")


def show_demo_answer(console: Console, answer: DemoAnswer) -> None:
    """Print a question of the demo with its answer: they come one by one, so each is a grid of its own."""
    usage = answer.usage
    alone, ratio = usage["long_context_only"], usage["token_ratio"]
    text = Styled(shortened(answer.answer, 160), style="cyan" if answer.answerable else "magenta")
    grid = _row_grid()
    grid.add_row(
        Styled(printable(answer.question.question)) + Styled("\n→ ", style="dim") + text,
        Styled(STEP_NAMES[answer.route], style=COLOURS[answer.route]),
        Styled("yes" if answer.match else "no", style="green" if answer.match else "dim"),
        f"{usage['total_tokens']:,}",
        "" if alone is None else f"{alone:,}",
        "" if ratio is None else f"{ratio:.0%}",
    )
    console.print(grid)


def _row_grid() -> Grid:
    grid = Grid(box=None, show_header=False, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_column(ratio=1)
    for width in (12, 5):
        grid.add_column(width=width)
    for width in (7, 9, 6):
        grid.add_column(width=width, justify="right")
    return grid


def show_totals(
    console: Console, totals: Mapping[str, int], ledger: Ledger, *, models: Models, seconds: Mapping[str, float]
) -> None:
    """Print the totals of the demo."""
    answered = totals["escalated"] - totals["unanswerable"]
    grid = totals_grid()
    grid.add_row("questions", str(totals["questions"]))
    grid.add_row("answered by RAG", f"{totals['answered_by_rag']}   from the passages alone")
    if totals["answered_by_wider"]:
        grid.add_row("by a wider look", f"{totals['answered_by_wider']}   from more passages")
    grid.add_row("escalated", f"{totals['escalated']}   whole documents were read; {answered} answered from them")
    grid.add_row("declined again", f"{totals['unanswerable']}   unanswerable from the whole documents, too")
    if totals["stopped"]:
        grid.add_row("stopped", f"{totals['stopped']}   not worth reading more for, by the policy or the bounds")
    grid.add_row("match", f"{totals['matches']}   contain a reference answer, or rightly decline (a hint, not a grade)")
    for name, figure in ledger_rows(ledger, models):
        grid.add_row(name, figure)
    parts = ", ".join(f"{name} {time:.1f} s" for name, time in seconds.items())
    grid.add_row("wall time", f"{sum(seconds.values()):.1f} s   ({parts})")
    console.rule(style="dim")
    console.print(grid)


def show_warning(console: Console) -> None:
    """Say what the extractive reader's answers are worth."""
    console.print("\nThe extractive reader is not a language model: look at the routes, not at the answers.")


def show_steering(console: Console, steering: Steering) -> None:
    """Say how the questions after the demo's are asked."""
    console.rule(style="dim")
    options = Styled(f"--graded --widen {steering.widen}", style="bold")
    console.print(Styled("Two more questions, with the options ") + options + Styled(f". {_GRADED}"))
    console.print(f"Before whole documents it looks at {steering.widen} passages. Its numbers are mere similarities.")


def show_steered(console: Console, output: Output, *, names: Mapping[str, str]) -> None:
    """Print one of these questions, its answer, and why it took that route."""
    console.print()
    show_field(console, "Question", output.question)
    show_field(console, "Answer", shortened(output.answer, 200))
    show_field(console, "Why", reason(output, names))
    show_field(console, "Tokens", f"{output.usage['total_tokens']:,} ({by_step(output.usage)})")
