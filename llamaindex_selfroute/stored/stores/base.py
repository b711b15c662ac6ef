"""What `StoredDocuments` asks of an index or a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_selfroute.stored.conditions import Filters

Fetch: TypeAlias = "Callable[[str, MetadataFilters | None], Iterable[BaseNode]]"
"""Is given a document's id and the filters; returns all of its nodes that these let through."""


class Store(Protocol):
    """Hands over nodes."""

    lists_ids: bool
    """Whether `ids` costs much less than `nodes`."""
    in_threads: bool = True
    """Whether it may be asked in several threads at once."""

    def is_searched_by(self, retriever: Any) -> bool:
        """Whether this retriever searches these nodes, and its filters are all that hides any."""

    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """All nodes of a document that the filters let through."""

    def ids(self, document: str, filters: Filters) -> list[str]:
        """Their ids."""


def listing_class(store: Any) -> type:
    """The class of a vector store that says how its nodes are listed."""
    return next(kind for kind in type(store).__mro__ if "get_nodes" in vars(kind))


def searches_as(store: Any, kind: type) -> bool:
    """Whether a vector store searches as its kind does: somebody's subclass may hide more than the filters do."""
    own = (name for name in dir(kind) if "query" in name or "search" in name)
    return all(getattr(type(store), name) is getattr(kind, name) for name in own)
