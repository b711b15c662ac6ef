"""The parts of a synthesizer that one query works with: a snapshot, so that later changes do not affect the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_selfroute.documents import Source
from selfroute.calls.memory import Memory
from selfroute.calls.settings import Settings
from selfroute.flow import Route
from selfroute.usage.prices import is_one_model


class Finder(Protocol):
    """What finds the nodes for a query, such as an engine or a retriever."""

    def retrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """Return the nodes, best first."""

    async def aretrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a synthesizer.

    Attributes:
        models: The model of each step.
        prompts: The prompt of each step.
        documents: Where the whole documents come from.
        document_prompt: Formats each node and document; None to use the node's own format.
        streaming: Whether to answer in pieces. Chat engines change the synthesizer's own before a stream is read.
        settings: The options.
        memory: What the synthesizer keeps between queries.
    """

    models: Mapping[Route, LLM]
    prompts: Mapping[Route, BasePromptTemplate]
    documents: Source
    document_prompt: BasePromptTemplate | None
    streaming: bool
    settings: Settings
    memory: Memory

    @property
    def one_model(self) -> bool:
        """Whether one model performs both steps."""
        return is_one_model(self.models)
