"""Draws the pictures of README and home page: `python docs/pictures/draw.py`.

Each is drawn twice, for light and for dark pages. `steps` is a drawing, `frontier` shows what `benchmarks/frontier.py`
counts. The tests compare the files with what is drawn here.
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

HEADINGS = {"one_store": "one store of 81 documents", "pages": "one store of 330 short pages"}
# What is shown of each collection: the point's name, and where it stands, from the point.
FRONTIER = {
    "one_store": {
        tried.RAG: ("RAG", 14, 5, "start"),
        tried.RAG_20: ("RAG, 20 passages", 14, 5, "start"),
        tried.NEVER: ("never documents", -6, -16, "start"),
        tried.DEFAULT: ("Self-Route", 8, 22, "start"),
        tried.PAPER: ("the paper's rule", 14, 5, "start"),
        tried.WHOLE: ("all documents", 6, -13, "end"),
    },
    "pages": {
        tried.RAG: ("RAG", 14, 5, "start"),
        tried.RAG_20: ("RAG, 20 passages", 14, -6, "start"),
        tried.DEFAULT: ("Self-Route", 14, 5, "start"),
        tried.PAPER: ("the paper's rule", -10, 22, "end"),
        tried.WHOLE: ("all documents", 6, 24, "end"),
    },
}


def draw() -> dict[str, str]:
    """Return the pictures that need no run, by the names of their files."""
    return drawn_of(steps, frontier)


def drawn_of(*pictures: Callable[[Theme], str]) -> dict[str, str]:
    """Return pictures for light and for dark pages, by the names of their files."""
    return {f"{make.__name__}-{theme.name}.svg": make(theme) for make in pictures for theme in THEMES}


def steps(theme: Theme) -> str:
    """Draw the three steps, and what leads from one to the next."""
    rows = (
        (
            theme.first,
            "1  Passages, for every question",
            ["5 passages", "from your retriever"],
            ["Answer", "at RAG's price"],
        ),
        (
            theme.second,
            "2  Sections",
            ["The best sections", "4,000 tokens, then more"],
            ["Answer", "from what matters"],
        ),
        (theme.second, "3  Documents", ["The best two", "whole, out of your store"], ["Answer", "or: not in the text"]),
    )

    def parts() -> Iterator[str]:
        for n, (colour, heading, read, answer) in enumerate(rows):
            top = 122 * n
            last = n == len(rows) - 1
            yield text(4, top + 20, heading, anchor="start", bold=True, fill=colour)
            yield box(theme, (4, top + 32, 180, 58), read)
            yield arrow(theme, (184, top + 61), (216, top + 61))
            says = "or declines" if last else "and says how sure it is"
            yield box(theme, (220, top + 32, 190, 58), ["The model answers", says], colour=colour)
            yield arrow(theme, (410, top + 61), (442, top + 61))
            yield box(theme, (446, top + 32, 150, 58), answer)
            if not last:
                yield arrow(theme, (315, top + 90), (315, top + 150))
                yield text(326, top + 116, "it declines, or is not sure", anchor="start", fill=theme.muted, size=14)
                yield text(
                    326, top + 134, "(and ends if more would hardly help)", anchor="start", fill=theme.muted, size=14
                )

    title = (
        "The three steps. The model answers from five passages, and says how sure it is. If it declines or is not "
        "sure, it is asked again with the sections of the documents that matter, some 4,000 tokens and then 16,000, "
        "and last with the best two documents whole. A question for which more text would hardly help ends at once."
    )
    return picture(theme, 340, title, parts())


def frontier(theme: Theme) -> str:
    """Draw quality against the share of tokens, for two stores."""
    height = 372
    shown = {
        key: (
            measured.rows_of(measured.COLLECTIONS[key]),
            Plot(theme, 100, 50, 100, 316 + height * n, top=56 + height * n),
        )
        for n, key in enumerate(FRONTIER)
    }
    found = {key: {each: measured.figures(rows, each) for each in FRONTIER[key]} for key, (rows, _) in shown.items()}
    headings = {key: f"{len(rows)} questions to {HEADINGS[key]}" for key, (rows, _) in shown.items()}

    def parts() -> Iterator[str]:
        for key, (_, plot) in shown.items():
            yield text(0, plot.top - 40, headings[key], anchor="start", bold=True)
            yield from panel(theme, plot, key, found[key])

    figures = ". ".join(
        f"{headings[key]}: "
        + "; ".join(
            f"{FRONTIER[key][each][0]} {of['quality']:.1f} for {measured.share(of['tokens'])}"
            for each, of in found[key].items()
        )
        for key in FRONTIER
    )
    title = f"Quality by meaning for the share of the tokens of all documents behind five passages. {figures}"
    return picture(theme, height * len(FRONTIER), title, parts())


def panel(theme: Theme, plot: Plot, key: str, found: dict[tried.Strategy, tried.Json]) -> Iterator[str]:
    """Draw the points of a collection, and a line through those that nothing beats."""
    names = ("tokens, as a share of all documents'", "quality by meaning, of 100")
    yield from plot.axes([0, 20, 40, 60, 80, 100], [50, 60, 70, 80, 90, 100], names)
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
        ours = each in (tried.DEFAULT, tried.NEVER)
        yield plot.dot(*point, theme.first if ours else theme.muted)
        name, x, y, anchor = FRONTIER[key][each]
        across, up = plot.at(*point)
        yield text(across + x, up + y, f"{name} {point[1]:.1f}", anchor=anchor, bold=ours)


def main() -> None:
    """Write the files."""
    for name, content in draw().items():
        (FOLDER / name).write_text(content, "utf-8")
        print(name, f"{len(content.encode()):,} bytes")


if __name__ == "__main__":
    main()
