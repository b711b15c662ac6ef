"""The interface by which `StoredDocuments` uses an index or a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_selfroute.stored.conditions import Filters

Fetch: TypeAlias = "Callable[[str, MetadataFilters | None], Iterable[BaseNode]]"
"""Takes the id of a document and filters; returns all of its nodes that the filters let through."""


class Store(Protocol):
    """Lists the nodes of an index."""

    lists_ids: bool
    """Whether `ids` costs much less than `nodes`."""
    in_threads: bool = True
    """Whether it may be used from several threads at once."""

    def is_searched_by(self, retriever: Any) -> bool:
        """Return whether a retriever searches these nodes, and hides nodes only by its filters."""

    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """Return all nodes of a document that the filters let through."""

    def ids(self, document: str, filters: Filters) -> list[str]:
        """Return the ids of these nodes."""


def listing_class(store: Any) -> type:
    """Return the base class of a vector store that defines how its nodes are listed."""
    return next(kind for kind in type(store).__mro__ if "get_nodes" in vars(kind))


def searches_as(store: Any, kind: type) -> bool:
    """Return whether a vector store has the search of its kind; a user's subclass may hide more than filters do."""
    own = (name for name in dir(kind) if "query" in name or "search" in name)
    return all(getattr(type(store), name) is getattr(kind, name) for name in own)
