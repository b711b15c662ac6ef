"""`StoredDocuments`: whole documents out of the index that the nodes came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

from llamaindex_selfroute.documents import labelled, length_of
from llamaindex_selfroute.stored.filters import AccessLimits, wall_of
from llamaindex_selfroute.stored.nodes import Link, put_together
from llamaindex_selfroute.stored.stores import Fetch, store_of
from selfroute.documents.cache import Cache, CachedDocument, ids_digest
from selfroute.documents.chunks import Chunk
from selfroute.documents.metadata import PLACE_KEYS, common, without
from selfroute.documents.rebuild import rebuild
from selfroute.documents.sizes import Lengths, Sizes
from selfroute.documents.vouching import RetrievedChunk, VisibilityCheck
from selfroute.errors import ConfigurationError, DocumentNotFoundError

_PLACE = PLACE_KEYS | {"header_path", "window", "original_text"}  # where a node stands, as splitters note it
_ADVICE = (
    "give StoredDocuments(filters=...), what the nodes have to meet; MetadataFilters(filters=[]) if nothing is hidden"
)
_EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


class StoredDocuments:
    """The whole documents that the retrieved nodes came from, out of the index that holds them.

    The original where a document store has it; else the nodes of the same `ref_doc_id`, put together by their offsets
    (`start_char_idx`), or in the order in which they are linked. Each document says how it was come by in
    `metadata["selfroute"]`: `method` (`"original"`, `"offsets"`, `"order"`), `chunks`, `gaps` (`[start, end]` in
    characters; empty where a length is not known), `trimmed`.

    A filter is a wall: what the retriever may not see is not read. `filters` hold together with the retriever's own
    (and its `doc_ids` and `node_ids`), which a `SelfRouteQueryEngine` knows. Where neither is known (a synthesizer
    in another engine, a retriever or postprocessor of your own), a document is read only if all its nodes carry the
    metadata of a retrieved one, page and headings aside, and refused otherwise. `filters` then say what is hidden;
    `MetadataFilters(filters=[])` that nothing is.

    Documents are cached, and asked for again when the store names other nodes for them, or after five minutes. Call
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
            ConfigurationError: The store can not list nodes, and there is no `fetch`; or something is of another type.
        """
        if not isinstance(index, BaseIndex):
            msg = f"StoredDocuments takes an index, such as a VectorStoreIndex, not a {type(index).__name__}"
            raise ConfigurationError(msg)
        if not isinstance(filters, MetadataFilters | None):
            msg = f"filters must be MetadataFilters, not {type(filters).__name__}"
            raise ConfigurationError(msg)
        self.filters, self.docstore = filters, index.docstore if docstore is None else docstore
        self._store, self._cache, self._sizes = store_of(index, fetch), Cache(), Sizes()

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:  # noqa: ARG002
        """Read the documents behind the nodes, best first, each once.

        Raises:
            DocumentNotFoundError: The store does not hold one of them (a `LookupError`).
            ConfigurationError: Something may be hidden from the retriever, and it is not known what.
        """
        return self._read(nodes, None)

    def behind(self, retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor] = ()) -> ScopedDocuments:
        """The same, for nodes of this retriever that went through these postprocessors, under its filters."""
        return ScopedDocuments(self, retriever, postprocessors)

    def forget(self, ref_doc_id: str | None = None) -> None:
        """Read a document anew when it is asked for next, or all of them."""
        self._cache.forget(ref_doc_id)
        self._sizes.forget()

    def _limits(
        self, retriever: BaseRetriever | None, postprocessors: Sequence[BaseNodePostprocessor]
    ) -> tuple[AccessLimits, bool, bool]:
        """The wall; whether there may be more to it; whether nothing is known of that."""
        seen = retriever and wall_of(retriever, postprocessors)
        elsewhere = seen is not None and not self._store.is_searched_by(retriever)
        unknown = self.filters is None and (seen is None or elsewhere)
        return (seen or AccessLimits()).within(self.filters), unknown or elsewhere, unknown

    def _read(
        self,
        nodes: Sequence[NodeWithScore],
        retriever: BaseRetriever | None,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> list[BaseNode]:
        wall, doubted, unknown = self._limits(retriever, postprocessors)
        hits = _hits(nodes)
        if nodes and not any(item.node.ref_doc_id or isinstance(item.node, Document) for item in nodes):
            msg = (
                "no retrieved node has a ref_doc_id, which names its document (NodeRelationship.SOURCE): give the "
                "engine documents=, a callable that returns the documents"
            )
            raise DocumentNotFoundError(msg)
        documents = []
        for name, found in hits.items():
            vouching = (
                VisibilityCheck(name, [*map(_hit, found)], place=_PLACE, advice=_ADVICE, blindly=not unknown)
                if doubted
                else None
            )
            document = self._document(name, found, wall, vouching)
            documents.append(document)
            if not doubted:
                self._sizes.put((name, wall.name), length_of(document))
        return documents

    def _lengths(
        self, nodes: Sequence[NodeWithScore], retriever: BaseRetriever, postprocessors: Sequence[BaseNodePostprocessor]
    ) -> Lengths | None:
        wall, doubted, _ = self._limits(retriever, postprocessors)
        if doubted:
            return None
        keys = []
        for name, found in _hits(nodes).items():
            keys.append((name, wall.name))
            if self._store.in_threads:
                self._sizes.count(keys[-1], partial(self._length, name, found, wall))
        return self._sizes.lengths((), keys)

    def _length(self, name: str, hits: list[BaseNode], wall: AccessLimits) -> int:
        return length_of(self._document(name, hits, wall, None, keep=False))

    def _document(
        self,
        name: str,
        hits: list[BaseNode],
        wall: AccessLimits,
        vouching: VisibilityCheck | None,
        *,
        keep: bool = True,
    ) -> BaseNode:
        if not hits[0].ref_doc_id:
            whole = isinstance(hits[0], Document)
            return hits[0] if whole else labelled(hits[0], **rebuild([Chunk(hits[0].get_content())]).label()).node
        if vouching:
            kept = self._rebuilt(name, wall, vouching)
            return self._original(name, hits, wall) or _document_of(name, kept)
        original = self._original(name, hits, wall)
        return original or _document_of(name, self._cached(name, hits, wall) or self._rebuilt(name, wall, keep=keep))

    def _original(self, name: str, hits: Sequence[BaseNode], wall: AccessLimits) -> BaseNode | None:
        found = self.docstore.get_document(name, raise_error=False)
        if found is None or not _is_source(found, hits):
            return None
        if wall:
            visible, held = len(self._ids(name, wall)), len(self._store.ids(name, ()))
            return found if 0 < visible == held else None
        return found

    def _ids(self, name: str, wall: AccessLimits) -> list[str]:
        if wall.documents is not None and name not in wall.documents:
            return []
        ids = self._store.ids(name, wall.filters)
        return ids if wall.nodes is None else [id_ for id_ in ids if id_ in wall.nodes]

    def _nodes(self, name: str, wall: AccessLimits) -> Iterator[BaseNode]:
        if wall.documents is None or name in wall.documents:
            for node in self._store.nodes(name, wall.filters):
                if wall.nodes is None or node.node_id in wall.nodes:
                    yield node

    def _cached(self, name: str, hits: list[BaseNode], wall: AccessLimits) -> CachedDocument | None:
        kept = self._cache.get(name, wall.name)
        if kept and all(hit.get_content() in kept.whole.text for hit in hits):
            return kept if ids_digest(self._ids(name, wall)) == kept.stamp else None
        return None

    def _rebuilt(
        self, name: str, wall: AccessLimits, vouching: VisibilityCheck | None = None, *, keep: bool = True
    ) -> CachedDocument:
        """Read and put together.

        Args:
            name: The document's id.
            wall: What may be read.
            vouching: Looks at each node, if there may be more to the wall.
            keep: Whether to keep it in the cache.
        """
        forgotten = self._cache.forgotten
        ids: list[str] = []
        parents: set[str] = set()
        fields: dict[str, Any] = {}

        def links() -> Iterator[Link]:
            for node in self._nodes(name, wall):
                if vouching:
                    vouching.look(node.metadata)
                if ids:
                    fields["metadata"] = common(fields["metadata"], node.metadata)
                else:
                    fields.update(metadata=without(node.metadata, _PLACE), **{kind: [] for kind in _EXCLUDED})
                for kind in _EXCLUDED:
                    fields[kind] += [key for key in getattr(node, kind) if key not in fields[kind]]
                ids.append(node.node_id)
                link = Link.of(node)
                parents.update([link.parent] if link.parent else [])
                yield link

        whole = put_together(links())
        if not ids:
            seen = " that the filters let through" if wall else ""
            msg = (
                f"the index holds no node of the document {name!r}{seen}, nor the document itself: give the engine "
                "documents=, or keep the originals with index.docstore.add_documents(documents)"
            )
            raise DocumentNotFoundError(msg)
        if vouching:
            vouching.conclude(parents.union(ids), whole.text)
        kept = CachedDocument(whole, fields, ids_digest(ids))
        if keep and self._store.tells_ids:
            self._cache.put(name, wall.name, kept, forgotten=forgotten)
        return kept


@dataclass(frozen=True, slots=True)
class ScopedDocuments:
    """Stored documents, for the nodes of one retriever."""

    _stored: StoredDocuments
    _retriever: BaseRetriever
    _postprocessors: Sequence[BaseNodePostprocessor]

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:  # noqa: ARG002
        """Read them."""
        return self._stored._read(nodes, self._retriever, self._postprocessors)  # noqa: SLF001

    def lengths(self, nodes: Sequence[NodeWithScore]) -> Lengths | None:
        """What tells how long they are, without reading them for it now; None if nothing ever will."""
        return self._stored._lengths(nodes, self._retriever, self._postprocessors)  # noqa: SLF001


def _hits(nodes: Sequence[NodeWithScore]) -> dict[str, list[BaseNode]]:
    hits: dict[str, list[BaseNode]] = {}
    for item in nodes:
        # One that names no document stands for itself.
        hits.setdefault(item.node.ref_doc_id or f"\0{item.node.node_id}", []).append(item.node)
    return hits


def _hit(node: BaseNode) -> RetrievedChunk:
    ids = {node.node_id, *(child.node_id for child in node.child_nodes or ())}  # `AutoMergingRetriever` merges them
    return RetrievedChunk(frozenset(ids), node.get_content(), node.metadata)


def _is_source(original: BaseNode, hits: Sequence[BaseNode]) -> bool:
    """Whether some nodes were cut from a document, and not from an older or a newer one or somebody else's."""
    version, metadata = original.hash, without(original.metadata, _PLACE)
    for hit in hits:
        source = hit.relationships.get(NodeRelationship.SOURCE)
        known = source.hash if isinstance(source, RelatedNodeInfo) else None
        if known == version:
            return True
        if not known and all(hit.metadata.get(key, value) == value for key, value in metadata.items()):
            return True
    return False


def _document_of(name: str, kept: CachedDocument) -> BaseNode:
    return labelled(Document(id_=name, text=kept.whole.text, **kept.fields), **kept.whole.label()).node
