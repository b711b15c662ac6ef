"""Refuse a part that was given in the place of another, in one line: what it is, what is wanted, how to get that."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from selfroute.error_text import without_secrets
from selfroute.errors import ConfigurationError

_NAME = re.compile(r"(?![A-Za-z0-9]{20})[\w.:/@-]{1,60}")  # of a model; long runs of letters and digits may be keys
_EXAMPLE = "gpt-4o-mini"


@dataclass(frozen=True, slots=True)
class Place:
    """An argument that takes a part.

    Attributes:
        wanted: The part that it takes, with its article.
        how: How to get that part.
        instead: By kind of part: how to get it from what was given. `{name}` stands for the name of a model.
    """

    wanted: str
    how: str
    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of parts of a framework.

    Attributes:
        types: By the name of each kind, with its article: its base class.
    """

    types: Mapping[str, type | tuple[type, ...]]

    def of(self, value: Any) -> str | None:
        """Return the kind of a part; "text", "class" and "function" for these, None if it is of no known kind."""
        if isinstance(value, type):
            return "class"
        if isinstance(value, str):
            return "text"
        if inspect.isroutine(value):
            return "function"
        return next((name for name, type_ in self.types.items() if isinstance(value, type_)), None)

    def refuse(self, argument: str, value: Any, place: Place) -> NoReturn:
        """Refuse a part.

        Args:
            argument: The name of the argument.
            value: The part.
            place: The argument's place.

        Raises:
            ConfigurationError: Always.
        """
        kind = self.of(value)
        how = place.instead.get(kind or "", place.how)
        if kind == "class":
            how = f"pass an object, {value.__name__}(...)"
        name = _name_of(value) if "{name}" in how else None
        msg = f"{argument} must be {place.wanted}, not {_described(value, kind, name)}: "
        raise ConfigurationError(msg + how.replace("{name}", repr(name or _EXAMPLE)))


def _described(value: Any, kind: str | None, name: str | None) -> str:
    if kind == "text":
        return f"the text {name!r}" if name else "a text"
    if kind == "class":
        return f"the class {value.__name__}"
    if value is None:
        return "None"
    if kind == "function":
        return "a function"
    what = type(value).__name__
    article = "an" if what[0] in "AEIOU" else "a"
    known = kind is None or kind.endswith(what.lower())
    return f"{article} {what}" + ("" if known else f", which is {kind}")


def _name_of(value: Any) -> str | None:
    """Return a text if it may be the name of a model; other texts are not shown, since they may be secret."""
    if isinstance(value, str) and _NAME.fullmatch(value) and without_secrets(value) == value:
        return value
    return None
