"""Check values of plain JSON that somebody else may have written, each by its type and its range.

A function returns the value that it is given, or raises one of the errors in `WRONG`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

Kind = TypeVar("Kind")
Number = TypeVar("Number", int, float, Decimal)
Check = Callable[[Any], Any]
MOST = 10**15
"""What is more is neither a number of tokens nor of dollars or seconds, and might not fit a float."""
WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that come from reading what is not as described."""
_PLACES = 60  # of an amount; written out, 1E-999999 has a million


def _of(kind: type[Kind]) -> Callable[[Any], Kind]:
    """Return a check for a value of a type; True and False are no numbers."""

    def check(value: Any) -> Kind:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            _refuse(value)
        return value

    return check


whole, text, flag = _of(int), _of(str), _of(bool)
items: Callable[[Any], list[Any]] = _of(list)


def count(value: Any, most: int = MOST) -> int:
    """Return a whole number that is not negative."""
    return _within(whole(value), most)


def number(value: Any, most: float = MOST) -> float:
    """Return a number that is not negative."""
    return _within(value if isinstance(value, float) else whole(value), most)


def amount(value: Any) -> Decimal:
    """Return the dollars that a decimal string says."""
    dollars = _within(Decimal(text(value)), MOST)
    places = dollars.as_tuple().exponent
    if not isinstance(places, int) or places < -_PLACES:
        _refuse(value)
    return dollars


def texts(value: Any) -> list[str]:
    """Return a list of texts."""
    return [text(one) for one in items(value)]


def named(value: Any) -> dict[str, Any]:
    """Return an object, as a dict."""
    if not isinstance(value, Mapping):
        _refuse(value)
    return {text(name): one for name, one in value.items()}


def anything(value: Any) -> Any:
    """Return any value."""
    return value


def optional(check: Check) -> Check:
    """Return a check that also lets None through."""
    return lambda value: None if value is None else check(value)


def one_of(values: Collection[Any]) -> Check:
    """Return a check for one of some texts."""
    return lambda value: value if text(value) in values else _refuse(value)


def fields(value: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Return an object with exactly these names, each with its value checked."""
    found = named(value)
    if found.keys() != checks.keys():
        _refuse(value)
    return {name: check(found[name]) for name, check in checks.items()}


def _within(value: Number, most: float) -> Number:
    if not 0 <= value <= most:  # which also refuses, or raises for, what is not a number
        _refuse(value)
    return value


def _refuse(value: Any) -> NoReturn:
    msg = f"{str(value)[:40]!r} is of the wrong type or out of range"
    raise ValueError(msg)
