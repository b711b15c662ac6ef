"""Shows the tokens and the money of all questions together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from selfroute.usage.ledger import Ledger
from selfroute.usage.ledger_text import STEP_NAMES, dollars, percent
from selfroute_workbench.command.models import Models


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
