"""Join metadata filters, apply them as LlamaIndex's own vector store does, and translate them for other stores.

What is translated means what it means in the stores' own searches. LlamaIndex writes keys and values into the text of
queries; here they are bound or escaped. Each search lets through some nodes that LlamaIndex's own test of metadata
hides, such as one without a key where the key is to differ from a value, and the other way round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeAlias

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_selfroute import internals
from selfroute.errors import ConfigurationError
from selfroute.stores import lancedb, milvus

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
_METADATA = "metadata"  # LanceDB's column
_Operator = FilterOperator
_CHROMA = {
    _Operator.EQ: "$eq",
    _Operator.NE: "$ne",
    _Operator.GT: "$gt",
    _Operator.GTE: "$gte",
    _Operator.LT: "$lt",
    _Operator.LTE: "$lte",
    _Operator.IN: "$in",
    _Operator.NIN: "$nin",
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    _Operator.EQ: operator.eq,
    _Operator.NE: operator.ne,
    _Operator.GT: operator.gt,
    _Operator.GTE: operator.ge,
    _Operator.LT: operator.lt,
    _Operator.LTE: operator.le,
}
_IN_MILVUS = {**{by: by.value for by in _CHROMA}, _Operator.NIN: "not in"}
_CALLED = {
    _Operator.CONTAINS: "array_contains",
    _Operator.ANY: "array_contains_any",
    _Operator.ALL: "array_contains_all",
}
_LIKE = {_Operator.TEXT_MATCH: "LIKE", _Operator.NE: "NOT LIKE"}


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


def strict_test_of(filters: Filters) -> Callable[[BaseNode], bool]:
    """Return the same, for nodes that no store has tested: True and False are no numbers, as they are to Python."""
    test = test_of(filters)

    def strict(node: BaseNode) -> bool:
        values = {key: str(one) if isinstance(one, bool) else one for key, one in node.metadata.items()}
        return test(node) and (values == node.metadata or test(node.model_copy(update={"metadata": values})))

    return strict


def _condition(filters: MetadataFilters) -> _Test:
    tests: list[_Test] = [
        _condition(one) if isinstance(one, MetadataFilters) else internals.metadata_test(MetadataFilters(filters=[one]))
        for one in filters.filters
    ]
    combined = _CONDITIONS[filters.condition or "and"]
    return lambda metadata: not tests or combined(meets(metadata) for meets in tests)


def _translated(
    store: str,
    filters: Iterable[MetadataFilters | MetadataFilter],
    one: Callable[[MetadataFilter], Any],
    join: Callable[[str, Sequence[Any]], Any],
) -> list[Any]:
    """Return filters in a store's own language, without those that hide nothing.

    Args:
        store: The name of the store, for error messages.
        filters: The filters.
        one: Translates one filter; it returns None if that hides nothing.
        join: Joins what was translated, by `"and"` or `"or"`; it returns None if it is given nothing.

    Raises:
        ConfigurationError: The store has no such condition.
    """

    def nested(each: MetadataFilters) -> Any:
        if each.condition not in (None, FilterCondition.AND, FilterCondition.OR):
            msg = f"{store} cannot combine filters with {each.condition}; use FilterCondition.AND or OR"
            raise ConfigurationError(msg)
        by = "or" if each.condition == FilterCondition.OR else "and"
        return join(by, _translated(store, each.filters, one, join))

    found = (nested(each) if isinstance(each, MetadataFilters) else one(each) for each in filters)
    return [part for part in found if part is not None]


def in_chroma(filters: Filters) -> list[Any]:
    """Return filters in the form of Chroma's `where`."""

    def met(one: MetadataFilter) -> Mapping[str, Any]:
        if one.operator not in _CHROMA:
            _refuse("Chroma", one)
        return {one.key: {_CHROMA[one.operator]: one.value}}

    def join(by: str, parts: Sequence[Any]) -> Any:
        if not parts:  # it may be a list of tenants that has turned out empty
            msg = "Chroma cannot combine 0 filters: leave the empty MetadataFilters out, or put a condition into it"
            raise ConfigurationError(msg)
        return {f"${by}": parts} if len(parts) > 1 else parts[0]

    return _translated("Chroma", filters, met, join)


def in_lancedb(filters: Filters, table: Any) -> list[str]:
    """Return filters in SQL, for the keys of metadata that a table has."""
    keys = lancedb.fields_of(table, _METADATA) if filters else {}

    def met(one: MetadataFilter) -> str:
        if one.key not in keys:
            return "FALSE"  # no node has it
        name, value = lancedb.column(_METADATA, one.key), one.value
        if one.operator in _LIKE:
            return f"{name} {_LIKE[one.operator]} {lancedb.literal(f'%{value}%')}"
        if one.operator == _Operator.IN and isinstance(value, list):
            return f"{name} IN ({', '.join(map(lancedb.literal, value))})" if value else "FALSE"
        if one.operator in _COMPARISONS:
            by = "=" if one.operator == _Operator.EQ else one.operator.value
            return f"{name} {by} {lancedb.literal(value if isinstance(value, int | float) else str(value))}"
        return _refuse("LanceDB", one)

    return _translated("LanceDB", filters, met, _in_brackets)


def in_milvus(filters: Filters, path: Callable[[str], str | None]) -> list[str]:
    """Return filters in Milvus's language; `path` returns how this names a field."""

    def met(one: MetadataFilter) -> str | None:
        # A key that is a word may stand as it is, as it does in the store's search: not every function takes a path.
        name, value = one.key if milvus.is_word(one.key) else path(one.key), milvus.literal(one.value)
        if one.operator == _Operator.IS_EMPTY:
            return f"array_length({name}) == 0"
        if one.value is None:
            return None  # the search ignores it
        if one.operator in _IN_MILVUS:
            return f"{name} {_IN_MILVUS[one.operator]} {value}"
        if one.operator in _CALLED:
            return f"{_CALLED[one.operator]}({name}, {value})"
        if one.operator == _Operator.TEXT_MATCH:
            return f"{name} like {milvus.literal(f'{one.value}%')}"
        return _refuse("Milvus", one)

    return _translated("Milvus", filters, met, _in_brackets)


def in_postgres(filters: Filters, metadata: Any) -> list[Any]:
    """Return filters as clauses on a column of JSON."""
    from sqlalchemy import and_, or_  # noqa: PLC0415 - only where it is used

    def join(by: str, parts: Sequence[Any]) -> Any:
        return (or_ if by == "or" else and_)(*parts) if parts else None

    return _translated("PGVectorStore", filters, partial(_clause, metadata), join)


def _clause(metadata: Any, one: MetadataFilter) -> Any:
    import sqlalchemy as sa  # noqa: PLC0415 - only where it is used
    from sqlalchemy.dialects.postgresql import JSONB, array  # noqa: PLC0415

    value: Any = one.value
    text, whole = metadata[one.key].astext, sa.cast(metadata, JSONB)[one.key]
    clauses: Mapping[str, Callable[[], Any]] = {
        **{by: partial(_compared, text, compare, value) for by, compare in _COMPARISONS.items()},
        _Operator.IN: lambda: text.in_(list(map(str, value))),
        _Operator.NIN: lambda: text.not_in(list(map(str, value))),
        _Operator.ANY: lambda: whole.has_any(array(map(str, value))),
        _Operator.ALL: lambda: whole.has_all(array(map(str, value))),
        _Operator.CONTAINS: lambda: whole.contains([str(value)]),
        _Operator.TEXT_MATCH: lambda: text.like(f"%{value}%"),
        _Operator.TEXT_MATCH_INSENSITIVE: lambda: text.ilike(f"%{value}%"),
        _Operator.IS_EMPTY: lambda: text.is_(None),
    }
    try:
        return clauses[one.operator]()
    except (KeyError, TypeError) as error:
        msg = f"PGVectorStore cannot compare {one.key!r} with {value!r} by the filter operator {one.operator}"
        raise ConfigurationError(msg) from error


def _compared(text: Any, compare: Callable[[Any, Any], Any], value: Any) -> Any:
    """Compare a text, or the number that it stands for where the value can be read as one."""
    from sqlalchemy import Float, cast  # noqa: PLC0415 - only where it is used

    try:
        number = float(value)
    except ValueError:
        return compare(text, str(value))
    return compare(cast(text, Float), number)


def _in_brackets(by: str, parts: Sequence[str]) -> str | None:
    return f" {by} ".join(f"({part})" for part in parts) or None


def _refuse(store: str, one: MetadataFilter) -> NoReturn:
    msg = f"{store} has no filter operator {one.operator} for {one.value!r}; use another one"
    raise ConfigurationError(msg)
