"""Shows the cost and the time of each strategy, as if it was run alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np

from selfroute.evaluation.records import Result
from selfroute.evaluation.reporting.compared import ComparedResults, Results, Variant, named
from selfroute.evaluation.table import Cell, Table


def money(compared: ComparedResults) -> Table | None:
    """Make the table of the tokens, dollars and seconds of each strategy, and its share of the long context's cost."""
    if not compared.keys:
        return None
    rows: list[tuple[Cell, ...]] = []
    for (strategy, k), results in compared.ascending_variants:
        usages = [each.usage for each in results.values()]
        tokens = tuple(sum(counts) for counts in zip(*map(_tokens, results.values()), strict=True))
        spent = _sum(usage.get("cost") for usage in usages)
        dollars = None if spent is None else f"{spent:.4f}"
        times = np.quantile([each.seconds for each in results.values()], [0.5, 0.95])
        head: tuple[Cell, ...] = (strategy, "" if k is None else k, len(usages), *tokens)
        rows.append((*head, dollars, cost_share(compared, (strategy, k)), *map(float, times)))
    columns = ("strategy", "k", "questions", "input tokens", "output tokens", "US dollars", "cost %", "seconds", "95 %")
    return Table("money", "Tokens, cost and time", columns, tuple(rows), tuple(_notes(compared)))


def cost_share(compared: ComparedResults, variant: Variant) -> float | None:
    """Return the cost of a strategy in per cent of the long context's; None if either is not known.

    Args:
        compared: The results.
        variant: The strategy and its k.
    """
    spent = _sum(each.usage.get("cost") for each in compared.by_variant[variant].values())
    whole, _ = _whole(compared)
    return float(100 * spent / whole) if spent is not None and whole else None


def _notes(compared: ComparedResults) -> Iterator[str]:
    yield "Each strategy is counted as if it was run alone: a reply that two strategies share counts for both."
    if compared.get("graded_sections", compared.ks[0]):
        yield "Sections after drafts that only other bounds would doubt, which were paid for here, are not counted."
    unknown: dict[str, list[str]] = defaultdict(list)
    for variant, results in compared.ascending_variants:
        usages = [each.usage for each in results.values()]
        reasons = Counter(str(usage.get("cost_unknown")) for usage in usages if usage.get("cost") is None)
        for why, count in reasons.items():
            unknown[why].append(f"{named(variant)} {count:,} of {len(usages):,}")
    for why, counts in unknown.items():
        yield f"Cost not known: {why.rstrip('.')} ({', '.join(counts)})."
    _, name = _whole(compared)
    yield f"cost % is the share of the cost of {name}."
    if len(compared.datasets) > 1:
        yield "Tokens here are sums over all questions; token % in the first table is a mean over the data sets."
    at_once = compared.record.settings.get("concurrency")
    asked = f" with {at_once} questions asked at a time" if at_once and at_once > 1 else ""
    yield f"seconds is the model's time for a question{asked}: the median, and the time within which 95 % end."
    yield "A kept reply counts with the time that it took when it was asked for; retrieval is not counted."


def _whole(compared: ComparedResults) -> tuple[Decimal | None, str]:
    """Return the cost of the long context alone, and a name for it that says where it is from."""
    if reader := compared.get("long_context"):
        return _sum(each.usage.get("cost") for each in reader.values()), "the long context"
    drafted: Results = compared.get("self_route", compared.ks[0])
    whole = _sum(each.usage.get("cost_long_context_only") for each in drafted.values()) if drafted else None
    why = "finished no question" if ("long_context", None) in compared.failed else "was not run"
    return whole, f"the long context, which {why}, so this is an estimate"


def _sum(costs: Iterable[str | None]) -> Decimal | None:
    """Return the sum of decimal strings, None if one of them is not known."""
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += Decimal(cost)
    return total


def _tokens(result: Result) -> tuple[int, int]:
    return result.input_tokens, result.output_tokens
