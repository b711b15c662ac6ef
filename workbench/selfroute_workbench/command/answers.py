"""Shows an answer with its reasons, in words and as JSON, and what a check found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Styled

from selfroute.checking import Findings
from selfroute.usage.ledger import Ledger
from selfroute.usage.ledger_text import STEP_NAMES, dollars, percent
from selfroute_workbench.command.citing import FileRead, FileSection
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.sessions import Output, Show
from selfroute_workbench.command.terminal import shortened
from selfroute_workbench.demo.reader import REFUSAL
from selfroute_workbench.evaluation.table import printable

Stream = Callable[[Show], Output]

COLOURS = {"rag": "green", "sections": "cyan", "long_context": "yellow"}
NOT_THERE = "(not in the documents)"
"""What is shown in place of the word by which the model declines."""
_INDENT = 10


def show_reader(console: Console, models: Models | None) -> None:
    """Say which model answers."""
    if models and models.recording:
        console.print(
            Styled("Answers are replies of Claude, ", style="bold")
            + Styled("recorded for these prompts; retrieval and routing run here. ")
            + Styled("Ask a model of yours with --model openai:gpt-5-mini.")
        )
    elif models and models.is_language_model:
        console.print(Styled("Answers come from ") + Styled(models.name, style="bold"))
    else:
        console.print(
            Styled("Answers come from the extractive reader, which is not a language model: ", style="yellow")
            + Styled("it returns the sentence that shares most words with the question, or declines. ")
            + Styled("Use a real model with --model, for example --model openai:gpt-5-mini.")
        )
    console.print()


def show_findings(console: Console, findings: Findings) -> None:
    """Print what a check found, and a line on the whole."""
    for finding in findings:
        style = {True: "", False: "bold red", None: "yellow"}[finding.ok]
        console.print(Styled(printable(str(finding)), style=style), soft_wrap=True)
    wrong = ", ".join(finding.subject for finding in findings if finding.ok is False)
    console.print(f"\nTo be changed: {wrong}" if wrong else "\nNothing has to be changed; no model was asked.")


def show_answer(console: Console, ask: Stream) -> Output:
    """Print the route, and the answer as it comes; return the whole output."""
    begun = False

    def show(route: str, text: str) -> None:
        nonlocal begun
        if not begun:
            show_field(console, "Route", Styled(STEP_NAMES[route], style=COLOURS[route]))
            console.print(Styled(f"{'Answer':{_INDENT}}", style="bold"), end="")
            begun = True
        console.print(Styled(printable(NOT_THERE if text == REFUSAL else text)), end="", soft_wrap=True)

    try:
        return ask(show)
    finally:
        console.print()  # so that an error begins on a new line, too


def show_reasons(console: Console, output: Output, *, models: Models) -> None:
    """Print where the answer stands, why it took that route, its tokens and cost, and its passages."""
    for number, citation in enumerate(output.citations):
        line = f"line {citation.line:,}, character {citation.start:,}"
        place = f"{citation.source}, {line if citation.page is None else f'page {citation.page:,}'}"
        show_field(console, "" if number else "Where", place)
        show_field(console, "", Styled(shortened(citation.text, 2 * (console.width - _INDENT)), style="dim"))
    show_field(console, "Why", reason(output))
    for document in output.read:
        if document.sections:
            show_field(console, "Sections", f"{document.source}, {_places(document.sections)}")
    usage, whole = output.usage, "of reading the whole documents at once"
    estimated = ", partly estimated" if usage["estimated"] else ""
    show_field(console, "Tokens", f"{usage['total_tokens']:,} ({by_step(usage)}{estimated})")
    if usage["token_ratio"] is not None:
        share = f"{usage['token_ratio']:.0%} of the {usage['long_context_only']:,} input tokens"
        show_field(console, "Read", f"{share} {whole}")
    if usage["cost"] is not None:
        only = usage["cost_long_context_only"]
        show_field(console, "Cost", dollars(usage["cost"]) + (f"; {dollars(only)} {whole[3:]}" if only else ""))
    elif models.has_list_price:
        show_field(console, "Cost", f"unknown: {usage['cost_unknown']}")
    show_field(console, "Passages", f"{len(output.passages)} retrieved, nearest first")
    for number, passage in enumerate(output.passages, 1):
        place = f"at character {passage.start:,}" if passage.page is None else f"on page {passage.page:,}"
        console.print(Styled(printable(f"{number:>4}  {passage.source} {place}"), style="dim"))
        console.print(Styled(f"      {shortened(passage.text, console.width - 6)}"))


def _places(sections: Sequence[FileSection]) -> str:
    """Return where sections of a document stand, by pages if it has some."""
    pages = [section.page for section in sections if section.page is not None]
    if pages:
        return f"page{'s' if len(set(pages)) > 1 else ''} {', '.join(f'{page:,}' for page in dict.fromkeys(pages))}"
    return f"characters {', '.join(f'{section.start:,} to {section.end:,}' for section in sections)}"


def reason(output: Output) -> str:
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
    documents = ", ".join(_how_much(document) for document in output.read)
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


def _how_much(document: FileRead) -> str:
    if number := len(document.sections):
        return f"{number} section{'s' if number > 1 else ''} of {document.source}"
    return f"{'as much as fits the model' if document.trimmed else 'the whole'} of {document.source}"


def show_field(console: Console, name: str, text: str | Styled) -> None:
    """Print a name and, in the column beside it, a text."""
    grid = Grid(box=None, show_header=False, padding=0, pad_edge=False)
    grid.add_column(width=_INDENT, style="bold")
    grid.add_column()
    grid.add_row(name, Styled(printable(text)) if isinstance(text, str) else text)
    console.print(grid)


def as_json(output: Output) -> dict[str, Any]:
    """Turn an answer into plain JSON."""
    record = {key: getattr(output, key) for key in ("question", "answer", "route", "answerable", "decision", "usage")}
    sections = [asdict(section) for document in output.read for section in document.sections]
    citations, passages = ([asdict(one) for one in some] for some in (output.citations, output.passages))
    return {**record, "sections": sections, "citations": citations, "passages": passages}


def show_ledger(console: Console, ledger: Ledger, *, models: Models) -> None:
    """Print the figures of a ledger."""
    show_rows(console, ledger_rows(ledger, models))


def show_rows(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Print figures with their names, below a line."""
    grid = Grid(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for name, figure in rows:
        grid.add_row(name, figure)
    console.rule(style="dim")
    console.print(grid)


def ledger_rows(ledger: Ledger, models: Models) -> Iterator[tuple[str, str]]:
    """Yield the tokens, savings and money of a ledger; a missing price only where the models should have one."""
    figures = ledger.to_dict()
    tokens, savings, money = figures["tokens"], figures["savings"], figures["money"]

    def measured(count: int) -> str:
        return "" if count == figures["queries"] else f", in {count} of {figures['queries']} questions"

    estimated = any(tokens[step]["estimated_tokens"] for step in STEP_NAMES)
    counted = "characters / 4" if not models.is_language_model else "partly estimated" if estimated else "as reported"
    yield "tokens", f"{tokens['total_tokens']:,}   {by_step(tokens)}; {counted}"
    if savings["token_ratio"] is not None:
        read = f"{savings['input_tokens']:,} of {savings['long_context_only']:,}{measured(savings['queries'])}"
        yield "input tokens", f"{percent(savings['token_ratio'])} of always reading the whole documents   {read}"
    elif savings["unknown"]:
        yield "input tokens", f"not compared: the length of the documents is not known{measured(savings['unknown'])}"
    if money["cost"] is not None:
        yield "cost", dollars(money["cost"]) + (" plus questions without a known price" if money["unpriced"] else "")
    compared = money["compared"]
    if compared["saved"] is not None:
        paid = f"{dollars(compared['cost'])} instead of {dollars(compared['cost_long_context_only'])}"
        yield "saved", f"{dollars(compared['saved'])}   {paid}{measured(compared['queries'])}"
    if models.has_list_price:
        yield from (("no price", f"{count}   {reason}") for reason, count in money["unpriced"].items())


def by_step(tokens: Mapping[str, Any]) -> str:
    """Return the tokens of each step that ran, from the usage of a question or of a ledger."""
    steps = {step: tokens[step] for step in STEP_NAMES if tokens[step] and tokens[step]["input_tokens"]}
    return "; ".join(
        f"{STEP_NAMES[step]} {counts['input_tokens']:,} in, {counts['output_tokens']:,} out"
        for step, counts in steps.items()
    )
