"""What a retriever is limited to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.vector_stores import MetadataFilters


@dataclass(frozen=True, slots=True)
class Wall:
    """What may be read.

    Attributes:
        filters: What the metadata of nodes have to meet, all of them.
        documents: The only documents; None for no limit.
        nodes: The only nodes; None for no limit.
    """

    filters: tuple[MetadataFilters, ...] = ()
    documents: frozenset[str] | None = None
    nodes: frozenset[str] | None = None

    def __bool__(self) -> bool:
        return self != _OPEN

    @property
    def name(self) -> str:
        """What tells it from others."""
        return f"{self.filters} {hash(self.documents)} {hash(self.nodes)}"

    def within(self, filters: MetadataFilters | None) -> Wall:
        """The same, and these filters too."""
        if not filters or not filters.filters or filters in self.filters:
            return self
        return replace(self, filters=(*self.filters, filters))


_OPEN = Wall()


def wall_of(retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor] = ()) -> Wall | None:
    """Look for what a retriever is limited to.

    Args:
        retriever: The retriever.
        postprocessors: What its nodes go through. LlamaIndex's own drop what does not matter; others may hide things.

    Returns:
        What it may see; None if that can not be seen: then anything may be hidden from it.
    """
    # A subclass may search in a way of its own.
    if type(retriever) is not VectorIndexRetriever or retriever._kwargs:  # noqa: SLF001 - there is no other way to them
        return None
    if not all(type(one).__module__.startswith("llama_index.") for one in postprocessors):
        return None
    documents, nodes = retriever._doc_ids, retriever._node_ids  # noqa: SLF001
    index = retriever._index.index_struct.nodes_dict.values()  # noqa: SLF001
    return Wall(
        documents=frozenset(documents) if documents else None,
        # An index that knows its nodes names all of them to its retriever.
        nodes=frozenset(nodes) if nodes and not set(nodes).issuperset(index) else None,
    ).within(retriever._filters)  # noqa: SLF001
