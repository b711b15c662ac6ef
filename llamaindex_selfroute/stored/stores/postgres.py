"""List the nodes of Postgres with pgvector.

The integration writes ids, keys and values of filters into the text of its SQL. Here all of them are bound, and filters
mean what they mean in its search: LlamaIndex's own test of metadata lets more through, such as a node without a key
where the key is to differ from a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import override

from llamaindex_selfroute import host
from llamaindex_selfroute.stored.conditions import Filters
from llamaindex_selfroute.stored.stores.base import VectorStore
from selfroute.errors import ConfigurationError

_SUPPORTED = "llama-index-vector-stores-postgres 0.6.5 to 0.9"
_COMPARED = {
    FilterOperator.EQ: "__eq__",
    FilterOperator.NE: "__ne__",
    FilterOperator.GT: "__gt__",
    FilterOperator.GTE: "__ge__",
    FilterOperator.LT: "__lt__",
    FilterOperator.LTE: "__le__",
}


class Postgres(VectorStore):
    """`PGVectorStore`; rows have numbers in the order in which they were added."""

    lists_ids = True
    tests_filters = False

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        # The user's function for queries may hide what no filter hides.
        customised = getattr(host.vector_store_of(retriever), "_customize_query_fn", None)
        return customised is None and super().is_searched_by(retriever)

    @override
    def collection(self, store: Any) -> Any:
        # Not the address: connections to one address may see different schemas.
        engine = getattr(store, "_engine", None)
        return engine and (engine, store.schema_name, store.table_name)

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        for text, metadata in self._selected(document, filters, "text", "metadata_"):
            yield metadata_dict_to_node(metadata, text=text)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        return list(dict.fromkeys(id_ for (id_,) in self._selected(document, filters, "node_id")))

    def _selected(self, document: str, filters: Filters, *columns: str) -> Sequence[Any]:
        """Return columns of the rows of a document's nodes, all before the first is used: no connection is kept."""
        from sqlalchemy import select

        store = self._store
        with _known_version():
            store._initialize()  # noqa: SLF001
            table, session_of = store._table_class, store._session  # noqa: SLF001
            metadata = table.metadata_
            where = [metadata["ref_doc_id"].astext == document]
            where += [part for part in (_where(metadata, one) for one in filters) if part is not None]
            statement = select(*(getattr(table, name) for name in columns)).where(*where).order_by(table.id)
        with session_of() as session:
            rows: Sequence[Any] = session.execute(statement).all()
            return rows


def _where(metadata: Any, filters: MetadataFilters) -> Any:
    """Return the clause for filters; None if they hide nothing."""
    from sqlalchemy import and_, or_

    ways = {"and": and_, "or": or_}
    combined = ways.get(filters.condition or "and")
    if combined is None:
        msg = f"PGVectorStore cannot combine filters with {filters.condition}; use FilterCondition.AND or OR"
        raise ConfigurationError(msg)
    parts = [_where(metadata, one) if isinstance(one, MetadataFilters) else _met(metadata, one) for one in filters.filters]
    parts = [part for part in parts if part is not None]
    return combined(*parts) if parts else None


def _met(metadata: Any, one: MetadataFilter) -> Any:
    """Return the clause for one filter, which means what it means in the store's own search."""
    from sqlalchemy import Float, cast
    from sqlalchemy.dialects.postgresql import JSONB, array

    text, operator, value = metadata[one.key].astext, one.operator, one.value
    try:
        if operator in _COMPARED:
            number = _number(value)
            held, sought = (text, str(value)) if number is None else (cast(text, Float), number)
            return getattr(held, _COMPARED[operator])(sought)
        if operator in (FilterOperator.IN, FilterOperator.NIN):
            texts = [str(each) for each in value]
            return text.in_(texts) if operator == FilterOperator.IN else text.not_in(texts)
        if operator in (FilterOperator.ANY, FilterOperator.ALL):
            held, texts = cast(metadata, JSONB)[one.key], array([str(each) for each in value])
            return held.has_any(texts) if operator == FilterOperator.ANY else held.has_all(texts)
        if operator == FilterOperator.CONTAINS:
            return cast(metadata, JSONB)[one.key].contains([str(value)])
    except TypeError as error:
        msg = f"the filter for {one.key!r} does not take the value {value!r} with {operator}: {error}"
        raise ConfigurationError(msg) from error
    patterns = {FilterOperator.TEXT_MATCH: text.like, FilterOperator.TEXT_MATCH_INSENSITIVE: text.ilike}
    if operator in patterns:
        return patterns[operator](f"%{value}%")
    if operator == FilterOperator.IS_EMPTY:
        return text.is_(None)
    msg = f"PGVectorStore has no filter operator {operator}; use another one"
    raise ConfigurationError(msg)


def _number(value: Any) -> float | None:
    """Return a value as the number that the store compares it as; None for a text."""
    try:
        return float(value)
    except ValueError:
        return None


@contextmanager
def _known_version() -> Iterator[None]:
    try:
        yield
    except AttributeError as error:
        msg = (
            f"llama-index-vector-stores-postgres has changed ({error}); use {_SUPPORTED}, which this version of "
            "selfroute supports"
        )
        raise ConfigurationError(msg) from error
