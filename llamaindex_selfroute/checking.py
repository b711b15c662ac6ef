"""Try the parts of an engine on one question, without asking a model."""

from __future__ import annotations

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle

from llamaindex_selfroute import internals
from llamaindex_selfroute.convert import bundle_of
from llamaindex_selfroute.host import LlamaIndexHost, QueryCall
from selfroute import checking
from selfroute.checking import Findings


def check(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Return what was found when the parts of an engine were tried on a question."""
    return checking.check(_call(engine, question))


async def acheck(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Do as `check` does, asynchronously."""
    return await checking.acheck(_call(engine, question))


def _call(engine: RetrieverQueryEngine, question: str | QueryBundle) -> QueryCall:
    # No synthesizer is asked, so the nodes have not been retrieved before.
    return QueryCall(LlamaIndexHost(internals.parts_of(engine)[0].parts(), bundle_of(question), finder=engine))
