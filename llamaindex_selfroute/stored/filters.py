"""What a retriever is limited to; what may be read if that is not known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.vector_stores import MetadataFilters

_HARMLESS = frozenset({"mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k"})
_INDICES = "llama_index.core.indices."
_UNFILTERED = tuple(_INDICES + kind for kind in ("list.", "keyword_table.", "tree.", "document_summary."))
_HALF_FILTERED = tuple(_INDICES + kind for kind in ("knowledge_graph.", "property_graph."))


@dataclass(frozen=True, slots=True)
class AccessLimits:
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
    def key(self) -> Hashable:
        """What distinguishes these limits from others."""
        return tuple(filters.model_dump_json() for filters in self.filters), self.documents, self.nodes

    def within(self, filters: MetadataFilters | None) -> AccessLimits:
        """The same, and these filters too."""
        if not filters or not filters.filters or filters in self.filters:
            return self
        return replace(self, filters=(*self.filters, filters))


_OPEN = AccessLimits()


def limits_of(retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor] = ()) -> AccessLimits | None:
    """Look for what a retriever is limited to.

    Args:
        retriever: The retriever.
        postprocessors: What its nodes go through. LlamaIndex's own drop what does not matter; others may hide things.

    Returns:
        What it may see; None if that can not be seen: then anything may be hidden from it.
    """
    if not all(type(one).__module__.startswith("llama_index.") for one in postprocessors):
        return None
    if type(retriever).__module__.startswith(_UNFILTERED):
        return _OPEN
    # A subclass may search in a way of its own; there is no other way to what the retriever was given.
    if type(retriever) is not VectorIndexRetriever or retriever._kwargs.keys() - _HARMLESS:  # noqa: SLF001
        return None
    documents, nodes = retriever._doc_ids, retriever._node_ids  # noqa: SLF001
    index = retriever._index.index_struct.nodes_dict.values()  # noqa: SLF001
    # An index that knows its nodes names all of them to its retriever.
    all_of_them = bool(index) and set(nodes or ()).issuperset(index)
    return AccessLimits(
        documents=frozenset(documents) if documents else None,
        nodes=frozenset(nodes) if nodes and not all_of_them else None,
    ).within(retriever._filters)  # noqa: SLF001


def takes_filters(retriever: BaseRetriever) -> bool:
    """Whether a retriever minds the filters that it is given; those of many kinds of indices pass over them."""
    return not type(retriever).__module__.startswith(_UNFILTERED + _HALF_FILTERED)
