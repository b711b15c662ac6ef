"""Draws the pictures of README and home page: `make pictures`.

    python docs/pictures/draw.py [--but-the-demo]

Each is drawn twice, for light and for dark pages. `steps` is a drawing. `frontier` shows what `benchmarks/frontier.py`
counts, `share` figures that stand below with the commands that print them. `demo.svg` is a recording of
`selfroute demo`, made by `terminal.py`. The tests compare the files with what is drawn here, and the recording with the
demo's totals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from shapes import THEMES, Plot, Theme, arrow, box, picture, text

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parents[1] / "benchmarks"))
import frontier as measured  # noqa: E402
import frontier_rows as tried  # noqa: E402

# What is shown of each collection: the point's name, and where it stands, from the point.
FRONTIER = {
    "long": {
        tried.RAG: ("RAG", 14, 5, "start"),
        tried.SURER: ("two rungs of sections", 0, -14, "start"),
        tried.EVEN: ("50/50", 12, 13, "start"),
        tried.CAREFUL: ("70/60", 6, 17, "start"),
        tried.GRADED: ("graded", 14, 5, "start"),
        tried.PAPER: ("Self-Route", 14, 5, "start"),
        tried.WHOLE: ("long context", 6, -13, "end"),
    },
    "both": {
        tried.RAG: ("RAG", 14, 5, "start"),
        tried.EVEN: ("50/50", -6, 22, "start"),
        tried.CAREFUL: ("sections 70/60", 6, -16, "start"),
        tried.GRADED: ("graded", 14, 9, "start"),
        tried.PAPER: ("Self-Route", 14, 5, "start"),
        tried.WHOLE: ("long context", 6, -13, "end"),
    },
}
# The share of drafts that decline, RAG's share of the long context's tokens, and Self-Route's. `selfroute demo` prints
# the first, benchmarks/policies.py the others.
RUNS = {
    "the demo": (16 / 30, 0.13, 0.70),
    "Claude, 164 questions": (53 / 164, 0.093, 0.466),
    "claude-3-5-haiku": (23 / 120, 0.048, 0.226),
    "gpt-4o-mini": (18 / 120, 0.048, 0.165),
}


def draw() -> dict[str, str]:
    """Return the pictures that need no run, by the names of their files."""
    return drawn_of(steps, frontier, share)


def drawn_of(*pictures: Callable[[Theme], str]) -> dict[str, str]:
    """Return pictures for light and for dark pages, by the names of their files."""
    return {f"{make.__name__}-{theme.name}.svg": make(theme) for make in pictures for theme in THEMES}


def steps(theme: Theme) -> str:
    """Draw the two steps, and what can be added to them."""

    def parts() -> Iterator[str]:
        yield text(4, 22, "1  Passages, for every question", anchor="start", bold=True, fill=theme.first)
        yield box(theme, (4, 38, 150, 76), ["5 passages", "from your retriever"])
        yield arrow(theme, (154, 76), (192, 76))
        yield box(theme, (196, 38, 196, 76), ["The model answers", "or writes “unanswerable”"], colour=theme.first)
        yield arrow(theme, (392, 76), (452, 76))
        yield box(theme, (456, 38, 140, 76), ["Answer", "at RAG's price"])
        yield arrow(theme, (294, 114), (294, 142))
        yield text(284, 133, "it declines", anchor="end", fill=theme.muted, size=14)
        yield arrow(theme, (422, 76), (422, 169), (396, 169), dashed=True)
        yield text(432, 132, "its answer is in doubt", anchor="start", fill=theme.muted, size=14)
        yield text(432, 152, "(option: graded)", anchor="start", fill=theme.muted, size=14)
        yield box(theme, (196, 146, 196, 46), ["Best sections first", "(option: sections)"], dashed=True)
        yield arrow(theme, (294, 192), (294, 238))
        yield text(4, 226, "2  The whole document", anchor="start", bold=True, fill=theme.second)
        yield box(theme, (4, 244, 150, 76), ["The document", "out of your store"])
        yield arrow(theme, (154, 282), (192, 282))
        yield box(theme, (196, 244, 196, 76), ["The model answers", "or declines again"], colour=theme.second)
        yield arrow(theme, (392, 282), (452, 282))
        yield box(theme, (456, 244, 140, 76), ["Answer", "or: not in the text"])

    title = (
        "The two steps. First the model answers from five passages, or declines. Only if it declines is it given the "
        "whole document. Two options: an answer in doubt reads more, too, and the document's best sections are read "
        "first."
    )
    return picture(theme, 324, title, parts())


def frontier(theme: Theme) -> str:
    """Draw quality against the share of tokens, for documents of two lengths."""
    height = 372
    shown = {
        key: (
            measured.rows_of(measured.COLLECTIONS[key]),
            Plot(theme, 100, 60, 100, 316 + height * n, top=56 + height * n),
        )
        for n, key in enumerate(FRONTIER)
    }
    found = {key: {each: measured.figures(rows, each) for each in FRONTIER[key]} for key, (rows, _) in shown.items()}
    headings = {key: measured.heading(measured.counts(rows)) for key, (rows, _) in shown.items()}

    def parts() -> Iterator[str]:
        for key, (_, plot) in shown.items():
            yield text(0, plot.top - 40, headings[key], anchor="start", bold=True)
            yield from panel(theme, plot, key, found[key])

    figures = ". ".join(
        f"{headings[key]}: "
        + "; ".join(
            f"{each.name} {of['quality']:.1f} for {measured.share(of['tokens'])}" for each, of in found[key].items()
        )
        for key in FRONTIER
    )
    title = f"Quality by meaning for the share of the long context's tokens. {figures}"
    return picture(theme, height * len(FRONTIER), title, parts())


def panel(theme: Theme, plot: Plot, key: str, found: dict[tried.Strategy, tried.Json]) -> Iterator[str]:
    """Draw the points of a collection, and a line through those that nothing beats."""
    names = ("input tokens, as a share of the long context's", "quality by meaning, of 100")
    yield from plot.axes([0, 20, 40, 60, 80, 100], [60, 70, 80, 90, 100], names)
    points = {each: (of["tokens"], of["quality"]) for each, of in found.items()}
    best = [
        point
        for point in sorted(points.values())
        if not any(tokens <= point[0] and quality > point[1] for tokens, quality in points.values())
    ]
    line = " ".join("{},{}".format(*plot.at(*point)) for point in best)
    dash = 'stroke-width="1.6" stroke-dasharray="3 4"'
    yield f'<polyline points="{line}" fill="none" stroke="{theme.first}" {dash}/>'
    for each, point in points.items():
        ours = each not in (tried.RAG, tried.WHOLE)
        yield plot.dot(*point, theme.first if ours else theme.muted)
        name, x, y, anchor = FRONTIER[key][each]
        across, up = plot.at(*point)
        yield text(across + x, up + y, f"{name} {point[1]:.1f}", anchor=anchor, bold=ours)


def share(theme: Theme) -> str:
    """Draw how the share of tokens follows from the share of declines and the length of the passages."""
    plot = Plot(theme, right=100, low=0, high=100, bottom=370)

    def parts() -> Iterator[str]:
        corners = " ".join("{},{}".format(*plot.at(*corner)) for corner in ((0, 0), (0, 100), (100, 0)))
        yield f'<polygon points="{corners}" fill="{theme.good}"/>'
        names = ("d: drafts that decline", "r: passages, as a share of the document's tokens")
        yield from plot.axes([0, 20, 40, 60, 80, 100], [0, 20, 40, 60, 80, 100], names, " %")
        for total in (25, 50, 75, 100):
            (x1, y1), (x2, y2) = plot.at(0, total), plot.at(total, 0)
            width = 2.4 if total == 100 else 1.2
            yield f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{theme.first}" stroke-width="{width}"/>'
            across, up = plot.at(0.2 * total, 0.8 * total)
            name = f"r + d = {total} %" if total == 100 else f"{total} %"
            yield text(across + 6, up + 2, name, anchor="start", fill=theme.first, bold=True, size=15)
        across, up = plot.at(58, 76)
        for n, line in enumerate(("Above this line", "reading at once", "takes fewer tokens")):
            yield text(across, up + 20 * n, line, anchor="start", fill=theme.muted, size=15)
        for declines, passages, _ in RUNS.values():
            yield plot.dot(100 * declines, 100 * passages, theme.second)
        for name, x, y in (("the demo", 49, 19), ("Claude", 29, 15), ("models of 2024", 2.5, 10)):
            yield text(*plot.at(x, y), name, anchor="start", fill=theme.second, bold=True, size=15)

    points = "; ".join(f"{name} {d:.0%}, {r:.0%}, {read:.0%}" for name, (d, r, read) in RUNS.items())
    title = (
        "Self-Route reads r + d of the long context's tokens: r is the passages' share of the document, d the share of "
        f"drafts that decline. Measured (d, r, tokens read): {points}"
    )
    return picture(theme, 420, title, parts())


def main() -> None:
    """Write the files."""
    drawn = draw()
    if "--but-the-demo" not in sys.argv[1:]:
        from terminal import draw_recording  # noqa: PLC0415 - it takes a minute

        drawn["demo.svg"] = draw_recording()
    for name, content in drawn.items():
        (FOLDER / name).write_text(content, "utf-8")
        print(name, f"{len(content.encode()):,} bytes")


if __name__ == "__main__":
    main()
