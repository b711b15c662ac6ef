"""Try the parts of an engine on one question, without asking a model."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from llamaindex_selfroute import host
from llamaindex_selfroute.convert import bundle_of
from llamaindex_selfroute.parts import Parts
from llamaindex_selfroute.steps import Steps
from selfroute import checking
from selfroute.checking import Checking, Findings
from selfroute.flow import Retrieve


class CheckingSteps(Checking[NodeWithScore], Steps):
    """The steps of a check, which retrieve by themselves, as the engine does before it asks its synthesizer."""

    def __init__(self, parts: Parts, query: QueryBundle, *, engine: RetrieverQueryEngine) -> None:
        """Prepare to check an engine.

        Args:
            parts: The parts of its synthesizer.
            query: The question.
            engine: The engine.
        """
        super().__init__(parts, query, nodes=(), words={})
        self._engine = engine

    @override
    def retrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:
        self.passages = self._engine.retrieve(self.query)
        return super().retrieve(effect)

    @override
    async def aretrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:
        self.passages = await self._engine.aretrieve(self.query)
        return await super().aretrieve(effect)


def check(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Return what was found when the parts of an engine were tried on a question."""
    return checking.check(_steps(engine, question))


async def acheck(engine: RetrieverQueryEngine, question: str | QueryBundle) -> Findings:
    """Do as `check` does, asynchronously."""
    return await checking.acheck(_steps(engine, question))


def _steps(engine: RetrieverQueryEngine, question: str | QueryBundle) -> CheckingSteps:
    query = bundle_of(question)
    return CheckingSteps(host.parts_of(engine)[0].parts(), query, engine=engine)
