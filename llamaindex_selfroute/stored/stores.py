"""Where the nodes of one document are to be had, and nothing that filters hide."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from llama_index.core.data_structs.data_structs import IndexDict, IndexGraph, IndexList
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import DOCUMENT, Filters, chroma_where, test_of, together
from selfroute.errors import ConfigurationError, ReplyError

Fetch: TypeAlias = "Callable[[str, MetadataFilters | None], Iterable[BaseNode]]"
"""Is given a document's id and the filters; returns all of its nodes that these let through."""

_LEAST, _MOST = 2_000, 20_000  # rows in a page: Chroma answers at most 32,766, and begins anew for each
_OWN = frozenset({*DOCUMENT, "_node_content", "_node_type"})  # what is kept there beside a node's metadata


class Store(Protocol):
    """Hands over nodes."""

    tells_ids: bool
    """Whether `ids` costs much less than `nodes`."""
    in_threads: bool = True
    """Whether it may be asked in several threads at once."""

    def is_searched_by(self, retriever: Any) -> bool:
        """Whether this retriever searches these nodes, and its filters are all that hides any."""

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
        if not callable(fetch) or any(map(inspect.iscoroutinefunction, (fetch, type(fetch).__call__))):
            msg = "fetch must be a sync callable that is given (ref_doc_id, filters) and returns nodes"
            raise ConfigurationError(msg)
        return Fetched(index, fetch)
    if not isinstance(index, VectorStoreIndex) or not index.vector_store.stores_text:
        return Docstore(index)
    kind = _listing(index.vector_store)
    if kind.__name__ == "ChromaVectorStore":
        return Chroma(index.vector_store)
    if kind is not BasePydanticVectorStore:
        return Listed(index.vector_store)
    msg = (
        f"a {type(index.vector_store).__name__} has no way to list the nodes of one document: give "
        "StoredDocuments(fetch=...), a callable that is given (ref_doc_id, filters) and returns all of its nodes, or "
        "give the engine documents="
    )
    raise ConfigurationError(msg)


def _listing(store: Any) -> type:
    """The class of a vector store that says how its nodes are listed."""
    return next(kind for kind in type(store).__mro__ if "get_nodes" in vars(kind))


def _searches_as(store: Any, kind: type) -> bool:
    """Whether a vector store searches as its kind does: somebody's subclass may hide more than the filters do."""
    own = (name for name in dir(kind) if "query" in name or "search" in name)
    return all(getattr(type(store), name) is getattr(kind, name) for name in own)


class Docstore(Store):
    """The document store of an index, as far as the index has its nodes."""

    tells_ids = True

    def __init__(self, index: Any) -> None:
        self._index, self._docstore = index, index.docstore
        self._vector_store = getattr(index, "vector_store", None)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        kinds = [kind for kind in type(self._vector_store).__mro__ if "query" in vars(kind)]
        kinds = [kind for kind in kinds if not inspect.isabstract(kind)]
        plain = not kinds or _searches_as(self._vector_store, kinds[-1])
        return retriever._index is self._index and plain and self._indexed(()) is not None  # noqa: SLF001

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        info, test = self._docstore.get_ref_doc_info(document), test_of(filters)
        ids = list(dict.fromkeys(info.node_ids if info else ()))
        indexed = self._indexed(ids)

        def seen(id_: str) -> BaseNode | None:
            """A node that is in the index and let through, or of which all that was cut from it is."""
            node = self._docstore.get_document(id_, raise_error=False)  # deleted ones are not always struck off
            if node is None or not test(node):
                return None
            cut = node.child_nodes or ()
            whole = indexed is None or id_ in indexed or (bool(cut) and all(seen(child.node_id) for child in cut))
            return node if whole else None

        return (node for node in map(seen, ids) if node)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        info = self._docstore.get_ref_doc_info(document)
        ids = info.node_ids if info else []
        indexed = self._indexed(ids)
        if filters or (indexed is not None and not indexed.issuperset(ids)):
            return [node.node_id for node in self.nodes(document, filters)]
        return list(ids)

    def _indexed(self, ids: Iterable[str]) -> frozenset[str] | None:
        """Those of these ids, at least, that are in the index: its document store may hold deleted ones, and others'.

        None for the kinds of indices that do not know.
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


class Chroma(Store):
    """`ChromaVectorStore`, embedded or over HTTP."""

    tells_ids = True

    def __init__(self, store: Any) -> None:
        self._store = store

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        store = getattr(retriever, "_vector_store", None)
        same = store is self._store or getattr(getattr(store, "client", None), "id", None) == self._store.client.id
        return same and _searches_as(store, _listing(self._store))

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        where, at, size, limit = _where(document, filters), 0, 0, 0
        while size == limit:
            limit = min(max(_LEAST, at), _MOST)
            found = self._store.client.get(where=where, limit=limit, offset=at, include=["documents", "metadatas"])
            at, size = at + limit, len(found["ids"])
            for text, metadata in zip(found["documents"], found["metadatas"], strict=True):
                yield _node(metadata, text)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        ids: list[str] = self._store.client.get(where=_where(document, filters), include=[])["ids"]
        return ids


def _where(document: str, filters: Filters) -> Mapping[str, Any]:
    own: dict[str, Any] = {"ref_doc_id": document}
    return {"$and": [own, *map(chroma_where, filters)]} if filters else own


def _node(row: Mapping[str, Any], text: str | None) -> BaseNode:
    """A node out of Chroma, where somebody may have changed its metadata, by which it is found or hidden, since."""
    node = metadata_dict_to_node({**row}, text=text)
    held = {key: value for key, value in row.items() if key not in _OWN}
    known = {key: "" if value is None else value for key, value in node.metadata.items() if key not in _OWN}
    if held != known:
        node.metadata = {**held, **{key: value for key, value in node.metadata.items() if key in _OWN}}
    return node


class Listed(Store):
    """Any vector store that has `get_nodes`."""

    tells_ids = False

    def __init__(self, store: Any) -> None:
        self._store, self._kind = store, _listing(store)

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return getattr(retriever, "_vector_store", None) is self._store and _searches_as(self._store, self._kind)

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        own = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=document)])
        try:
            found: Iterable[BaseNode] = self._store.get_nodes(None, together([own, *filters]))
        except NotImplementedError as error:
            msg = f"{type(self._store).__name__}.get_nodes: {error}; give StoredDocuments(fetch=...)"
            raise ConfigurationError(msg) from error
        # LlamaIndex's own know best what their filters mean; others may not look at them.
        test = test_of(() if self._kind.__module__.startswith("llama_index.") else filters)
        return (node for node in found if node.ref_doc_id == document and test(node))

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [node.node_id for node in self.nodes(document, filters)]


class Fetched(Store):
    """Any other store, through the user's own callable."""

    tells_ids = in_threads = False

    def __init__(self, index: Any, fetch: Fetch) -> None:
        self._index, self._fetch = index, fetch

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return retriever._index is self._index  # noqa: SLF001

    @override
    def nodes(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        found: Any = self._fetch(document, together(filters))
        test = test_of(filters)
        if inspect.iscoroutine(found):
            found.close()  # it is refused below
        for node in found if isinstance(found, Iterable) else [found]:
            if not isinstance(node, BaseNode):
                msg = f"fetch must return nodes; got {type(node).__name__}"
                raise ReplyError(msg)
            if node.ref_doc_id not in (None, document):
                msg = f"fetch was asked for {document!r} and returned a node of {node.ref_doc_id!r}"
                raise ReplyError(msg)
            if test(node):
                yield node

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return [node.node_id for node in self.nodes(document, filters)]
