"""Account for what a question used: tokens, money, time, and the savings compared with always reading documents."""

from selfroute.languages.tokens import count_tokens
from selfroute.usage.account import Account
from selfroute.usage.counts import FREE, NOTHING, UNPRICED, Cost, Entry, StepUsage, Usage
from selfroute.usage.ledger import Ledger
from selfroute.usage.prices import PricedModel

__all__ = [
    "FREE",
    "NOTHING",
    "UNPRICED",
    "Account",
    "Cost",
    "Entry",
    "Ledger",
    "PricedModel",
    "StepUsage",
    "Usage",
    "count_tokens",
]
