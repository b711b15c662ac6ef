"""Name the field that cannot be deep-copied; pickle's own errors are left as they are."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

Whole = TypeVar("Whole")


def uncopied(whole: object, error: TypeError) -> TypeError:
    """Return an error that names the field of an object whose deep copy failed; the same one if no field fails."""
    for name, part in vars(whole).items():
        try:
            deepcopy(part)
        except TypeError:  # noqa: PERF203 - the name is of this field
            return _named(whole, name, error)
    return error


def _named(whole: object, name: str, error: TypeError) -> TypeError:
    return TypeError(f"{type(whole).__name__}.{name.strip('_')} cannot be copied: {error}")


class NamesUncopied:
    """An object whose deep copy fails with the name of the field that cannot be copied."""

    def __deepcopy__(self: Whole, memo: dict[int, Any]) -> Whole:  # noqa: PYI019 - Python 3.10 has no typing.Self
        made = memo[id(self)] = object.__new__(type(self))
        for name, part in vars(self).items():
            try:
                vars(made)[name] = deepcopy(part, memo)
            except TypeError as error:  # noqa: PERF203 - the name is of this field
                raise _named(self, name, error) from error
        return made
