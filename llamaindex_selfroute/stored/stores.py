"""List the nodes of one document in an index, apart from those that filters hide."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from typing import Any, TypeAlias

from llama_index.core.schema import BaseComponent, BaseNode
from llama_index.core.vector_stores import MetadataFilters
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from pydantic import BaseModel
from typing_extensions import Self, override

from llamaindex_selfroute import internals
from llamaindex_selfroute.stored.conditions import DOCUMENT, Filters, test_of, together
from selfroute.documents.access import StoredChunk
from selfroute.stores.listing import Wrapped, checked_rows, fetched

Fetch: TypeAlias = Callable[[str, MetadataFilters | None], Iterable[BaseNode]]
"""Takes the id of a document and filters; returns all of its nodes that the filters let through."""
_OWN = frozenset({*DOCUMENT, "_node_content", "_node_type"})  # kept beside a node's own metadata


class Store(ABC):
    """Lists the nodes of an index.

    Attributes:
        lists_ids: Whether `ids` costs much less than `nodes`.
        tests_filters: Whether filters are applied to what it lists. Without it, `rows` has applied them.
    """

    lists_ids: bool = True
    tests_filters: bool = False

    @property
    def ordered(self) -> bool:
        """Whether it lists nodes in the order in which they were added."""
        return True

    @abstractmethod
    def is_searched_by(self, retriever: Any) -> bool:
        """Return whether a retriever searches these nodes, and hides nodes only by its filters."""

    @abstractmethod
    def rows(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """Return what the store lists when it is asked for the nodes of a document; what comes is looked at once more.

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


class VectorStore(Wrapped, Store):
    """A vector store of one kind that keeps the texts of nodes.

    Attributes:
        key: Where a row names its document.
        columns: Other columns of the store among the metadata of a row.
    """

    key: str = "ref_doc_id"
    columns: AbstractSet[str] = frozenset()

    def node_of(self, chunk: StoredChunk) -> BaseNode:
        """Return a node with the metadata of its row: they decide what a filter hides, and may have changed."""
        row, own = chunk.metadata, _OWN | self.columns
        node = metadata_dict_to_node({**row}, text=chunk.text or None)  # it may be in the node
        if _values(row, own) != _values(node.metadata, own):
            held = {key: value for key, value in row.items() if key not in own and value is not None}
            node.metadata = {**held, **{key: value for key, value in node.metadata.items() if key in own}}
        return node

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        store = internals.vector_store_of(retriever)
        return self.is_of(store) and self.is_plain(store)

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        return map(self.node_of, self.listing().rows(self.key, document, self.native(filters)))

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        if not self.lists_ids or (filters and self.tests_filters):
            return super().ids(document, filters)
        return self.listing().ids(self.key, document, self.native(filters))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(deepcopy(self.wrapper, memo), self.base)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to be pickled with a store that LlamaIndex would pickle without some of its parts."""
        if type(self.wrapper).__getstate__ is BaseComponent.__getstate__:
            try:
                pickle.dumps(BaseModel.__getstate__(self.wrapper))
            except Exception as error:  # parts raise whatever they like
                msg = f"LlamaIndex would pickle a {type(self.wrapper).__name__} without some of its parts: {error}"
                raise TypeError(msg) from error
        return vars(self)


class Fetched(Store):
    """Any other store, through the user's own callable."""

    lists_ids = False

    def __init__(self, index: Any, fetch: Fetch) -> None:
        self._index, self._fetch = index, fetch

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return internals.index_of(retriever) is self._index

    @override
    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        return filter(test_of(filters), self.rows(document, filters))  # `fetch` may return nodes without a document

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        found = self._fetch(document, together(filters))

        def name_of(node: BaseNode) -> str:
            return document if node.ref_doc_id is None else node.ref_doc_id

        return fetched(found, document, name_of, BaseNode, called="node")  # type: ignore[type-abstract]


def _values(metadata: Mapping[str, Any], own: AbstractSet[str]) -> Mapping[str, Any]:
    # Some stores return an empty text in place of None, and others None for each key that another row has.
    return {key: value for key, value in metadata.items() if key not in own and value not in (None, "")}
