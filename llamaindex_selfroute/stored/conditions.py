"""Join metadata filters, and apply them as LlamaIndex's own vector store does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

from llamaindex_selfroute import internals
from selfroute.errors import ConfigurationError

Filters: TypeAlias = Sequence[MetadataFilters]
"""Filters that must all match."""
DOCUMENT = ("document_id", "doc_id", "ref_doc_id")
"""The keys under which vector stores keep the id of a node's document."""

_Test: TypeAlias = "Callable[[Mapping[str, Any]], bool]"

_CONDITIONS: Mapping[str, Callable[[Iterable[bool]], bool]] = {
    "and": all,
    "or": any,
    "not": lambda met: not any(met),
}


def translated(
    filters: Iterable[MetadataFilters | MetadataFilter],
    one: Callable[[MetadataFilter], Any],
    joins: Mapping[str, Callable[[Sequence[Any]], Any]],
    *,
    store: str,
) -> list[Any]:
    """Return filters in a store's own language, without those that hide nothing.

    Args:
        filters: The filters.
        one: Translates one filter; it returns None if that hides nothing.
        joins: Joins what was translated, by `"and"` and `"or"`.
        store: The name of the store, for error messages.

    Raises:
        ConfigurationError: The store has no such condition.
    """

    def nested(each: MetadataFilters) -> Any:
        join = joins.get(each.condition or "and")
        if join is None:
            msg = f"{store} cannot combine filters with {each.condition}; use FilterCondition.AND or OR"
            raise ConfigurationError(msg)
        parts = translated(each.filters, one, joins, store=store)
        return join(parts) if parts else None

    found = (nested(each) if isinstance(each, MetadataFilters) else one(each) for each in filters)
    return [part for part in found if part is not None]


def together(filters: Filters) -> MetadataFilters | None:
    """Return all filters as one, as flat as possible: some stores do not support nested filters."""
    if len(filters) < 2:  # noqa: PLR2004
        return filters[0] if filters else None
    flat: list[Any] = []
    for one in filters:
        flat += one.filters if one.condition in (None, FilterCondition.AND) else [one]
    return MetadataFilters(filters=flat)


def test_of(filters: Filters) -> Callable[[BaseNode], bool]:
    """Return a function that tests whether a node meets all filters, as LlamaIndex's own vector store does."""
    tests = [_condition(one) for one in filters]

    def test(node: BaseNode) -> bool:
        document = node.ref_doc_id or "None"
        metadata = {**node.metadata, **dict.fromkeys(DOCUMENT, document), "_node_type": node.class_name()}
        return all(meets(metadata) for meets in tests)

    return test if tests else lambda _: True


def _condition(filters: MetadataFilters) -> _Test:
    tests: list[_Test] = [
        _condition(one) if isinstance(one, MetadataFilters) else internals.metadata_test(MetadataFilters(filters=[one]))
        for one in filters.filters
    ]
    combined = _CONDITIONS[filters.condition or "and"]
    return lambda metadata: not tests or combined(meets(metadata) for meets in tests)
