"""Self-Route for LlamaIndex: answer from retrieved nodes, read whole documents only when the model declines."""

try:
    import llama_index.core  # noqa: F401
except ModuleNotFoundError as error:
    msg = 'llamaindex_selfroute needs llama-index-core: pip install "selfroute[llamaindex]"'
    raise ImportError(msg) from error

from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteQueryEvent
from llamaindex_selfroute.ledger import SelfRouteLedger
from llamaindex_selfroute.query_engine import SelfRouteQueryEngine
from llamaindex_selfroute.responses import citation_nodes
from llamaindex_selfroute.stored.reading import StoredDocuments
from llamaindex_selfroute.synthesizer import SelfRouteSynthesizer

__all__ = [
    "SelfRouteDecisionEvent",
    "SelfRouteLedger",
    "SelfRouteQueryEngine",
    "SelfRouteQueryEvent",
    "SelfRouteSynthesizer",
    "StoredDocuments",
    "citation_nodes",
]
