"""`StoredDocuments`: whole documents out of the vector store that the passages came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from langchain_selfroute.documents import Given, documents_of
from langchain_selfroute.stored.filters import RetrieverScope, filter_of
from langchain_selfroute.stored.stores import Fetch, store_of
from selfroute.documents.cache import Cache, CachedDocument, ids_digest
from selfroute.documents.chunks import Chunk, chunks_of
from selfroute.documents.metadata import PLACE_KEYS, common, without
from selfroute.documents.rebuild import original_label, rebuild
from selfroute.documents.sizes import Lengths, Size, Sizes
from selfroute.documents.vouching import RetrievedChunk, VisibilityCheck
from selfroute.errors import ConfigurationError, DocumentNotFoundError

_START = "start_index"
_PLACE = PLACE_KEYS | {_START}
_NAMES = (str, int, float)
_ADVICE = "give StoredDocuments(filter=...), what the chunks have to meet; filter={} if nothing is hidden"


class StoredDocuments:
    """The whole documents that the retrieved passages came from, out of the store that holds their chunks.

    The original where a docstore has it; else the chunks of the same source, put together by their offsets
    (`add_start_index=True` of LangChain's splitters), or in the order of their numbers (`page`, `chunk_index`) or of
    the store. Each document says how it was come by in `metadata["selfroute"]`: `method` (`"original"`, `"offsets"`,
    `"order"`), `chunks`, `gaps` (`[start, end]` in characters; empty where a length is not known), `trimmed`.

    A filter is a wall: what the retriever may not see is not read. `filter` holds together with the retriever's own
    `search_kwargs["filter"]`, as configured for the call. Where that may not be all (a retriever of your own, a
    reranker, a retriever over another store or over one that searches in its own way, a call without a chain), a
    document is read only if all its chunks have the metadata of a retrieved passage, page and number aside, and refused
    otherwise. A `filter` then says what is hidden; `filter={}` that nothing is.

    Documents are cached, and asked for again when the store names other chunks for them, or after five minutes. Call
    `forget` after changing the text of a chunk under the id it has.

    Example:
        ```python
        from langchain_core.documents import Document
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_selfroute import StoredDocuments

        chunks = [
            Document("Ms Okafor chaired it.", metadata={"source": "minutes", "start_index": 18}),
            Document("Tea was served at ", metadata={"source": "minutes", "start_index": 0}),
        ]
        store = InMemoryVectorStore.from_documents(chunks, DeterministicFakeEmbedding(size=8))
        (document,) = StoredDocuments(store)({"input": "Who chaired it?", "retrieved": chunks[:1]})
        assert document.page_content == "Tea was served at Ms Okafor chaired it."
        assert document.metadata["selfroute"]["method"] == "offsets"
        ```
    """

    def __init__(
        self,
        vectorstore: VectorStore,
        *,
        source_key: str = "source",
        filter: Any = None,  # noqa: A002 - the stores' own word
        docstore: BaseStore[str, Document] | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        """Configure.

        Args:
            vectorstore: Holds the chunks: Chroma or InMemoryVectorStore, or any other with `fetch`.
            source_key: The key of the metadata that names a chunk's document.
            filter: What the chunks have to meet, as the store itself takes it: a dict for Chroma, a callable over
                a Document for InMemoryVectorStore. Empty: nothing is hidden.
            docstore: Holds originals, by source. With a filter one is used only if none of its chunks is hidden.
            fetch: Finds chunks in a store of another kind: it is given `(source_key, source, filter)` and returns all
                chunks with `metadata[source_key] == source` that the filter lets through, as Documents. What else a
                search of the store hides, it has to hide too.

        Raises:
            ConfigurationError: The store is of another kind and there is no `fetch`, or filter or docstore can be none.
        """
        if docstore is not None and not hasattr(docstore, "mget"):
            msg = (
                f"docstore must be a BaseStore of Documents, such as InMemoryStore; this is a {type(docstore).__name__}"
            )
            raise ConfigurationError(msg)
        self.source_key, self.filter, self.docstore = source_key, filter, docstore
        self._store, self._cache, self._sizes = store_of(vectorstore, fetch), Cache(), Sizes()
        if not is_empty(filter):
            self._store.check(filter)

    def __call__(self, inputs: Given) -> list[Document]:
        """Read the documents behind `inputs["retrieved"]`, best first, each once.

        Raises:
            DocumentNotFoundError: The store does not hold one of them (a `LookupError`).
            ConfigurationError: Something may be hidden from the retriever, and it is not known what.
        """
        return self._read(inputs["retrieved"], None)

    def behind(self, retriever: Runnable[Any, Any], config: RunnableConfig) -> ScopedDocuments:
        """The same, for passages of this retriever, under the filter that it has in a call with this config.

        Raises:
            ConfigurationError: The retriever is given search arguments that may hide something, and no `filter` says
                what.
        """
        seen = filter_of(retriever, config)
        if seen and seen.others and self.filter is None:
            msg = (
                f"the retriever's search_kwargs hold {', '.join(seen.others)}, by which something may be hidden from "
                f"it: {_ADVICE}"
            )
            raise ConfigurationError(msg)
        return ScopedDocuments(self, seen)

    def forget(self, source: str | None = None) -> None:
        """Read a document anew when it is asked for next, or all of them."""
        self._cache.forget(source)
        self._sizes.forget()

    def _limits(self, seen: RetrieverScope | None) -> tuple[list[Any], bool]:
        """What chunks have to meet, and whether there may be more to the wall."""
        conditions = [] if is_empty(self.filter) else [self.filter]
        if seen and seen.filter is not None and seen.filter not in conditions:
            self._store.check(seen.filter)
            conditions.append(seen.filter)
        elsewhere = seen is not None and not self._store.is_of(seen.vectorstore)
        told = self.filter is not None
        return conditions, elsewhere or not (told or (seen is not None and self._store.is_plain(seen.vectorstore)))

    def _hits(self, retrieved: Sequence[Document]) -> dict[Any, list[Document]]:
        hits: dict[Any, list[Document]] = {}
        for passage in retrieved:
            source = passage.metadata.get(self.source_key)
            # One that names no document stands for itself.
            hits.setdefault(source if isinstance(source, _NAMES) else (id(passage),), []).append(passage)
        return hits

    def _through(self, conditions: list[Any]) -> str | None:
        """What tells documents that are read under these conditions from others; None if nothing does."""
        kept = self._store.kept_under(conditions)
        if kept is None:
            with suppress(TypeError, ValueError):  # what is no plain data may be any filter
                kept = json.dumps(conditions, sort_keys=True)
        return kept

    def _read(self, retrieved: Sequence[Document], seen: RetrieverScope | None) -> list[Document]:
        conditions, doubted = self._limits(seen)
        told, through = self.filter is not None, None if doubted else self._through(conditions)
        hits = self._hits(retrieved)
        if hits and not any(isinstance(source, _NAMES) for source in hits):
            keys = sorted({key for passage in retrieved for key in passage.metadata})
            msg = (
                f"no retrieved passage has metadata[{self.source_key!r}], which names its document, but only {keys}: "
                "say which it is with source_key="
            )
            raise DocumentNotFoundError(msg)
        documents = []
        for source, passages in hits.items():
            found = [
                RetrievedChunk(frozenset([one.id] if one.id else []), one.page_content, one.metadata)
                for one in passages
            ]
            vouching = None
            if doubted:
                vouching = VisibilityCheck(source, found, place=_PLACE, advice=_ADVICE, by_id=not told, blindly=told)
            document = self._document(source, passages, conditions, vouching)
            documents.append(document)
            if through is not None and isinstance(source, _NAMES):
                self._sizes.put((source, through), len(document.page_content))
        return documents

    def _lengths(self, retrieved: Sequence[Document], seen: RetrieverScope | None) -> Lengths | None:
        conditions, doubted = self._limits(seen)
        through = None if doubted else self._through(conditions)
        hits = self._hits(retrieved)
        if through is None or not any(isinstance(source, _NAMES) for source in hits):
            return None
        known, keys = [], []
        for source, passages in hits.items():
            if isinstance(source, _NAMES):
                keys.append((source, through))
                if self._store.in_threads:
                    self._sizes.count(keys[-1], partial(self._length, source, passages, conditions))
            else:
                text = passages[0].page_content
                known.append(Size(hash(text), len(text)))
        return self._sizes.lengths(known, keys)

    def _length(self, source: Any, hits: list[Document], conditions: list[Any]) -> int:
        return len(self._document(source, hits, conditions, None, keep=False).page_content)

    def _document(
        self,
        source: Any,
        hits: list[Document],
        conditions: list[Any],
        vouching: VisibilityCheck | None,
        *,
        keep: bool = True,
    ) -> Document:
        if not isinstance(source, _NAMES):
            return _labelled(hits[0], rebuild([Chunk(hits[0].page_content)]).label())
        if vouching:
            kept = self._rebuilt(source, conditions, vouching)
            return self._original(source, conditions) or _document_of(kept)
        if original := self._original(source, conditions):
            return original
        kept = self._cached(source, hits, conditions) or self._rebuilt(source, conditions, keep=keep)
        return _document_of(kept)

    def _original(self, source: Any, conditions: list[Any]) -> Document | None:
        found = self.docstore.mget([source])[0] if self.docstore else None
        if found is None:
            return None
        if conditions:
            visible, held = (len(self._store.ids(self.source_key, source, through)) for through in (conditions, []))
            if not 0 < visible == held:
                return None
        return _labelled(documents_of([found], "docstore")[0], original_label())

    def _cached(self, source: Any, hits: list[Document], conditions: list[Any]) -> CachedDocument | None:
        through = self._store.kept_under(conditions)
        kept = self._cache.get(source, through) if through else None
        if kept and all(hit.page_content in kept.whole.text for hit in hits):
            return kept if ids_digest(self._store.ids(self.source_key, source, conditions)) == kept.stamp else None
        return None

    def _rebuilt(
        self, source: Any, conditions: list[Any], vouching: VisibilityCheck | None = None, *, keep: bool = True
    ) -> CachedDocument:
        """Read and put together.

        Args:
            source: The source.
            conditions: What its chunks have to meet.
            vouching: Looks at each chunk, if there may be more to the wall.
            keep: Whether to keep it in the cache.
        """
        forgotten, ids = self._cache.forgotten, list[str]()
        shared: dict[str, Any] = {}

        def rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            nonlocal shared
            for id_, text, metadata in self._store.rows(self.source_key, source, conditions):
                if vouching:
                    vouching.look(metadata)
                shared = common(shared, metadata) if ids else without(metadata, _PLACE)
                ids.append(id_)
                yield text, metadata

        whole = rebuild(chunks_of(rows(), start_key=_START))
        if not ids:
            seen = " that the filter lets through" if conditions else ""
            msg = (
                f"the vector store holds no chunk of {source!r}{seen}: there is none whose "
                f"metadata[{self.source_key!r}] is that"
            )
            raise DocumentNotFoundError(msg)
        if vouching:
            vouching.conclude(frozenset(ids), whole.text)
        kept = CachedDocument(whole, shared, ids_digest(ids))
        if keep and vouching is None and (through := self._store.kept_under(conditions)):
            self._cache.put(source, through, kept, forgotten=forgotten)
        return kept


@dataclass(frozen=True, slots=True)
class ScopedDocuments:
    """Stored documents, for the passages of one retriever in one call."""

    _stored: StoredDocuments
    _seen: RetrieverScope | None

    def __call__(self, inputs: Given) -> list[Document]:
        """Read them."""
        return self._stored._read(inputs["retrieved"], self._seen)  # noqa: SLF001

    def lengths(self, retrieved: Sequence[Document]) -> Lengths | None:
        """What tells how long they are, without reading them for it now; None if nothing ever will."""
        return self._stored._lengths(retrieved, self._seen)  # noqa: SLF001


def is_empty(condition: Any) -> bool:
    """Whether this filter hides nothing."""
    return condition is None or (isinstance(condition, Mapping) and not condition)


def _labelled(document: Document, label: dict[str, Any]) -> Document:
    return Document(document.page_content, id=document.id, metadata={**document.metadata, "selfroute": label})


def _document_of(kept: CachedDocument) -> Document:
    return Document(kept.whole.text, metadata={**kept.fields, "selfroute": kept.whole.label()})
