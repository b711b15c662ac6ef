"""Shows the answers and totals of the demo."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from shutil import which

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute.usage.ledger import Ledger
from selfroute_workbench.command.answers import COLOURS, ledger_rows, show_field, show_reader, show_rows
from selfroute_workbench.command.demo_answers import Compared, DemoAnswer
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.sessions import Output
from selfroute_workbench.command.terminal import shortened
from selfroute_workbench.command.texts import Text

_SURE = (
    "With its reply it says how sure it is of an answer, and how likely the whole document holds one. Where it is in "
    "doubt or finds none, it is given the sections of the document that share most with the question, then four times "
    "as much, and last all of it. Where the document is unlikely to hold an answer, the question ends."
)
_PLAIN = "Where they do not hold the answer, it is given the whole document."
_READS = {"rag": "passages", "sections": "sections", "long_context": "document"}
_WIDTHS = (2, 12, 7, 8)
_FIXED = sum(_WIDTHS) + len(_WIDTHS)
_ANSWER = 0.45  # of the rest of the line, at most


def show_opening(
    console: Console, options: Options, *, texts: Sequence[Text], questions: int, models: Models | None
) -> None:
    """Say what the demo is about to do, and which model answers."""
    words = sum(len(text.text.split()) for text in texts)
    console.print(Styled("Self-Route: passages first, more only where they do not settle it", style="bold"))
    console.print(
        f"{questions} questions about one document of {words:,} words, with LangChain. The model is given the "
        f"{options.k} nearest passages. {_SURE if options.chain.get('sections', 'auto') else _PLAIN}\n"
    )
    show_reader(console, models)


def show_story(console: Console, output: Output, texts: Mapping[str, Text]) -> None:
    """Tell one question in full: what was retrieved, that the first reply declined, what was read, and what it says."""
    console.print(Styled("One question in full", style="bold"))
    nearest = " ".join(output.passages[0].text.split())
    room = max(20, 2 * (console.width - 10))
    read, usage, decision = output.read[0], output.usage, output.decision
    show_field(console, "Question", output.question)
    show_field(console, "Passages", f"{len(output.passages)} are found; the nearest: {shortened(nearest, room)}")
    show_field(
        console,
        "Reply",
        f"“{decision['evidence']}”, but {decision['prospect']} of 100 that the whole document holds an answer; "
        f"{usage['rag']['input_tokens']:,} tokens",
    )
    text = texts[read.source]
    share = sum(one.end - one.start for one in read.sections) / len(text.text)
    show_field(
        console,
        "Reads on",
        f"{len(read.sections)} stretches of the document, {share:.0%} of it, that share most with the question; "
        f"{usage['sections']['input_tokens']:,} tokens",
    )
    show_field(console, "Answer", Styled(output.answer, style="bold yellow"))
    if output.citations:
        first = output.citations[0]
        said = shortened(" ".join(first.text.split()), room)
        show_field(console, "Where", f"line {first.line:,}: {said}")
    console.print()


def show_header(console: Console) -> None:
    """Print the head of the demo's answers."""
    console.print(_row(console, "", "answered by", "tokens", "cost", "question → answer"), style="bold")
    console.rule(style="dim")


def show_demo_answer(console: Console, answer: DemoAnswer) -> None:
    """Print a question of the demo with its answer on one line."""
    room = console.width - _FIXED
    cost = answer.usage["cost"]
    said = shortened(answer.answer if answer.answerable else "(not in the text)", max(8, int(room * _ANSWER)))
    asked = shortened(answer.question.question, max(8, room - len(said) - 3))
    style = "magenta" if not answer.answerable else "bold yellow" if answer.route != "rag" else "cyan"
    mark = Styled("✓", style="green") if _is_right(answer) else Styled("✗", style="red")
    console.print(
        _row(
            console,
            mark,
            Styled(_READS[answer.route], style=COLOURS[answer.route]),
            f"{answer.usage['total_tokens']:,}",
            "" if cost is None else f"${float(cost):.4f}",
            Styled(f"{asked} → ") + Styled(said, style=style),
        )
    )


def _is_right(answer: DemoAnswer) -> bool:
    return answer.match if answer.grade is None else answer.grade == 1


def _row(console: Console, *cells: str | Styled) -> Grid:
    grid = Grid(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False, width=console.width)
    for number, width in enumerate(_WIDTHS):
        grid.add_column(width=width, justify="right" if number > 1 else "left")
    grid.add_column(ratio=1, no_wrap=True)
    grid.add_row(*cells)
    return grid


def show_comparison(console: Console, compared: Mapping[str, Compared], *, questions: int) -> None:
    """Print what each strategy made of the same questions: right answers, tokens and dollars."""
    rag, whole = compared["RAG"].tokens, compared["long context"].tokens
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("", f"right of {questions}", "tokens", "× RAG", "of long context", "cost"):  # noqa: RUF001
        grid.add_column(name, justify="right" if name else "left")
    for name, one in compared.items():
        grid.add_row(
            name,
            f"{one.right:g}",
            f"{one.tokens:,}",
            f"{one.tokens / rag:.1f}",
            f"{one.tokens / whole:.0%}",
            "" if one.cost is None else f"${one.cost:.2f}",
            style="bold" if name == "Self-Route" else "",
        )
    console.rule(style="dim")
    console.print(f"The same {questions} questions by each strategy, through the same LangChain code:\n")
    console.print(grid)


def show_recording(
    console: Console, models: Models, answers: Sequence[DemoAnswer], *, priced_as: str | None, seconds: float
) -> None:
    """Say what the answers took, what the figures of the recording rest on, and what to do next."""
    ended = Counter(answer.route for answer in answers)
    tokens = [answer.usage["total_tokens"] for answer in answers]
    whole = sum(count for count, answer in zip(tokens, answers, strict=True) if answer.route == "long_context")
    console.print(
        f"\nOf the questions above, {ended['rag']} ended with the passages, {ended['sections']} with sections, and "
        f"{ended['long_context']} with the whole document, which took {whole / sum(tokens):.0%} of the tokens. RAG has "
        "passages alone, and long context the whole document at once; the paper's rule reads it where the passages do "
        "not hold the answer. Replies were recorded, and graded by meaning without knowing the strategy. Tokens are "
        f"estimated, and priced as {priced_as}. One document and {len(answers)} questions, written for this demo: a "
        "point or two is chance. `selfroute evaluate` measures on your own."
    )
    if models.llm.differing:
        console.print(
            f"For {len(models.llm.differing)} questions other passages were found than when the replies were recorded.",
            style="yellow",
        )
    console.print(
        f"That took {seconds:.0f} s. Next, your own files: {_command()} ask FILE... -q QUESTION --model PROVIDER:NAME"
    )


def _command() -> str:
    """Return how the command is called from here."""
    return "selfroute" if which("selfroute") else relpath(Path(sys.executable).parent / "selfroute")


def show_totals(
    console: Console, totals: Mapping[str, int], ledger: Ledger, *, models: Models, seconds: Mapping[str, float]
) -> None:
    """Print the totals of the demo."""
    answered = totals["escalated"] - totals["unanswerable"]
    matches = f"{totals['matches']}   contain a reference answer, or rightly decline (a hint, no grade)"
    parts = ", ".join(f"{name} {time:.1f} s" for name, time in seconds.items())
    told = {
        "questions": f"{totals['questions']}",
        "answered by RAG": f"{totals['answered_by_rag']}   from the passages alone",
        "by sections": f"{totals['answered_by_sections']}   from the sections that matter",
        "escalated": f"{totals['escalated']}   whole documents were read; {answered} answered from them",
        "declined again": f"{totals['unanswerable']}   unanswerable from the whole documents, too",
        "stopped": f"{totals['stopped']}   not worth reading more for, by the policy or the bounds",
        "match (✓)": matches,
    }
    sometimes = {"by sections": "answered_by_sections", "stopped": "stopped"}
    rows = [row for row in told.items() if row[0] not in sometimes or totals[sometimes[row[0]]]]
    wall_time = ("wall time", f"{sum(seconds.values()):.1f} s   ({parts})")
    show_rows(console, [*rows, *ledger_rows(ledger, models), wall_time])
    if not models.is_language_model:
        console.print("\nThe extractive reader is not a language model: look at the routes, not at the answers.")
