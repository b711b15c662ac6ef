"""List the chunks of Postgres with pgvector: `PGVector` and `PGVectorStore` of `langchain_postgres`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store
from langchain_selfroute.stored.stores.sql import fetched
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError

Made = TypeVar("Made")

_SUPPORTED = "langchain-postgres 0.0.17 to 0.0.19"


class _Postgres(Store):
    """What both have in common. Rows have no order: Postgres puts new rows where old ones were deleted.

    All of a statement's rows are fetched before the first is used, so that no connection is kept meanwhile.
    """

    ordered = False
    lists_ids = True

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, Mapping):
            name = type(self._vectorstore).__name__
            msg = f"{name} takes a dict as filter, such as {{'tenant': 'north'}}, not a {type(condition).__name__}"
            raise ConfigurationError(msg)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        with _known_version():
            statement, chunk_of = self._statement(key, source, conditions, ids=False)
        return iter(self._fetched(statement, chunk_of))

    @override
    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        with _known_version():
            statement, _ = self._statement(key, source, conditions, ids=True)
        return self._fetched(statement, lambda row: str(row[0]))

    @abstractmethod
    def _fetched(self, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
        """Return what is made of each row of a statement."""

    @abstractmethod
    def _statement(
        self, key: str, source: Any, conditions: Sequence[Any], *, ids: bool
    ) -> tuple[Any, Callable[[Any], StoredChunk]]:
        """Return the statement that selects these chunks, or only their ids, and what makes a chunk of its row."""

    def _clauses(self, store: Any, conditions: Sequence[Any]) -> list[Any]:
        """Return the store's own clauses for filters; values in them are bound.

        Raises:
            ConfigurationError: The store does not take such a filter.
        """
        clause_of = store._create_filter_clause  # noqa: SLF001
        try:
            return [clause_of(one) for one in map(_without_empty, conditions) if one]
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            msg = f"{type(self._vectorstore).__name__} does not take the filter {conditions!r}: {error}"
            raise ConfigurationError(msg) from error


class PGVector(_Postgres):
    """`PGVector`, sync or async. Filters are dicts."""

    @override
    def collection(self, vectorstore: Any) -> Any:
        # Not the address: connections to one address may see different schemas.
        return _engine_of(vectorstore), vectorstore.collection_name

    @override
    def _fetched(self, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
        store = self._vectorstore
        if store.async_mode:
            return fetched(_engine_of(store), statement, made)
        with _known_version():
            session_of = store._make_sync_session  # noqa: SLF001
        with session_of() as session:  # past what it does to keep track of objects, which takes long
            return list(map(made, session.connection().execute(statement)))

    @override
    def _statement(
        self, key: str, source: Any, conditions: Sequence[Any], *, ids: bool
    ) -> tuple[Any, Callable[[Any], StoredChunk]]:
        from sqlalchemy import select  # noqa: PLC0415 - only where it is used

        store = self._vectorstore
        if store.async_mode and not hasattr(store, "EmbeddingStore"):  # an async one connects at its first use
            msg = "this PGVector is not connected yet: await vectorstore.acreate_collection() before the first question"
            raise ConfigurationError(msg)
        chunks, collections = store.EmbeddingStore, store.CollectionStore
        columns = [chunks.id] if ids else [chunks.id, chunks.document, chunks.cmetadata]
        statement = (
            select(*columns)
            .join(collections, chunks.collection_id == collections.uuid)
            .where(collections.name == store.collection_name, chunks.cmetadata.contains({key: source}))
            .where(*self._clauses(store, conditions))
        )
        return statement, lambda row: StoredChunk(row[0], row[1] or "", row[2] or {})


class PGVectorStore(_Postgres):
    """`PGVectorStore`, and the async store within it. Filters are dicts."""

    harmless = frozenset({"hybrid_search_config", "fts_query"})

    @override
    def collection(self, vectorstore: Any) -> Any:
        with _known_version():
            table = _table_of(vectorstore)
            return table.engine, table.schema_name, table.table_name

    @override
    def _fetched(self, statement: Any, made: Callable[[Any], Made]) -> list[Made]:
        engine = getattr(self._vectorstore, "_engine", None)
        return fetched(_table_of(self._vectorstore).engine, statement, made, loop=getattr(engine, "_loop", None))

    @override
    def _statement(
        self, key: str, source: Any, conditions: Sequence[Any], *, ids: bool
    ) -> tuple[Any, Callable[[Any], StoredChunk]]:
        import sqlalchemy as sa  # noqa: PLC0415 - only where it is used
        from sqlalchemy.dialects.postgresql import JSON  # noqa: PLC0415

        store = _table_of(self._vectorstore)
        fields, untyped = list(store.metadata_columns), sa.types.NullType()  # a value is of its column's type
        others: Any = sa.column(store.metadata_json_column, JSON) if store.metadata_json_column else sa.null()
        columns: list[Any] = [sa.column(store.id_column)]
        if not ids:
            columns += [sa.column(store.content_column), others, *map(sa.column, fields)]
        if key in fields:
            own = sa.column(key) == sa.bindparam("selfroute_source", source, untyped)
        elif store.metadata_json_column:
            own = others[key].astext.in_(_texts(source))
        else:
            msg = f"the table of this PGVectorStore has no column {key!r}: pass another one as source_key="
            raise ConfigurationError(msg)
        statement = sa.select(*columns).select_from(sa.table(store.table_name, schema=store.schema_name)).where(own)
        for clause, values in self._clauses(store, conditions):
            bound = [sa.bindparam(name, value, untyped) for name, value in values.items()]
            statement = statement.where(sa.text(f"({clause})").bindparams(*bound))

        def chunk_of(row: Any) -> StoredChunk:
            id_, text, more, *values = row
            return StoredChunk(str(id_), text or "", {**(more or {}), **dict(zip(fields, values, strict=True))})

        return statement, chunk_of


def _engine_of(vectorstore: Any) -> Any:
    with _known_version():
        return vectorstore._engine or vectorstore._async_engine  # noqa: SLF001


def _table_of(vectorstore: Any) -> Any:
    """Return the async store, which knows its table."""
    return vectorstore if hasattr(vectorstore, "table_name") else vectorstore._PGVectorStore__vs  # noqa: SLF001


def _texts(source: Any) -> Sequence[str]:
    """Return the forms in which JSON as text may hold a source; JSONB writes no exponents."""
    if isinstance(source, str):
        return [source]
    written = json.dumps(source)
    return [written, format(Decimal(written), "f")] if isinstance(source, float) else [written]


def _without_empty(condition: Any) -> Any:
    """Return a filter without parts that hide nothing, which the stores refuse; empty if nothing is left."""
    if not isinstance(condition, Mapping):
        return condition
    name, parts = next(iter(condition.items()), ("", None))
    if len(condition) != 1 or str(name).lower() not in ("$and", "$or") or not isinstance(parts, list):
        return dict(condition)
    left = [_without_empty(part) for part in parts]
    if {} not in left:
        return {name: left}
    left = [part for part in left if part != {}] if name.lower() == "$and" else []
    return {name: left} if left else {}


@contextmanager
def _known_version() -> Iterator[None]:
    try:
        yield
    except AttributeError as error:
        msg = f"langchain-postgres has changed ({error}); use {_SUPPORTED}, which this version of selfroute supports"
        raise ConfigurationError(msg) from error
