"""Draws Figures 2 and 4 of the paper."""
# ruff: noqa: PLC0415 - matplotlib is imported when something is drawn

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from selfroute.evaluation.reasons import ANSWERED, LETTERS, UNREADABLE
from selfroute.evaluation.records import Reason, Result
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.drawing import drawable, finish_axes, new_figure
from selfroute.evaluation.reporting.papers.differences import BIN_WIDTH, bin_of, difference_of, papers_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REASONS = {
    **dict(zip(LETTERS, ("#0072B2", "#D55E00", "#F0E442", "#009E73", "#CC79A7"), strict=True)),
    ANSWERED: "#C8C8C8",
    UNREADABLE: "#6E6E6E",
}
_OTHERWISE = {ANSWERED: "answered after all", UNREADABLE: "reply not understood"}
_BAND = 20  # points
_BANDS = range(0, 100, _BAND)
_SHADES = [band / _BANDS[-1] for band in _BANDS]


def differences(compared: ComparedResults) -> Figure | None:
    """Draw Figure 2: how the scores of RAG and the long context differ."""
    pairs = papers_pairs(compared)
    if not pairs:
        return None
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    figure = new_figure()
    axes = figure.subplots()
    heights: dict[int, float] = defaultdict(float)
    handles = []
    for band, colour in zip(_BANDS, colormaps["viridis"](_SHADES), strict=True):
        counts = Counter(bin_of(*pair) for pair in pairs if _band(*pair) == band)
        shares = {place: 100 * count / len(pairs) for place, count in counts.items()}
        bottoms = [heights[place] for place in shares]
        axes.bar(list(shares), list(shares.values()), BIN_WIDTH * 0.92, bottoms, color=colour)
        handles.append(Patch(color=colour, label=f"{band} to {band + _BAND}"))  # also where there is no bar
        for place, share in shares.items():
            heights[place] += share
    near = fmean(round(abs(difference_of(*pair)), 9) < BIN_WIDTH for pair in pairs)
    axes.set_xlim(-100 - BIN_WIDTH, 100 + BIN_WIDTH)
    axes.legend(handles=handles, title="mean of both scores", frameon=False, reverse=True)
    k = compared.ks[0]
    finish_axes(
        axes,
        title=f"RAG and long context within {BIN_WIDTH} points on {near:.0%} of {len(pairs):,} questions",
        x="score of RAG minus score of long context" + (f" (k = {k})" if k is not None else ""),
        y="questions, %",
    )
    return figure


def _band(rag: Result, reader: Result) -> int:
    """Return the lower end of the band that the mean of two scores is in."""
    return min(int(50 * (rag.score + reader.score) // _BAND) * _BAND, _BANDS[-1])


def reasons(found: Sequence[Reason]) -> Figure | None:
    """Draw Figure 4: why the passages were not enough, according to the model."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for reason in found:
        counts[reason.dataset][reason.letter] += 1
    if not counts:
        return None
    names = list(counts)
    figure = new_figure(7.2, 2.2 + 0.38 * len(names))
    axes = figure.subplots()
    lefts = [0] * len(names)
    for letter, colour in _REASONS.items():
        sizes = [counts[name][letter] for name in names]
        if any(sizes):
            label = f"{letter}: {LETTERS[letter]}" if letter in LETTERS else _OTHERWISE[letter]
            axes.barh(range(len(names)), sizes, left=lefts, color=colour, edgecolor="white", label=label)
            lefts = [left + size for left, size in zip(lefts, sizes, strict=True)]
    axes.set_yticks(range(len(names)), [drawable(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    finish_axes(axes, title=f"Why {sum(lefts):,} first steps declined", x="questions", y="")
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
