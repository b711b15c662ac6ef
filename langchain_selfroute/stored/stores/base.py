"""What `StoredDocuments` asks of a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

from langchain_core.documents import Document

from selfroute.documents.stored import StoredChunk

Fetch: TypeAlias = Callable[[str, Any, Any], Iterable[Document]]
"""Takes key, source and filter; returns all chunks with `metadata[key] == source` that the filter lets through."""


class Store(Protocol):
    """Hands over chunks.

    Attributes:
        in_threads: Whether it may be asked in several threads at once.
    """

    in_threads: bool = True

    def is_of(self, vectorstore: Any) -> bool:
        """Return whether these are the chunks of this vector store."""

    def is_plain(self, vectorstore: Any) -> bool:
        """Return whether a filter is the only thing by which a search of this vector store hides chunks."""

    def check(self, condition: Any) -> None:
        """Raise a `ConfigurationError` if this cannot be a filter of the store."""

    def chunks(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        """Yield all chunks with `metadata[key] == source` for which the conditions hold."""

    def ids(self, key: str, source: Any, conditions: Sequence[Any]) -> list[str]:
        """Return the ids of these chunks."""

    def cache_key(self, conditions: Sequence[Any]) -> str | None:
        """Return what distinguishes texts read under these conditions; None if `ids` costs as much as `chunks`."""


def kind_of(vectorstore: Any, name: str) -> type | None:
    """Return the class of this name that a store is of: by its name, since importing it may take long."""
    return next((base for base in reversed(type(vectorstore).__mro__) if base.__name__ == name), None)


@cache
def _searches(kind: type | None) -> Sequence[str]:
    return [name for name in dir(kind) if "search" in name or "query" in name]


def searches_as(vectorstore: Any, kind: type | None) -> bool:
    """Return whether a store searches as its kind does: a user's subclass may hide more than the filter does."""
    own, changed = type(vectorstore), vars(vectorstore)
    return all(name not in changed and getattr(own, name, None) is getattr(kind, name) for name in _searches(kind))
