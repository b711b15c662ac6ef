"""Whole documents out of the store that holds their chunks: what is the same for every framework.

A framework's `StoredDocuments` is a `StoredReader` that knows how its passages, documents and stores look. What is
read, what is checked and what is kept is decided here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from selfroute.documents.cache import Cache, CachedDocument, ids_digest
from selfroute.documents.chunks import chunks_of
from selfroute.documents.metadata import PLACE_KEYS, common, without
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.sizes import Lengths, Size, Sizes
from selfroute.documents.vouching import RetrievedChunk, VisibilityCheck
from selfroute.errors import DocumentNotFoundError

Passage = TypeVar("Passage")
Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as a store hands it over.

    Attributes:
        id: Its id; empty if it has none.
        text: Its text.
        metadata: Its metadata.
        parent: The id of the larger chunk that it was cut from, None if there is none.
        host: The framework's own object, if assembling the document needs it.
    """

    id: str
    text: str
    metadata: Mapping[str, Any]
    parent: str | None = None
    host: Any = None


@dataclass(frozen=True, slots=True)
class Access:
    """What one call may read of a store.

    Attributes:
        limits: What chunks have to meet, in the store's own terms; falsy if nothing is hidden.
        key: Distinguishes what is read under these limits from what is read under others; None if nothing does.
        cached: Whether documents that are read under these limits are kept.
        verified: Whether each chunk has to be compared with the passages, since more may be hidden than is known.
        told: Whether the user said what is hidden, so that only the passages have to be found in this store.
    """

    limits: Any
    key: Hashable | None
    cached: bool
    verified: bool
    told: bool


class StoredReader(ABC, Generic[Passage, Document]):
    """Reads the documents that passages came from, best first, each once.

    Attributes:
        start_key: The key of the metadata that holds a chunk's offset in its document.
        place_keys: Keys of the metadata that say where in its document a chunk stands; nothing is hidden by them.
        advice: What to do if a chunk may be hidden.
        by_id: Whether a passage that has an id has to be among the chunks by its id, and not by its text alone.
    """

    start_key: str = "start_index"
    place_keys: AbstractSet[str] = PLACE_KEYS | {start_key}
    advice: str = "say what is hidden"
    by_id: bool = False

    def __init__(self) -> None:
        self._cache, self._sizes = Cache(), Sizes()

    @abstractmethod
    def _access(self, scope: Any) -> Access:
        """Return what may be read on behalf of a retriever; `scope` is None if nothing is known of it."""

    @abstractmethod
    def _source_of(self, passage: Passage) -> Hashable | None:
        """Return which document a passage is from, None if it does not say."""

    @abstractmethod
    def _retrieved(self, passage: Passage) -> RetrievedChunk:
        """Return a passage as it is compared with chunks."""

    @abstractmethod
    def _chunks(self, source: Any, limits: Any) -> Iterator[StoredChunk]:
        """Yield all chunks of a document that meet the limits; None for no limits."""

    @abstractmethod
    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> Document:
        """Make the framework's document; `fields` holds `metadata` and what `_assemble` returned."""

    @abstractmethod
    def _text_of(self, document: Document) -> str:
        """Return a document's text."""

    def _passages_in(self, *given: Any) -> Sequence[Passage]:
        """Return the passages from what the framework calls a source of documents with."""
        return given[0]  # type: ignore[no-any-return]

    def _refuse_unnamed(self, passages: Sequence[Passage]) -> None:
        """Raise a `DocumentNotFoundError` if passages that name no document leave nothing to read."""

    def _alone(self, passage: Passage) -> Document:  # noqa: ARG002
        """Make a document of a passage that names none."""
        msg = "a retrieved passage does not name its document"
        raise DocumentNotFoundError(msg)

    def _ids(self, source: Any, limits: Any) -> list[str]:
        """Return the ids of the chunks that meet the limits; override it where that costs less than the chunks."""
        return [chunk.id for chunk in self._chunks(source, limits)]

    def _original(self, source: Any, passages: Sequence[Passage]) -> Document | None:  # noqa: ARG002
        """Return the document itself from a document store, if there is one and the passages are from it."""
        return None

    def _assemble(self, chunks: Iterator[StoredChunk]) -> tuple[RebuiltDocument, dict[str, Any]]:
        """Join chunks; return the document, and what else the framework's document is made of."""
        return rebuild(chunks_of(((chunk.text, chunk.metadata) for chunk in chunks), start_key=self.start_key)), {}

    def _missing(self, source: Any, *, limited: bool) -> str:
        """Return the message for a document of which the store holds no chunk."""
        visible = " that may be read" if limited else ""
        return f"the store holds no chunk of {source!r}{visible}"

    @property
    def _in_threads(self) -> bool:
        """Whether the store may be asked in several threads at once; if so, documents are counted in the background."""
        return False

    def forget(self, source: Any = None) -> None:
        """Read a document anew when it is asked for next, or all of them."""
        self._cache.forget(source)
        self._sizes.forget()

    def _read(self, passages: Sequence[Passage], scope: Any) -> list[Document]:
        access = self._access(scope)
        groups = self._grouped(passages)
        documents = []
        for source, found in groups:
            document = self._read_one(source, found, access)
            documents.append(document)
            if source is not None and access.key is not None and not access.verified:
                self._sizes.put((source, access.key), len(self._text_of(document)))
        return documents

    def _lengths(self, passages: Sequence[Passage], scope: Any, *, count: bool) -> Lengths | None:
        access = self._access(scope)
        groups = self._grouped(passages)
        if access.key is None or access.verified:
            return None
        known, keys = [], []
        for source, found in groups:
            if source is None:
                known.append(Size(None, len(self._text_of(self._alone(found[0])))))
                continue
            keys.append((source, access.key))
            if count and self._in_threads:
                self._sizes.count(keys[-1], partial(self._count, source, found, access))
        return self._sizes.lengths(known, keys)

    def _count(self, source: Any, passages: Sequence[Passage], access: Access) -> int:
        return len(self._text_of(self._read_one(source, passages, access, keep=False)))

    def _grouped(self, passages: Sequence[Passage]) -> list[tuple[Any, list[Passage]]]:
        """Return the documents that the passages are from, best first; a passage that names none stands for itself."""
        groups: dict[Any, tuple[Any, list[Passage]]] = {}
        for passage in passages:
            source = self._source_of(passage)
            key = (id(passage),) if source is None else source
            groups.setdefault(key, (source, []))[1].append(passage)
        if groups and all(source is None for source, _ in groups.values()):
            self._refuse_unnamed(passages)
        return list(groups.values())

    def _read_one(self, source: Any, passages: Sequence[Passage], access: Access, *, keep: bool = True) -> Document:
        if source is None:
            return self._alone(passages[0])
        if access.verified:  # before anything is used, the original included
            rebuilt = self._rebuild(source, access, self._check(source, passages, access), keep=False)
            original = self._visible_original(source, passages, access)
        else:
            original = self._visible_original(source, passages, access)
            if original is None:
                rebuilt = self._cached(source, passages, access) or self._rebuild(source, access, None, keep=keep)
        return self._document(source, rebuilt.whole, rebuilt.fields) if original is None else original

    def _check(self, source: Any, passages: Sequence[Passage], access: Access) -> VisibilityCheck:
        return VisibilityCheck(
            source,
            [self._retrieved(passage) for passage in passages],
            place=self.place_keys,
            advice=self.advice,
            by_id=self.by_id and not access.told,
            blindly=access.told,
        )

    def _visible_original(self, source: Any, passages: Sequence[Passage], access: Access) -> Document | None:
        """Return the original, unless a filter hides a part of it."""
        original = self._original(source, passages)
        if original is not None and access.limits:
            visible, held = len(self._ids(source, access.limits)), len(self._ids(source, None))
            if not 0 < visible == held:
                return None
        return original

    def _cached(self, source: Any, passages: Sequence[Passage], access: Access) -> CachedDocument | None:
        cached = self._cache.get(source, access.key) if access.cached else None
        if cached and all(self._retrieved(passage).text in cached.whole.text for passage in passages):
            return cached if ids_digest(self._ids(source, access.limits)) == cached.stamp else None
        return None

    def _rebuild(self, source: Any, access: Access, check: VisibilityCheck | None, *, keep: bool) -> CachedDocument:
        """Read all chunks of a document and join them.

        Args:
            source: The document.
            access: What may be read of it.
            check: Looks at each chunk, if more may be hidden than is known.
            keep: Whether to keep the document, where that is possible.
        """
        forgotten, ids, parents = self._cache.forgotten, list[str](), set[str]()
        shared: dict[str, Any] = {}

        def read() -> Iterator[StoredChunk]:
            nonlocal shared
            for chunk in self._chunks(source, access.limits):
                if check:
                    check.look(chunk.metadata)
                shared = common(shared, chunk.metadata) if ids else without(chunk.metadata, self.place_keys)
                ids.append(chunk.id)
                if chunk.parent:
                    parents.add(chunk.parent)
                yield chunk

        document, fields = self._assemble(read())
        if not ids:
            raise DocumentNotFoundError(self._missing(source, limited=bool(access.limits)))
        if check:
            check.conclude(parents.union(ids), document.text)
        rebuilt = CachedDocument(document, {**fields, "metadata": shared}, ids_digest(ids))
        if keep and access.cached:
            self._cache.put(source, access.key, rebuilt, forgotten=forgotten)
        return rebuilt


@dataclass(frozen=True, slots=True)
class ScopedDocuments(Generic[Passage, Document]):
    """Stored documents for the passages of one retriever in one call, under the filter that it has there."""

    _stored: StoredReader[Passage, Document]
    _scope: Any

    def __call__(self, *given: Any) -> list[Document]:
        """Read the documents, called as the framework calls any source of documents."""
        return self.read(self._stored._passages_in(*given))  # noqa: SLF001

    def read(self, passages: Sequence[Passage]) -> list[Document]:
        """Read the documents behind the passages, best first, each once.

        Raises:
            DocumentNotFoundError: The store does not hold one of them (a `LookupError`).
            ConfigurationError: Something may be hidden from the retriever, and nobody said what.
        """
        return self._stored._read(passages, self._scope)  # noqa: SLF001

    def lengths(self, passages: Sequence[Passage], *, count: bool = False) -> Lengths | None:
        """Return what says how long the documents are, without reading them now; None if nothing ever will.

        Args:
            passages: The passages.
            count: Whether to have unread documents counted in a background thread.
        """
        return self._stored._lengths(passages, self._scope, count=count)  # noqa: SLF001
