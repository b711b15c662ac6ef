"""Metadata filters: how Chroma takes them, and how LlamaIndex's own store understands them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilters

from llamaindex_selfroute import host
from selfroute.errors import ConfigurationError

Filters: TypeAlias = Sequence[MetadataFilters]
"""All of them have to be met."""
DOCUMENT = ("document_id", "doc_id", "ref_doc_id")
"""Vector stores keep the id of a node's document under these keys."""

_Test: TypeAlias = "Callable[[Mapping[str, Any]], bool]"

_CHROMA = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
}
_CONDITIONS: Mapping[str, Callable[[Iterable[bool]], bool]] = {
    "and": all,
    "or": any,
    "not": lambda met: not any(met),
}


def chroma_where(filters: MetadataFilters) -> dict[str, Any]:
    """Filters as Chroma takes them, the way LlamaIndex translates them for a search."""
    parts = []
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            parts.append(chroma_where(one))
        elif one.operator in _CHROMA:
            parts.append({one.key: {_CHROMA[one.operator]: one.value}})
        else:
            msg = f"Chroma knows no filter {one.operator}"
            raise ConfigurationError(msg)
    condition = {"and": "$and", "or": "$or"}.get(filters.condition or "and")
    if condition is None or not parts:
        msg = f"Chroma knows no condition {filters.condition} over {len(parts)} filters"
        raise ConfigurationError(msg)
    return {condition: parts} if len(parts) > 1 else parts[0]


def together(filters: Filters) -> MetadataFilters | None:
    """All filters as one, as flat as can be: some stores know no filters within filters."""
    if len(filters) < 2:  # noqa: PLR2004
        return filters[0] if filters else None
    flat: list[Any] = []
    for one in filters:
        flat += one.filters if one.condition in (None, FilterCondition.AND) else [one]
    return MetadataFilters(filters=flat)


def test_of(filters: Filters) -> Callable[[BaseNode], bool]:
    """What tells whether all of the filters let a node through, as LlamaIndex's own store does it."""
    tests = [_condition(one) for one in filters]

    def test(node: BaseNode) -> bool:
        document = node.ref_doc_id or "None"
        seen = {**node.metadata, **dict.fromkeys(DOCUMENT, document), "_node_type": node.class_name()}
        return all(meets(seen) for meets in tests)

    return test if tests else lambda _: True


def _condition(filters: MetadataFilters) -> _Test:
    tests: list[_Test] = [
        _condition(one) if isinstance(one, MetadataFilters) else host.metadata_test(MetadataFilters(filters=[one]))
        for one in filters.filters
    ]
    combined = _CONDITIONS[filters.condition or "and"]
    return lambda seen: not tests or combined(meets(seen) for meets in tests)
