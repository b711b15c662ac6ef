"""Draws quality against tokens and against k; the plots of the papers are in `papers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from selfroute.evaluation.records import Record, Strategy
from selfroute.evaluation.reporting.advice import Advice, advise
from selfroute.evaluation.reporting.compared import ComparedResults, Variant, tokens_row
from selfroute.evaluation.reporting.drawing import as_png, finish_axes, new_figure
from selfroute.evaluation.reporting.frontier import frontier
from selfroute.evaluation.reporting.papers.plots import differences, reasons

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES: Mapping[str, str] = {
    "rag": "RAG",
    "long_context": "Long context",
    "self_route": "Self-Route",
    "sections": "Self-Route, sections",
    "graded": "Graded",
    "graded_sections": "Graded, sections",
    "closed_book": "Closed book",
}
CAPTIONS = {
    "frontier": "Quality against cost, with 95 % intervals: faint points are other bounds, on the very questions.",
    "quality_tokens": "Quality against input tokens, with 95 % intervals: up and to the left is better.",
    "k": "Quality, with 95 % intervals, and tokens by the number of retrieved passages (Figure 3 of the paper).",
    "differences": "The difference of the scores of RAG and the long context, as in Figure 2 of the paper.",
    "reasons": "Why the passages were not enough, according to the model, as in Figure 4 of the paper.",
}

# Okabe and Ito's colours, which colour-blind people can tell apart; the marks differ, too.
_COLOURS = {
    "rag": "#0072B2",
    "long_context": "#D55E00",
    "self_route": "#009E73",
    "sections": "#56B4E9",
    "graded": "#CC79A7",
    "graded_sections": "#E69F00",
    "closed_book": "#6E6E6E",
}
_MARKS = {
    "rag": "s",
    "long_context": "D",
    "self_route": "o",
    "sections": "^",
    "graded": "P",
    "graded_sections": "v",
    "closed_book": "X",
}
_SCORES = {"score": "score, average over data sets", "judged": "judged correctness, average over data sets"}
_QUALITIES = {"score": "score", "judged": "judged correctness"}
_TOKENS = "input tokens, % of long context"


def plots(record: Record, advice: Advice | None = None) -> dict[str, bytes]:
    """Draw the plots that the results allow.

    Args:
        record: The record.
        advice: Which strategy to take; None to find out.

    Returns:
        PNG images by the names of `CAPTIONS`; those that cannot be drawn are left out.
    """
    compared = ComparedResults.of(record)
    advice = advice or advise(record)
    figures = {
        "frontier": frontier(advice, names=NAMES, style=_style, quality=_QUALITIES[compared.measure]),
        "quality_tokens": _quality_tokens(compared),
        "k": _by_k(compared),
        "differences": differences(compared),
        "reasons": reasons([each for each in record.reasons if each.k == compared.ks[0]]),
    }
    return {name: as_png(figure) for name, figure in figures.items() if figure}


def _quality_tokens(compared: ComparedResults) -> Figure | None:
    points = {(strategy, k): _point(compared, strategy, k) for strategy, k in compared.by_variant}
    known = {
        variant: (tokens, score)
        for variant, (tokens, score) in points.items()
        if tokens is not None and score is not None
    }
    if len(known) < 2:  # noqa: PLR2004 - one point says nothing
        return None
    figure = new_figure()
    axes = figure.subplots()
    for strategy in dict.fromkeys(strategy for strategy, _ in known):
        line = {k: point for (each, k), point in sorted(known.items(), key=_k_of) if each == strategy}
        tokens, scores = zip(*line.values(), strict=True)
        bars = [_bar(compared, strategy, k, score) for k, (_, score) in line.items()]
        look: dict[str, Any] = {**_style(strategy), "linestyle": ":", "markersize": 9, "elinewidth": 1, "capsize": 2}
        axes.errorbar(tokens, scores, yerr=list(zip(*bars, strict=True)), label=NAMES[strategy], **look)
        for number, (k, point) in enumerate(line.items()):
            if k is not None:
                above_or_below = (0, (-17, 10)[number % 2])  # neighbours may cost nearly the same
                axes.annotate(
                    f"k={k}", point, xytext=above_or_below, textcoords="offset points", ha="center", fontsize=9
                )
    axes.set_xlim(-4, max(105, *(tokens + 5 for tokens, _ in known.values())))
    axes.margins(y=0.2)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    finish_axes(
        axes, title=f"Quality against tokens, {len(compared.keys):,} questions", x=_TOKENS, y=_SCORES[compared.measure]
    )
    return figure


def _point(compared: ComparedResults, strategy: Strategy, k: int | None) -> tuple[float | None, float | None]:
    """Return the tokens and the score of a strategy, on average over the data sets."""
    average, _ = compared.figures(k)
    tokens = 100.0 if strategy == "long_context" else average.get(tokens_row(strategy))
    return tokens, average.get(strategy)


def _bar(compared: ComparedResults, strategy: Strategy, k: int | None, score: float) -> tuple[float, float]:
    """Return how far the 95 % interval of a score reaches down and up; 0 where there is none."""
    low, high = compared.interval(strategy, k) or (score / 100, score / 100)
    return max(score - 100 * low, 0.0), max(100 * high - score, 0.0)


def _by_k(compared: ComparedResults) -> Figure | None:
    ks = sorted(k for k in compared.ks if k is not None)
    if len(ks) < 2 or not compared.keys:  # noqa: PLR2004 - a line has two ends
        return None
    figure = new_figure(9.6, 4.4)
    for axes, index, title, y in zip(
        figure.subplots(1, 2),
        (1, 0),
        (f"(a) Quality, {len(compared.keys):,} questions", "(b) Tokens"),
        (_SCORES[compared.measure], _TOKENS),
        strict=True,
    ):
        for strategy in compared.reading_passages:
            levels = {k: level for k in ks if (level := _point(compared, strategy, k)[index]) is not None}
            bars = [_bar(compared, strategy, k, level) for k, level in levels.items() if index == 1]
            look: dict[str, Any] = {**_style(strategy), "elinewidth": 1, "capsize": 2}
            yerr = list(zip(*bars, strict=True)) or None  # tokens have no intervals
            axes.errorbar(list(levels), list(levels.values()), yerr=yerr, label=NAMES[strategy], **look)
        if compared.get("long_context"):
            level = _point(compared, "long_context", ks[0])[index]
            axes.axhline(level, color=_COLOURS["long_context"], linestyle="--", label=NAMES["long_context"])
        axes.set_xscale("log")
        axes.set_xticks(ks, [f"{k:,}" for k in ks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        finish_axes(axes, title=title, x="passages retrieved (k)", y=y)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _k_of(item: tuple[Variant, object]) -> int:
    return item[0][1] or 0


def _style(strategy: str) -> dict[str, str]:
    return {"marker": _MARKS[strategy], "color": _COLOURS[strategy]}
