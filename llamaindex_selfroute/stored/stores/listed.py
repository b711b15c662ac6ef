"""List the nodes of any vector store that has `get_nodes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from typing_extensions import override

from llamaindex_selfroute import host
from llamaindex_selfroute.stored.conditions import Filters, test_of, together
from llamaindex_selfroute.stored.stores.base import Store, listing_class, searches_as
from selfroute.errors import ConfigurationError


class Listed(Store):
    """Any vector store that has `get_nodes`."""

    lists_ids = False

    def __init__(self, store: Any) -> None:
        self._store, self._kind = store, listing_class(store)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return host.vector_store_of(retriever) is self._store and searches_as(self._store, self._kind)

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        own = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=document)])
        try:
            found: Iterable[BaseNode] = self._store.get_nodes(None, together([own, *filters]))
        except NotImplementedError as error:
            msg = f"{type(self._store).__name__}.get_nodes: {error}; pass StoredDocuments(fetch=...)"
            raise ConfigurationError(msg) from error
        # LlamaIndex's own stores apply the filters; others may ignore them.
        test = test_of(() if self._kind.__module__.startswith("llama_index.") else filters)
        return (node for node in found if node.ref_doc_id == document and test(node))

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [node.node_id for node in self.nodes(document, filters)]
