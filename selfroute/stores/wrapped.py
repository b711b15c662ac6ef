"""Know a framework's class over a store by its package and name, and whether an object of it searches as it does."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from selfroute.errors import ConfigurationError
from selfroute.stores.listing import Listing

Value = TypeVar("Value")


class Wrapped(ABC):
    """An object of a framework's class over a store, such as LangChain's `Chroma`.

    A subclass is a kind of store: it says which client the framework's object holds, and what its columns are called.

    Attributes:
        wrapper: The framework's object.
        base: The class among its bases that this kind is known by.
        supported: The package and its versions that have the parts which a subclass uses; empty if these are public.
        hooks: Attributes of the wrapper in which a user can have functions of their own for searches.
    """

    supported: str = ""
    hooks: Sequence[str] = ()

    def __init__(self, wrapper: Any, base: type) -> None:
        self.wrapper, self.base = wrapper, base

    @abstractmethod
    def listing_of(self, wrapper: Any) -> Listing:
        """Return what lists the chunks that a wrapper holds."""

    def identity_of(self, wrapper: Any) -> Any:  # noqa: ARG002
        """Return what two wrappers of one collection have in common; None if that is unknown."""
        return None

    def conditions(self, filters: Sequence[Any]) -> Sequence[Any]:
        """Return the framework's filters in the language of the store's client.

        Raises:
            ConfigurationError: The store does not take such filters.
        """
        return filters

    @property
    def ordered(self) -> bool:
        """Whether the store lists chunks in the order in which they were added."""
        return self.listing().ordered

    def native(self, filters: Sequence[Any]) -> Sequence[Any]:
        """Return conditions for the listing.

        Raises:
            ConfigurationError: The store does not take such filters, or the framework's class has changed.
        """
        with in_known_version(self.supported):
            return self.conditions(filters)

    def listing(self) -> Listing:
        """Return what lists the chunks of this store, as it is configured now.

        Raises:
            ConfigurationError: The framework's class has changed.
        """
        with in_known_version(self.supported):
            return self.listing_of(self.wrapper)

    def identity(self) -> Any:
        """Return what other wrappers of the same collection have in common with this one; None if that is unknown."""
        with in_known_version(self.supported):
            return self.identity_of(self.wrapper)

    def is_of(self, wrapper: Any) -> bool:
        """Return whether these chunks are in a wrapper's store."""
        if wrapper is self.wrapper:
            return True
        if not isinstance(wrapper, self.base):
            return False
        with in_known_version(self.supported):
            theirs = self.identity_of(wrapper)
        return theirs is not None and theirs == self.identity()

    def is_plain(self, wrapper: Any) -> bool:
        """Return whether a search of this wrapper hides chunks only by its filter."""
        return searches_as(wrapper, self.base) and all(getattr(wrapper, hook, None) is None for hook in self.hooks)


def kind_of(wrapper: Any, kinds: Mapping[tuple[str, str], Value]) -> tuple[type, Value] | None:
    """Find the base class by which the kind of a store is known; None if it has none.

    It is found by name, since importing it may be slow.

    Args:
        wrapper: A framework's object over a store.
        kinds: The kinds, by package and name of the class.

    Returns:
        The class and its kind.
    """
    for base in type(wrapper).__mro__:
        for (package, name), kind in kinds.items():
            if base.__name__ == name and f"{base.__module__}.".startswith(f"{package}."):
                return base, kind
    return None


@cache
def _searches(kind: type) -> Sequence[str]:
    return [name for name in dir(kind) if "search" in name or "query" in name]


def searches_as(wrapper: Any, kind: type) -> bool:
    """Return whether a store has the search of its kind; a user's subclass may hide more than the filter does."""
    own, changed = type(wrapper), vars(wrapper)
    return all(name not in changed and getattr(own, name, None) is getattr(kind, name) for name in _searches(kind))


def is_sync(function: Any) -> bool:
    """Return whether a value is a callable that returns its result, not a coroutine, which would be true as a test."""
    return callable(function) and not any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


@contextmanager
def in_known_version(supported: str) -> Iterator[None]:
    """Raise a `ConfigurationError` that names the supported versions where a part is missing.

    Args:
        supported: A package and its versions, such as "langchain-milvus 0.3.3 or 0.4"; empty if only public parts of
            it are used.
    """
    try:
        yield
    except AttributeError as error:
        if not supported:
            raise
        msg = (
            f"{supported.partition(' ')[0]} has changed ({error}); use {supported}, which this version of selfroute "
            "supports, or pass fetch="
        )
        raise ConfigurationError(msg) from error
