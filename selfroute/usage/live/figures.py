"""Return what the live page shows of a ledger."""

from __future__ import annotations

from typing import Any

from selfroute.usage.counts import STEPS
from selfroute.usage.ledger import Ledger


def live_figures(ledger: Ledger) -> dict[str, Any]:
    """Return the figures of a ledger that `live_page` shows, as plain JSON.

    Args:
        ledger: The ledger.

    Returns:
        `hours`: what `Ledger.by_hour` returns for a day. `queries`, `routes`, `declined`, `unanswerable`, `stopped`,
        `left`, `failed`, `errors`: as in `Ledger.to_dict`, since the ledger began or was reset. `declined_share`: the
        share of the queries with a known route that the first step declined, None without any. `cost`, `saved`,
        `saved_range`, `unpriced` and `token_ratio`: as in `Ledger.to_dict`. `p95`: for each route and `all`, the
        seconds within which 95 % of the answers ended, and of the first texts were shown (`end`, `first_text`).
    """
    hours, figures = ledger.by_hour(), ledger.to_dict()
    money, seconds = figures["money"], figures["seconds"]
    routed = sum(figures["routes"].values())
    counted = ("queries", "routes", "declined", "unanswerable", "stopped", "left", "failed", "errors")
    return {
        "hours": hours,
        **{name: figures[name] for name in counted},
        "declined_share": figures["declined"] / routed if routed else None,
        "cost": money["cost"],
        "unpriced": sum(money["unpriced"].values()),
        "saved": money["compared"]["saved"],
        "saved_range": money["compared"]["saved_range"],
        "token_ratio": figures["savings"]["token_ratio"],
        "p95": {name: {kind: seconds[name][kind]["p95"] for kind in ("end", "first_text")} for name in (*STEPS, "all")},
    }
