"""Self-Route: answer from retrieved passages, read whole documents only when the model declines.

The core of `langchain_selfroute` and `llamaindex_selfroute`: it decides, loops and counts, and knows no framework.
"""

from typing import NoReturn

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
from selfroute.paper import PAPER
from selfroute.usage.ledger import Ledger
from selfroute.version import __version__

__all__ = [
    "PAPER",
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

_ELSEWHERE = {
    **dict.fromkeys(("SelfRouteChain", "SelfRouteMiddleware"), "langchain_selfroute"),
    **dict.fromkeys(("SelfRouteQueryEngine", "SelfRouteSynthesizer", "SelfRouteWorkflow"), "llamaindex_selfroute"),
}


def __getattr__(name: str) -> NoReturn:
    if name in _ELSEWHERE:
        msg = f"{name} is in another package: from {_ELSEWHERE[name]} import {name}"
        raise ImportError(msg)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
