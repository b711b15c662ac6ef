"""What the pictures are drawn with: colours for light and dark pages, text, boxes, arrows, and axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

WIDTH = 600
MARGIN = 30


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a page, and of what is drawn on it."""

    name: str
    text: str
    muted: str
    line: str
    box: str
    first: str
    second: str
    good: str


THEMES = (
    Theme("light", "#1f2328", "#59636e", "#c4ccd4", "#f4f6f8", "#0f6f86", "#b04a00", "#e2f4ea"),
    Theme("dark", "#e6edf3", "#a3adb8", "#4a545f", "#1b222b", "#5cc8de", "#f4a261", "#17352a"),
)


def picture(theme: Theme, height: int, title: str, parts: Iterator[str]) -> str:
    """Return a picture of these parts, with a title for those who do not see it."""
    fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Helvetica, Arial, sans-serif'
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>{escape(title)}</title>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 10 5 0 10Z" fill="{theme.muted}"/></marker></defs>
<g font-family='{fonts}' font-size="16" fill="{theme.text}">
{chr(10).join(parts)}
</g>
</svg>
"""


def text(  # noqa: PLR0913 - where and how
    x: float, y: float, content: str, *, anchor: str = "middle", fill: str = "", size: int = 0, bold: bool = False
) -> str:
    """Return a line of text."""
    looks = (f' fill="{fill}"' if fill else "") + (f' font-size="{size}"' if size else "")
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{looks}{weight}>{escape(content)}</text>'


def box(
    theme: Theme, at: tuple[int, int, int, int], lines: list[str], *, colour: str = "", dashed: bool = False
) -> str:
    """Return a box with lines of text in it, the first in bold."""
    x, y, width, height = at
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{theme.box}" '
        f'stroke="{colour or theme.line}" stroke-width="1.5"{dash}/>'
    )
    top = y + height / 2 - 10 * len(lines) + 15
    rows = [
        text(x + width / 2, top + 20 * n, line, bold=not n, size=16 if not n else 14, fill="" if not n else theme.muted)
        for n, line in enumerate(lines)
    ]
    return frame + "".join(rows)


def arrow(theme: Theme, *points: tuple[int, int], dashed: bool = False) -> str:
    """Return an arrow through points."""
    path = "L".join(f"{x} {y}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="M{path}" fill="none" stroke="{theme.muted}" stroke-width="1.6" marker-end="url(#tip)"{dash}/>'


@dataclass(frozen=True, slots=True)
class Plot:
    """Axes in a picture: from values to places."""

    theme: Theme
    right: float
    low: float
    high: float
    bottom: int
    left: int = 62
    top: int = 34

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a value."""
        across = self.left + (WIDTH - MARGIN - self.left) * x / self.right
        up = (self.bottom - self.top) * (y - self.low) / (self.high - self.low)
        return round(across, 1), round(self.bottom - up, 1)

    def axes(self, xs: list[float], ys: list[float], names: tuple[str, str], unit: str = "") -> Iterator[str]:
        """Draw a grid with its figures, and the names of the axes."""
        muted, (left, bottom) = self.theme.muted, self.at(0, self.low)
        for y in ys:
            place = self.at(0, y)[1]
            yield f'<path d="M{left} {place}H{WIDTH - MARGIN}" stroke="{self.theme.line}" stroke-width=".8"/>'
            yield text(left - 8, place + 5, f"{y:g}{unit}", anchor="end", fill=muted, size=15)
        for x in xs:
            yield text(self.at(x, 0)[0], bottom + 22, f"{x:g} %", fill=muted, size=15)
        yield text(0, self.top - 18, names[1], anchor="start", fill=muted, size=15)
        yield text(WIDTH - MARGIN, bottom + 44, names[0], anchor="end", fill=muted, size=15)

    def dot(self, x: float, y: float, colour: str) -> str:
        """Draw a point."""
        across, up = self.at(x, y)
        return f'<circle cx="{across}" cy="{up}" r="6.5" fill="{colour}"/>'
