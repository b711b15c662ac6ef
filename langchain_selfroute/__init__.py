"""Self-Route for LangChain: answer from retrieved passages, read whole documents only when the model declines."""

try:
    import langchain_core  # noqa: F401
except ModuleNotFoundError as error:
    msg = 'langchain_selfroute needs langchain-core: pip install "selfroute[langchain]"'
    raise ImportError(msg) from error

from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.ledger import SelfRouteLedger
from langchain_selfroute.schema import SelfRouteInput, SelfRouteOutput
from langchain_selfroute.stored.reading import StoredDocuments

__all__ = ["SelfRouteChain", "SelfRouteInput", "SelfRouteLedger", "SelfRouteOutput", "StoredDocuments"]
