"""Self-Route for LangChain: answer from retrieved passages, read whole documents only when the model declines."""

try:
    import langchain_core  # noqa: F401
except ModuleNotFoundError as error:
    msg = 'langchain_selfroute needs langchain-core: pip install "selfroute[langchain]"'
    raise ImportError(msg) from error

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.ledger import SelfRouteLedger
from langchain_selfroute.schema import SelfRouteInput, SelfRouteOutput
from langchain_selfroute.stored.reading import StoredDocuments

if TYPE_CHECKING:
    from langchain_selfroute.agents.middleware import SelfRouteMiddleware as SelfRouteMiddleware

__all__ = ["SelfRouteChain", "SelfRouteInput", "SelfRouteLedger", "SelfRouteOutput", "StoredDocuments"]
if TYPE_CHECKING or find_spec("langchain"):
    __all__ += ["SelfRouteMiddleware"]


def __getattr__(name: str) -> Any:
    """Return the middleware, which needs the package `langchain`; the chain does not."""
    if name != "SelfRouteMiddleware":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        from langchain_selfroute.agents.middleware import SelfRouteMiddleware  # noqa: PLC0415 - it takes long
    except ImportError as error:  # also where the package is older
        msg = "SelfRouteMiddleware needs LangChain's agents: pip install 'langchain>=1.2.10'"
        raise ImportError(msg) from error
    return SelfRouteMiddleware


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
