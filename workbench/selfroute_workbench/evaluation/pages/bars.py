"""Tokens and dollars of a question as bars, beside what the long context alone would have taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfroute.usage.counts import STEPS
from selfroute.usage.ledger_text import STEP_NAMES, dollars

_WIDTH, _THINNEST = 100.0, 0.5


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure as a bar.

    Attributes:
        text: The figure.
        parts: The steps that make it up, each with where it begins and how wide it is, from 0 to 100.
        whole: How wide the long context alone would be; 0 if that is not known.
        label: The figures in words.
    """

    text: str
    parts: Sequence[tuple[str, float, float]]
    whole: float
    label: str


def bars_of(usage: Mapping[str, Any], of_all: Sequence[Mapping[str, Any]]) -> Iterator[Bar]:
    """Yield the bars of a result: its tokens and, if it has a price, its dollars.

    Args:
        usage: The usage of the result.
        of_all: The usage of all results of the question, which share a scale.
    """
    if (total := usage.get("total_tokens")) is not None:
        steps = {step: each["input_tokens"] + each["output_tokens"] for step in STEPS if (each := usage.get(step))}
        words = ", ".join(f"{STEP_NAMES[step]} {tokens:,}" for step, tokens in steps.items()) if len(steps) > 1 else ""
        text = f"{total:,} tokens"
        most, whole = _scale(usage, of_all, "total_tokens", "long_context_only")
        parts, label = _parts(steps.items(), most), f"{text}: {words}" if words else text
        label += f"; the long context alone {int(whole):,}" if whole else ""
        yield Bar(f"about {text}" if usage.get("estimated") else text, parts, _WIDTH * whole / most, label)
    if (cost := usage.get("cost")) is not None:
        most, whole = _scale(usage, of_all, "cost", "cost_long_context_only")
        label = dollars(cost) + (f"; the long context alone {dollars(str(whole))}" if whole else "")
        yield Bar(dollars(cost), _parts([("cost", float(cost))], most), _WIDTH * whole / most, label)


def _scale(
    usage: Mapping[str, Any], of_all: Sequence[Mapping[str, Any]], amount: str, alone: str
) -> tuple[float, float]:
    """Return the largest amount of all results, and that of the long context alone; 0 if that is not known."""
    whole = max(float(one.get(alone) or 0) for one in of_all)
    return max(whole, *(float(one.get(amount) or 0) for one in of_all)) or 1.0, float(usage.get(alone) or whole)


def _parts(amounts: Iterable[tuple[str, float]], most: float) -> list[tuple[str, float, float]]:
    """Return bars one behind the other; no part that is there is too small to be seen."""
    found, at = [], 0.0
    for name, amount in amounts:
        width = max(_WIDTH * amount / most, _THINNEST if amount else 0.0)
        found.append((name, round(at, 2), round(width, 2)))
        at += width
    return found
