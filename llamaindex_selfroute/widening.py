"""Ask the retriever of an engine for more nodes, under the same filters and through the same postprocessors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_selfroute import host
from selfroute.errors import ConfigurationError


class Finder(Protocol):
    """What finds the nodes for a query, such as an engine or a retriever."""

    def retrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """Return the nodes, best first."""

    async def aretrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""


@dataclass(frozen=True, slots=True, eq=False)
class Wider:
    """How a wider look finds its nodes.

    Attributes:
        retriever: Finds more nodes than the engine's retriever.
        postprocessors: Those of the engine.
    """

    retriever: BaseRetriever
    postprocessors: Sequence[BaseNodePostprocessor] = ()

    def retrieve(self, query: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes, best first."""
        nodes = self.retriever.retrieve(query)
        for postprocessor in self.postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query)
        return nodes

    async def aretrieve(self, query: QueryBundle) -> list[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""
        nodes = await self.retriever.aretrieve(query)
        for postprocessor in self.postprocessors:
            nodes = await host.apostprocessed(postprocessor, nodes, query)
        return nodes


def checked_widen(value: int | BaseRetriever | None) -> int | BaseRetriever | None:
    """Check the option `widen` and return it.

    Raises:
        ConfigurationError: It is neither a number nor a retriever.
    """
    if value is None or isinstance(value, int | BaseRetriever):
        return value
    msg = f"widen must be a number of nodes, a retriever, or None, not {type(value).__name__}"
    raise ConfigurationError(msg)


def widened(retriever: BaseRetriever | None, widen: int | BaseRetriever) -> BaseRetriever:
    """Return the retriever of a wider look.

    Args:
        retriever: The retriever of the engine; None if the nodes are not selected by a retriever alone.
        widen: The number of nodes, or a retriever of its own.

    Raises:
        ConfigurationError: The retriever takes no number of nodes.
    """
    if isinstance(widen, BaseRetriever):
        return widen
    wider = None if retriever is None else host.with_top_k(retriever, widen)
    if wider is None:
        what = (
            "no retriever of an engine is known here" if retriever is None else f"{type(retriever).__name__} has none"
        )
        msg = (
            f"widen={widen} needs a retriever with similarity_top_k, but {what}: pass a retriever of its own, "
            "widen=index.as_retriever(similarity_top_k=...)"
        )
        raise ConfigurationError(msg)
    return wider
