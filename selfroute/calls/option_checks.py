"""Check the value of one option, and say what the option takes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import index
from typing import Any

from pydantic import ValidationInfo

from selfroute.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Takes:
    """Checks the values of an option; pydantic's `BeforeValidator` takes it.

    Attributes:
        what: What the option takes, for the error message.
        check: Returns the value to use. It raises a `ConfigurationError` of its own, or a bare error.
        optional: Whether the option also takes None.
    """

    what: str
    check: Callable[[Any], Any]
    optional: bool = False

    def __call__(self, value: Any, info: ValidationInfo) -> Any:
        """Check the value of a field."""
        return self.checked(str(info.field_name), value)

    def checked(self, name: str, value: Any) -> Any:
        """Return the value to use for the option of this name.

        Raises:
            ConfigurationError: The value is not valid.
        """
        if value is None and self.optional:
            return None
        try:
            return self.check(value)
        except ConfigurationError:
            raise
        except (TypeError, ValueError):
            msg = f"{name} must be {self.what}; it is {value!r}"
            raise ConfigurationError(msg) from None


def whole(least: int, most: int | None = None) -> Callable[[Any], int]:
    """Return a check for a whole number within these bounds."""

    def check(value: Any) -> int:
        number = index(value)  # numpy's integers, too
        if isinstance(value, bool) or number < least or (most is not None and number > most):
            raise ValueError
        return number

    return check


def several(check: Callable[[Any], int], least: int, most: int | None = None) -> Callable[[Any], Any]:
    """Return a check for one value, or for a list or tuple of at least and at most so many."""

    def checked(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return check(value)
        if len(value) < least or (most is not None and len(value) > most):
            raise ValueError
        return tuple(map(check, value))

    return checked


def one_of(values: Collection[str]) -> Callable[[Any], Any]:
    """Return a check for one of these strings."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in values:
            raise ValueError
        return value

    return check


def words(value: Any) -> str:
    """Check for a text with a letter or a digit; return it without the white space around it."""
    if not isinstance(value, str) or not any(map(str.isalnum, value)):
        raise ValueError
    return value.strip()


def switch(value: Any) -> bool:
    """Check for True or False."""
    if not isinstance(value, bool):
        raise TypeError
    return value
