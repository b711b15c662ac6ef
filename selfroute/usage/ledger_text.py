"""Print the figures of a ledger as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

from selfroute.effects import Route
from selfroute.usage.counts import STEPS

_WIDTH = 100  # characters of a printed line
STEP_NAMES: dict[str, str] = {step: step.replace("_", " ") for step in STEPS}


def table(snapshot: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as a table: first by route, then by step, then sentences on what does not fit columns.

    It has no line of what did not happen, and a column of sections only if some were read.

    Args:
        snapshot: The figures of each route and of `all`, as `Totals.as_dict` returns them.
    """
    figures = snapshot["all"]
    if not figures["queries"] and not figures["failed"]:
        return "no queries yet"
    tokens = figures["tokens"]
    steps = [step for step in STEPS if step != "sections" or snapshot[step]["queries"] or tokens[step]["total_tokens"]]
    rows = [*_by_route([snapshot[name] for name in (*steps, "all")], steps), *_by_step(tokens, steps)]
    said = [*_times_rag(tokens), *_sentences(figures)]
    sentences = (fill(sentence, _WIDTH, subsequent_indent="  ") for sentence in said)
    return "\n".join([*_aligned(rows), *sentences])


def percent(share: float) -> str:
    """Return a share as a percentage; with a decimal only below 10 %, since most shares are estimates."""
    return f"{share:.{0 if share >= 0.1 else 1}%}"  # noqa: PLR2004


def dollars(text: str) -> str:
    """Return an amount of money, with more decimals the smaller it is: most queries cost less than a cent.

    Args:
        text: A decimal string in US dollars.
    """
    amount = abs(float(text))
    places = 2 if amount >= 1 or not amount else 4 if amount >= 0.01 else 6  # noqa: PLR2004
    return f"{'-' if float(text) < 0 else ''}${amount:,.{places}f}"


def _by_route(columns: Sequence[Mapping[str, Any]], steps: Sequence[Route]) -> Iterator[list[str]]:
    yield _head("by the query's route", steps)
    for name in ("queries", "doubted", "unanswerable", "stopped", "left"):
        if columns[-1][name]:
            yield [f"  {name}", *(f"{figures[name]:,}" for figures in columns)]
    if columns[-1]["failed"]:  # most fail before there is a route
        yield ["  failed attempts", *("" for _ in steps), f"{columns[-1]['failed']:,}"]
    for kind, name in (("first_text", "first text"), ("end", "end")):
        for share, label in (("median", "median"), ("p95", "95 % within")):
            times = [figures["seconds"][kind][share] for figures in columns]
            if times[-1] is not None:
                yield [f"  seconds to {name}, {label}", *("-" if time is None else f"{time:,.3f}" for time in times)]


def _by_step(tokens: Mapping[str, Any], steps: Sequence[Route]) -> Iterator[list[str]]:
    yield _head("by the step that used them", steps)
    for name in ("input", "cached", "output", "estimated"):
        counts = [tokens[step][f"{name}_tokens"] for step in steps]
        if any(counts):
            yield [f"  {name} tokens", *(f"{count:,}" for count in [*counts, sum(counts)])]


def _head(title: str, steps: Sequence[Route]) -> list[str]:
    return [title, *(STEP_NAMES[step] for step in steps), "all"]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.rjust(max(12, width)) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])


def _not_compared(figures: Mapping[str, Any]) -> str:
    """Return how many queries are not compared with the long context alone, by reason; empty if all are."""
    counts = {
        "left": figures["left"],
        "failed": figures["failed"],
        "of unknown length": figures["savings"]["unknown"],
    }
    return ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)


def _times_rag(tokens: Mapping[str, Any]) -> Iterator[str]:
    if drafted := tokens["rag"]["total_tokens"]:
        times = tokens["total_tokens"] / drafted
        yield f"tokens used: {times:.1f} times those of the drafts; RAG takes a draft for each question"


def _sentences(figures: Mapping[str, Any]) -> Iterator[str]:
    tokens, savings, money = figures["tokens"], figures["savings"], figures["money"]
    compared, missing = money["compared"], _not_compared(figures)
    if figures["errors"]:
        yield "errors: " + ", ".join(f"{name} {count:,}" for name, count in figures["errors"].items())
    if savings["token_ratio"] is not None:
        counts = f"{savings['input_tokens']:,} of {savings['long_context_only']:,}; queries: {savings['queries']:,}"
        yield f"tokens read: {percent(savings['token_ratio'])} of the long context alone ({counts})"
    if money["cost"] is not None:
        estimated = sum(tokens[step]["estimated_tokens"] for step in STEPS)
        marked = f" ({percent(estimated / tokens['total_tokens'])} of the tokens estimated)" if estimated else ""
        yield f"cost: {dollars(money['cost'])}{', and what has no price' if money['unpriced'] else ''}{marked}"
    if compared["saved"] is not None:
        paid, only = dollars(compared["cost"]), dollars(compared["cost_long_context_only"])
        yield f"saved: {dollars(compared['saved'])} ({paid} instead of {only}; queries: {compared['queries']:,})"
        cold, warm = (dollars(compared["saved_range"][bound]) for bound in ("nothing_cached", "all_warm"))
        if cold != warm:
            yield f"saved, compared with a prompt cache that holds nothing: {cold}; that holds every document: {warm}"
    for name, model in figures["models"].items():
        if model["hit_rate"]:
            yield f"prompt cache of {name}: {percent(model['hit_rate'])} of {model['input_tokens']:,} input tokens"
    if missing:
        few = savings["queries"] and savings["unknown"] and savings["token_ratio"] is None
        yield f"not compared: {missing}{' (too many to tell what was saved)' if few else ''}"
    for reason, count in money["unpriced"].items():
        yield f"no price for {count:,} {'query' if count == 1 else 'queries'}: {reason}"
