"""The documents of a store, as both frameworks' `StoredDocuments` offer them to a question."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from copy import copy
from typing import Any, Generic, TypeVar

from selfroute.copies import NamesUncopied
from selfroute.documents.cache import Cache
from selfroute.documents.reader import Document, DocumentReader, Passage, Store
from selfroute.documents.view import View
from selfroute.errors import ConfigurationError

Stored = TypeVar("Stored", bound="BaseStoredDocuments[Any, Any]")


def check_key(argument: str, value: Any) -> None:
    """Check an argument for a key of the metadata; None stands for no key.

    Raises:
        ConfigurationError: It is no text, or empty.
    """
    if value is not None and (not isinstance(value, str) or not value):
        given = repr(value) if value == "" else type(value).__name__
        msg = f'{argument} must be a key of the metadata of chunks, such as "source", not {given}'
        raise ConfigurationError(msg)


class BaseStoredDocuments(NamesUncopied, Generic[Passage, Document]):
    """The documents that passages came from, read out of a store, best first and each once.

    A framework's `StoredDocuments` is called as that calls any source of documents. A user's subclass overrides
    `__call__` to restrict or redact what is read.

    Attributes:
        source_key: The key of the metadata that names a document; None if the framework has another place for its name.
        order_key: The key of the metadata that numbers the chunks of a document; None for the usual ones.
        is_limited: Whether these are the documents of one question, so that they have a view and a reader.
        view: What may be read for that question.
        reader: Reads the documents.
    """

    source_key: Any = None
    is_limited: bool = False
    view: View
    reader: DocumentReader[Passage, Document]

    def __init__(self, order_key: str | None = None) -> None:
        """Start with an empty cache."""
        check_key("order_key", order_key)
        self.order_key, self._cache = order_key, Cache()

    def forget(self, source: Any = None) -> None:
        """Drop a document from the cache, or all documents if `source` is None, so that it is read again."""
        self._cache.forget(source)

    def _in_view(  # noqa: PYI019 - Python 3.10 has no typing.Self
        self: Stored, view: View, store: Store[Any, Any], *, is_overridden: bool = False
    ) -> Stored:
        """Return a shallow copy that reads only what a view lets through.

        Args:
            view: The view.
            store: The store, as it is configured now.
            is_overridden: Whether a user's subclass decides what is read.
        """
        limited = copy(self)
        limited.is_limited, limited.view = True, view
        limited.reader = DocumentReader(store, self._cache, is_overridden=is_overridden)
        return limited


class DroppedPassages(Generic[Passage]):
    """Notes passages as they are found, to hide the documents of those that are then left out or changed."""

    def __init__(self, documents: BaseStoredDocuments[Passage, Any]) -> None:
        """Take the documents, limited to a view."""
        self._view, self._store = documents.view, documents.reader.store
        self._found = set[tuple[Hashable | None, str]]()

    def note_found(self, passages: Iterable[Passage]) -> None:
        """Note passages as they were found."""
        self._found |= self._noted(passages)

    def note_left(self, passages: Iterable[Passage]) -> None:
        """Hide the documents of all passages that were found and are not among these."""
        self._view.dropped.update(source for source, _ in self._found - self._noted(passages))

    def _noted(self, passages: Iterable[Passage]) -> set[tuple[Hashable | None, str]]:
        return {(self._store.name(passage), self._store.retrieved(passage).text) for passage in passages}
