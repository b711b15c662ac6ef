"""What a retriever is limited to; what may be read if that is not known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_selfroute.host import search_of

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
    search = search_of(retriever)
    if search is None or set(search.options) - _HARMLESS:
        return None
    # An index that knows its nodes names all of them to its retriever.
    all_nodes = bool(search.indexed) and set(search.nodes or ()).issuperset(search.indexed)
    return AccessLimits(
        documents=frozenset(search.documents) if search.documents else None,
        nodes=frozenset(search.nodes) if search.nodes and not all_nodes else None,
    ).within(search.filters)


def takes_filters(retriever: BaseRetriever) -> bool:
    """Whether a retriever minds the filters that it is given; those of many kinds of indices pass over them."""
    return not type(retriever).__module__.startswith(_UNFILTERED + _HALF_FILTERED)
