"""Draws quality against dollars, for all strategies and bounds of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from selfroute.evaluation.calibrating.figures import Point
from selfroute.evaluation.reporting.advice import Advice
from selfroute.evaluation.reporting.drawing import finish_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAINT, _CLEAR = 0.25, 1.0


def frontier(
    advice: Advice, *, names: Mapping[Any, str], style: Callable[[Any], dict[str, str]], quality: str
) -> Figure | None:
    """Draw a point with its 95 % interval for each rule: clear ones for the default bounds, faint ones for others.

    Args:
        advice: The points; without any, nothing is drawn.
        names: The names of the strategies.
        style: Returns the mark and the colour of a strategy.
        quality: The name of the quality.
    """
    if not advice.frontier:
        return None
    figure = new_figure(8.4, 5.4)
    axes = figure.subplots()
    best = [point for point in advice.frontier if point.efficient]
    axes.plot(*_places(advice, best), color="#9A9A9A", linewidth=1, zorder=1, label="Nothing cheaper is as good")
    for point in advice.frontier:
        clear = point.rule.is_default or advice.recommends(point)
        _draw(axes, advice, point, alpha=_CLEAR if clear else _FAINT, style=style(point.rule.strategy))
    for strategy in dict.fromkeys(point.rule.strategy for point in advice.frontier):
        axes.plot([], [], label=names[strategy], linestyle="", **style(strategy))  # type: ignore[arg-type]
    taken = [point for point in advice.frontier if advice.recommends(point)]
    ring: dict[str, Any] = {"marker": "o", "markersize": 17, "markerfacecolor": "none", "markeredgecolor": "#1C1C1C"}
    axes.plot(*_places(advice, taken), linestyle="", label="Recommended", **ring)
    axes.set_xlim(left=0)
    axes.margins(y=0.1)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9, markerscale=0.8)
    cost = "US dollars per 1,000 questions" if advice.is_priced else "input tokens, % of long context"
    against = "dollars" if advice.is_priced else "tokens"
    questions = advice.found.counts.questions if advice.found else 0
    finish_axes(axes, title=f"Quality against {against}, {questions:,} questions", x=cost, y=quality)
    return figure


def _draw(axes: Axes, advice: Advice, point: Point, *, alpha: float, style: Mapping[str, str]) -> None:
    (cost,), (quality,) = _places(advice, [point])
    low, high = point.figures.low, point.figures.high
    bars = None if low is None or high is None else [[quality - 100 * low], [100 * high - quality]]
    look: dict[str, Any] = {"markersize": 9 if alpha == _CLEAR else 4, "alpha": alpha, "elinewidth": 1, "capsize": 2}
    axes.errorbar([cost], [quality], yerr=bars, **{**style, **look})
    if point.k is not None and alpha == _CLEAR and point.k != advice.k:
        axes.annotate(f"k={point.k}", (cost, quality), xytext=(6, 6), textcoords="offset points", fontsize=8)


def _places(advice: Advice, points: list[Point]) -> tuple[list[float], list[float]]:
    """Return the costs and the qualities of points, as the axes have them."""
    costs = [
        1000 * (point.figures.dollars or 0.0) if advice.is_priced else 100 * point.figures.token_share
        for point in points
    ]
    return costs, [100 * point.figures.quality for point in points]
