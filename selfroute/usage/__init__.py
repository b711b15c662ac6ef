"""Account for what a question used: tokens, money, time, and the savings compared with always reading documents."""

from selfroute.usage.counts import Cost, StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.ledger import Ledger

__all__ = ["Cost", "Entry", "Ledger", "StepUsage", "Usage"]
