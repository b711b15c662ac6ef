"""List the nodes of one document in an index, apart from those that filters hide."""

from __future__ import annotations

import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from typing import Any, TypeAlias

from llama_index.core.data_structs.data_structs import IndexDict, IndexGraph, IndexList
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.schema import BaseComponent, BaseNode
from llama_index.core.vector_stores import MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from pydantic import BaseModel
from typing_extensions import Self, override

from llamaindex_selfroute import internals
from llamaindex_selfroute.stored.conditions import DOCUMENT, Filters, strict_test_of, test_of, together
from llamaindex_selfroute.stored.naming import FILE, Name
from selfroute.documents.access import StoredChunk
from selfroute.stores.listing import Wrapped, checked_rows, fetched, same_name, searches_as

Fetch: TypeAlias = Callable[[Any, MetadataFilters | None], Iterable[BaseNode]]
"""Takes the name of a document and filters; returns all of its nodes that the filters let through."""
_OWN = frozenset({*DOCUMENT, "_node_content", "_node_type"})  # kept with a node's own metadata


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

    def can_find(self, key: str, value: Any) -> bool:  # noqa: ARG002
        """Return whether it can list the nodes that have a value under a key of their metadata."""
        return True

    @abstractmethod
    def rows(self, document: Name, filters: Filters) -> Iterable[BaseNode]:
        """Return what the store lists when it is asked for the nodes of a document; what comes is looked at once more.

        Raises:
            SelfRouteError: Not all of them can be listed.
        """

    def nodes(self, document: Name, filters: Filters) -> Iterable[BaseNode]:
        """Return all nodes of a document that the filters let through."""
        test = test_of(filters if self.tests_filters else ())
        return checked_rows(
            self.rows(document, filters),
            belongs=lambda node: same_name(_name_in(node, document), document.value) and test(node),
            id_of=lambda node: node.node_id,
        )

    def ids(self, document: Name, filters: Filters) -> list[str]:
        """Return the ids of these nodes."""
        return [node.node_id for node in self.nodes(document, filters)]


def _name_in(node: BaseNode, document: Name) -> Any:
    return node.ref_doc_id if document.key is None else node.metadata.get(document.key)


class Docstore(Store):
    """The document store of an index; only those of its nodes that are in the index."""

    def __init__(self, index: Any) -> None:
        self._index, self._docstore = index, index.docstore
        self._known: dict[str, tuple[tuple[str, ...], Mapping[tuple[type, Any], Iterable[str]]]] = {}
        self._vector_store = getattr(index, "vector_store", None)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        mro = type(self._vector_store).__mro__
        kinds = [kind for kind in mro if "query" in vars(kind) and not inspect.isabstract(kind)]
        plain = not kinds or searches_as(self._vector_store, kinds[-1])
        return internals.index_of(retriever) is self._index and plain and self._indexed(()) is not None

    @override
    def rows(self, document: Name, filters: Filters) -> Iterator[BaseNode]:
        ids, test = self._held(document), test_of(filters)
        indexed = self._indexed(ids)

        def visible(id_: str) -> BaseNode | None:
            """Return a node if it meets the filters and is in the index, itself or as all of its children."""
            node = self._docstore.get_document(id_, raise_error=False)  # None for some deleted nodes
            if node is None or not test(node):
                return None
            children = node.child_nodes or ()
            whole = (
                indexed is None
                or id_ in indexed
                or (bool(children) and all(visible(child.node_id) for child in children))
            )
            return node if whole else None

        return (node for node in map(visible, ids) if node)

    @override
    def ids(self, document: Name, filters: Filters) -> list[str]:
        ids = self._held(document)
        indexed = self._indexed(ids)
        if filters or document.key or (indexed is not None and not indexed.issuperset(ids)):
            return [node.node_id for node in self.nodes(document, filters)]
        return ids

    def _held(self, document: Name) -> list[str]:
        """Return the ids of the nodes that may be of a document; those of pages stand with what these say of a file."""
        if document.key is None:
            info = self._docstore.get_ref_doc_info(document)
            return list(dict.fromkeys(info.node_ids if info else ()))
        return list(self._by_value(document.key).get((type(document.value), document.value), ()))

    def _by_value(self, key: str) -> Mapping[tuple[type, Any], Iterable[str]]:
        """Return the ids of the nodes of the index by their values under a key, until others are in the index."""
        struct = self._index.index_struct
        ids = tuple(struct.nodes_dict.values() if isinstance(struct, IndexDict) else self._indexed(()) or ())
        if self._known.get(key, (None,))[0] != ids:
            by_value: dict[tuple[type, Any], dict[str, None]] = {}
            about: Iterable[tuple[Mapping[str, Any], Iterable[str]]]
            if key in FILE:  # known of each document, such as a page, so that no node has to be read
                documents = (self._docstore.get_all_ref_doc_info() or {}).values()
                about = ((info.metadata, info.node_ids) for info in documents)
            else:
                nodes = (self._docstore.get_document(id_, raise_error=False) for id_ in ids)
                about = ((node.metadata, [node.node_id]) for node in nodes if node is not None)
            for metadata, some in about:
                if isinstance(value := metadata.get(key), (str, int, float)):
                    by_value.setdefault((type(value), value), {}).update(dict.fromkeys(some))
            self._known[key] = ids, by_value
        return self._known[key][1]

    def _indexed(self, ids: Iterable[str]) -> frozenset[str] | None:
        """Return ids of nodes that are in the index, including all such ones among `ids`.

        The document store may also hold deleted nodes, and those of other indices.

        Returns:
            The ids; None for kinds of indices that do not know their nodes.
        """
        struct, store = self._index.index_struct, self._vector_store
        if isinstance(struct, IndexDict):
            named = struct.nodes_dict
            if isinstance(store, SimpleVectorStore):
                return frozenset(id_ for id_ in ids if named.get(id_) == id_ and id_ in store.data.embedding_dict)
            return frozenset(named.values())
        if isinstance(struct, IndexDocumentSummary):
            return frozenset(struct.node_id_to_summary_id)
        if isinstance(struct, IndexList):
            return frozenset(struct.nodes)
        return frozenset(struct.all_nodes.values()) if isinstance(struct, IndexGraph) else None


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
    def rows(self, document: Name, filters: Filters) -> Iterator[BaseNode]:
        return map(self.node_of, self.listing().rows(document.key or self.key, document.value, self.native(filters)))

    @override
    def ids(self, document: Name, filters: Filters) -> list[str]:
        if not self.lists_ids or (filters and self.tests_filters):
            return super().ids(document, filters)
        return self.listing().ids(document.key or self.key, document.value, self.native(filters))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(deepcopy(self.wrapper, memo), self.base)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to be pickled with a store that LlamaIndex would pickle without some of its parts."""
        if type(self.wrapper).__getstate__ is BaseComponent.__getstate__:
            try:
                pickle.dumps(BaseModel.__getstate__(self.wrapper))
            except Exception as error:  # parts raise any error
                msg = f"LlamaIndex would pickle a {type(self.wrapper).__name__} without some of its parts: {error}"
                raise TypeError(msg) from error
        return vars(self)


def _values(metadata: Mapping[str, Any], own: AbstractSet[str]) -> Mapping[str, Any]:
    # Some stores return an empty text in place of None, and others None for each key that another row has.
    return {key: value for key, value in metadata.items() if key not in own and value not in (None, "")}


class Fetched(Store):
    """Any other store, through the user's own callable."""

    lists_ids = False

    def __init__(self, index: Any, fetch: Fetch) -> None:
        self._index, self._fetch = index, fetch

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return internals.index_of(retriever) is self._index

    @override
    def can_find(self, key: str, value: Any) -> bool:
        return False  # it is called with what `source_key` names, or with a `ref_doc_id`

    @override
    def nodes(self, document: Name, filters: Filters) -> Iterable[BaseNode]:
        test = strict_test_of(filters)  # and not of the document, which `fetch` may leave out
        return (node for node in self.rows(document, filters) if not node.metadata or test(node))

    @override
    def rows(self, document: Name, filters: Filters) -> Iterator[BaseNode]:
        found = self._fetch(document.value, together(filters))

        def name_of(node: BaseNode) -> Any:
            name = _name_in(node, document)
            return document.value if name is None else name

        return fetched(found, document.value, name_of, BaseNode, called="node")  # type: ignore[type-abstract]
