"""The limits of a budget, checked."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from selfroute.errors import ConfigurationError

Per = Literal["question", "hour", "day"] | timedelta
_SECONDS = {"hour": 3600.0, "day": 86400.0}


def seconds_of(per: Any) -> float | None:
    """Return the length of the window that a limit holds for, in seconds; None if it holds for each question.

    Raises:
        ConfigurationError: It is not a length of time.
    """
    if isinstance(per, timedelta) and per > timedelta(0):
        return per.total_seconds()
    if per == "question":
        return None
    if isinstance(per, str) and per in _SECONDS:
        return _SECONDS[per]
    msg = f"per must be 'question', 'hour', 'day' or a positive timedelta, not {per!r}"
    raise ConfigurationError(msg)


def dollars_of(name: str, value: Any) -> Decimal:
    """Return an amount of dollars.

    Raises:
        ConfigurationError: It is not a number, or negative.
    """
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        dollars = Decimal("NaN")
    if isinstance(value, bool) or not dollars.is_finite() or dollars < 0:
        msg = f"{name} must be a number of dollars, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return dollars


def count_of(name: str, value: Any) -> int:
    """Return a number of tokens.

    Raises:
        ConfigurationError: It is not a number, or negative.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"{name} must be a number of tokens, 0 or more; it is {value!r}"
        raise ConfigurationError(msg)
    return value
