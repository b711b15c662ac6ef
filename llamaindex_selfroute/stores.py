"""Where the nodes of one document are to be had, and nothing that filters hide."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters, simple
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import override

from selfroute.errors import ConfigurationError

Fetch: TypeAlias = "Callable[[str, MetadataFilters | None], Iterable[BaseNode]]"
"""Is given a document's id and the filters; returns all of its nodes that these let through."""
Filters: TypeAlias = Sequence[MetadataFilters]

_LEAST, _MOST = 2_000, 20_000  # rows in a page: Chroma answers at most 32,766, and begins anew for each
_CHROMA = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
}
_DOCUMENT = ("document_id", "doc_id", "ref_doc_id")  # vector stores keep the document's id under these keys
# By the one name or, in older versions, by the other.
_metadata_filter: Any = vars(simple).get("build_metadata_filter_fn") or vars(simple)["_build_metadata_filter_fn"]


class Store(Protocol):
    """Hands over nodes."""

    tells_ids: bool
    """Whether `ids` costs much less than `nodes`."""

    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        """All nodes of a document that the filters let through."""

    def ids(self, document: str, filters: Filters) -> list[str]:
        """Their ids."""


def store_of(index: BaseIndex[Any], fetch: Fetch | None) -> Store:
    """Find out where the nodes of an index are.

    Raises:
        ConfigurationError: Nobody knows.
    """
    if fetch is not None:
        if not callable(fetch) or inspect.iscoroutinefunction(fetch):
            msg = "fetch must be a sync callable that is given (ref_doc_id, filters) and returns nodes"
            raise ConfigurationError(msg)
        return Fetched(fetch)
    store = getattr(index, "vector_store", None)
    if store is None or not store.stores_text:
        return Docstore(index.docstore)
    if any(base.__name__ == "ChromaVectorStore" for base in type(store).__mro__):
        return Chroma(store)
    if getattr(type(store), "get_nodes", None) not in (None, BasePydanticVectorStore.get_nodes):
        return Listed(store)
    msg = (
        f"a {type(store).__name__} has no way to list the nodes of one document: give StoredDocuments(fetch=...), a "
        "callable that is given (ref_doc_id, filters) and returns all of its nodes, or give the engine documents="
    )
    raise ConfigurationError(msg)


class Docstore(Store):
    """A document store."""

    tells_ids = True

    def __init__(self, docstore: BaseDocumentStore) -> None:
        self._docstore = docstore

    @override
    def nodes(self, document: str, filters: Filters) -> list[BaseNode]:
        info = self._docstore.get_ref_doc_info(document)
        nodes = self._docstore.get_nodes(info.node_ids) if info else []
        named = {node.node_id: {**node.metadata, **dict.fromkeys(_DOCUMENT, document)} for node in nodes}
        tests = [_metadata_filter(named.__getitem__, one) for one in filters]
        return [node for node in nodes if all(test(node.node_id) for test in tests)]

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        if filters:
            return [node.node_id for node in self.nodes(document, filters)]
        info = self._docstore.get_ref_doc_info(document)
        return info.node_ids if info else []


class Chroma(Store):
    """`ChromaVectorStore`, embedded or over HTTP."""

    tells_ids = True

    def __init__(self, store: Any) -> None:
        self._store = store

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        for found in self._pages(document, filters, include=["documents", "metadatas"]):
            for text, metadata in zip(found["documents"], found["metadatas"], strict=True):
                yield metadata_dict_to_node(metadata, text=text)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [id_ for found in self._pages(document, filters, include=[]) for id_ in found["ids"]]

    def _pages(self, document: str, filters: Filters, *, include: list[str]) -> Iterator[Mapping[str, Any]]:
        own: dict[str, Any] = {"ref_doc_id": document}
        where = {"$and": [own, *map(_where, filters)]} if filters else own
        at, size, limit = 0, 0, 0
        while size == limit:
            limit = min(max(_LEAST, at), _MOST)
            found = self._store.client.get(where=where, limit=limit, offset=at, include=include)
            size = len(found["ids"])
            yield found
            at += size


def _where(filters: MetadataFilters) -> dict[str, Any]:
    """Filters as Chroma takes them, the way LlamaIndex translates them for a search."""
    parts = []
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            parts.append(_where(one))
        elif one.operator in _CHROMA:
            parts.append({one.key: {_CHROMA[one.operator]: one.value}})
        else:
            msg = f"Chroma knows no filter {one.operator}"
            raise ConfigurationError(msg)
    condition = {"and": "$and", "or": "$or"}.get(filters.condition or "and")
    if condition is None:
        msg = f"Chroma knows no condition {filters.condition} over filters"
        raise ConfigurationError(msg)
    return {condition: parts} if len(parts) > 1 else parts[0]


class Listed(Store):
    """Any vector store that has `get_nodes`."""

    tells_ids = False

    def __init__(self, store: Any) -> None:
        self._store = store

    @override
    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        own = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=document)])
        if filters:
            own = MetadataFilters(filters=[*own.filters, *filters])
        try:
            nodes: Iterable[BaseNode] = self._store.get_nodes(None, own)
        except NotImplementedError as error:
            msg = f"{type(self._store).__name__}.get_nodes: {error}; give StoredDocuments(fetch=...)"
            raise ConfigurationError(msg) from error
        return nodes

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [node.node_id for node in self.nodes(document, filters)]


class Fetched(Store):
    """Any other store, through the user's own callable."""

    tells_ids = False

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    @override
    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        one = filters[0] if filters else None
        return self._fetch(document, MetadataFilters(filters=[*filters]) if len(filters) > 1 else one)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [node.node_id for node in self.nodes(document, filters)]
