"""List the nodes in the document store of an index."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from llama_index.core.data_structs.data_structs import IndexDict, IndexGraph, IndexList
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import SimpleVectorStore
from typing_extensions import override

from llamaindex_selfroute import internals
from llamaindex_selfroute.stored.conditions import Filters, test_of
from llamaindex_selfroute.stored.stores import Store
from selfroute.stores.listing import searches_as


class Docstore(Store):
    """The document store of an index; only those of its nodes that are in the index."""

    def __init__(self, index: Any) -> None:
        self._index, self._docstore = index, index.docstore
        self._vector_store = getattr(index, "vector_store", None)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        kinds = [kind for kind in type(self._vector_store).__mro__ if "query" in vars(kind)]
        kinds = [kind for kind in kinds if not inspect.isabstract(kind)]
        plain = not kinds or searches_as(self._vector_store, kinds[-1])
        return internals.index_of(retriever) is self._index and plain and self._indexed(()) is not None

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        info, test = self._docstore.get_ref_doc_info(document), test_of(filters)
        ids = list(dict.fromkeys(info.node_ids if info else ()))
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
    def ids(self, document: str, filters: Filters) -> list[str]:
        info = self._docstore.get_ref_doc_info(document)
        ids = info.node_ids if info else []
        indexed = self._indexed(ids)
        if filters or (indexed is not None and not indexed.issuperset(ids)):
            return [node.node_id for node in self.nodes(document, filters)]
        return list(ids)

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
