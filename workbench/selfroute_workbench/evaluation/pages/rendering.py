"""Makes HTML pages that need no network and run only their own script.

All text from models, documents and questions is escaped, and a page's Content-Security-Policy forbids everything that
is not in the page itself.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from selfroute import __version__
from selfroute.usage.ledger_text import dollars
from selfroute_workbench.evaluation.table import CONTROL, Cell, Table, as_text, is_figures

if TYPE_CHECKING:
    from jinja2 import Environment

_UNKNOWN = "\N{EN DASH}"
_LONGEST = 3000  # characters of a text; of a longer one the middle is left out
_INVISIBLE = dict.fromkeys(CONTROL, "\N{REPLACEMENT CHARACTER}")


def render(template: str, *, script: str, **values: Any) -> str:
    """Fill in a page.

    Args:
        template: The file of its template.
        script: The file of its script.
        values: What is filled in; all text is escaped.

    Returns:
        The page, to be saved as UTF-8.
    """
    from markupsafe import Markup  # noqa: PLC0415

    style, script = part("page.css"), part(script)
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            version=__version__,
            # these two are the package's own; nothing is filled into them
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            style_hash=_hash_of(style),
            script_hash=_hash_of(script),
        )
    )


def part(name: str) -> str:
    """Return a file of this package: a template, a style or a script."""
    return (files("selfroute_workbench") / "evaluation" / "pages" / name).read_text(encoding="utf-8")


def _hash_of(text: str) -> str:
    """Return the source expression that allows an inline script or style in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def visible(value: Any) -> Any:
    """Return a text with a sign for each character that HTML cannot hold; anything else unchanged."""
    if type(value) is not str:  # Markup is the package's own
        return value
    return value.translate(_INVISIBLE).encode("utf-8", "replace").decode()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(part),
    )
    made.filters |= {"cell": _cell, "money": _money, "figures": _figures, "plain": plain, "shortened": shortened}
    return made


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text without its middle if it is too long for a page."""
    if len(text) <= longest:
        return text
    kept = longest // 2
    left_out = f"\N{HORIZONTAL ELLIPSIS} [{len(text) - 2 * kept:,} characters left out] \N{HORIZONTAL ELLIPSIS}"
    return f"{text[:kept]} {left_out} {text[-kept:]}"


def _cell(value: Cell) -> str:
    return as_text(value, unknown=_UNKNOWN)


def _money(amount: str | None) -> str:
    return _UNKNOWN if amount is None else dollars(amount)


def _figures(table: Table) -> list[bool]:
    """Return for each column whether it has figures; the first has the names of the rows."""
    return [bool(index) and is_figures(row[index] for row in table.rows) for index in range(len(table.columns))]


def plain(value: object) -> str:
    """Return a setting as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    return json.dumps(value, ensure_ascii=False, default=str)
