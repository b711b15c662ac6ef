"""Self-Route: answer from retrieved passages, read whole documents only when the model declines.

The core of `langchain_selfroute` and `llamaindex_selfroute`: it decides, loops and counts, and knows no framework.
"""

import sys
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
    if name not in _ELSEWHERE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    msg = f"{name} is in another package: from {_ELSEWHERE[name]} import {name}"
    if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":  # noqa: SLF001
        raise ImportError(msg)  # in `from selfroute import`, which would replace the words of an AttributeError
    raise AttributeError(msg)
