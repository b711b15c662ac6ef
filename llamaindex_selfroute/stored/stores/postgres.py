"""List the nodes of Postgres with pgvector.

The integration writes ids, keys and values of filters into the text of its SQL. Here all of them are bound, and filters
mean what they mean in its search: LlamaIndex's own test of metadata lets more through, such as a node without a key
where the key is to differ from a value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from typing_extensions import override

from llamaindex_selfroute import host
from llamaindex_selfroute.stored.conditions import Filters, translated
from llamaindex_selfroute.stored.stores.base import VectorStore
from selfroute.errors import ConfigurationError

_SUPPORTED = "llama-index-vector-stores-postgres 0.6.5 to 0.9"
_COMPARISONS: Mapping[FilterOperator, Callable[[Any, Any], Any]] = {
    FilterOperator.EQ: operator.eq,
    FilterOperator.NE: operator.ne,
    FilterOperator.GT: operator.gt,
    FilterOperator.GTE: operator.ge,
    FilterOperator.LT: operator.lt,
    FilterOperator.LTE: operator.le,
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
        from sqlalchemy import and_, or_, select  # noqa: PLC0415 - only where it is used

        store, joins = self._store, {"and": lambda parts: and_(*parts), "or": lambda parts: or_(*parts)}
        with _known_version():
            store._initialize()  # noqa: SLF001
            table, session_of = store._table_class, store._session  # noqa: SLF001
            metadata = table.metadata_
            where = [metadata["ref_doc_id"].astext == document]
            where += translated(filters, partial(_clause, metadata), joins, store="PGVectorStore")
            statement = select(*(getattr(table, name) for name in columns)).where(*where).order_by(table.id)
        with session_of() as session:
            rows: Sequence[Any] = session.connection().execute(statement).all()
            return rows


def _clause(metadata: Any, one: MetadataFilter) -> Any:
    """Return the clause for one filter, which means what it means in the store's own search.

    Raises:
        ConfigurationError: There is no such operator, or it does not take the value.
    """
    import sqlalchemy as sa  # noqa: PLC0415 - only where it is used
    from sqlalchemy.dialects.postgresql import JSONB, array  # noqa: PLC0415

    value: Any = one.value
    text, whole = metadata[one.key].astext, sa.cast(metadata, JSONB)[one.key]
    clauses: Mapping[FilterOperator, Callable[[], Any]] = {
        **{by: partial(_compared, text, by, value) for by in _COMPARISONS},
        FilterOperator.IN: lambda: text.in_(list(map(str, value))),
        FilterOperator.NIN: lambda: text.not_in(list(map(str, value))),
        FilterOperator.ANY: lambda: whole.has_any(array(map(str, value))),
        FilterOperator.ALL: lambda: whole.has_all(array(map(str, value))),
        FilterOperator.CONTAINS: lambda: whole.contains([str(value)]),
        FilterOperator.TEXT_MATCH: lambda: text.like(f"%{value}%"),
        FilterOperator.TEXT_MATCH_INSENSITIVE: lambda: text.ilike(f"%{value}%"),
        FilterOperator.IS_EMPTY: lambda: text.is_(None),
    }
    try:
        return clauses[one.operator]()
    except (KeyError, TypeError) as error:
        msg = f"PGVectorStore cannot compare {one.key!r} with {value!r} by the filter operator {one.operator}"
        raise ConfigurationError(msg) from error


def _compared(text: Any, by: FilterOperator, value: Any) -> Any:
    """Compare a text, or the number that it stands for where the value can be read as one."""
    from sqlalchemy import Float, cast  # noqa: PLC0415 - only where it is used

    compare = _COMPARISONS[by]
    try:
        number = float(value)
    except ValueError:
        return compare(text, str(value))
    return compare(cast(text, Float), number)


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
