"""List the chunks of one document, and look once more at each before it is read."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeVar

from selfroute.documents.access import StoredChunk
from selfroute.documents.metadata import without_keys
from selfroute.errors import ReplyError

Row = TypeVar("Row")
Test = Callable[[StoredChunk], bool]


class Listing(ABC):
    """Lists the chunks of one document in a collection. It is made anew for each use, from what a host holds then.

    Keys and sources are data: they are passed as parameters, or escaped here. Conditions are in the store's own
    language, and let through what its search lets through under the same filter.

    Attributes:
        added: The keys that a framework's search adds to the metadata of what it returns.
    """

    added: AbstractSet[str] = frozenset()

    @property
    def ordered(self) -> bool:
        """Whether it lists chunks in the order in which they were added."""
        return True

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
