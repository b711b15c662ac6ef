"""Find what limits a retriever: its filters, the only documents or nodes that it searches, and what is dropped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser.text.sentence_window import DEFAULT_WINDOW_METADATA_KEY
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    RelatedNodeType,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilters
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from pydantic import Field
from typing_extensions import override

from llamaindex_selfroute import known
from llamaindex_selfroute.internals import bigger_nodes_of, copies_in, leaves_of, search_of
from llamaindex_selfroute.stored.bigger import BiggerNodes
from llamaindex_selfroute.stored.conditions import Filters, strict_test_of
from llamaindex_selfroute.stored.stores import Store
from selfroute.documents.access import is_one_of, name_of, visible
from selfroute.documents.stored import BaseStoredDocuments, DroppedPassages
from selfroute.documents.view import Limits
from selfroute.errors import ConfigurationError

_HARMLESS = frozenset({"mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k"})
_INDICES = "llama_index.core.indices."
_HALF_FILTERED = tuple(_INDICES + kind for kind in ("knowledge_graph.", "property_graph."))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits(Limits):
    """What may be read of an index; falsy if nothing is hidden.

    Attributes:
        filters: The filters that nodes have to meet, all of them.
        documents: The ids of the only documents; None for no limit.
        nodes: The ids of the only nodes; None for no limit.
        copies: Copies of these nodes, if the retriever searches them instead of a store.
        bigger: The nodes that the retriever returns in the place of found ones.
    """

    filters: tuple[MetadataFilters, ...] = ()
    documents: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    copies: Mapping[str, dict[str, Any]] | None = field(default=None, compare=False)
    bigger: BiggerNodes = field(default=BiggerNodes(()), compare=False)

    def __bool__(self) -> bool:
        return self != OPEN

    @property
    def identity(self) -> Hashable:
        """The limits themselves as a key, since two limits may have the same hash, or JSON."""
        return tuple(map(repr, self.filters)), self.documents, self.nodes, self.bigger

    def let_through(self, node: BaseNode) -> bool:
        """Return whether a node is one of the only nodes, of the only documents; a copy has to have the same text."""
        if self.nodes is not None and node.node_id not in self.nodes:
            return False
        if self.documents is not None and node.ref_doc_id not in self.documents:
            return False
        return (
            self.copies is None or metadata_dict_to_node(self.copies[node.node_id]).get_content() == node.get_content()
        )

    def narrowed_by(self, filters: MetadataFilters | None) -> NodeLimits:
        """Return these limits with additional filters."""
        if not filters or not filters.filters or filters in self.filters:
            return self
        return replace(self, filters=(*self.filters, filters))


OPEN = NodeLimits()
"""The limits that hide nothing."""


def limits_in(
    store: Store, retriever: BaseRetriever | None, declared: MetadataFilters | None, *, certain: bool
) -> NodeLimits:
    """Return the limits of what may be read of a store; what bigger nodes lead to is not known in another store.

    Args:
        store: The store.
        retriever: The retriever, which nobody changes; None if it is not known.
        declared: The filters that the user declared; None if none were.
        certain: Whether nothing that we do not know selects the nodes that the retriever finds.

    Raises:
        ConfigurationError: The retriever has arguments for its store that may hide nodes, and no filter was declared.
    """
    if declared is None and retriever is not None and (hiding := _options_of(retriever) - _HARMLESS):
        msg = (
            f"the retriever's vector_store_kwargs have {', '.join(sorted(hiding))}, which may hide nodes: pass "
            "StoredDocuments(filters=...), which every node must match, or MetadataFilters(filters=[]) if nothing is "
            "hidden"
        )
        raise ConfigurationError(msg)
    known = None if retriever is None or not certain else _limits_of(retriever)
    limits = (OPEN if known is None else known).narrowed_by(declared)
    here = retriever is not None and (
        limits.copies is not None  # then each node is compared with its copy
        or all(map(store.is_searched_by, leaves_of(retriever)))
    )
    return replace(
        limits,
        bigger=limits.bigger if here else OPEN.bigger,
        key=limits.identity,
        cached=store.lists_ids,
        compared=declared is None if known is None else not here,
    )


def _options_of(retriever: BaseRetriever) -> set[str]:
    """Return the names of the arguments for the vector store that a retriever's searches have."""
    searches = filter(None, map(search_of, leaves_of(retriever)))
    return {name for search in searches for name in search.options}


def _limits_of(retriever: BaseRetriever) -> NodeLimits | None:
    """Return the limits of a retriever; None if they are unknown, so that anything may be hidden from it.

    LlamaIndex's own wrappers are seen through, if all retrievers that they ask have the same limits.
    """
    first, *others = [_limits(leaf) for leaf in leaves_of(retriever)] or [None]
    if first is None or any(one != first for one in others):
        return None
    return replace(first, bigger=BiggerNodes(bigger_nodes_of(retriever)))


def is_trusted(postprocessor: BaseNodePostprocessor) -> bool:
    """Return whether a postprocessor is known to hide nothing but what is irrelevant."""
    if is_one_of(postprocessor, known.REPLACING):
        return getattr(postprocessor, "target_metadata_key", None) == DEFAULT_WINDOW_METADATA_KEY
    return is_one_of(postprocessor, known.BY_RELEVANCE)


def _limits(retriever: BaseRetriever) -> NodeLimits | None:
    """Return the limits of a retriever that asks no other one."""
    if is_one_of(retriever, known.UNFILTERED):
        return OPEN
    copies = copies_in(retriever)
    if copies is not None:
        return NodeLimits(nodes=frozenset(copies), copies=copies)
    search = search_of(retriever)
    if search is None or set(search.options) - _HARMLESS:
        return None
    # An index that knows its nodes passes the ids of all of them to its retriever.
    all_nodes = bool(search.indexed) and set(search.nodes or ()).issuperset(search.indexed)
    return NodeLimits(
        documents=frozenset(search.documents) if search.documents else None,
        nodes=frozenset(search.nodes) if search.nodes and not all_nodes else None,
    ).narrowed_by(search.filters)


def takes_filters(retriever: BaseRetriever) -> bool:
    """Return whether a retriever applies the filters that it is given; those of many kinds of indices ignore them."""
    kinds = type(retriever).__mro__
    return not any(name_of(kind) in known.UNFILTERED or kind.__module__.startswith(_HALF_FILTERED) for kind in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class FilteredSource:
    """A callable that returns documents, and the filters of the retriever, which hold for what it returns.

    Attributes:
        read: The callable.
        filters: The filters of each search that the retriever makes; what meets those of one may be read.
    """

    read: Callable[..., Any]
    filters: Sequence[Filters]

    def visible(self, documents: Sequence[NodeWithScore], passages: Sequence[NodeWithScore]) -> Sequence[NodeWithScore]:
        """Return the documents that the filters let through; `selfroute.documents.access.visible` says how."""
        tests = list(map(strict_test_of, self.filters))

        def meets(document: NodeWithScore, metadata: Mapping[str, Any]) -> bool:
            source: RelatedNodeType = RelatedNodeInfo(node_id=_document_of(document))
            seen = TextNode(metadata={**metadata}, relationships={NodeRelationship.SOURCE: source})
            return any(test(seen) for test in tests)

        return visible(documents, passages, meets, source_of=_document_of, metadata_of=attrgetter("metadata"))


def filtered(read: Any, retriever: BaseRetriever | None) -> Any:
    """Return a callable with the filters of a retriever; what is no callable, or behind no known filter, as it is."""
    if retriever is None or not callable(read):
        return read
    limits = [_limits(leaf) for leaf in leaves_of(retriever)]
    filters = [one.filters for one in limits if one and one.filters]
    return FilteredSource(read, filters) if filters and len(filters) == len(limits) else read


def _document_of(found: NodeWithScore) -> str:
    return found.node.ref_doc_id or found.node.node_id


class Watching(BaseNodePostprocessor):
    """Passes the nodes to a function, and returns them unchanged."""

    see: Callable[[list[NodeWithScore]], None] = Field(exclude=True, repr=False)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.see(nodes)
        return nodes


def watched(postprocessors: Sequence[BaseNodePostprocessor], source: Any) -> Sequence[BaseNodePostprocessor]:
    """Return postprocessors, with others between them that note what those drop that we do not know.

    Args:
        postprocessors: The postprocessors of an engine.
        source: Where its documents come from; only stored ones have to know.
    """
    doubted = [at for at, one in enumerate(postprocessors) if not is_trusted(one)]
    if not doubted or not isinstance(source, BaseStoredDocuments):
        return postprocessors
    first, last = doubted[0], doubted[-1] + 1
    dropped = DroppedPassages(source)
    before, after = Watching(see=dropped.note_found), Watching(see=dropped.note_left)
    return [*postprocessors[:first], before, *postprocessors[first:last], after, *postprocessors[last:]]
