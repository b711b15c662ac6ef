"""Make the live page: it asks for a ledger's figures every few seconds, and for nothing else."""

from __future__ import annotations

from html import escape
from string import Template

from selfroute.usage.live.parts import base_style, hash_of, part

_A_DAY = 86_400.0  # seconds; a browser takes a wait of more than 24 days for none


def live_page(figures: str = "live.json", *, title: str = "Self-Route", seconds: float = 5) -> str:
    """Return an HTML page that shows the figures of a running ledger.

    It holds its own style and script, and a Content-Security-Policy that lets it ask the server it came from and nobody
    else. It needs no package beyond the standard library, on the server as in the browser.

    Example:
        ```python
        from selfroute import Ledger
        from selfroute.usage.live import live_figures, live_page

        ledger = Ledger()
        page = live_page("/live.json")  # serve this at one address, as text/html
        figures = live_figures(ledger)  # and this at the other, as JSON
        ```

    Args:
        figures: The address of what `live_figures` returns, as JSON; relative to the page, or on the same server.
        title: The title of the page.
        seconds: How long to wait between two requests.

    Returns:
        The page.
    """
    style, script = base_style() + part("live.css"), part("live.js")
    return Template(part("live.html")).substitute(
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        style=style,
        script=script,
        title=escape(title),
        figures=escape(figures),
        seconds=min(max(float(seconds), 0.1), _A_DAY),
    )
