"""`StoredDocuments`: whole documents out of the index that the nodes came from."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

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

from llamaindex_selfroute.documents import labelled
from llamaindex_selfroute.stored.filters import AccessLimits, limits_of
from llamaindex_selfroute.stored.nodes import Link, put_together
from llamaindex_selfroute.stored.stores import Fetch, store_of
from selfroute.documents.chunks import Chunk
from selfroute.documents.metadata import PLACE_KEYS, without_keys
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.stored import Access, ScopedDocuments, StoredChunk, StoredReader
from selfroute.documents.visibility import RetrievedChunk
from selfroute.errors import ConfigurationError, DocumentNotFoundError

_EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


@dataclass(frozen=True, slots=True)
class RetrieverScope:
    """The retriever that found the nodes of a call.

    Attributes:
        retriever: The retriever.
        postprocessors: What its nodes go through.
    """

    retriever: BaseRetriever
    postprocessors: Sequence[BaseNodePostprocessor] = ()


class StoredDocuments(StoredReader[NodeWithScore, BaseNode]):
    """The whole documents that the retrieved nodes came from, out of the index that holds them.

    A document is the original where a document store has it. Otherwise it is rebuilt from the nodes of the same
    `ref_doc_id`, by their offsets (`start_char_idx`), or in the order in which they are linked. Each document says in
    `metadata["selfroute"]` how it was assembled: `method` (`"original"`, `"offsets"`, `"order"`), `chunks`, `gaps`
    (`[start, end]` in characters; empty where a length is not known), `trimmed`.

    Filters also apply to whole documents: what the retriever may not see is not read. `filters` hold together with the
    retriever's own (and its `doc_ids` and `node_ids`), which a `SelfRouteQueryEngine` knows. Sometimes neither is
    known: for a synthesizer in another engine, or with a custom retriever or postprocessor. A document is then read
    only if all its nodes have the metadata of a retrieved one, page and headings aside, and refused otherwise. Pass
    `filters` to say what is hidden, or `MetadataFilters(filters=[])` if nothing is.

    Documents are cached. They are read again when the store lists other nodes for them, or after five minutes. Call
    `forget` after changing the text of a node under the id it has.

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

    place_keys = PLACE_KEYS | {"header_path", "window", "original_text"}  # where a node stands, as splitters note it
    advice = (
        "pass StoredDocuments(filters=...), which every node has to meet; MetadataFilters(filters=[]) if nothing is "
        "hidden"
    )

    def __init__(
        self,
        index: BaseIndex[Any],
        *,
        filters: MetadataFilters | None = None,
        docstore: BaseDocumentStore | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        """Configure.

        Args:
            index: Holds the nodes: in its document store, or in a vector store that keeps text and can list nodes.
            filters: What the metadata of nodes have to meet. Empty: nothing is hidden.
            docstore: Holds originals; the index's own if None. One is used only if it is what the nodes were cut
                from, and with filters if none of its nodes is hidden.
            fetch: Finds nodes in a store of another kind: it is given `(ref_doc_id, filters)` and returns all nodes
                of that document that the filters let through.

        Raises:
            ConfigurationError: The store cannot list nodes, and there is no `fetch`; or something is of another type.
        """
        if not isinstance(index, BaseIndex):
            msg = f"StoredDocuments takes an index, such as a VectorStoreIndex, not a {type(index).__name__}"
            raise ConfigurationError(msg)
        if not isinstance(filters, MetadataFilters | None):
            msg = f"filters must be MetadataFilters, not {type(filters).__name__}"
            raise ConfigurationError(msg)
        super().__init__()
        self.filters, self.docstore = filters, index.docstore if docstore is None else docstore
        self._store = store_of(index, fetch)

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:  # noqa: ARG002
        """Read the documents behind the nodes, best first, each once.

        Raises:
            DocumentNotFoundError: The store does not hold one of them (a `LookupError`).
            ConfigurationError: Something may be hidden from the retriever, and nobody said what.
        """
        return self._read(nodes, None)

    def behind(
        self, retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor] = ()
    ) -> ScopedDocuments[NodeWithScore, BaseNode]:
        """Return the same for nodes of this retriever that went through these postprocessors, under its filters."""
        return ScopedDocuments(self, RetrieverScope(retriever, postprocessors))

    @override
    def _access(self, scope: RetrieverScope | None) -> Access:
        seen = limits_of(scope.retriever, scope.postprocessors) if scope else None
        elsewhere = scope is not None and seen is not None and not self._store.is_searched_by(scope.retriever)
        unknown = self.filters is None and (seen is None or elsewhere)
        limits = (seen or AccessLimits()).within(self.filters)
        cached = self._store.lists_ids
        return Access(limits, limits.key, cached=cached, verified=unknown or elsewhere, declared=not unknown)

    @override
    def _passages_in(self, *given: Any) -> Sequence[NodeWithScore]:
        return cast("Sequence[NodeWithScore]", given[0])

    @override
    def _source_of(self, passage: NodeWithScore) -> Hashable | None:
        return passage.node.ref_doc_id or None

    @override
    def _refuse_unnamed(self, passages: Sequence[NodeWithScore]) -> None:
        if any(isinstance(passage.node, Document) for passage in passages):
            return  # such a node is a document already
        msg = (
            "no retrieved node has a ref_doc_id, which names its document (NodeRelationship.SOURCE): pass the engine "
            "documents=, a callable that returns the documents"
        )
        raise DocumentNotFoundError(msg)

    @override
    def _retrieved(self, passage: NodeWithScore) -> RetrievedChunk:
        node = passage.node
        ids = {node.node_id, *(child.node_id for child in node.child_nodes or ())}  # `AutoMergingRetriever` merges them
        return RetrievedChunk(frozenset(ids), node.get_content(), node.metadata)

    @override
    def _chunks(self, source: Any, limits: AccessLimits | None) -> Iterator[StoredChunk]:
        limits = limits or AccessLimits()
        if limits.documents is not None and source not in limits.documents:
            return
        for node in self._store.nodes(source, limits.filters):
            if limits.nodes is None or node.node_id in limits.nodes:
                link = Link.of(node)
                yield StoredChunk(node.node_id, link.text, node.metadata, link.parent, host=(node, link))

    @override
    def _ids(self, source: Any, limits: AccessLimits | None) -> list[str]:
        limits = limits or AccessLimits()
        if limits.documents is not None and source not in limits.documents:
            return []
        ids = self._store.ids(source, limits.filters)
        return ids if limits.nodes is None else [id_ for id_ in ids if id_ in limits.nodes]

    @override
    def _original(self, source: Any, passages: Sequence[NodeWithScore]) -> BaseNode | None:
        found = self.docstore.get_document(source, raise_error=False)
        return found if found is not None and self._is_source(found, [passage.node for passage in passages]) else None

    @override
    def _assemble(self, chunks: Iterator[StoredChunk]) -> tuple[RebuiltDocument, dict[str, Any]]:
        fields: dict[str, list[str]] = {kind: [] for kind in _EXCLUDED}

        def links() -> Iterator[Link]:
            for chunk in chunks:
                node, link = chunk.host
                for kind in _EXCLUDED:
                    fields[kind] += [key for key in getattr(node, kind) if key not in fields[kind]]
                yield link

        return put_together(links()), fields

    @override
    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> BaseNode:
        return labelled(Document(id_=source, text=rebuilt.text, **fields), **rebuilt.label()).node

    @override
    def _alone(self, passage: NodeWithScore) -> BaseNode:
        node = passage.node
        if isinstance(node, Document):
            return node
        return labelled(node, **rebuild([Chunk(node.get_content())]).label()).node

    @override
    def _length_of(self, document: BaseNode) -> int:
        return len(document.get_content())

    @override
    def _missing(self, source: Any, *, limited: bool) -> str:
        visible = " that the filters let through" if limited else ""
        return (
            f"the index holds no node of the document {source!r}{visible}, nor the document itself: pass the engine "
            "documents=, or keep the originals with index.docstore.add_documents(documents)"
        )

    @property
    @override
    def _in_threads(self) -> bool:
        return self._store.in_threads

    def _is_source(self, original: BaseNode, nodes: Sequence[BaseNode]) -> bool:
        """Return whether some nodes were cut from this document, and not from another version or somebody else's."""
        version, metadata = original.hash, without_keys(original.metadata, self.place_keys)
        for node in nodes:
            source = node.relationships.get(NodeRelationship.SOURCE)
            known = source.hash if isinstance(source, RelatedNodeInfo) else None
            if known == version:
                return True
            if not known and all(node.metadata.get(key, value) == value for key, value in metadata.items()):
                return True
        return False
