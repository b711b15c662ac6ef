"""A page over a running ledger: `live_page` is the page, `live_figures` what it asks for."""

from selfroute.usage.live.figures import live_figures
from selfroute.usage.live.page import live_page

__all__ = ["live_figures", "live_page"]
