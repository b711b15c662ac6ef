"""`StoredDocuments`, which reads whole documents from the vector store that the passages came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from typing_extensions import Self

from langchain_selfroute.arguments import check_store
from langchain_selfroute.convert import retrieved_of
from langchain_selfroute.stored.chunks import StoredChunks
from langchain_selfroute.stored.kinds import store_of
from langchain_selfroute.stored.limits import view_of
from langchain_selfroute.stored.searches import is_empty, searches_of
from langchain_selfroute.stored.stores import Fetch
from selfroute.documents.stored import BaseStoredDocuments, DroppedPassages, check_key
from selfroute.errors import ConfigurationError


class StoredDocuments(BaseStoredDocuments[Document, Document]):
    """The whole documents that the retrieved passages came from, read from the vector store that holds their chunks.

    If a docstore has the original, that is used. Otherwise the document is rebuilt from the chunks with the same
    source: by their offsets (`add_start_index=True` in LangChain's splitters), or else in the order of their numbers
    (`page`, `chunk_index`) or of the store. `metadata["selfroute"]` says how a document was assembled: `method`
    (`"original"`, `"offsets"` or `"order"`), `chunks`, `gaps` (`[start, end]` in characters; start and end are equal if
    the length is unknown) and `trimmed`, with `read` (`[start, end]`) if it is; `pages` (`[start, page]`) if the chunks
    name theirs; `doubtful` (True) if chunks of several texts could not be told apart. Offsets may begin again on each
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
                wrong type, or the store's search writes over `source_key`.
        """
        check_store(vectorstore)
        if docstore is not None and not hasattr(docstore, "mget"):
            msg = f"docstore must be a BaseStore of Documents, such as InMemoryStore, not a {type(docstore).__name__}"
            raise ConfigurationError(msg)
        check_key("source_key", source_key or "")
        super().__init__(order_key)
        self.source_key, self.filter, self.docstore = source_key, filter, docstore
        self._store = store_of(vectorstore, fetch)
        self._store.check_key(source_key)
        if not is_empty(filter):
            self._store.check(filter)

    def __call__(self, inputs: dict[str, Any]) -> list[Document]:
        """Read the documents behind `inputs["retrieved"]`, best first, each once.

        Raises:
            DocumentNotFoundError: A document is not in the store (a `LookupError`).
            ConfigurationError: A chunk may be hidden from the retriever, and no filter was declared.
        """
        limited = self if self.is_limited else self.limited_to(None, {})
        return limited.reader.read(inputs["retrieved"], limited.view)

    def limited_to(self, retriever: Runnable[Any, Any] | None, config: RunnableConfig) -> Self:
        """Return a shallow copy that reads only what a retriever may see in a call with this config.

        Raises:
            ConfigurationError: The retriever has search arguments that may hide chunks, and no `filter` was declared.
        """
        view = view_of(retriever, config, self._store, self.filter)
        store = StoredChunks(self._store, self.source_key, self.docstore, self.order_key)
        return self._in_view(view, store, is_overridden=type(self).__call__ is not StoredDocuments.__call__)

    def search_kwargs(self, k: int) -> dict[str, Any]:
        """Return the arguments for a retriever of the same store: `k` passages under the declared filter."""
        return {"k": k} if is_empty(self.filter) else {"k": k, self._store.filter_key: self.filter}


class FoundHeard(BaseCallbackHandler):
    """Notes what all retrievers find that run within the retrieval of one question."""

    run_inline = True

    def __init__(self, stored: StoredDocuments) -> None:
        """Note what is dropped of these documents."""
        self.dropped = DroppedPassages(stored)

    def on_retriever_end(self, documents: Sequence[Document], **_: Any) -> None:
        """Note what a retriever has found."""
        self.dropped.note_found(retrieved_of(documents))


def documents_behind(retriever: Any) -> StoredDocuments:
    """Return the documents of the store that a retriever searches, itself or inside LangChain's own wrappers.

    Raises:
        ConfigurationError: It is not known to search one store of a known kind, under one filter.
    """
    if isinstance(retriever, VectorStoreRetriever):
        return StoredDocuments(retriever.vectorstore)
    if searches := searches_of(retriever, {}):
        stored = StoredDocuments(searches[0].vectorstore)
        if not stored.limited_to(retriever, {}).view.limits.compared:
            return stored
    msg = (
        f"documents is missing, and a {type(retriever).__name__} is not known to search one store under one filter: "
        "pass documents=StoredDocuments(vectorstore), a list of Documents, or a callable that returns one"
    )
    raise ConfigurationError(msg)
