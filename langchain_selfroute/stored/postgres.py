"""Read Postgres with pgvector: `PGVector` and `PGVectorStore` of `langchain_postgres`. Filters are dicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from langchain_selfroute.stored.stores import Store
from selfroute.errors import ConfigurationError
from selfroute.stores.sql import Sql, in_session, on_async_engine


class _Postgres(Store):
    takes = "a dict as filter, such as {'tenant': 'north'}"
    supported = "langchain-postgres 0.0.17 to 0.0.19"

    def _clauses(self, store: Any, filters: Sequence[Any]) -> list[Any]:
        """Return the store's own clauses for filters, in which values are bound."""
        clause_of = store._create_filter_clause  # noqa: SLF001
        try:
            return [clause_of(one) for one in map(_without_empty, filters) if one]
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            msg = f"{type(self.wrapper).__name__} does not take the filter {filters!r}: {error}"
            raise ConfigurationError(msg) from error


class PGVector(_Postgres):
    """`PGVector`, sync or async."""

    def listing_of(self, wrapper: Any) -> Sql:
        """Read the rows of its collection."""
        if wrapper.async_mode and not hasattr(wrapper, "EmbeddingStore"):  # an async one connects at its first use
            msg = "this PGVector is not connected yet: await vectorstore.acreate_collection() before the first question"
            raise ConfigurationError(msg)
        import sqlalchemy as sa  # noqa: PLC0415 - only where it is used

        chunks, collections = wrapper.EmbeddingStore, wrapper.CollectionStore
        here = sa.and_(chunks.collection_id == collections.uuid, collections.name == wrapper.collection_name)
        of_async = wrapper.async_mode
        return Sql(
            sa,
            on_async_engine(sa, _engine_of(wrapper)) if of_async else in_session(wrapper._make_sync_session),  # noqa: SLF001
            id=chunks.id,
            text=chunks.document,
            metadata=chunks.cmetadata,
            own=lambda key, source: sa.and_(here, chunks.cmetadata.contains({key: source})),
        )

    def identity_of(self, wrapper: Any) -> Any:
        """Return its engine, not the address: connections to one address may see different schemas."""
        return _engine_of(wrapper), wrapper.collection_name

    def conditions(self, filters: Sequence[Any]) -> list[Any]:
        """Return clauses."""
        return self._clauses(self.wrapper, filters) if filters else []


class PGVectorStore(_Postgres):
    """`PGVectorStore`, and the async store within it."""

    harmless = frozenset({"hybrid_search_config", "fts_query"})

    def listing_of(self, wrapper: Any) -> Sql:
        """Read the rows of its table."""
        import sqlalchemy as sa  # noqa: PLC0415 - only where it is used
        from sqlalchemy.dialects.postgresql import JSON  # noqa: PLC0415

        store = _table_of(wrapper)
        name, untyped = store.metadata_json_column, sa.types.NullType()  # a value is of its column's type
        fields: dict[str, Any] = {field: sa.column(field) for field in store.metadata_columns}
        more = [] if name is None else [sa.column(name, JSON)]
        columns = [sa.column(store.id_column), sa.column(store.content_column), *more, *fields.values()]
        table = sa.table(store.table_name, *columns, schema=store.schema_name)

        def own(key: str, source: Any) -> Any:
            if key in fields:
                return table.c[key] == sa.bindparam("selfroute_source", source, untyped)
            if name is None:
                msg = f"the table of this PGVectorStore has no column {key!r}: pass another one as source_key="
                raise ConfigurationError(msg)
            return table.c[name][key].astext.in_(_texts(source))

        return Sql(
            sa,
            on_async_engine(sa, store.engine, getattr(getattr(wrapper, "_engine", None), "_loop", None)),
            id=table.c[store.id_column],
            text=table.c[store.content_column],
            metadata=sa.null() if name is None else table.c[name],
            fields={field: table.c[field] for field in fields},
            own=own,
        )

    def identity_of(self, wrapper: Any) -> Any:
        """Return its engine and its table."""
        store = _table_of(wrapper)
        return store.engine, store.schema_name, store.table_name

    def conditions(self, filters: Sequence[Any]) -> list[Any]:
        """Return clauses."""
        import sqlalchemy as sa  # noqa: PLC0415 - only where it is used

        conditions, untyped = [], sa.types.NullType()
        for clause, values in self._clauses(_table_of(self.wrapper), filters) if filters else ():
            bound = [sa.bindparam(name, value, untyped) for name, value in values.items()]
            conditions.append(sa.text(f"({clause})").bindparams(*bound))
        return conditions


def _engine_of(vectorstore: Any) -> Any:
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
