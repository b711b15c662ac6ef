"""List the nodes of LanceDB.

Filters mean what they mean in the store's search, and what comes is tested by LlamaIndex's own test as well: each lets
through some nodes that the other hides, such as one without a key where the key is to differ from a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import Filters, joined, translated
from llamaindex_selfroute.stored.stores.base import VectorStore
from llamaindex_selfroute.stored.stores.rows import node_of
from selfroute.documents.lancedb import column, fields_of, literal, rows_of
from selfroute.errors import ConfigurationError

_METADATA = "metadata"
_COMPARED = {
    FilterOperator.EQ: "=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
}
_LIKE = {FilterOperator.TEXT_MATCH: "LIKE", FilterOperator.NE: "NOT LIKE"}
_JOINS = {"and": joined("AND"), "or": joined("OR")}


class LanceDB(VectorStore):
    """`LanceDBVectorStore`."""

    lists_ids = True

    @override
    def collection(self, store: Any) -> Any:
        place = str(getattr(store.client, "uri", "") or "memory:")
        name = getattr(store, "_table_name", None)
        return (place, name) if name and not place.startswith("memory:") else None

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        text = self._store.text_key
        for row in self._rows(document, filters, [text, _METADATA]):
            yield node_of(row[_METADATA], row[text])

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        if filters:
            return super().ids(document, filters)
        return [row["id"] for row in self._rows(document, filters, ["id"])]

    def _rows(self, document: str, filters: Filters, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        table = self._store.table
        own = f"{column(self._store.doc_id_key)} = {literal(document)}"
        keys = frozenset(fields_of(table, _METADATA))
        return rows_of(table, [own, *translated(filters, partial(_met, keys), _JOINS, store="LanceDB")], columns)


def _met(keys: frozenset[str], one: MetadataFilter) -> str:
    """Return one filter in SQL."""
    if one.key not in keys:
        return "FALSE"  # no node has it
    name, value, operator = column(_METADATA, one.key), one.value, one.operator
    if operator in _LIKE:
        return f"{name} {_LIKE[operator]} {literal(f'%{value}%')}"
    if operator == FilterOperator.IN and isinstance(value, list):
        return f"{name} IN ({', '.join(map(literal, value))})" if value else "FALSE"
    if operator in _COMPARED:
        return f"{name} {_COMPARED[operator]} {literal(value if isinstance(value, int | float) else str(value))}"
    msg = f"LanceDB has no filter operator {operator} for {value!r}; use another one"
    raise ConfigurationError(msg)
