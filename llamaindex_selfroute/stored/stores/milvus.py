"""List the nodes of Milvus, embedded or a server.

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
from selfroute.documents.milvus import Collection, is_word, literal
from selfroute.errors import ConfigurationError

_COMPARED = {
    FilterOperator.EQ: "==",
    FilterOperator.NE: "!=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "not in",
}
_CALLED = {
    FilterOperator.CONTAINS: "array_contains",
    FilterOperator.ANY: "array_contains_any",
    FilterOperator.ALL: "array_contains_all",
}
_JOINS = {"and": joined("and"), "or": joined("or")}


class Milvus(VectorStore):
    """`MilvusVectorStore`. Nodes have ids of their own, by which Milvus lists them."""

    ordered = False
    lists_ids = True

    @override
    def collection(self, store: Any) -> Any:
        # Not `store.uri`, which is always the default one.
        return store.client, store.collection_name

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        store, collection = self._store, self._described()
        columns = frozenset({collection.primary, store.doc_id_field, store.text_key})
        for row in collection.rows(self._where(collection, document, filters)):
            yield node_of(row, row.get(store.text_key), columns)

    @override
    def ids(self, document: str, filters: Filters) -> list[str]:
        if filters:
            return super().ids(document, filters)
        collection = self._described()
        return collection.ids(self._where(collection, document, filters))

    def _described(self) -> Collection:
        return Collection.of(self._store.client, self._store.collection_name)

    def _where(self, collection: Collection, document: str, filters: Filters) -> Sequence[str]:
        own = f"{self._store.doc_id_field} == {literal(document)}"
        return [own, *translated(filters, partial(_met, collection), _JOINS, store="Milvus")]


def _met(collection: Collection, one: MetadataFilter) -> str | None:
    """Return one filter in Milvus's language; None if the store's search ignores it."""
    # A key that is a word may stand as it is, as it does in the store's search: not every function takes a path.
    name, value = one.key if is_word(one.key) else collection.path(one.key), literal(one.value)
    if one.operator == FilterOperator.IS_EMPTY:
        return f"array_length({name}) == 0"
    if one.value is None:
        return None
    if one.operator in _COMPARED:
        return f"{name} {_COMPARED[one.operator]} {value}"
    if one.operator in _CALLED:
        return f"{_CALLED[one.operator]}({name}, {value})"
    if one.operator == FilterOperator.TEXT_MATCH:
        return f"{name} like {literal(f'{one.value}%')}"
    msg = f"Milvus has no filter operator {one.operator}; use another one"
    raise ConfigurationError(msg)
