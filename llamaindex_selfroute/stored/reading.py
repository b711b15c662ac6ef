"""`StoredDocuments`, which reads whole documents from the index that the retrieved nodes came from."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores import MetadataFilters
from typing_extensions import override

from llamaindex_selfroute.arguments import check_filters, check_index
from llamaindex_selfroute.convert import labelled, retrieved_text
from llamaindex_selfroute.internals import fixed, index_of, leaves_of
from llamaindex_selfroute.stored.conditions import test_of
from llamaindex_selfroute.stored.filters import AccessLimits, is_trusted, limits_of
from llamaindex_selfroute.stored.kinds import store_of
from llamaindex_selfroute.stored.naming import Name, name_of
from llamaindex_selfroute.stored.nodes import BiggerNodes, Link, parent_of, put_together
from llamaindex_selfroute.stored.stores import Fetch
from selfroute.documents.access import Access, RetrievedChunk, StoredChunk, Wall, frozen
from selfroute.documents.chunks import PLACE_KEYS, Chunk, chunks_of, without_keys
from selfroute.documents.label import KEY
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.stored import ScopedDocuments, StoredReader, check_key
from selfroute.errors import ConfigurationError, DocumentNotFoundError

_EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


class StoredDocuments(StoredReader[NodeWithScore, BaseNode]):
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

    place_keys = PLACE_KEYS | {"header_path", "window", "original_text"}  # the latter are from splitters
    advice = (
        "pass StoredDocuments(filters=...), which every node must match, or MetadataFilters(filters=[]) if nothing is "
        "hidden"
    )
    order_advice = (
        "with a node parser that keeps start_char_idx, or the links between nodes (include_prev_next_rel=True)"
    )
    number_advice = (
        'with numbers of its pages in metadata["page"], or the links between nodes (include_prev_next_rel=True)'
    )

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
                with a page (`page_label` or `page`) beside `file_path` or `file_name` is of that file, and any other
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

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:
        """Read the documents behind the nodes, best first, each once.

        Raises:
            DocumentNotFoundError: None of the documents is in the store (a `LookupError`).
            ConfigurationError: A node may be hidden from the retriever, and no filters were declared.
        """
        return super().__call__(nodes, query)

    def behind(
        self, retriever: BaseRetriever | None, postprocessors: Sequence[BaseNodePostprocessor] = ()
    ) -> ScopedDocuments[NodeWithScore, BaseNode]:
        """Return these documents limited to what a retriever with these postprocessors may see.

        Later changes of the retriever and of the filters do not reach them. None means that the retriever is not known.
        """
        return self.within(None if retriever is None else fixed(retriever), postprocessors)

    def within(
        self, retriever: BaseRetriever | None, postprocessors: Sequence[BaseNodePostprocessor]
    ) -> ScopedDocuments[NodeWithScore, BaseNode]:
        """Do as `behind` does, with a retriever that nobody can change."""
        known = retriever is not None and all(map(is_trusted, postprocessors))
        return ScopedDocuments(self, Wall(frozen(self.filters), retriever, certain=known))

    @override
    def _access(self, wall: Wall | None) -> Access:
        wall = wall or Wall(self.filters)
        known = limits_of(wall.retriever) if wall.certain else None
        here = wall.retriever is not None and (
            all(map(self._store.is_searched_by, leaves_of(wall.retriever)))
            or (known is not None and known.copies is not None)  # then each node is compared with its copy
        )
        unknown = wall.declared is None and (known is None or not here)
        limits = (AccessLimits() if known is None else known).within(wall.declared)
        if not here:
            limits = replace(limits, bigger=BiggerNodes(()))  # what these nodes lead to is not known there
        verified = unknown or (known is not None and not here)
        cached, dropped = self._store.lists_ids, wall.dropped
        return Access(limits, limits.key, cached=cached, verified=verified, declared=not unknown, dropped=dropped)

    @override
    def _source_of(self, passage: NodeWithScore) -> Name | None:
        return self._name_of(passage.node)

    def _name_of(self, node: BaseNode) -> Name | None:
        return name_of(node, self.source_key, self._store.can_find)

    @override
    def _parts_of(
        self, source: Name, passages: Sequence[NodeWithScore]
    ) -> Sequence[tuple[Name, Sequence[NodeWithScore]]]:
        pages: dict[str, list[NodeWithScore]] = {}
        for passage in passages if source.key and source.key != self.source_key else ():
            pages.setdefault(passage.node.ref_doc_id or "", []).append(passage)
        return () if "" in pages else [(Name.of(page), of) for page, of in pages.items()]

    @override
    def _passage_key(self, passage: NodeWithScore) -> Hashable:
        return passage.node.node_id

    @override
    def _refuse_unnamed(self, passages: Sequence[NodeWithScore]) -> None:
        if any(isinstance(passage.node, Document) for passage in passages):
            return  # such a node is itself a document
        keys = sorted({str(key) for passage in passages for key in passage.node.metadata})
        msg = (
            f"no retrieved node names its document, by NodeRelationship.SOURCE or metadata[{self.source_key!r}]"
            if self.source_key
            else "no retrieved node has a ref_doc_id, which names its document (NodeRelationship.SOURCE)"
        )
        advice = f"; the keys of their metadata are {keys}: pass the right one as source_key=" if keys else ""
        msg = (
            f"{msg}{advice}{', or' if keys else ':'} pass the engine documents=, a callable that returns the documents"
        )
        raise DocumentNotFoundError(msg)

    @override
    def _retrieved(self, passage: NodeWithScore) -> RetrievedChunk:
        node = passage.node
        ids = {node.node_id, *(child.node_id for child in node.child_nodes or ())}  # `AutoMergingRetriever` merges them
        return RetrievedChunk(frozenset(ids), retrieved_text(node), node.metadata)

    @override
    def _chunks(self, source: Any, limits: AccessLimits | None) -> Iterator[StoredChunk]:
        limits = AccessLimits() if limits is None else limits
        meets = test_of(limits.filters)

        def belongs(node: BaseNode) -> bool:
            return self._name_of(node) == source and meets(node)

        shown = limits.bigger.shown(belongs, partial(self._hidden, source, limits))
        parent_start = limits.bigger.starts(self.docstore)
        for found in self._visible(source, limits):
            node = shown(found)
            link = Link.of(node, parent_start(node))
            parent = parent_of(found) if node is found else node.node_id
            yield StoredChunk(found.node_id, link.text, found.metadata, parent, host=(node, link))

    def _visible(self, source: Any, limits: AccessLimits) -> Iterator[BaseNode]:
        return filter(limits.let_through, self._store.nodes(source, limits.filters))

    def _hidden(self, source: Any, limits: AccessLimits) -> Iterator[BaseNode]:
        """Yield the nodes of a document that the limits hide."""
        if limits:
            visible = set(self._ids(source, limits))
            yield from (node for node in self._store.nodes(source, ()) if node.node_id not in visible)

    @override
    def _ids(self, source: Any, limits: AccessLimits | None) -> list[str]:
        limits = AccessLimits() if limits is None else limits
        if limits.documents is not None and source.key is None and source not in limits.documents:
            return []
        if limits.copies is not None or (limits.documents is not None and source.key):  # then ids are not enough
            return [node.node_id for node in self._visible(source, limits)]
        ids = self._store.ids(source, limits.filters)
        return ids if limits.nodes is None else [id_ for id_ in ids if id_ in limits.nodes]

    @override
    def _original(self, source: Name, passages: Sequence[NodeWithScore]) -> BaseNode | None:
        found = self.docstore.get_document(str(source), raise_error=False)
        return found if found is not None and self._is_source(found, [passage.node for passage in passages]) else None

    @override
    def _assemble(self, chunks: Iterator[StoredChunk], found: Sequence[str]) -> tuple[RebuiltDocument, dict[str, Any]]:
        fields: dict[str, list[str]] = {kind: [] for kind in _EXCLUDED}

        def rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            for chunk in chunks:
                node, link = chunk.host
                links.append(link)
                for kind in _EXCLUDED:
                    fields[kind] += [key for key in getattr(node, kind) if key not in fields[kind]]
                yield link.text, node.metadata

        links: list[Link] = []
        numbered = self._numbered(chunks_of(rows(), start_key=self.start_key, order_key=self.order_key))
        placed = [links[at].with_chunk(chunk) for at, chunk in enumerate(numbered)]
        links.clear()
        return put_together(placed, found, ordered=self._ordered, by_place=self.order_key is not None), fields

    @override
    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> BaseNode:
        metadata = {**fields["metadata"], KEY: rebuilt.label()}
        return labelled(Document(id_=str(source), text=rebuilt.text, **{**fields, "metadata": metadata})).node

    @override
    def _alone(self, passage: NodeWithScore) -> BaseNode:
        node = passage.node
        if isinstance(node, Document):
            return node
        return labelled(node, **rebuild([Chunk(node.get_content())]).label()).node

    @override
    def _text_of(self, document: BaseNode) -> str:
        return document.get_content()

    @override
    def _missing(self, source: Any, *, limited: bool) -> str:
        visible = " that the filters let through" if limited else ""
        return (
            f"the index has no node of the document {source!r}{visible}, nor the document itself: pass the engine "
            "documents=, or keep the originals with index.docstore.add_documents(documents)"
        )

    @property
    @override
    def _ordered(self) -> bool:
        return self._store.ordered

    def _is_source(self, original: BaseNode, nodes: Sequence[BaseNode]) -> bool:
        """Return whether any of the nodes was cut from this version of this document."""
        version, metadata = original.hash, without_keys(original.metadata, self.place_keys)
        for node in nodes:
            source = node.relationships.get(NodeRelationship.SOURCE)
            known = source.hash if isinstance(source, RelatedNodeInfo) else None
            if known == version:
                return True
            if not known and all(node.metadata.get(key, value) == value for key, value in metadata.items()):
                return True
        return False


def documents_behind(retriever: BaseRetriever) -> StoredDocuments:
    """Return the documents of the index that a retriever searches.

    Raises:
        ConfigurationError: The retriever is not an index's own.
    """
    index = index_of(retriever)
    if isinstance(index, BaseIndex):
        return StoredDocuments(index)
    msg = (
        f"documents is missing, and a {type(retriever).__name__} does not say where they are: pass "
        "documents=StoredDocuments(index), a list of Documents, or a callable that returns one"
    )
    raise ConfigurationError(msg)
