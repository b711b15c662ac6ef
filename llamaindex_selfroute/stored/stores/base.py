"""The interface by which `StoredDocuments` uses an index or a vector store."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TypeAlias

from llama_index.core.schema import BaseComponent, BaseNode
from llama_index.core.vector_stores import MetadataFilters
from pydantic import BaseModel
from typing_extensions import Self, override

from llamaindex_selfroute import host
from llamaindex_selfroute.stored.conditions import Filters, test_of
from selfroute.documents.listing import checked_rows

Fetch: TypeAlias = Callable[[str, MetadataFilters | None], Iterable[BaseNode]]
"""Takes the id of a document and filters; returns all of its nodes that the filters let through."""


class Store(ABC):
    """Lists the nodes of an index, or of a vector store of one kind.

    Attributes:
        ordered: Whether it lists nodes in the order in which they were added.
        lists_ids: Whether `ids` costs much less than `nodes`.
        tests_filters: Whether filters are applied to what it lists. Without it, `rows` has applied them.
    """

    ordered: bool = True
    lists_ids: bool = False
    tests_filters: bool = True

    @abstractmethod
    def is_searched_by(self, retriever: Any) -> bool:
        """Return whether a retriever searches these nodes, and hides nodes only by its filters."""

    @abstractmethod
    def rows(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """Return what the store lists when it is asked for the nodes of a document; what comes is looked at once more.

        The document's id is data: it is passed as a parameter, or escaped here.

        Raises:
            SelfRouteError: Not all of them can be listed.
        """

    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """Return all nodes of a document that the filters let through."""
        test = test_of(filters) if self.tests_filters else test_of(())
        return checked_rows(
            self.rows(document, filters),
            belongs=lambda node: node.ref_doc_id == document and test(node),
            id_of=lambda node: node.node_id,
        )

    def ids(self, document: str, filters: Filters) -> list[str]:
        """Return the ids of these nodes."""
        return [node.node_id for node in self.nodes(document, filters)]


class VectorStore(Store):
    """Lists the nodes of a LlamaIndex vector store that keeps their texts."""

    def __init__(self, store: Any, kind: type) -> None:
        """Take a vector store, and the class among its bases that this kind of store is known by."""
        self._store, self._kind = store, kind

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(deepcopy(self._store, memo), self._kind)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to be pickled with a store that LlamaIndex would pickle without some of its parts."""
        if type(self._store).__getstate__ is BaseComponent.__getstate__:
            try:
                pickle.dumps(BaseModel.__getstate__(self._store))
            except Exception as error:  # parts raise whatever they like
                msg = f"LlamaIndex would pickle a {type(self._store).__name__} without some of its parts: {error}"
                raise TypeError(msg) from error
        return vars(self)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        store = host.vector_store_of(retriever)
        return self._is_of(store) and searches_as(store, self._kind)

    def _is_of(self, store: Any) -> bool:
        if store is self._store:
            return True
        if not isinstance(store, self._kind):
            return False
        theirs = self.collection(store)
        return theirs is not None and theirs == self.collection(self._store)

    def collection(self, store: Any) -> Any:  # noqa: ARG002
        """Return what two objects over one collection have in common; None if that is unknown."""
        return None


def kind_of(store: Any, names: Iterable[tuple[str, str]]) -> tuple[type, tuple[str, str]] | None:
    """Find the base class by which the kind of a store is known; None if it has none.

    It is found by name, since importing it may be slow.

    Args:
        store: The store.
        names: The package, such as `llama_index.vector_stores.chroma`, and the name of each class.

    Returns:
        The class and its name.
    """
    for base in type(store).__mro__:
        name = ".".join(base.__module__.split(".")[:3]), base.__name__
        if name in names:
            return base, name
    return None


def listing_class(store: Any) -> type:
    """Return the base class of a vector store that defines how its nodes are listed."""
    return next(kind for kind in type(store).__mro__ if "get_nodes" in vars(kind))


def searches_as(store: Any, kind: type) -> bool:
    """Return whether a vector store has the search of its kind; a user's subclass may hide more than filters do."""
    own = (name for name in dir(kind) if "query" in name or "search" in name)
    return all(getattr(type(store), name) is getattr(kind, name) for name in own)
