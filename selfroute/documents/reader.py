"""Read whole documents from a store that holds their chunks: what to read, what to check, and what to cache."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from selfroute.documents.access import RetrievedChunk, StoredChunk, VisibilityCheck
from selfroute.documents.cache import Cache, CachedDocument, Size, ids_digest
from selfroute.documents.chunks import PLACE_KEYS, shared_items, without_keys
from selfroute.documents.found import rebuild_found
from selfroute.documents.ordering import UnknownOrderError, numbered
from selfroute.documents.rebuild import RebuiltDocument
from selfroute.documents.view import View
from selfroute.documents.window import stands_in
from selfroute.errors import ConfigurationError, DocumentNotFoundError

Passage = TypeVar("Passage")
Document = TypeVar("Document")
Fields: TypeAlias = Mapping[str, Any]
_Group: TypeAlias = tuple[Any, Sequence[Passage]]


class Store(Protocol[Passage, Document]):
    """A store of chunks, in terms of a framework's passages and documents. Subclass it for what has a default here.

    Attributes:
        start_key: The key of the metadata that holds a chunk's offset in its document.
        order_key: The key of the metadata that numbers the chunks of a document; None for the usual ones.
        place_keys: Keys of the metadata that only say where in its document a chunk stands; no filter uses them.
        ordered: Whether the chunks of a document are listed in the order in which they were added.
        match_ids: Whether a passage with an id is matched to the chunks by its id rather than by its text.
        advice: What the user can do if a chunk may be hidden; it ends the error message.
        order_advice: What the user can do if chunks are listed in no order, and they have none either.
        number_advice: The same if they have offsets, but these are not enough.
    """

    start_key: str = "start_index"
    order_key: str | None = None
    place_keys: AbstractSet[str] = PLACE_KEYS | {start_key}
    ordered: bool = True
    match_ids: bool = False
    advice: str = "say what is hidden"
    order_advice: str = "store each chunk's offset in its document, or number the chunks"
    number_advice: str = "number its pages and chunks"

    def name(self, passage: Passage) -> Hashable | None:
        """Return the name of the document that a passage is from; None if the passage does not name it."""
        raise NotImplementedError

    def retrieved(self, passage: Passage) -> RetrievedChunk:
        """Return a passage in the form in which it is compared with chunks."""
        raise NotImplementedError

    def chunks(self, source: Any, limits: Any) -> Iterator[StoredChunk]:
        """Yield all chunks of a document that meet the limits of a view; all of its chunks if these are None."""
        raise NotImplementedError

    def ids(self, source: Any, limits: Any) -> list[str]:
        """Return the ids of these chunks; override it where that costs less than the chunks."""
        return [chunk.id for chunk in self.chunks(source, limits)]

    def original(self, source: Any, passages: Sequence[Passage]) -> Document | None:  # noqa: ARG002
        """Return the document itself from a document store, if there is one and the passages are from it."""
        return None

    def parts(self, source: Any, passages: Sequence[Passage]) -> Sequence[_Group[Passage]]:  # noqa: ARG002
        """Return the documents that one is made of, and their passages, where nobody knows how to join them."""
        return ()

    def rebuild(self, chunks: Iterator[StoredChunk], found: Sequence[str]) -> tuple[RebuiltDocument, Fields]:
        """Join the chunks of the text that was found; return it, and what else `document` needs."""
        rows = ((chunk.text, chunk.metadata) for chunk in chunks)
        held = numbered(rows, start_key=self.start_key, order_key=self.order_key)
        return rebuild_found(held, found, ordered=self.ordered), {}

    def document(self, source: Any, rebuilt: RebuiltDocument, fields: Fields) -> Document:
        """Return the framework's document; `fields` has the `metadata` of all chunks, and those of `rebuild`."""
        raise NotImplementedError

    def alone(self, passage: Passage) -> Document:  # noqa: ARG002
        """Return a document made of a passage that names none."""
        msg = "a retrieved passage does not name its document"
        raise DocumentNotFoundError(msg)

    def unnamed(self, passages: Sequence[Passage]) -> str | None:  # noqa: ARG002
        """Return the error message if no passage names a document, and there is nothing to read; None if there is."""
        return None

    def missing(self, source: Any, *, limited: bool) -> str:
        """Return the error message for a document of which the store holds no chunk."""
        return f"the store holds no chunk of {source!r}{' that may be read' if limited else ''}"

    def text_of(self, document: Document) -> str:
        """Return a document's text."""
        raise NotImplementedError


class DocumentReader(Generic[Passage, Document]):
    """Reads the documents that passages came from, within a view.

    Attributes:
        store: The store.
        is_overridden: Whether a user's own code decides what is read; then sizes are not known.
    """

    def __init__(self, store: Store[Passage, Document], cache: Cache, *, is_overridden: bool = False) -> None:
        """Read from a store; the cache keeps what was read from it."""
        self.store, self._cache, self.is_overridden = store, cache, is_overridden

    def read(self, passages: Sequence[Passage], view: View) -> list[Document]:
        """Return the documents, best first and each once.

        Raises:
            DocumentNotFoundError: The store holds none of them (a `LookupError`).
            ConfigurationError: A chunk may be hidden from the retriever, and no filter was declared; or nothing says in
                which order the chunks belong.
        """
        groups = self._grouped(passages)
        self._check_names(groups, view)
        missing = list[DocumentNotFoundError]()
        documents = list(self._read_groups(groups, view, missing))
        if missing and not documents:
            raise missing[0]
        return documents

    def sizes(self, passages: Sequence[Passage], view: View) -> list[Size] | None:
        """Return the sizes of the documents; None if they are not known.

        It reads nothing, and looks for the limits only if each of the documents was read before, for anybody.
        """
        if view.doubted or self.is_overridden:
            return None
        groups, known = self._grouped(passages), self._cache.lengths
        sources = [source for source, _ in groups if source is not None]
        if any(known.get((source,)) is None for source in sources):
            return None
        self._check_names(groups, view)
        store = self.store
        alone = [Size(None, len(store.text_of(store.alone(of[0])))) for source, of in groups if source is None]
        if not sources:
            return alone
        limits = view.limits
        if limits.key is None or limits.compared:
            return None
        keys: list[Hashable] = [(source, limits.key) for source in sources]
        sizes = [Size(key, size) for key in keys if (size := known.get(key)) is not None]
        return None if len(sizes) < len(keys) else [*alone, *sizes]

    def _grouped(self, passages: Sequence[Passage]) -> list[_Group[Passage]]:
        """Group the passages by document, best first; a passage that names no document forms a group of its own."""
        groups: dict[Any, tuple[Any, list[Passage]]] = {}
        for passage in passages:
            source = self.store.name(passage)
            key: Any = (type(source), source)
            if source is None:
                found = self.store.retrieved(passage)
                key = (found.ids, found.text) if found.ids else (id(passage),)
            groups.setdefault(key, (source, []))[1].append(passage)
        return list(groups.values())

    def _check_names(self, groups: Sequence[_Group[Passage]], view: View) -> None:
        """Raise if no passage names its document, unless they may be whole documents."""
        if groups and all(source is None for source, _ in groups) and not view.limits.whole:
            message = self.store.unnamed([passage for _, found in groups for passage in found])
            if message:
                raise DocumentNotFoundError(message)

    def _read_groups(
        self, groups: Sequence[_Group[Passage]], view: View, missing: list[DocumentNotFoundError]
    ) -> Iterator[Document]:
        for source, passages in groups:
            try:
                document = self._read_one(source, passages, view)
            except DocumentNotFoundError as error:  # noqa: PERF203 - it was deleted, and a passage of it was not
                missing.append(error)
            except UnknownOrderError:
                if not (parts := self.store.parts(source, passages)):
                    raise
                yield from self._read_groups(parts, view, missing)
            else:
                if source is not None and view.limits.key is not None and not view.limits.compared:
                    self._cache.lengths.put((source,), 0)  # it was read, under any limits
                    self._cache.lengths.put((source, view.limits.key), len(self.store.text_of(document)))
                yield document

    def _read_one(self, source: Any, passages: Sequence[Passage], view: View) -> Document:
        if source is None:
            return self.store.alone(passages[0])
        if view.limits.compared:  # before anything is used, even the original
            found = [self.store.retrieved(passage) for passage in passages]
            rebuilt = self._rebuilt(source, found, view, self._check(source, found, view))
            self._refuse_dropped(source, view)
            original = self._visible_original(source, passages, view)
        else:
            original = self._visible_original(source, passages, view)
            if original is None:
                found = [self.store.retrieved(passage) for passage in passages]
                rebuilt = self._cached(source, found, view) or self._rebuilt(source, found, view, None)
        return self.store.document(source, rebuilt.document, rebuilt.fields) if original is None else original

    def _refuse_dropped(self, source: Any, view: View) -> None:
        """Raise if an unknown part left out or changed a passage of a document; the metadata do not matter."""
        if source in view.dropped and not view.declared:
            msg = (
                f"cannot verify that all of {source!r} may be read: a passage of it was found, and then dropped or "
                f"changed by a part of your own or one that we do not know; {self.store.advice}"
            )
            raise ConfigurationError(msg)

    def _check(self, source: Any, found: Sequence[RetrievedChunk], view: View) -> VisibilityCheck:
        return VisibilityCheck(
            source,
            found,
            ignored_keys=self.store.place_keys,
            advice=self.store.advice,
            match_ids=self.store.match_ids and not view.declared,
            ignore_metadata=view.declared,
        )

    def _visible_original(self, source: Any, passages: Sequence[Passage], view: View) -> Document | None:
        """Return the original, if the store holds the document and no filter hides a part of it."""
        original = self.store.original(source, passages)
        if original is not None:
            visible = len(self.store.ids(source, view.limits))
            if not visible or (view.limits and visible != len(self.store.ids(source, None))):
                return None
        return original

    def _cached(self, source: Any, found: Sequence[RetrievedChunk], view: View) -> CachedDocument | None:
        cached = self._cache.get(source, view.limits.key) if view.limits.cached else None
        if cached and all(stands_in(one.text, cached.document.text) for one in found):
            return cached if ids_digest(self.store.ids(source, view.limits)) == cached.ids_digest else None
        return None

    def _rebuilt(
        self, source: Any, found: Sequence[RetrievedChunk], view: View, check: VisibilityCheck | None
    ) -> CachedDocument:
        """Read all chunks of a document and join them.

        Args:
            source: The document.
            found: What was retrieved of it.
            view: What may be read of it.
            check: Checks each chunk, if more may be hidden than is known.
        """
        store, limits = self.store, view.limits
        generation, ids, parents = self._cache.generation, list[str](), set[str]()
        shared: dict[str, Any] = {}

        def read() -> Iterator[StoredChunk]:
            nonlocal shared
            for chunk in store.chunks(source, limits):
                if check:
                    check.check_chunk(chunk.metadata)
                shared = shared_items(shared, chunk.metadata) if ids else without_keys(chunk.metadata, store.place_keys)
                ids.append(chunk.id)
                if chunk.parent:
                    parents.add(chunk.parent)
                yield chunk

        try:
            document, fields = store.rebuild(read(), [one.text for one in found])
        except UnknownOrderError as error:
            advice = store.number_advice if error.have_offsets else store.order_advice
            why = f"{'' if store.ordered else 'the store lists them in no order, and '}{error}"
            msg = f"the chunks of {source!r} cannot be put in order: {why}; index the document again: {advice}"
            raise UnknownOrderError(msg, have_offsets=error.have_offsets) from None
        if not ids:
            raise DocumentNotFoundError(store.missing(source, limited=bool(limits)))
        if check:
            check.check_document(parents.union(ids), document.text)
        rebuilt = CachedDocument(document, {**fields, "metadata": shared}, ids_digest(ids))
        if limits.cached and not check:
            self._cache.put(source, limits.key, rebuilt, generation=generation)
        return rebuilt
