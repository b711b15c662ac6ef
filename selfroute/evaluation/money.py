"""What each strategy cost, as if it was run alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from selfroute.evaluation.finished import Finished, Results
from selfroute.evaluation.table import Cell, Table


def money(finished: Finished) -> Table | None:
    """Tokens and US dollars of each strategy, and the share of the long context's."""
    if not finished.keys:
        return None
    rows: list[tuple[Cell, ...]] = []
    notes = ["Every strategy counts as if it was run alone: a reply that two of them share is paid by both."]
    compared, name = _whole(finished)
    for (strategy, k), results in finished.runs.items():
        usages = [each.usage for each in results.values()]
        spent = _sum(usage.get("cost") for usage in usages)
        share = float(100 * spent / compared) if spent is not None and compared else None
        tokens = (sum(each.input_tokens for each in results.values()), _output_tokens(usages))
        dollars = None if spent is None else f"{spent:f}"
        rows.append((strategy, "" if k is None else k, len(usages), *tokens, dollars, share))
        reasons = Counter(str(usage.get("cost_unknown")) for usage in usages if usage.get("cost") is None)
        notes += [f"{strategy}: cost not known for {n:,} of {len(usages):,}: {why}." for why, n in reasons.items()]
    notes.append(f"cost % is the cost over that of {name}.")
    columns = ("strategy", "k", "questions", "input tokens", "output tokens", "US dollars", "cost %")
    return Table("money", "Tokens and cost", columns, tuple(rows), tuple(notes))


def _whole(finished: Finished) -> tuple[Decimal | None, str]:
    """What the long context alone costs, and in words where that is known from."""
    if reader := finished.get("long_context"):
        return _sum(each.usage.get("cost") for each in reader.values()), "the long context"
    drafted: Results = finished.get("self_route", finished.ks[0])
    whole = _sum(each.usage.get("cost_long_context_only") for each in drafted.values()) if drafted else None
    why = "finished no question" if ("long_context", None) in finished.failed else "was not run"
    return whole, f"the long context, which {why}: its cost is an estimate"


def _sum(costs: Iterable[str | None]) -> Decimal | None:
    """The sum of decimal strings, None if one of them is not known."""
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += Decimal(cost)
    return total


def _output_tokens(usages: Iterable[Mapping[str, Any]]) -> int:
    return sum(
        step["output_tokens"] for usage in usages for step in (usage.get("rag"), usage.get("long_context")) if step
    )
