"""Try the parts of an engine on one question, without asking a model."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from llamaindex_selfroute.parts import Parts
from llamaindex_selfroute.steps import Steps
from selfroute.checking import Checking
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
