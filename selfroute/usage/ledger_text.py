"""Lays the figures of a ledger out for reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

_WIDTH = 100  # characters of a printed line
_ROUTES = ("rag", "long_context")


def table(sums: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay figures out: first by the route of a query, then by the step that was paid for, then what has no columns.

    Args:
        sums: The figures of each route, and of `all`, as `Totals.as_dict` has them.
    """
    figures = sums["all"]
    if not figures["queries"] and not figures["failed"]:
        return "no queries yet"
    rows = [*_by_route([sums[name] for name in (*_ROUTES, "all")]), *_by_step(figures["tokens"])]
    sentences = (fill(sentence, _WIDTH, subsequent_indent="  ") for sentence in _sentences(figures))
    return "\n".join([*_aligned(rows), *sentences])


def percent(share: float) -> str:
    """A share in words; these are mostly estimates."""
    return f"{share:.{0 if share >= 0.1 else 1}%}"  # noqa: PLR2004


def dollars(text: str) -> str:
    """Money in words; most queries cost less than a cent.

    Args:
        text: A decimal string in US dollars.
    """
    amount = abs(float(text))
    places = 2 if amount >= 1 or not amount else 4 if amount >= 0.01 else 6  # noqa: PLR2004
    return f"{'-' if float(text) < 0 else ''}${amount:,.{places}f}"


def _by_route(sums: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    yield ["by the query's route", "rag", "long context", "all"]
    for name in ("queries", "unanswerable", "left"):
        yield [f"  {name}", *(f"{figures[name]:,}" for figures in sums)]
    yield ["  failed attempts", "", "", f"{sums[-1]['failed']:,}"]  # most had no route yet
    for kind, name in (("first_text", "first text"), ("end", "end")):
        for share, label in (("median", "median"), ("p95", "95 % within")):
            times = [figures["seconds"][kind][share] for figures in sums]
            yield [f"  seconds to {name}, {label}", *("-" if time is None else f"{time:,.3f}" for time in times)]


def _by_step(tokens: Mapping[str, Any]) -> Iterator[list[str]]:
    yield ["by the step that used them", "rag", "long context", "all"]
    for name in ("input", "cached", "output", "estimated"):
        counts = [tokens[step][f"{name}_tokens"] for step in _ROUTES]
        yield [f"  {name} tokens", *(f"{count:,}" for count in [*counts, sum(counts)])]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.rjust(max(12, width)) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])


def _not_compared(figures: Mapping[str, Any]) -> str:
    """What is not compared with the long context alone, and why; empty if everything is."""
    counts = {
        "left": figures["left"],
        "failed": figures["failed"],
        "of unknown length": figures["savings"]["unknown"],
    }
    return ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)


def _sentences(figures: Mapping[str, Any]) -> Iterator[str]:
    tokens, savings, money = figures["tokens"], figures["savings"], figures["money"]
    compared, missing = money["compared"], _not_compared(figures)
    if figures["errors"]:
        yield "errors: " + ", ".join(f"{name} {count:,}" for name, count in figures["errors"].items())
    if savings["token_ratio"] is not None:
        sums = f"{savings['input_tokens']:,} of {savings['long_context_only']:,}; queries: {savings['queries']:,}"
        yield f"tokens read: {percent(savings['token_ratio'])} of the long context alone ({sums})"
    if money["cost"] is not None:
        estimated = sum(tokens[step]["estimated_tokens"] for step in _ROUTES)
        marked = f" ({percent(estimated / tokens['total_tokens'])} of the tokens estimated)" if estimated else ""
        yield f"cost: {dollars(money['cost'])}{', and what has no price' if money['unpriced'] else ''}{marked}"
    if compared["saved"] is not None:
        paid, only = dollars(compared["cost"]), dollars(compared["cost_long_context_only"])
        yield f"saved: {dollars(compared['saved'])} ({paid} instead of {only}; queries: {compared['queries']:,})"
    if missing:
        few = savings["queries"] and savings["unknown"] and savings["token_ratio"] is None
        yield f"not compared: {missing}{' (too many to tell what was saved)' if few else ''}"
    for reason, count in money["unpriced"].items():
        yield f"no price for {count:,} {'query' if count == 1 else 'queries'}: {reason}"
