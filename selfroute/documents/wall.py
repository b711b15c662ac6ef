"""What limits a question: know parts by their exact class, compare filters, and keep them as they were."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Wall:
    """What limits the documents of one question.

    Attributes:
        declared: What the user declared that each chunk must match; None if nothing was declared.
        retriever: What limits the retriever, in the framework's terms; None if that is unknown.
        certain: Whether nothing else hides chunks.
        dropped: As in `Access`.
    """

    declared: Any = None
    retriever: Any = None
    certain: bool = False
    dropped: set[Hashable] = field(default_factory=set)

    @property
    def doubted(self) -> bool:
        """Whether parts that we do not know may hide more than any filter says."""
        return self.declared is None and not self.certain


def name_of(kind: Any) -> str:
    """Return the full name of a class or a function."""
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def is_one_of(part: Any, names: AbstractSet[str]) -> bool:
    """Return whether the class of a part has one of these full names; a subclass has another one."""
    return name_of(type(part)) in names


def names_in(package: str, classes: Mapping[str, str]) -> frozenset[str]:
    """Return the full names of classes, which are listed by the modules of a package, with spaces between them."""
    return frozenset(f"{package}.{module}.{name}" for module, names in classes.items() for name in names.split())


def is_same(one: Any, other: Any) -> bool:
    """Return whether two filters are surely the same; some kinds make another filter out of `==`."""
    if one is other:
        return True
    with suppress(Exception):
        return type(one) is type(other) and (one == other) is True
    return False


def frozen(value: Any) -> Any:
    """Return a copy of a filter, which later changes of the filter do not reach.

    It is the filter itself if that cannot be copied or compared with its copy, such as a callable.
    """
    if callable(value) or getattr(type(value), "__eq__", None) is object.__eq__:
        return value
    with suppress(Exception):
        copied = deepcopy(value)
        if is_same(copied, value):
            return copied
    return value
