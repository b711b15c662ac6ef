"""Read whole documents from the store that holds their chunks: the part that is the same for every framework.

A framework's `StoredDocuments` is a `StoredReader` that knows the framework's passages, documents and stores. What to
read, what to check and what to cache is decided here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from selfroute.copies import NamesUncopied
from selfroute.documents.access import Access, RetrievedChunk, StoredChunk, VisibilityCheck
from selfroute.documents.cache import MOST, Cache, CachedDocument, Recent, Size, ids_digest
from selfroute.documents.chunks import PLACE_KEYS, Chunk, chunks_of, shared_items, without_keys
from selfroute.documents.ordering import UnknownOrderError
from selfroute.documents.rebuild import RebuiltDocument, rebuild_found
from selfroute.documents.window import stands_in
from selfroute.errors import ConfigurationError, DocumentNotFoundError

Passage = TypeVar("Passage")
Document = TypeVar("Document")


def check_key(argument: str, value: Any) -> None:
    """Check an argument for a key of the metadata; None stands for no key.

    Raises:
        ConfigurationError: It is no text, or empty.
    """
    if value is not None and (not isinstance(value, str) or not value):
        given = repr(value) if value == "" else type(value).__name__
        msg = f'{argument} must be a key of the metadata of chunks, such as "source", not {given}'
        raise ConfigurationError(msg)


class StoredReader(NamesUncopied, ABC, Generic[Passage, Document]):
    """Reads the documents that passages came from, best first and each once.

    Every read goes through `__call__`; a subclass overrides it to restrict or redact what is read. `ScopedDocuments`
    calls that of a shallow copy, which is held to what a retriever may see.

    Attributes:
        start_key: The key of the metadata that holds a chunk's offset in its document.
        order_key: The key of the metadata that numbers the chunks of a document; None for the usual ones.
        place_keys: Keys of the metadata that only say where in its document a chunk stands; no filter uses them.
        advice: What the user can do if a chunk may be hidden; it ends the error message.
        order_advice: What the user can do if the store lists chunks in no order, and they have none either.
        number_advice: The same if they have offsets, but these are not enough.
        match_ids: Whether a passage with an id is matched to the chunks by its id rather than by its text.
    """

    start_key: str = "start_index"
    place_keys: AbstractSet[str] = PLACE_KEYS | {start_key}
    advice: str = "say what is hidden"
    order_advice: str = "store each chunk's offset in its document, or number the chunks"
    number_advice: str = "number its pages and chunks"
    match_ids: bool = False
    _wall: Any = None  # of the question that a copy reads for

    def __init__(self, order_key: str | None = None) -> None:
        check_key("order_key", order_key)
        self.order_key = order_key
        self._cache, self._lengths_known = Cache(), Recent[int](2 * MOST)  # of each document with and without limits

    def __call__(self, *given: Any) -> list[Document]:
        """Read the documents; called as the framework calls any source of documents.

        Raises:
            DocumentNotFoundError: The store holds none of them (a `LookupError`).
            ConfigurationError: A chunk may be hidden from the retriever, and no filter was declared; or nothing says in
                which order the chunks belong.
        """
        return self._read(self._passages_in(*given))

    @abstractmethod
    def _access(self, wall: Any) -> Access:
        """Return what may be read within a wall; None if the documents are called by themselves."""

    @abstractmethod
    def _source_of(self, passage: Passage) -> Hashable | None:
        """Return the name of the document that a passage is from; None if the passage does not name it."""

    @abstractmethod
    def _retrieved(self, passage: Passage) -> RetrievedChunk:
        """Return a passage in the form in which it is compared with chunks."""

    @abstractmethod
    def _chunks(self, source: Any, limits: Any) -> Iterator[StoredChunk]:
        """Yield all chunks of a document that meet the limits; all of its chunks if the limits are None."""

    @abstractmethod
    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> Document:
        """Return the framework's document; `fields` holds `metadata` and what `_assemble` returned."""

    @abstractmethod
    def _text_of(self, document: Document) -> str:
        """Return a document's text."""

    @property
    def _is_overridden(self) -> bool:
        """Whether a user's subclass decides what is read; then lengths are not known before."""
        own = next(kind for kind in type(self).__mro__ if "__call__" in vars(kind))
        return own is not StoredReader and "_access" not in vars(own)  # an adapter may describe its own arguments

    def _passages_in(self, *given: Any) -> Sequence[Passage]:
        """Return the passages from what the framework calls a source of documents with."""
        return given[0]  # type: ignore[no-any-return]

    def _refuse_unnamed(self, passages: Sequence[Passage]) -> None:
        """Raise a `DocumentNotFoundError` if passages that name no document leave nothing to read."""

    def _passage_key(self, passage: Passage) -> Hashable:
        """Return what identifies a passage that names no document."""
        return id(passage)

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

    def _assemble(self, chunks: Iterator[StoredChunk], found: Sequence[str]) -> tuple[RebuiltDocument, dict[str, Any]]:
        """Join the chunks of the text that was found; return it, and what else the framework's document is made of."""
        rows = ((chunk.text, chunk.metadata) for chunk in chunks)
        held = self._numbered(chunks_of(rows, start_key=self.start_key, order_key=self.order_key))
        return rebuild_found(held, found, ordered=self._ordered), {}

    def _numbered(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return chunks whose numbers are believed, if the user named their key: counted, whatever lies between them.

        Raises:
            UnknownOrderError: One of them has no whole number there.
        """
        held = list(chunks)
        if self.order_key is None:
            return held
        if any(chunk.place == (-1,) for chunk in held):
            msg = f"not each of them has a whole number as metadata[{self.order_key!r}], which order_key names"
            raise UnknownOrderError(msg)
        ranks = {place: (rank,) for rank, place in enumerate(sorted({chunk.place for chunk in held}))}
        return [replace(chunk, place=ranks[chunk.place]) for chunk in held]

    def _parts_of(self, source: Any, passages: Sequence[Passage]) -> Sequence[tuple[Any, Sequence[Passage]]]:  # noqa: ARG002
        """Return the documents that one is made of, and their passages, where nobody knows how to join them."""
        return ()

    def _missing(self, source: Any, *, limited: bool) -> str:
        """Return the message for a document of which the store holds no chunk."""
        visible = " that may be read" if limited else ""
        return f"the store holds no chunk of {source!r}{visible}"

    @property
    def _ordered(self) -> bool:
        """Whether the store lists the chunks of a document in the order in which they were added."""
        return True

    def forget(self, source: Any = None) -> None:
        """Drop a document from the cache, or all documents if `source` is None, so that it is read again."""
        self._cache.forget(source)
        self._lengths_known.clear()

    def _read(self, passages: Sequence[Passage]) -> list[Document]:
        access = self._access(self._wall)
        groups = self._grouped(passages)
        self._check_names(groups, access)
        documents, missing = list[Document](), list[DocumentNotFoundError]()
        left: deque[tuple[Any, Sequence[Passage]]] = deque(groups)
        while left:
            source, found = left.popleft()
            try:
                document = self._read_one(source, found, access)
            except DocumentNotFoundError as error:  # as when a document was deleted, and a passage of it was not
                missing.append(error)
                continue
            except UnknownOrderError:
                if not (parts := self._parts_of(source, found)):
                    raise
                left.extendleft(reversed(parts))
                continue
            documents.append(document)
            if source is not None and access.key is not None and not access.verified:
                self._lengths_known.put((source,), 0)
                self._lengths_known.put((source, access.key), len(self._text_of(document)))
        if missing and not documents:
            raise missing[0]
        return documents

    def _sizes(self, passages: Sequence[Passage], scope: Any) -> list[Size] | None:
        if self._is_overridden:
            return None
        groups = self._grouped(passages)
        alone = [Size(None, len(self._text_of(self._alone(found[0])))) for source, found in groups if source is None]
        sources, known = [source for source, _ in groups if source is not None], self._lengths_known
        if any(known.get((source,)) is None for source in sources):  # not read yet, under any limits
            return None
        access = self._access(scope)
        if not sources:
            self._check_names(groups, access)
            return alone
        if access.key is None or access.verified:
            return None
        keys: list[Hashable] = [(source, access.key) for source in sources]
        sizes = [Size(key, size) for key in keys if (size := known.get(key)) is not None]
        return None if len(sizes) < len(keys) else [*alone, *sizes]

    def _grouped(self, passages: Sequence[Passage]) -> list[tuple[Any, list[Passage]]]:
        """Group the passages by document, best first; a passage that names no document forms a group of its own."""
        groups: dict[Any, tuple[Any, list[Passage]]] = {}
        for passage in passages:
            source = self._source_of(passage)
            key = (self._passage_key(passage),) if source is None else (type(source), source)
            groups.setdefault(key, (source, []))[1].append(passage)
        return list(groups.values())

    def _check_names(self, groups: Sequence[tuple[Any, Sequence[Passage]]], access: Access) -> None:
        """Raise if no passage names its document, unless they may be whole documents."""
        if groups and not access.whole and all(source is None for source, _ in groups):
            self._refuse_unnamed([passage for _, found in groups for passage in found])

    def _read_one(self, source: Any, passages: Sequence[Passage], access: Access) -> Document:
        if source is None:
            return self._alone(passages[0])
        if access.verified:  # before anything is used, even the original
            rebuilt = self._rebuild(source, passages, access, self._check(source, passages, access))
            self._refuse_dropped(source, access)
            original = self._visible_original(source, passages, access)
        else:
            original = self._visible_original(source, passages, access)
            if original is None:
                rebuilt = self._cached(source, passages, access) or self._rebuild(source, passages, access, None)
        return self._document(source, rebuilt.document, rebuilt.fields) if original is None else original

    def _refuse_dropped(self, source: Any, access: Access) -> None:
        """Raise if a part that we do not know left out a passage of a document, whatever its metadata are."""
        if source in access.dropped and not access.declared:
            msg = (
                f"cannot verify that all of {source!r} may be read: a passage of it was found, and then dropped or "
                f"changed by a part of your own or one that we do not know; {self.advice}"
            )
            raise ConfigurationError(msg)

    def _check(self, source: Any, passages: Sequence[Passage], access: Access) -> VisibilityCheck:
        return VisibilityCheck(
            source,
            [self._retrieved(passage) for passage in passages],
            ignored_keys=self.place_keys,
            advice=self.advice,
            match_ids=self.match_ids and not access.declared,
            ignore_metadata=access.declared,
        )

    def _visible_original(self, source: Any, passages: Sequence[Passage], access: Access) -> Document | None:
        """Return the original, if the store holds the document and no filter hides a part of it."""
        original = self._original(source, passages)
        if original is not None:
            visible = len(self._ids(source, access.limits))
            if not visible or (access.limits and visible != len(self._ids(source, None))):
                return None
        return original

    def _cached(self, source: Any, passages: Sequence[Passage], access: Access) -> CachedDocument | None:
        cached = self._cache.get(source, access.key) if access.cached else None
        if cached and all(stands_in(self._retrieved(passage).text, cached.document.text) for passage in passages):
            return cached if ids_digest(self._ids(source, access.limits)) == cached.ids_digest else None
        return None

    def _rebuild(
        self, source: Any, passages: Sequence[Passage], access: Access, check: VisibilityCheck | None
    ) -> CachedDocument:
        """Read all chunks of a document and join them.

        Args:
            source: The document.
            passages: Those that were retrieved of it.
            access: What may be read of it.
            check: Checks each chunk, if more may be hidden than is known.
        """
        generation, ids, parents = self._cache.generation, list[str](), set[str]()
        shared: dict[str, Any] = {}

        def read() -> Iterator[StoredChunk]:
            nonlocal shared
            for chunk in self._chunks(source, access.limits):
                if check:
                    check.check_chunk(chunk.metadata)
                shared = shared_items(shared, chunk.metadata) if ids else without_keys(chunk.metadata, self.place_keys)
                ids.append(chunk.id)
                if chunk.parent:
                    parents.add(chunk.parent)
                yield chunk

        try:
            document, fields = self._assemble(read(), [self._retrieved(passage).text for passage in passages])
        except UnknownOrderError as error:
            advice = self.number_advice if error.have_offsets else self.order_advice
            why = f"{'' if self._ordered else 'the store lists them in no order, and '}{error}"
            msg = f"the chunks of {source!r} cannot be put in order: {why}; index the document again: {advice}"
            raise UnknownOrderError(msg, have_offsets=error.have_offsets) from None
        if not ids:
            raise DocumentNotFoundError(self._missing(source, limited=bool(access.limits)))
        if check:
            check.check_document(parents.union(ids), document.text)
        rebuilt = CachedDocument(document, {**fields, "metadata": shared}, ids_digest(ids))
        if access.cached and not check:
            self._cache.put(source, access.key, rebuilt, generation=generation)
        return rebuilt


@dataclass(frozen=True, slots=True, eq=False)
class ScopedDocuments(Generic[Passage, Document]):
    """Stored documents for the passages of one retriever in one call, under its filter in that call."""

    _stored: StoredReader[Passage, Document]
    _scope: Any

    def __call__(self, *given: Any) -> Any:
        """Call the stored documents within the scope; the result is awaitable if a subclass's `__call__` is async."""
        reader = copy(self._stored)
        reader._wall = self._scope  # noqa: SLF001
        return reader(*given)

    def sizes(self, passages: Sequence[Passage]) -> list[Size] | None:
        """Return the sizes of the documents; None if they are not known.

        It reads nothing, and asks what may be read only if each of the documents was read before, for anybody.
        """
        return None if self.doubted else self._stored._sizes(passages, self._scope)  # noqa: SLF001

    @property
    def advice(self) -> str:
        """What the user can do if a chunk may be hidden."""
        return self._stored.advice

    @property
    def source_key(self) -> str | None:
        """The key of the metadata that names a document; None if the framework has another place for its name."""
        return getattr(self._stored, "source_key", None)

    @property
    def is_overridden(self) -> bool:
        """Whether a user's subclass decides what is read."""
        return self._stored._is_overridden  # noqa: SLF001

    @property
    def doubted(self) -> bool:
        """Whether parts that we do not know may hide more than any filter says."""
        return bool(getattr(self._scope, "doubted", False))

    def noted(self, passages: Iterable[Passage]) -> set[tuple[Hashable | None, str]]:
        """Return the names of the passages' documents and their texts, as they are now."""
        return {(self._stored._source_of(one), self._stored._retrieved(one).text) for one in passages}  # noqa: SLF001

    def note_dropped(self, found: AbstractSet[tuple[Hashable | None, str]], left: Iterable[Passage]) -> None:
        """Hide the documents of passages that were found and noted, but are not left as they were."""
        self._scope.dropped.update(source for source, _ in found - self.noted(left))

    def access(self) -> Access:
        """Return what may be read."""
        return self._stored._access(self._scope)  # noqa: SLF001

    def name(self, passage: Passage) -> Hashable | None:
        """Return the name of a passage's document; None if the passage names none."""
        return self._stored._source_of(passage)  # noqa: SLF001

    def names(self, passages: Sequence[Passage]) -> list[Hashable | None]:
        """Return the name of each passage's document, None for a passage that names none."""
        return list(map(self.name, passages))
