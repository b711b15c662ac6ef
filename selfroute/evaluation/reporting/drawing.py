"""Figures, axes and PNG images, alike for all plots.

Figures are made without `pyplot`, which would keep them: this is safe in threads and notebooks.
"""
# ruff: noqa: PLC0415 - matplotlib is imported when something is drawn

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST = 40  # characters of a label


def new_figure(width: float = 7.2, height: float = 4.6) -> Figure:
    """Return an empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def drawable(name: str) -> str:
    """Return a name without characters that no font can draw, and not too long."""
    return "".join(char if char.isprintable() else "?" for char in name[:_LONGEST])


def as_png(figure: Figure) -> bytes:
    """Return a figure as a PNG image."""
    image = BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()


def finish_axes(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Set the title and the labels of axes, and remove what distracts."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
