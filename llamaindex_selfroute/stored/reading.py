"""`StoredDocuments`, which reads whole documents from the index that the retrieved nodes came from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores import MetadataFilters
from typing_extensions import Self

from llamaindex_selfroute.arguments import check_filters, check_index
from llamaindex_selfroute.internals import fixed, index_of, leaves_of
from llamaindex_selfroute.stored.kinds import store_of
from llamaindex_selfroute.stored.limits import is_trusted, limits_in
from llamaindex_selfroute.stored.nodes import StoredNodes
from llamaindex_selfroute.stored.stores import Fetch
from selfroute.documents.access import frozen
from selfroute.documents.stored import BaseStoredDocuments, check_key
from selfroute.documents.view import View
from selfroute.errors import ConfigurationError


class StoredDocuments(BaseStoredDocuments[NodeWithScore, BaseNode]):
    """The whole documents that the retrieved nodes came from, read from the index that holds the nodes.

    If the document store has the original, that is used. Otherwise the document is rebuilt from the nodes with the same
    `ref_doc_id`: by their offsets (`start_char_idx`), or else in the order of their links. Pages that a loader made
    documents of are one document again, by the path of their file.

    `metadata["selfroute"]` says how a document was assembled: `method` (`"original"`, `"offsets"` or `"order"`),
    `chunks`, `gaps` (`[start, end]` in characters; start and end are equal if the length is unknown) and `trimmed`,
    with `read` (`[start, end]`) if it is; `pages` (`[start, page]`) if the nodes name theirs; `doubtful` (True) if
    nodes of several texts could not be told apart.

    Filters also apply to whole documents: what is hidden from the retriever is not read. A node must match `filters`
    and the retriever's own filters, `doc_ids` and `node_ids`, which a `SelfRouteQueryEngine` knows. If one of
    LlamaIndex's retrievers asks others, as `QueryFusionRetriever` does, the filters of the others apply.

    Sometimes these are unknown: in a synthesizer of another engine, or with a custom retriever or postprocessor. Then a
    document is read only if each of its nodes has the metadata of some retrieved node, apart from pages and headings,
    and if no postprocessor has dropped or changed a node of it. Otherwise a `ConfigurationError` is raised. Pass
    `filters` to say what is hidden, or `MetadataFilters(filters=[])` if nothing is. LlamaIndex's own rerankers are
    known, by their classes.

    What limits a query is taken when it is asked. Changing the retriever or the filters later does not affect it.

    Documents are cached. They are read again if the ids of their nodes in the store have changed, and after five
    minutes. If you change the text of a node but not its id, call `forget`.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments

        minutes = Document(text="Ms Okafor chaired the meeting. ...")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        engine = SelfRouteQueryEngine(
            index.as_retriever(similarity_top_k=5), documents=StoredDocuments(index), llm=MockLLM(max_tokens=3)
        )
        assert engine.query("Who chaired the meeting?").metadata["route"] == "rag"
        ```
    """

    def __init__(  # noqa: PLR0913 - where nodes are, and what names and numbers them
        self,
        index: BaseIndex[Any],
        *,
        filters: MetadataFilters | None = None,
        source_key: str | None = None,
        order_key: str | None = None,
        docstore: BaseDocumentStore | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        """Read documents from an index.

        Args:
            index: The index. It must keep its nodes in its document store, or in a vector store that can list them;
                otherwise pass `fetch`.
            filters: The filters that all nodes must match. Empty if nothing is hidden.
            source_key: The key of the metadata that names a node's document, such as `"file_path"`. Without it, a node
                with a page (`page_label` or `page`) and a `file_path` or `file_name` is of that file, and any other
                node of the document with its `ref_doc_id`.
            order_key: The key of the metadata that numbers the nodes of a document. Without it, the offsets and links
                of nodes say their order, or numbers under one of the usual keys.
            docstore: Holds original documents; the index's own document store if None. An original is used only if the
                nodes were cut from it and, if there are filters, none of its nodes is hidden.
            fetch: Lists nodes in a store of another kind. It takes `(ref_doc_id, filters)`, or with a `source_key`
                `(value, filters)`, and returns all nodes of that document that match the filters.

        Raises:
            ConfigurationError: The store cannot list nodes and there is no `fetch`, or an argument is of the wrong
                type.
        """
        check_index(index)
        check_filters(filters)
        if docstore is not None and not hasattr(docstore, "get_document"):
            msg = f"docstore must be a document store, such as index.docstore, not a {type(docstore).__name__}"
            raise ConfigurationError(msg)
        super().__init__(order_key)
        check_key("source_key", source_key)
        self.filters, self.docstore = filters, index.docstore if docstore is None else docstore
        self.source_key = source_key
        self._store = store_of(index, fetch)

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:  # noqa: ARG002
        """Read the documents behind the nodes, best first, each once.

        Raises:
            DocumentNotFoundError: None of the documents is in the store (a `LookupError`).
            ConfigurationError: A node may be hidden from the retriever, and no filters were declared.
        """
        limited = self if self.is_limited else self.limited_to(None)
        return limited.reader.read(nodes, limited.view)

    def limited_to(
        self,
        retriever: BaseRetriever | None,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
        *,
        is_copy: bool = False,
    ) -> Self:
        """Return a shallow copy that reads only what a retriever with these postprocessors may see.

        Args:
            retriever: The retriever; None if it is not known. Later changes of it and of the filters do not matter.
            postprocessors: Applied to the retrieved nodes.
            is_copy: Whether the retriever is a copy already, which nobody changes.
        """
        asked = retriever if retriever is None or is_copy else fixed(retriever)
        declared, certain = frozen(self.filters), asked is not None and all(map(is_trusted, postprocessors))
        find = partial(limits_in, self._store, asked, declared, certain=certain)
        view = View(find, declared=declared is not None, certain=certain)
        store = StoredNodes(self._store, self.source_key, self.docstore, self.order_key)
        return self._in_view(view, store, is_overridden=type(self).__call__ is not StoredDocuments.__call__)


def documents_behind(retriever: BaseRetriever) -> StoredDocuments:
    """Return the documents of the index that a retriever searches, itself or inside LlamaIndex's own wrappers.

    Raises:
        ConfigurationError: It is not known to search one index under one filter.
    """
    leaves = leaves_of(retriever)
    index = next((one for one in map(index_of, leaves) if isinstance(one, BaseIndex)), None)
    if index is not None:
        stored = StoredDocuments(index)
        if leaves[0] is retriever or not stored.limited_to(retriever).view.limits.compared:
            return stored
    msg = (
        f"documents is missing, and a {type(retriever).__name__} is not known to search one index under one filter: "
        "pass documents=StoredDocuments(index), a list of Documents, or a callable that returns one"
    )
    raise ConfigurationError(msg)
