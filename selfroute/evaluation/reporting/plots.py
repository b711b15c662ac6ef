"""Draws what an evaluation found, as the paper's figures do.

Figures are drawn without `pyplot`, which would keep them: so this is safe under threads and in notebooks.
"""
# ruff: noqa: PLC0415 - matplotlib is imported when something is drawn

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from io import BytesIO
from statistics import fmean
from typing import TYPE_CHECKING

from selfroute.evaluation.reasons import ANSWERED, LETTERS, UNREADABLE
from selfroute.evaluation.records import Reason, Record, Result, Strategy
from selfroute.evaluation.reporting.compared import ComparedResults, Variant
from selfroute.evaluation.reporting.papers.differences import BIN_WIDTH, bin_of, difference_of, pairs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES: Mapping[Strategy, str] = {
    "rag": "RAG",
    "long_context": "Long context",
    "self_route": "Self-Route",
    "closed_book": "Closed book",
}
CAPTIONS = {
    "quality_tokens": "Quality against the tokens that were read: up and to the left is better.",
    "k": "Quality and tokens by the number of retrieved passages, as in Figure 3 of the paper.",
    "differences": "How far the scores of RAG and of the long context lie apart, as in Figure 2 of the paper.",
    "reasons": "Why the passages did not do, by the model's own account, as in Figure 4 of the paper.",
}

# Okabe and Ito's colours, which the colour-blind can tell apart; the marks differ, too.
_COLOURS = {"rag": "#0072B2", "long_context": "#D55E00", "self_route": "#009E73", "closed_book": "#6E6E6E"}
_MARKS = {"rag": "s", "long_context": "D", "self_route": "o", "closed_book": "X"}
_REASONS = {
    **dict(zip(LETTERS, ("#0072B2", "#D55E00", "#F0E442", "#009E73", "#CC79A7"), strict=True)),
    ANSWERED: "#C8C8C8",
    UNREADABLE: "#6E6E6E",
}
_OTHERWISE = {ANSWERED: "answered after all", UNREADABLE: "reply not understood"}
_SCORE = "score, average over data sets"
_TOKENS = "input tokens, % of long context"
_LONGEST = 40  # characters of a label
_BAND = 20  # points
_BANDS = range(0, 100, _BAND)
_SHADES = [band / _BANDS[-1] for band in _BANDS]


def plots(record: Record) -> dict[str, bytes]:
    """Draw what the results allow.

    Returns:
        PNG images by name; the names are those of `CAPTIONS`, and those that nothing can be drawn for are left out.
    """
    compared = ComparedResults.of(record)
    figures = {
        "quality_tokens": _quality_tokens(compared),
        "k": _by_k(compared),
        "differences": _differences(compared),
        "reasons": _reasons([each for each in record.reasons if each.k == compared.ks[0]]),
    }
    return {name: _png(figure) for name, figure in figures.items() if figure}


def _figure(width: float = 7.2, height: float = 4.6) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _label(name: str) -> str:
    """A name as far as a font can draw it, and short."""
    return "".join(char if char.isprintable() else "?" for char in name[:_LONGEST])


def _png(figure: Figure) -> bytes:
    image = BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()


def _plain(axes: Axes, *, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)


def _quality_tokens(compared: ComparedResults) -> Figure | None:
    points = {(strategy, k): _point(compared, strategy, k) for strategy, k in compared.by_variant}
    known = {
        variant: (tokens, score)
        for variant, (tokens, score) in points.items()
        if tokens is not None and score is not None
    }
    if len(known) < 2:  # noqa: PLR2004 - one point says nothing
        return None
    figure = _figure()
    axes = figure.subplots()
    for strategy in dict.fromkeys(strategy for strategy, _ in known):
        line = {k: point for (each, k), point in sorted(known.items(), key=_k_of) if each == strategy}
        tokens, scores = zip(*line.values(), strict=True)
        axes.plot(tokens, scores, label=NAMES[strategy], **_style(strategy), linestyle=":", markersize=9)  # type: ignore[arg-type]
        for number, (k, point) in enumerate(line.items()):
            if k is not None:
                above_or_below = (0, (-17, 10)[number % 2])  # neighbours may cost nearly the same
                axes.annotate(
                    f"k={k}", point, xytext=above_or_below, textcoords="offset points", ha="center", fontsize=9
                )
    axes.set_xlim(-4, max(105, *(tokens + 5 for tokens, _ in known.values())))
    axes.margins(y=0.2)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    _plain(axes, title=f"Quality against tokens, {len(compared.keys):,} questions", x=_TOKENS, y=_SCORE)
    return figure


def _point(compared: ComparedResults, strategy: Strategy, k: int | None) -> tuple[float | None, float | None]:
    """The tokens and the score of a strategy, on average over the data sets."""
    average, _ = compared.figures(k)
    tokens = {"long_context": 100.0, "rag": average.get("rag token %"), "self_route": average.get("token %")}
    return tokens[strategy], average.get(strategy)


def _by_k(compared: ComparedResults) -> Figure | None:
    ks = sorted(k for k in compared.ks if k is not None)
    if len(ks) < 2 or not compared.keys:  # noqa: PLR2004 - a line has two ends
        return None
    figure = _figure(9.6, 4.4)
    for axes, index, title, y in zip(
        figure.subplots(1, 2),
        (1, 0),
        (f"(a) Quality, {len(compared.keys):,} questions", "(b) Tokens"),
        (_SCORE, _TOKENS),
        strict=True,
    ):
        for strategy in ("rag", "self_route"):
            levels = {k: level for k in ks if (level := _point(compared, strategy, k)[index]) is not None}
            axes.plot(list(levels), list(levels.values()), label=NAMES[strategy], **_style(strategy))
        if compared.get("long_context"):
            level = _point(compared, "long_context", ks[0])[index]
            axes.axhline(level, color=_COLOURS["long_context"], linestyle="--", label=NAMES["long_context"])
        axes.set_xscale("log")
        axes.set_xticks(ks, [f"{k:,}" for k in ks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        _plain(axes, title=title, x="passages retrieved (k)", y=y)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _k_of(item: tuple[Variant, object]) -> int:
    return item[0][1] or 0


def _style(strategy: Strategy) -> dict[str, str]:
    return {"marker": _MARKS[strategy], "color": _COLOURS[strategy]}


def _differences(compared: ComparedResults) -> Figure | None:
    pairs = pairs_of(compared)
    if not pairs:
        return None
    from matplotlib import colormaps

    figure = _figure()
    axes = figure.subplots()
    heights: dict[int, float] = defaultdict(float)
    for band, colour in zip(_BANDS, colormaps["viridis"](_SHADES), strict=True):
        counts = Counter(bin_of(*pair) for pair in pairs if _band(*pair) == band)
        shares = {place: 100 * count / len(pairs) for place, count in counts.items()}
        bottoms = [heights[place] for place in shares]
        label = f"{band} to {band + _BAND}"
        axes.bar(list(shares), list(shares.values()), BIN_WIDTH * 0.92, bottoms, color=colour, label=label)
        for place, share in shares.items():
            heights[place] += share
    near = fmean(round(abs(difference_of(*pair)), 9) < BIN_WIDTH for pair in pairs)
    axes.set_xlim(-100 - BIN_WIDTH, 100 + BIN_WIDTH)
    axes.legend(title="mean of both scores", frameon=False, reverse=True)
    k = compared.ks[0]
    _plain(
        axes,
        title=f"RAG and long context within {BIN_WIDTH} points on {near:.0%} of {len(pairs):,} questions",
        x="score of RAG less score of long context" + (f" (k = {k})" if k is not None else ""),
        y="questions, %",
    )
    return figure


def _band(rag: Result, reader: Result) -> int:
    """Where the band begins that the mean of two scores is in."""
    return min(int(50 * (rag.score + reader.score) // _BAND) * _BAND, _BANDS[-1])


def _reasons(reasons: Sequence[Reason]) -> Figure | None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for reason in reasons:
        counts[reason.dataset][reason.letter] += 1
    if not counts:
        return None
    names = list(counts)
    figure = _figure(7.2, 2.2 + 0.38 * len(names))
    axes = figure.subplots()
    lefts = [0] * len(names)
    for letter, colour in _REASONS.items():
        sizes = [counts[name][letter] for name in names]
        if any(sizes):
            label = f"{letter}: {LETTERS[letter]}" if letter in LETTERS else _OTHERWISE[letter]
            axes.barh(range(len(names)), sizes, left=lefts, color=colour, edgecolor="white", label=label)
            lefts = [left + size for left, size in zip(lefts, sizes, strict=True)]
    axes.set_yticks(range(len(names)), [_label(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    _plain(axes, title=f"Why {sum(lefts):,} first steps declined", x="questions", y="")
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
