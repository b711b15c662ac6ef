"""Self-Route for LlamaIndex: answer from retrieved nodes, read whole documents only when the model declines."""

try:
    import llama_index.core  # noqa: F401
except ModuleNotFoundError as error:
    msg = 'llamaindex_selfroute needs llama-index-core: pip install "selfroute[llamaindex]"'
    raise ImportError(msg) from error

from typing import TYPE_CHECKING, Any

from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteLedger, SelfRouteQueryEvent
from llamaindex_selfroute.query_engine import SelfRouteQueryEngine
from llamaindex_selfroute.responses import citation_nodes
from llamaindex_selfroute.stored.reading import StoredDocuments
from llamaindex_selfroute.synthesizer import SelfRouteSynthesizer

if TYPE_CHECKING:
    from llamaindex_selfroute.workflow import SelfRouteWorkflow as SelfRouteWorkflow

__all__ = [
    "SelfRouteDecisionEvent",
    "SelfRouteLedger",
    "SelfRouteQueryEngine",
    "SelfRouteQueryEvent",
    "SelfRouteSynthesizer",
    "SelfRouteWorkflow",
    "StoredDocuments",
    "citation_nodes",
]


def __getattr__(name: str) -> Any:
    """Return the workflow, which is loaded when it is asked for."""
    if name != "SelfRouteWorkflow":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from llamaindex_selfroute.workflow import SelfRouteWorkflow  # noqa: PLC0415 - few need it

    return SelfRouteWorkflow


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
