"""Shows progress, the answers and totals of the demo, and an answer with its passages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute.checking import Findings
from selfroute.command.figures import STEP_NAMES, by_step, dollars, ledger_rows
from selfroute.command.framework import Output, Read, Show
from selfroute.command.run import DemoAnswer, Models
from selfroute.command.steering import Steering
from selfroute.command.texts import IndexedPassage, Text
from selfroute.evaluation.table import printable
from selfroute.usage.ledger import Ledger

PIPE_WIDTH = 110
_INDENT = 10
_LONG = 4  # characters; shorter words of an answer, but for numbers, are in every sentence
_GRADED = (
    "Before each draft it writes two numbers from 0 to 100: how likely the whole text holds an answer (the prospect), "
    "and how sure it is of its own (the confidence). An answer with little confidence reads more; a decline with "
    "little prospect ends there."
)
_COLOURS = {"rag": "green", "wider": "cyan", "long_context": "yellow"}


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
    """Show the progress of something that takes a while: a bar in a terminal, one line elsewhere.

    Args:
        console: The console.
        title: What is being done.
        total: The number of steps; None if it is not known.

    Yields:
        A function to call with the number of steps that have just been done.
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


def show_reader(console: Console, models: Models | None) -> None:
    """Say which model answers."""
    if models and models.is_language_model:
        console.print(Styled("Answers come from ") + Styled(models.name, style="bold"))
    else:
        console.print(
            Styled("Answers come from the extractive reader, which is not a language model: ", style="yellow")
            + Styled("it returns the sentence nearest to the question, or declines if no sentence is near. ")
            + Styled("Use a real model with --model, for example --model openai:gpt-4o-mini.")
        )
    console.print()


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
        Styled(STEP_NAMES[answer.route], style=_COLOURS[answer.route]),
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
    grid = _totals_grid()
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


def show_findings(console: Console, findings: Findings) -> None:
    """Print what a check found, and a line on the whole."""
    for finding in findings:
        style = {True: "", False: "bold red", None: "yellow"}[finding.ok]
        console.print(Styled(printable(str(finding)), style=style), soft_wrap=True)
    wrong = [finding.subject for finding in findings if finding.ok is False]
    console.print(
        f"\nTo be changed: {', '.join(wrong)}" if wrong else "\nNothing has to be changed; no model was asked."
    )


def show_steering(console: Console, steering: Steering) -> None:
    """Say how the questions after the demo's are asked."""
    console.rule(style="dim")
    options = Styled(f"--graded --widen {steering.widen}", style="bold")
    console.print(Styled("Two more questions, with the options ") + options + Styled(f". {_GRADED}"))
    console.print(f"Before whole documents it looks at {steering.widen} passages. Its numbers are mere similarities.")


def show_steered(console: Console, output: Output, *, names: Mapping[str, str]) -> None:
    """Print one of these questions, its answer, and why it took that route."""
    console.print()
    _show_field(console, "Question", output.question)
    _show_field(console, "Answer", shortened(output.answer, 200))
    _show_field(console, "Why", _reason(output, names))
    _show_field(console, "Tokens", f"{output.usage['total_tokens']:,} ({by_step(output.usage)})")


def show_ledger(console: Console, ledger: Ledger, *, models: Models) -> None:
    """Print the totals of all questions."""
    grid = _totals_grid()
    for name, figure in ledger_rows(ledger, models):
        grid.add_row(name, figure)
    console.rule(style="dim")
    console.print(grid)


def _totals_grid() -> Grid:
    return Grid(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)


def show_question(console: Console, question: str) -> None:
    """Print a question."""
    _show_field(console, "Question", question)


def show_answer(console: Console, ask: Callable[[Show], Output]) -> Output:
    """Print the route, and the answer as it comes; return the whole output."""
    column = 0

    def show(route: str, text: str) -> None:
        nonlocal column
        if not column:
            console.print(
                Styled(f"{'Route':{_INDENT}}", style="bold") + Styled(STEP_NAMES[route], style=_COLOURS[route])
            )
            console.print(Styled(f"{'Answer':{_INDENT}}", style="bold"), end="")
            column = _INDENT
        column = _print_piece(console, printable(text), column)

    try:
        return ask(show)
    finally:
        console.print()  # so that an error begins on a new line, too


def _print_piece(console: Console, text: str, column: int) -> int:
    """Print the next piece of a text, wrapped between words in a terminal; return the column where it ends."""
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
    passages: Sequence[IndexedPassage] | None,
) -> None:
    """Print where the answer stands, why it took that route, its tokens and cost, and the passages if given."""
    _show_citations(console, output, names)
    _show_field(console, "Why", _reason(output, names))
    usage = output.usage
    estimated = ", partly estimated" if usage["estimated"] else ""
    _show_field(console, "Tokens", f"{usage['total_tokens']:,} ({by_step(usage)}{estimated})")
    if usage["token_ratio"] is not None:
        alone = f"{usage['long_context_only']:,}"
        _show_field(
            console,
            "Read",
            f"{usage['token_ratio']:.0%} of the {alone} input tokens of reading the whole documents at once",
        )
    elif usage["long_context_only"] is None:
        _show_field(console, "Read", "not compared yet: the length of the documents is still being counted")
    if usage["cost"] is None:
        if models.has_list_price:
            _show_field(console, "Cost", f"unknown: {usage['cost_unknown']}")
    else:
        only = usage["cost_long_context_only"]
        alone = f"; reading the whole documents at once {dollars(only)}" if only is not None else ""
        _show_field(console, "Cost", f"{dollars(usage['cost'])}{alone}")
    if passages is not None:
        _show_field(console, "Passages", f"{len(passages)} retrieved, nearest first")
        for number, passage in enumerate(passages, 1):
            place = f"{number:>4}  {names[passage.source]} at character {passage.start:,}"
            console.print(Styled(printable(place), style="dim"))
            console.print(Styled(f"      {shortened(passage.text, console.width - 6)}"))


def _show_citations(console: Console, output: Output, names: Mapping[str, str]) -> None:
    """Print where in the files the answer stands: of each sentence as much as shows the answer."""
    words = {word for word in re.findall(r"\w+", output.answer) if len(word) >= _LONG or any(map(str.isdigit, word))}
    answers = re.compile(rf"\b(?:{'|'.join(sorted(words)) or '(?!)'})\b", re.IGNORECASE)
    size = 2 * (console.width - _INDENT)
    for number, citation in enumerate(output.citations):
        place = f"{names[citation.source]}, line {citation.line:,}, character {citation.start:,}"
        _show_field(console, "" if number else "Where", place)
        text = " ".join(printable(citation.text).split())
        found = answers.search(text)
        if found and found.end() >= size < len(text):
            text = f"…{text[min(found.start() - size // 3, len(text) - size + 1) :].lstrip()}"
        sentence = Styled(shortened(text, size), style="dim")
        sentence.highlight_regex(answers, "not dim bold")
        _show_field(console, "", sentence)


def _reason(output: Output, names: Mapping[str, str]) -> str:
    decision, ruling = output.decision, output.decision["ruling"]
    numbers = _numbers(decision)
    if decision["signal"] == "answered":
        return f"the retrieved passages answered it{numbers and f' ({numbers[2:]})'}, so no whole document was read"
    said = shortened(decision["evidence"], 80)
    why = {
        "no_passages": "no passage was found",
        "empty": "the reply to the passages was empty",
        "doubt": f"the model was in doubt of its answer from the passages ({numbers[2:]})",
        "start": "the question goes to the documents at once",
    }.get(decision["signal"], f"the model declined to answer from the passages (“{said}”{numbers})")
    documents = ", ".join(_how_much(document, names) for document in output.read)
    read = ", then ".join(filter(None, ["more passages" if output.usage["wider"] else "", documents]))
    told = f"{why}, so it read {read}" if read else why
    if ruling and not ruling["go"]:
        return f"{told}; it went no further: {ruling['reason'] or ruling['by']}"
    if not read:
        return f"{told}, and there was no document to read"
    return told if output.answerable else f"{told}, which did not answer it either"


def _numbers(decision: Mapping[str, Any]) -> str:
    """Return the numbers of a graded draft, each after a comma; a decline has no confidence."""
    shown = ("prospect",) if decision["declined"] else ("prospect", "confidence")
    return "".join(f", {name} {decision[name]}" for name in shown if decision.get(name) is not None)


def _how_much(document: Read, names: Mapping[str, str]) -> str:
    return f"{'as much as fits the model' if document.trimmed else 'the whole'} of {names[document.source]}"


def _show_field(console: Console, name: str, text: str | Styled) -> None:
    grid = Grid(box=None, show_header=False, padding=0, pad_edge=False)
    grid.add_column(width=_INDENT, style="bold")
    grid.add_column()
    grid.add_row(name, Styled(printable(text)) if isinstance(text, str) else text)
    console.print(grid)
