"""Milvus (its embedded Lite) and LanceDB, in both frameworks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from llama_index.core import VectorStoreIndex

from store_cases.base import Case, Routed
from store_cases.in_langchain import HashEmbeddings, LangChainCase
from store_cases.in_llamaindex import EMBEDDING, SIZE, LlamaIndexCase, nodes_of

INDEX = {"index_type": "FLAT", "metric_type": "L2"}
ORM = ".+ an ORM-style PyMilvus API"


def open_milvus(file: Path, **options: Any) -> Any:
    """Return LangChain's store over a file."""
    import pymilvus
    from langchain_milvus import Milvus

    options = {"auto_id": True, "enable_dynamic_field": True, **options}
    store = Milvus(HashEmbeddings(), connection_args={"uri": str(file)}, index_params=INDEX, **options)
    if int(pymilvus.__version__.partition(".")[0]) < 3:
        # From pymilvus 2.6.10 on, langchain-milvus 0.3 does not find its own connection.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=ORM)
            pymilvus.connections.connect(store.alias, uri=str(file))
    return store


def open_lancedb(folder: Path, **options: Any) -> Any:
    """Return LangChain's store over a folder."""
    import lancedb

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`langchain-community` is being sunset", category=DeprecationWarning)
        from langchain_community.vectorstores import LanceDB
    options = {"table_name": "chunks", "mode": "append", **options}
    return LanceDB(connection=lancedb.connect(folder), embedding=HashEmbeddings(), **options)


class _Milvus(Case):
    needs: tuple[str, ...]
    heavy = True
    many = 20_000  # it answers 16,384

    @property
    def file(self) -> Path:
        return self.folder / "milvus.db"

    def close(self) -> None:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(str(self.file))


class LangChainMilvusCase(_Milvus, LangChainCase):
    """`Milvus` of `langchain_milvus`."""

    name = "langchain-milvus"
    not_filters = ({"tenant": "north"}, len)
    needs = ("langchain_milvus", "milvus_lite")
    ignored = (ORM,)
    filter_key = "expr"
    vectorstore: Any

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.vectorstore = open_milvus(self.file)

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Strings."""
        own = f"tenant == '{tenant}'"
        return {"==": own, "in": f'tenant in ["{tenant}"]', "or": f"{own} or tenant == 'nobody'"}

    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask with a store of its own if async: the async client works in one event loop only."""
        other = copy(self)
        if mode == "async":
            other.vectorstore = open_milvus(self.file)
        return super(LangChainMilvusCase, other).routed(mode, within=within)

    def dump(self) -> int:
        pages = self.vectorstore.client.query_iterator(
            self.vectorstore.collection_name, batch_size=5_000, filter="pk >= 0", output_fields=["text", "$meta"]
        )
        return sum(map(len, iter(pages.next, [])))


class LlamaIndexMilvusCase(_Milvus, LlamaIndexCase):
    """`MilvusVectorStore`."""

    name = "llamaindex-milvus"
    needs = ("llama_index.vector_stores.milvus", "milvus_lite")
    ordered = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._open()

    def _open(self) -> None:
        from llama_index.vector_stores.milvus import MilvusVectorStore

        self.store = MilvusVectorStore(uri=str(self.file), dim=SIZE, batch_size=2_000)
        self.index = VectorStoreIndex.from_vector_store(self.store, embed_model=EMBEDDING)

    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask with a store of its own if async: the async client works in one event loop only."""
        other = copy(self)
        if mode == "async":
            other._open()
        return super(LlamaIndexMilvusCase, other).routed(mode, within=within)

    def dump(self) -> int:
        pages = self.store.client.query_iterator(
            self.store.collection_name, batch_size=5_000, filter='id != ""', output_fields=["text", "$meta"]
        )
        return len(nodes_of((row, row["text"]) for page in iter(pages.next, []) for row in page))


class LangChainLanceDBCase(LangChainCase):
    """`LanceDB` of `langchain_community`."""

    name = "langchain-lancedb"
    not_filters = (len,)
    needs = ("langchain_community", "lancedb")
    heavy = True
    typed = False
    vectorstore: Any

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.vectorstore = open_lancedb(folder)

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """SQL, and dicts."""
        own = f"metadata.tenant = '{tenant}'"
        return {"dict": {"metadata.tenant": tenant}, "sql": own, "or": f"{own} OR metadata.tenant = 'nobody'"}

    def dump(self) -> int:
        return len(self.vectorstore.get_table().search().select(["text", "metadata"]).limit(None).to_list())


class LanceDBWithoutFiltersCase(LangChainCase):
    """`LanceDB` of `langchain_lancedb`, which ignores filters and writes over `source`."""

    name = "langchain-lancedb-vectorstore"
    needs = ("langchain_lancedb",)
    heavy = True
    source_key = "file"
    vectorstore: Any

    def __init__(self, folder: Path) -> None:
        from langchain_lancedb import LanceDB

        super().__init__(folder)
        self.vectorstore = LanceDB(HashEmbeddings(), folder)

    def filters(self, tenant: str) -> Mapping[str, Any]:
        return {}

    def dump(self) -> int:
        table, _ = self.vectorstore._get_or_create_table()
        return len(table.search().select(["text", "metadata"]).limit(None).to_list())


class LlamaIndexLanceDBCase(LlamaIndexCase):
    """`LanceDBVectorStore`."""

    name = "llamaindex-lancedb"
    needs = ("llama_index.vector_stores.lancedb",)
    heavy = True
    ignored = (r"table_names\(\) is deprecated",)

    def __init__(self, folder: Path) -> None:
        from llama_index.vector_stores.lancedb import LanceDBVectorStore

        super().__init__(folder)
        self.store = LanceDBVectorStore(uri=str(folder))
        self.index = VectorStoreIndex.from_vector_store(self.store, embed_model=EMBEDDING)

    def delete(self, ids: list[str]) -> None:
        self.store.table.delete(f"id IN ({', '.join(map(repr, ids))})")

    def dump(self) -> int:
        rows = self.store.table.search().select(["text", "metadata"]).limit(None).to_list()
        return len(nodes_of((row["metadata"], row["text"]) for row in rows))


CASES: tuple[type[Case], ...] = (
    LangChainMilvusCase,
    LangChainLanceDBCase,
    LanceDBWithoutFiltersCase,
    LlamaIndexMilvusCase,
    LlamaIndexLanceDBCase,
)
