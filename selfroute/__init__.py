"""Self-Route: answer from retrieved passages, read whole documents only when the model declines.

The core of `langchain_selfroute` and `llamaindex_selfroute`. It imports nothing but the standard library.
"""

from selfroute.errors import ConfigurationError, InputError, ReplyError, SelfRouteError

__version__ = "0.1.0"
__all__ = ["ConfigurationError", "InputError", "ReplyError", "SelfRouteError", "__version__"]
