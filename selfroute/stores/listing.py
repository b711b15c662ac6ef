"""List the chunks of one document, looked at once more before they are read, in stores that are known by their classes.

A framework's class over a store is known by its package and name, since importing it may be slow.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from selfroute.documents.access import StoredChunk
from selfroute.documents.chunks import without_keys
from selfroute.errors import ConfigurationError, ReplyError

Row = TypeVar("Row")
Kind = TypeVar("Kind", bound="Wrapped")
Test = Callable[[StoredChunk], bool]


class Listing(ABC):
    """Lists the chunks of one document in a collection. One is made for each use, from what the host holds then.

    Keys and sources are data: they are passed as parameters, or escaped here. Conditions are in the store's own
    language, and let through what its search lets through under the same filter.

    Attributes:
        added: The keys that a framework's search adds to the metadata of what it returns.
        ordered: Whether it lists chunks in the order in which they were added.
    """

    added: AbstractSet[str] = frozenset()
    ordered: bool = True

    @abstractmethod
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield what the store lists when it is asked for the chunks of a document.

        Args:
            key: Where a chunk names its document.
            source: The name of the document.
            conditions: What each chunk must meet besides.

        Raises:
            SelfRouteError: Not all of them can be listed.
        """

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these chunks; override it where that costs less than the chunks."""
        return [chunk.id for chunk in self.rows(key, source, conditions)]

    def chunks(
        self, key: str, source: Any, conditions: Sequence[Any], tests: Sequence[Test] = ()
    ) -> Iterator[StoredChunk]:
        """Yield these chunks, each looked at once more.

        Args:
            key: The key of the metadata that names a chunk's document.
            source: The name of the document.
            conditions: What each chunk must meet, in the store's own language.
            tests: What each chunk must meet besides.
        """

        def belongs(chunk: StoredChunk) -> bool:
            return same_name(chunk.metadata.get(key), source) and all(test(chunk) for test in tests)

        for chunk in checked_rows(self.rows(key, source, conditions), belongs=belongs, id_of=lambda chunk: chunk.id):
            about = chunk.metadata
            yield chunk if self.added.isdisjoint(about) else replace(chunk, metadata=without_keys(about, self.added))


class ByFunction(Listing):
    """Lists what a function yields for a key, a source and conditions."""

    def __init__(self, rows: Callable[[str, Any, Sequence[Any]], Iterator[StoredChunk]]) -> None:
        self._rows = rows

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield what the function yields."""
        return self._rows(key, source, conditions)


def fetched(found: Any, source: Any, name_of: Callable[[Row], Any], kind: type[Row], *, called: str) -> Iterator[Row]:
    """Yield what a user's own `fetch` returned for a document.

    Args:
        found: What it returned.
        source: The name of the document.
        name_of: Returns the name of a chunk's document; that of the asked one if the chunk names none.
        kind: What each chunk has to be.
        called: What such a chunk is called, for the error message.

    Raises:
        ReplyError: It returned something else, or a chunk of another document.
    """
    if inspect.iscoroutine(found):
        found.close()  # it is refused below
    alone = isinstance(found, kind) or not isinstance(found, Iterable)
    for chunk in [found] if alone else found:
        if alone or not isinstance(chunk, kind):
            msg = f"fetch must return a list of {kind.__name__}s; got {type(chunk).__name__}"
            raise ReplyError(msg)
        name = name_of(chunk)
        if name != source:
            msg = f"fetch was asked for {source!r} and returned a {called} of {name!r}"
            raise ReplyError(msg)
        yield chunk


def checked_rows(
    rows: Iterable[Row], *, belongs: Callable[[Row], bool], id_of: Callable[[Row], Hashable]
) -> Iterator[Row]:
    """Yield the rows that belong to what was asked for, each id once.

    Some stores ignore case, look into lists, split names at commas, or list a row again when they turn a page. So what
    a store was asked for decides only how much it has to send.

    Args:
        rows: What the store lists.
        belongs: Whether a row was asked for.
        id_of: The id of a row; falsy if it has none.
    """
    seen = set[Hashable]()
    for row in rows:
        id_ = id_of(row)
        if id_ in seen or not belongs(row):
            continue
        if id_:
            seen.add(id_)
        yield row


def same_name(held: Any, name: Any) -> bool:
    """Return whether two names of documents are the same: `7`, `7.0`, `"7"` and True name four documents."""
    return type(held) is type(name) and held == name


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


def known_store(wrapper: Any, kinds: Mapping[tuple[str, str], type[Kind]]) -> Kind | None:
    """Return a store by its framework's object; None if none of the classes of that is known.

    Args:
        wrapper: A framework's object over a store.
        kinds: The kinds of stores, by package and name of the class.
    """
    for base in type(wrapper).__mro__:
        for (package, name), kind in kinds.items():
            if base.__name__ == name and f"{base.__module__}.".startswith(f"{package}."):
                return kind(wrapper, base)
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
