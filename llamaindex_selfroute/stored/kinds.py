"""The stores that are read without `fetch`: what client each has, and what its columns are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.data_structs.data_structs import EmptyIndexStruct, IndexLPG
from llama_index.core.data_structs.table import BaseStructTable
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import Filters, in_chroma, in_lancedb, in_milvus, in_postgres
from llamaindex_selfroute.stored.listed import Listed
from llamaindex_selfroute.stored.stores import Docstore, Fetch, Fetched, Store, VectorStore
from selfroute.arguments import check_takes
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores import chroma, lancedb, milvus, qdrant
from selfroute.stores.listing import is_sync, known_store
from selfroute.stores.sql import Sql, in_session


class Chroma(VectorStore):
    """`ChromaVectorStore`, embedded or over HTTP."""

    @override
    def listing_of(self, wrapper: Any) -> chroma.Chroma:
        return chroma.Chroma(wrapper.client)

    @override
    def identity_of(self, wrapper: Any) -> Any:
        return getattr(getattr(wrapper, "client", None), "id", None)

    @override
    def conditions(self, filters: Filters) -> Sequence[Any]:
        return in_chroma(filters)


class Qdrant(VectorStore):
    """`QdrantVectorStore`, whose own `get_nodes` ends after 9,999 nodes."""

    key = "doc_id"  # the one name of the document that the store has an index on
    supported = "llama-index-vector-stores-qdrant 0.8 to 0.10"

    @override
    def listing_of(self, wrapper: Any) -> qdrant.Qdrant:
        if wrapper.client is None:
            msg = (
                "this QdrantVectorStore has only an async client, and documents are read by a sync one: pass it "
                "client=QdrantClient(...) beside aclient="
            )
            raise ConfigurationError(msg)
        from qdrant_client import models  # noqa: PLC0415 - only where it is used

        return qdrant.Qdrant(models, wrapper.client, wrapper.collection_name, text=wrapper.text_key, metadata=None)

    @override
    def identity_of(self, wrapper: Any) -> Any:
        return None if wrapper.client is None else qdrant.collection_of(wrapper.client, wrapper.collection_name)

    @override
    def conditions(self, filters: Filters) -> Sequence[Any]:
        return list(map(self.wrapper._build_subfilter, filters))  # noqa: SLF001 - as in a search

    @override
    def node_of(self, chunk: StoredChunk) -> BaseNode:
        node: BaseNode = self.wrapper.parse_to_query_result([chunk.host]).nodes[0]
        return node


class Postgres(VectorStore):
    """`PGVectorStore`; rows have numbers in the order in which they were added."""

    supported = "llama-index-vector-stores-postgres 0.6.5 to 0.9"
    hooks = ("_customize_query_fn",)

    @override
    def listing_of(self, wrapper: Any) -> Sql:
        import sqlalchemy  # noqa: PLC0415 - only where it is used

        wrapper._initialize()  # noqa: SLF001
        table, session = wrapper._table_class, wrapper._session  # noqa: SLF001
        return Sql(
            sqlalchemy,
            in_session(session),
            id=table.node_id,
            text=table.text,
            metadata=table.metadata_,
            own=lambda key, source: table.metadata_[key].astext == str(source),
            order_by=table.id,
        )

    @override
    def identity_of(self, wrapper: Any) -> Any:
        # Not the address: connections to one address may see different schemas.
        engine = getattr(wrapper, "_engine", None)
        return engine and (engine, wrapper.schema_name, wrapper.table_name)

    @override
    def conditions(self, filters: Filters) -> Sequence[Any]:
        return in_postgres(filters, self.wrapper._table_class.metadata_) if filters else []  # noqa: SLF001

    @override
    def node_of(self, chunk: StoredChunk) -> BaseNode:
        return metadata_dict_to_node({**chunk.metadata}, text=chunk.text or None)


class LanceDB(VectorStore):
    """`LanceDBVectorStore`."""

    tests_filters = True

    @property
    def key(self) -> str:  # type: ignore[override]
        """The column of a document's id."""
        return str(self.wrapper.doc_id_key)

    @override
    def listing_of(self, wrapper: Any) -> lancedb.LanceDB:
        return lancedb.LanceDB(wrapper.table, id="id", text=wrapper.text_key, metadata="metadata", own=self.key)

    @override
    def identity_of(self, wrapper: Any) -> Any:
        return lancedb.place_of(wrapper.client, getattr(wrapper, "_table_name", None))

    @override
    def conditions(self, filters: Filters) -> Sequence[Any]:
        return in_lancedb(filters, self.wrapper.table)


class Milvus(VectorStore):
    """`MilvusVectorStore`. Nodes have ids of their own, by which Milvus lists them."""

    tests_filters = True

    @property
    def key(self) -> str:  # type: ignore[override]
        """The field of a document's id."""
        return str(self.wrapper.doc_id_field)

    @property
    def columns(self) -> frozenset[str]:  # type: ignore[override]
        """The fields that rows have besides metadata."""
        return frozenset({"id", self.key, self.wrapper.text_key})

    @override
    def listing_of(self, wrapper: Any) -> milvus.Milvus:
        return milvus.Milvus(wrapper.client, wrapper.collection_name, text=wrapper.text_key)

    @override
    def identity_of(self, wrapper: Any) -> Any:
        return wrapper.client, wrapper.collection_name  # not `wrapper.uri`, which is always the default one

    @override
    def conditions(self, filters: Filters) -> Sequence[Any]:
        return in_milvus(filters, self.listing_of(self.wrapper).path)


_KINDS: Mapping[tuple[str, str], type[VectorStore]] = {
    ("llama_index.vector_stores.chroma", "ChromaVectorStore"): Chroma,
    ("llama_index.vector_stores.qdrant", "QdrantVectorStore"): Qdrant,
    ("llama_index.vector_stores.postgres", "PGVectorStore"): Postgres,
    ("llama_index.vector_stores.lancedb", "LanceDBVectorStore"): LanceDB,
    ("llama_index.vector_stores.milvus", "MilvusVectorStore"): Milvus,
}
"""The kinds of vector stores, by package and class."""
_WITHOUT_DOCUMENTS = (EmptyIndexStruct, IndexLPG, BaseStructTable)  # of property graphs, and of tables


def store_of(index: BaseIndex[Any], fetch: Fetch | None) -> Store:
    """Return an object that lists the nodes of an index.

    Args:
        index: The index.
        fetch: The user's own way to list nodes, if there is one.

    Raises:
        ConfigurationError: The store cannot list nodes and there is no `fetch`, or `fetch` is unusable; or the nodes of
            this kind of index do not lead to documents.
    """
    if fetch is not None:
        if not is_sync(fetch):
            msg = "fetch must be a sync callable that takes (ref_doc_id, filters) and returns nodes"
            raise ConfigurationError(msg)
        check_takes("fetch", fetch, "ref_doc_id", "filters")
        return Fetched(index, fetch)
    if isinstance(index.index_struct, _WITHOUT_DOCUMENTS):
        msg = (
            f"the nodes of a {type(index).__name__} do not lead to whole documents: pass the engine documents=, a list "
            "of Documents or a callable that returns one, or use a VectorStoreIndex of the same documents"
        )
        raise ConfigurationError(msg)
    if not isinstance(index, VectorStoreIndex) or not index.vector_store.stores_text:
        return Docstore(index)
    store = index.vector_store
    if known := known_store(store, _KINDS):
        return known
    base = next(kind for kind in type(store).__mro__ if "get_nodes" in vars(kind))
    if base is not BasePydanticVectorStore:
        return Listed(store, base)
    msg = (
        f"a {type(store).__name__} has no known way to list the nodes of one document: pass "
        "StoredDocuments(fetch=...), a callable that takes (ref_doc_id, filters) and returns all of its nodes, or pass "
        "the engine documents="
    )
    raise ConfigurationError(msg)
