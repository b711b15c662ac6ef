"""Try the parts of an engine on one question, without asking a model."""

from __future__ import annotations

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_selfroute import host
from llamaindex_selfroute.convert import bundle_of
from llamaindex_selfroute.steps import Steps
from selfroute import checking
from selfroute.checking import Checking, Findings


class CheckingSteps(Checking[NodeWithScore], Steps):
    """The steps of a check."""


def check(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Return what was found when the parts of an engine were tried on a question."""
    return checking.check(_steps(engine, question))


async def acheck(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Do as `check` does, asynchronously."""
    return await checking.acheck(_steps(engine, question))


def _steps(engine: RetrieverQueryEngine, question: str | QueryBundle) -> CheckingSteps:
    steps = CheckingSteps(host.parts_of(engine)[0].parts(), bundle_of(question), nodes=(), words={})
    steps.finder = engine  # no synthesizer is asked, so the nodes have not been retrieved before
    return steps
