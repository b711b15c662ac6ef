"""Shows an answer with its reasons, and what a check found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute.checking import Findings
from selfroute.command.figures import STEP_NAMES, by_step, dollars, ledger_rows
from selfroute.command.framework import Output, Read, Section, Show
from selfroute.command.run import Models
from selfroute.command.terminal import shortened
from selfroute.command.texts import IndexedPassage
from selfroute.evaluation.table import printable
from selfroute.usage.ledger import Ledger

Stream = Callable[[Show], Output]

COLOURS = {"rag": "green", "sections": "cyan", "long_context": "yellow"}
_INDENT = 10
_LONG = 4  # characters; shorter words of an answer, but for numbers, are in every sentence


def show_reader(console: Console, models: Models | None) -> None:
    """Say which model answers."""
    if models and models.recording:
        console.print(
            Styled("Answers are replies of Claude, ", style="bold")
            + Styled("recorded for these prompts; retrieval and routing run here. ")
            + Styled("Ask a model of yours with --model openai:gpt-4o-mini.")
        )
    elif models and models.is_language_model:
        console.print(Styled("Answers come from ") + Styled(models.name, style="bold"))
    else:
        console.print(
            Styled("Answers come from the extractive reader, which is not a language model: ", style="yellow")
            + Styled("it returns the sentence nearest to the question, or declines if no sentence is near. ")
            + Styled("Use a real model with --model, for example --model openai:gpt-4o-mini.")
        )
    console.print()


def show_findings(console: Console, findings: Findings) -> None:
    """Print what a check found, and a line on the whole."""
    for finding in findings:
        style = {True: "", False: "bold red", None: "yellow"}[finding.ok]
        console.print(Styled(printable(str(finding)), style=style), soft_wrap=True)
    wrong = [finding.subject for finding in findings if finding.ok is False]
    console.print(
        f"\nTo be changed: {', '.join(wrong)}" if wrong else "\nNothing has to be changed; no model was asked."
    )


def show_ledger(console: Console, ledger: Ledger, *, models: Models) -> None:
    """Print the totals of all questions."""
    grid = totals_grid()
    for name, figure in ledger_rows(ledger, models):
        grid.add_row(name, figure)
    console.rule(style="dim")
    console.print(grid)


def totals_grid() -> Grid:
    """Make a grid for rows of a name and a figure."""
    return Grid(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)


def show_question(console: Console, question: str) -> None:
    """Print a question."""
    show_field(console, "Question", question)


def show_answer(console: Console, ask: Stream) -> Output:
    """Print the route, and the answer as it comes; return the whole output."""
    column = 0

    def show(route: str, text: str) -> None:
        nonlocal column
        if not column:
            console.print(
                Styled(f"{'Route':{_INDENT}}", style="bold") + Styled(STEP_NAMES[route], style=COLOURS[route])
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
    show_field(console, "Why", reason(output, names))
    for document in output.read:
        if document.sections:
            show_field(console, "Sections", f"{names[document.source]}, {_places(document.sections)}")
    show_tokens(console, output)
    usage = output.usage
    if usage["token_ratio"] is not None:
        alone = f"{usage['long_context_only']:,}"
        show_field(
            console,
            "Read",
            f"{usage['token_ratio']:.0%} of the {alone} input tokens of reading the whole documents at once",
        )
    elif usage["long_context_only"] is None:
        show_field(console, "Read", "not compared: nobody has read these documents yet")
    if usage["cost"] is None:
        if models.has_list_price:
            show_field(console, "Cost", f"unknown: {usage['cost_unknown']}")
    else:
        only = usage["cost_long_context_only"]
        alone = f"; reading the whole documents at once {dollars(only)}" if only is not None else ""
        show_field(console, "Cost", f"{dollars(usage['cost'])}{alone}")
    if passages is not None:
        show_field(console, "Passages", f"{len(passages)} retrieved, nearest first")
        for number, passage in enumerate(passages, 1):
            place = f"{number:>4}  {_place(passage, names)}"
            console.print(Styled(printable(place), style="dim"))
            console.print(Styled(f"      {shortened(passage.text, console.width - 6)}"))


def show_tokens(console: Console, output: Output) -> None:
    """Print the tokens of an answer."""
    usage = output.usage
    estimated = ", partly estimated" if usage["estimated"] else ""
    show_field(console, "Tokens", f"{usage['total_tokens']:,} ({by_step(usage)}{estimated})")


def show_sources(
    console: Console, output: Output, *, names: Mapping[str, str], passages: Mapping[str, IndexedPassage]
) -> None:
    """Print where an answer stands, or else what it was given."""
    if output.citations:
        _show_citations(console, output, names)
    elif output.answerable:
        given = [passages[name] for name in output.retrieved]
        places = [_how_much(document, names) for document in output.read] or [_place(one, names) for one in given]
        show_field(console, "Sources", "; ".join(dict.fromkeys(places)))


def _place(passage: IndexedPassage, names: Mapping[str, str]) -> str:
    where = f"at character {passage.start:,}" if passage.page is None else f"on page {passage.page:,}"
    return f"{names[passage.source]} {where}"


def _places(sections: Sequence[Section]) -> str:
    """Return where sections of a document stand, by pages if it has some."""
    pages = [section.page for section in sections if section.page is not None]
    if pages:
        return f"page{'s' if len(set(pages)) > 1 else ''} {', '.join(f'{page:,}' for page in dict.fromkeys(pages))}"
    return f"characters {', '.join(f'{section.start:,} to {section.end:,}' for section in sections)}"


def _show_citations(console: Console, output: Output, names: Mapping[str, str]) -> None:
    """Print where in the files the answer stands: of each sentence as much as shows the answer."""
    words = {word for word in re.findall(r"\w+", output.answer) if len(word) >= _LONG or any(map(str.isdigit, word))}
    answers = re.compile(rf"\b(?:{'|'.join(sorted(words)) or '(?!)'})\b", re.IGNORECASE)
    size = 2 * (console.width - _INDENT)
    for number, citation in enumerate(output.citations):
        line = f"line {citation.line:,}, character {citation.start:,}"
        place = f"{names[citation.source]}, {line if citation.page is None else f'page {citation.page:,}'}"
        show_field(console, "" if number else "Where", place)
        text = " ".join(printable(citation.text).split())
        found = answers.search(text)
        if found and found.end() >= size < len(text):
            text = f"…{text[min(found.start() - size // 3, len(text) - size + 1) :].lstrip()}"
        sentence = Styled(shortened(text, size), style="dim")
        sentence.highlight_regex(answers, "not dim bold")
        show_field(console, "", sentence)


def reason(output: Output, names: Mapping[str, str]) -> str:
    """Return why a question took its route, as a sentence without its full stop."""
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
    before = "sections" if output.usage["sections"] and output.route != "sections" else ""
    read = ", then ".join(filter(None, [before, documents]))
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
    if number := len(document.sections):
        return f"{number} section{'s' if number > 1 else ''} of {names[document.source]}"
    return f"{'as much as fits the model' if document.trimmed else 'the whole'} of {names[document.source]}"


def show_field(console: Console, name: str, text: str | Styled) -> None:
    """Print a name and, in the column beside it, a text."""
    grid = Grid(box=None, show_header=False, padding=0, pad_edge=False)
    grid.add_column(width=_INDENT, style="bold")
    grid.add_column()
    grid.add_row(name, Styled(printable(text)) if isinstance(text, str) else text)
    console.print(grid)
