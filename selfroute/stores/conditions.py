"""Test metadata against a filter that is a dict, in the form that most vector stores share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")
MetadataTest = Callable[[Mapping[str, Any]], bool]


def _is(value: Any, wanted: Any) -> bool:
    """Return whether a value is the wanted one, or a list that holds it; 5 and 5.0 are equal, 1 and True are not."""
    if isinstance(value, (list, tuple)):
        return any(_is(one, wanted) for one in value)
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)


def _is_not(value: Any, wanted: Any) -> bool:
    return not _is(value, wanted) and bool(value != wanted)


def _is_in(value: Any, wanted: Any) -> bool:
    return isinstance(wanted, (list, tuple)) and any(_is(value, one) for one in wanted)


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _is,
    "$ne": _is_not,
    "$in": _is_in,
    "$nin": lambda value, wanted: isinstance(wanted, (list, tuple)) and all(_is_not(value, one) for one in wanted),
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_JOINS: Mapping[str, Callable[[Iterable[bool]], bool]] = {"$and": all, "$or": any}
_ABSENT = object()


def metadata_test(condition: Any) -> MetadataTest | None:
    """Return a function that tests metadata against a filter, such as `{"tenant": "north", "year": {"$gte": 2024}}`.

    Some stores take 1 and True for equal and others do not: such a value meets neither `$eq` nor `$ne`. An absent key
    meets only `$ne` and `$nin`.

    Returns:
        The test; None if the filter is of another form, so that only the store can apply it.
    """
    return joined(all, [_test(*item) for item in condition.items()]) if isinstance(condition, Mapping) else None


def joined(
    join: Callable[[Iterable[bool]], bool], tests: Sequence[Callable[[Value], bool] | None]
) -> Callable[[Value], bool] | None:
    """Return one test for several, which `join` joins; None if one of them is None."""
    known = [test for test in tests if test]
    return (lambda value: join(test(value) for test in known)) if len(known) == len(tests) else None


def _test(key: Any, wanted: Any) -> MetadataTest | None:
    if key in _JOINS:
        return joined(_JOINS[key], [*map(metadata_test, wanted)]) if isinstance(wanted, Sequence) else None
    if not isinstance(key, str) or key.startswith("$") or "." in key:
        return None
    if isinstance(wanted, (str, int, float)):
        wanted = {"$eq": wanted}
    if not isinstance(wanted, Mapping) or not wanted or not _OPERATORS.keys() >= wanted.keys():
        return None
    return lambda metadata: all(_meets(metadata.get(key, _ABSENT), name, value) for name, value in wanted.items())


def _meets(value: Any, name: str, wanted: Any) -> bool:
    with suppress(TypeError):  # values that have no order
        return _OPERATORS[name](value, wanted)
    return False
