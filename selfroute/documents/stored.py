"""The documents of a store, as both frameworks' `StoredDocuments` offer them to a question."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from typing import Any, Generic, TypeVar

from selfroute.copies import NamesUncopied
from selfroute.documents.cache import Cache, Size
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

    A framework's `StoredDocuments` says how the store is opened, and is called as the framework calls any source of
    documents. A user's subclass overrides `__call__` to restrict or redact what is read.

    Attributes:
        source_key: The key of the metadata that names a document; None if the framework has another place for its name.
        order_key: The key of the metadata that numbers the chunks of a document; None for the usual ones.
        view: What may be read for a question; None outside of one.
    """

    source_key: Any = None
    view: View[Any] | None = None
    _reader: DocumentReader[Passage, Document]

    def __init__(self, order_key: str | None = None) -> None:
        """Start with an empty cache."""
        check_key("order_key", order_key)
        self.order_key, self._cache = order_key, Cache()

    def opened(self) -> Store[Passage, Document]:
        """Return the store, as it is configured now."""
        raise NotImplementedError

    def unknown_view(self) -> View[Any]:
        """Return the view of a retriever that is not known."""
        raise NotImplementedError

    @property
    def doubted(self) -> bool:
        """Whether unknown parts may hide more than any filter says."""
        return self.view is None or self.view.doubted

    @property
    def is_overridden(self) -> bool:
        """Whether a user's subclass decides what is read; then lengths are not known before."""
        return False

    def in_view(self: Stored, view: View[Any]) -> Stored:  # noqa: PYI019 - Python 3.10 has no typing.Self
        """Return a shallow copy that reads only what a view lets through."""
        limited = copy(self)
        limited.view, limited._reader = view, DocumentReader(self.opened(), self._cache)  # noqa: SLF001
        return limited

    def read(self, passages: Sequence[Passage]) -> list[Document]:
        """Read the documents, within the view.

        Raises:
            DocumentNotFoundError: The store holds none of them (a `LookupError`).
            ConfigurationError: A chunk may be hidden from the retriever, and no filter was declared; or nothing says in
                which order the chunks belong.
        """
        if self.view is None:
            return self.in_view(self.unknown_view()).read(passages)
        return self._reader.read(passages, self.view)

    def sizes(self, passages: Sequence[Passage]) -> list[Size] | None:
        """Return the sizes of the documents without reading them; None if they are not known."""
        if self.view is None or self.view.doubted or self.is_overridden:
            return None
        return self._reader.sizes(passages, self.view)

    def name(self, passage: Passage) -> Hashable | None:
        """Return the name of a passage's document; None if the passage names none."""
        return self._reader.store.name(passage)

    @property
    def advice(self) -> str:
        """What the user can do if a chunk may be hidden."""
        return self._reader.store.advice

    def noted(self, passages: Iterable[Passage]) -> set[tuple[Hashable | None, str]]:
        """Return the names of the passages' documents and their texts, as they are now."""
        store = self._reader.store
        return {(store.name(passage), store.retrieved(passage).text) for passage in passages}

    def note_dropped(self, found: AbstractSet[tuple[Hashable | None, str]], left: Iterable[Passage]) -> None:
        """Hide the documents of passages that were found and noted, but are not left as they were."""
        if self.view:
            self.view.dropped.update(source for source, _ in found - self.noted(left))

    def forget(self, source: Any = None) -> None:
        """Drop a document from the cache, or all documents if `source` is None, so that it is read again."""
        self._cache.forget(source)
