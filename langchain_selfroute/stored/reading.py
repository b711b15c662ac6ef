"""`StoredDocuments`, which reads whole documents from the vector store that the passages came from."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from typing_extensions import override

from langchain_selfroute.arguments import check_store
from langchain_selfroute.convert import retrieved_of
from langchain_selfroute.stored.kinds import store_of
from langchain_selfroute.stored.originals import HELD
from langchain_selfroute.stored.searches import Limits, RetrieverScope, is_empty, scope_of
from langchain_selfroute.stored.stores import Fetch
from selfroute.documents.access import Access, RetrievedChunk, StoredChunk, Wall, frozen, is_same
from selfroute.documents.chunks import Chunk
from selfroute.documents.label import KEY, Label, original_label
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.stored import ScopedDocuments, StoredReader, check_key
from selfroute.errors import ConfigurationError, DocumentNotFoundError

_SOURCES = (str, int, float)  # what names a document
_ADVICE = "pass StoredDocuments(filter=...), which every chunk must match; filter={} if nothing is hidden"


class StoredDocuments(StoredReader[Document, Document]):
    """The whole documents that the retrieved passages came from, read from the vector store that holds their chunks.

    If a docstore has the original, that is used. Otherwise the document is rebuilt from the chunks with the same
    source: by their offsets (`add_start_index=True` in LangChain's splitters), or else in the order of their numbers
    (`page`, `chunk_index`) or of the store. `metadata["selfroute"]` says how a document was assembled: `method`
    (`"original"`, `"offsets"` or `"order"`), `chunks`, `gaps` (`[start, end]` in characters; start and end are equal if
    the length is unknown) and `trimmed`, with `read` (`[start, end]`) if it is; `pages` (`[start, page]`) if the chunks
    name theirs; `doubtful` (True) if chunks of several texts could not be told apart. Offsets may begin anew on each
    page, as they do behind `PyPDFLoader`.

    Filters also apply to whole documents: what is hidden from the retriever is not read. A chunk must match `filter`
    and the retriever's own `search_kwargs["filter"]`, as configured for the call. If one of LangChain's retrievers
    wraps others, as `EnsembleRetriever` does, the filters inside apply.

    Sometimes these filters do not say everything that is hidden: with a custom retriever or reranker, searches with
    unequal filters, a retriever over another store, a store that overrides its search, or no chain around the call.
    Then a document is read only if each of its chunks has the metadata of some retrieved passage, apart from page and
    chunk numbers, and if nothing of it was found and then dropped. Otherwise a `ConfigurationError` is raised. Pass
    `filter` to say what is hidden, or `filter={}` if nothing is. LangChain's own rerankers are known, by their classes.

    What limits a question is taken when it is asked. Changing the retriever or the filter later does not affect it.

    Behind a `ParentDocumentRetriever` or `MultiVectorRetriever`, documents are joined from the originals in its
    docstore that have a readable chunk. Originals without a source count as separate documents.

    Documents are cached. They are read again if the ids of their chunks in the store have changed, and after five
    minutes. If you change the text of a chunk but not its id, call `forget`.

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

    advice = _ADVICE
    order_advice = 'split it with add_start_index=True, or number its chunks in metadata["chunk_index"]'
    number_advice = 'number its pages in metadata["page"], or its chunks in metadata["chunk_index"]'
    match_ids = True

    def __init__(  # noqa: PLR0913 - where chunks are, and what names and numbers them
        self,
        vectorstore: VectorStore,
        *,
        source_key: str = "source",
        order_key: str | None = None,
        filter: Any = None,  # noqa: A002 - the stores' name for it
        docstore: BaseStore[str, Document] | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        """Read documents from a vector store.

        Args:
            vectorstore: The store that holds the chunks: Chroma, FAISS, Qdrant, Postgres, Milvus, LanceDB or
                InMemoryVectorStore, or any other with `fetch`.
            source_key: The key of the metadata that names a chunk's document.
            order_key: The key of the metadata that numbers the chunks of a document. Without it, their offsets say
                their order, or numbers under one of the usual keys.
            filter: The filter that all chunks must match, in the store's own form, such as a dict for Chroma or a
                callable that takes a Document for InMemoryVectorStore. Empty if nothing is hidden.
            docstore: Holds original documents, or their texts, by source. If there is a filter, an original is used
                only if none of its chunks is hidden.
            fetch: Lists chunks in a store of another kind. It takes `(source_key, source, filter)` and returns, as
                Documents, all chunks with `metadata[source_key] == source` that match the filter. It must also hide
                anything else that the store's search hides.

        Raises:
            ConfigurationError: The store is of another kind and there is no `fetch`, or another argument is of the
                wrong type.
        """
        check_store(vectorstore)
        if docstore is not None and not hasattr(docstore, "mget"):
            msg = f"docstore must be a BaseStore of Documents, such as InMemoryStore, not a {type(docstore).__name__}"
            raise ConfigurationError(msg)
        check_key("source_key", source_key or "")
        super().__init__(order_key)
        self.source_key, self.filter, self.docstore = source_key, filter, docstore
        self._store = store_of(vectorstore, fetch)
        if not is_empty(filter):
            self._store.check(filter)

    def __call__(self, inputs: dict[str, Any]) -> list[Document]:
        """Read the documents behind `inputs["retrieved"]`, best first, each once.

        Raises:
            DocumentNotFoundError: A document is not in the store (a `LookupError`).
            ConfigurationError: A chunk may be hidden from the retriever, and no filter was declared.
        """
        return super().__call__(inputs)

    def behind(self, retriever: Runnable[Any, Any], config: RunnableConfig) -> ScopedDocuments[Document, Document]:
        """Return these documents limited to what a retriever may see in a call with this config.

        Raises:
            ConfigurationError: The retriever has search arguments that may hide chunks, and no `filter` was declared.
        """
        scope = scope_of(retriever, config, self._store)
        if scope and scope.others and self.filter is None:
            msg = f"the retriever's search_kwargs have {', '.join(scope.others)}, which may hide chunks: {_ADVICE}"
            raise ConfigurationError(msg)
        return ScopedDocuments(self, Wall(frozen(self.filter), scope, certain=bool(scope and scope.certain)))

    def search_kwargs(self, k: int) -> dict[str, Any]:
        """Return the arguments for a retriever of the same store: `k` passages under the declared filter."""
        return {"k": k} if is_empty(self.filter) else {"k": k, self._store.filter_key: self.filter}

    @override
    def _access(self, wall: Wall | None) -> Access:
        wall = wall or Wall(self.filter)
        scope: RetrieverScope | None = wall.retriever
        own = [] if is_empty(wall.declared) else [wall.declared]
        theirs = [] if scope is None or scope.filter is None else [scope.filter]
        for condition in theirs:
            self._store.check(condition)
        conditions = own + [condition for condition in theirs if not any(is_same(condition, one) for one in own)]
        elsewhere = scope is not None and not all(map(self._store.is_of, scope.vectorstores))
        declared = wall.declared is not None
        plain = scope is not None and wall.certain and all(map(self._store.is_plain, scope.vectorstores))
        verified = elsewhere or not (declared or plain)
        originals = scope.originals if scope else None
        cache_key = self._store.cache_key(conditions)
        key: Hashable | None = _plain_key(conditions) if cache_key is None else cache_key
        if originals:
            key = key and originals.key and (key, originals.key)
        return Access(
            Limits(conditions, theirs, None if verified else originals),
            key,
            cached=cache_key is not None and not originals,
            verified=verified,
            declared=declared,
            dropped=wall.dropped,
            whole=originals is not None,
        )

    @override
    def _passages_in(self, *given: dict[str, Any]) -> Sequence[Document]:
        return cast("Sequence[Document]", given[0]["retrieved"])

    @override
    def _source_of(self, passage: Document) -> Hashable | None:
        source = passage.metadata.get(self.source_key)
        if isinstance(source, float) and not isfinite(source):  # not all stores can compare these
            return None
        return source if isinstance(source, _SOURCES) else None

    @override
    def _refuse_unnamed(self, passages: Sequence[Document]) -> None:
        key = self.source_key
        unfit = [passage.metadata[key] for passage in passages if key in passage.metadata]
        if unfit:
            msg = (
                f"metadata[{key!r}] of a retrieved passage is {_shown(unfit[0])}, which cannot name its document: "
                f"index the chunks with a string or a number as metadata[{key!r}], or pass another key as source_key="
            )
        else:
            keys = sorted({str(key) for passage in passages for key in passage.metadata})
            msg = (
                f"no retrieved passage has metadata[{key!r}], which names its document; the keys are {keys}: "
                "pass the right one as source_key="
                if keys
                else "the chunks have no metadata, so nothing says which document they are of: index them with "
                f"metadata such as {{{key!r}: 'report.pdf'}}, or pass the documents themselves as documents="
            )
        raise DocumentNotFoundError(msg)

    @override
    def _retrieved(self, passage: Document) -> RetrievedChunk:
        ids = frozenset([passage.id] if passage.id else [])
        return RetrievedChunk(ids, passage.page_content, passage.metadata)

    @override
    def _chunks(self, source: Any, limits: Limits | None) -> Iterator[StoredChunk]:
        found = self._store.chunks(self.source_key, source, limits.conditions if limits else [])
        if limits is None or limits.originals is None:
            return found
        declared = len(limits.conditions) > len(limits.retrievers)
        held = self._store.chunks(self.source_key, source, limits.retrievers) if declared else None
        return limits.originals.behind(source, found, held)

    @override
    def _ids(self, source: Any, limits: Limits | None) -> list[str]:
        return self._store.ids(self.source_key, source, limits.conditions if limits else [])

    @override
    def _original(self, source: Any, passages: Sequence[Document]) -> Document | None:
        found = self.docstore.mget([source])[0] if self.docstore else None
        if isinstance(found, str):
            found = Document(found, metadata={self.source_key: source})
        return None if found is None else _as_original(retrieved_of([found], what=HELD)[0])

    @override
    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> Document:
        return Document(rebuilt.text, metadata={**fields["metadata"], KEY: rebuilt.label()})

    @override
    def _alone(self, passage: Document) -> Document:
        return _labelled(passage, rebuild([Chunk(passage.page_content)]).label())

    @override
    def _text_of(self, document: Document) -> str:
        return document.page_content

    @override
    def _missing(self, source: Any, *, limited: bool) -> str:
        visible = " that the filter lets through" if limited else ""
        return (
            f"the vector store has no chunk of {source!r}{visible}: no chunk has this value as "
            f"metadata[{self.source_key!r}]"
        )

    @property
    @override
    def _ordered(self) -> bool:
        return self._store.ordered


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, float | None) else f"a {type(value).__name__}"


def _plain_key(conditions: Sequence[Any]) -> str | None:
    """Return a key for filters that are plain data; None for others, such as callables."""
    with suppress(TypeError, ValueError):
        return json.dumps(conditions, sort_keys=True)
    return None


def _as_original(document: Document) -> Document:
    return _labelled(document, original_label(document.page_content))


def _labelled(document: Document, label: Label) -> Document:
    return Document(document.page_content, id=document.id, metadata={**document.metadata, KEY: label})


def documents_behind(retriever: Any) -> StoredDocuments:
    """Return the documents of the store that a retriever searches.

    Raises:
        ConfigurationError: The retriever is not a store's own.
    """
    if isinstance(retriever, VectorStoreRetriever):
        return StoredDocuments(retriever.vectorstore)
    msg = (
        f"documents is missing, and a {type(retriever).__name__} does not say where they are: pass "
        "documents=StoredDocuments(vectorstore), a list of Documents, or a callable that returns one"
    )
    raise ConfigurationError(msg)
