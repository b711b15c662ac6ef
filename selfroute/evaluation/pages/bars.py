"""Tokens and dollars of a question as bars, beside what the long context alone would have taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfroute.usage.counts import STEPS
from selfroute.usage.ledger_text import STEP_NAMES, dollars

_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure as a bar.

    Attributes:
        name: What it measures.
        text: The figure.
        parts: The steps that make it up, each with where it begins and how wide it is, from 0 to 100.
        whole: How wide the long context alone would be; 0 if that is not known.
        label: The figures in words.
    """

    name: str
    text: str
    parts: Sequence[tuple[str, float, float]]
    whole: float
    label: str


def bars_of(usage: Mapping[str, Any], of_all: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return the bars of a result: its tokens and, if it has a price, its dollars.

    Args:
        usage: The usage of the result.
        of_all: The usage of all results of the question, which share a scale.
    """
    return [bar for bar in (_tokens(usage, of_all), _dollars(usage, of_all)) if bar]


def _tokens(usage: Mapping[str, Any], of_all: Sequence[Mapping[str, Any]]) -> Bar | None:
    total = usage.get("total_tokens")
    if total is None:
        return None
    most = max(max(one.get("total_tokens") or 0, one.get("long_context_only") or 0) for one in of_all) or 1
    steps: dict[str, int] = {
        step: counts["input_tokens"] + counts["output_tokens"] for step in STEPS if (counts := usage.get(step))
    }
    whole = usage.get("long_context_only") or max(one.get("long_context_only") or 0 for one in of_all)
    words = [f"{STEP_NAMES[step]} {tokens:,}" for step, tokens in steps.items()]
    label = f"{total:,} tokens: {', '.join(words)}" if len(steps) > 1 else f"{total:,} tokens"
    return Bar(
        "tokens",
        f"{'about ' if usage.get('estimated') else ''}{total:,} tokens",
        _parts(steps, most),
        _WIDTH * (whole or 0) / most,
        f"{label}; the long context alone {whole:,}" if whole else label,
    )


def _dollars(usage: Mapping[str, Any], of_all: Sequence[Mapping[str, Any]]) -> Bar | None:
    cost = usage.get("cost")
    if cost is None:
        return None
    alone = [one.get("cost_long_context_only") for one in of_all]
    most = max(*(float(one.get("cost") or 0) for one in of_all), *(float(each or 0) for each in alone)) or 1
    only = usage.get("cost_long_context_only") or next(filter(None, alone), None)
    label = f"{dollars(cost)}; the long context alone {dollars(only)}" if only is not None else dollars(cost)
    return Bar("dollars", dollars(cost), _parts({"cost": float(cost)}, most), _WIDTH * float(only or 0) / most, label)


def _parts(amounts: Mapping[str, float], most: float) -> list[tuple[str, float, float]]:
    """Return bars one behind the other; no part that is there is too small to be seen."""
    found, at = [], 0.0
    for name, amount in amounts.items():
        width = max(_WIDTH * amount / most, 0.5 if amount else 0.0)
        found.append((name, round(at, 2), round(width, 2)))
        at += width
    return found
