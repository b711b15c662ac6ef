"""Self-Route: answer from retrieved passages, read whole documents only when the model declines.

The core of `langchain_selfroute` and `llamaindex_selfroute`: it decides, loops and counts, and knows no framework.
"""

from selfroute.answerability import Gate, Verdict, declines
from selfroute.errors import (
    ConfigurationError,
    DocumentNotFoundError,
    InputError,
    NoReplyError,
    ReplyError,
    SelfRouteError,
    UnknownOptionError,
)
from selfroute.usage.ledger import Ledger
from selfroute.version import __version__

__all__ = [
    "ConfigurationError",
    "DocumentNotFoundError",
    "Gate",
    "InputError",
    "Ledger",
    "NoReplyError",
    "ReplyError",
    "SelfRouteError",
    "UnknownOptionError",
    "Verdict",
    "__version__",
    "declines",
]
