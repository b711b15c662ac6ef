"""The nodes of an index and their documents, as the core's reader asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llama_index.core.schema import BaseNode, Document, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore import BaseDocumentStore
from typing_extensions import override

from llamaindex_selfroute.convert import labelled, retrieved_text
from llamaindex_selfroute.stored.conditions import test_of
from llamaindex_selfroute.stored.limits import OPEN, NodeLimits
from llamaindex_selfroute.stored.links import Link, parent_of, put_together
from llamaindex_selfroute.stored.naming import Name, name_of
from llamaindex_selfroute.stored.stores import Store
from selfroute.documents import reader
from selfroute.documents.access import RetrievedChunk, StoredChunk
from selfroute.documents.chunks import PLACE_KEYS, Chunk, without_keys
from selfroute.documents.label import KEY
from selfroute.documents.ordering import numbered
from selfroute.documents.rebuild import RebuiltDocument, rebuild

_EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


@dataclass(slots=True, eq=False)
class StoredNodes(reader.Store[NodeWithScore, BaseNode]):
    """The nodes of an index.

    Attributes:
        listed: Lists the nodes of one document.
        source_key: The key of the metadata that names a node's document, if the user named one.
        docstore: Holds original documents, and the parents of nodes.
        order_key: The key of the metadata that numbers the nodes of a document; None for the usual ones.
    """

    listed: Store
    source_key: str | None
    docstore: BaseDocumentStore
    order_key: str | None = None

    place_keys = PLACE_KEYS | {"start_index", "header_path", "window", "original_text"}  # the last are from splitters
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

    @property
    @override
    def ordered(self) -> bool:  # type: ignore[override]
        return self.listed.ordered

    @override
    def name(self, passage: NodeWithScore) -> Name | None:
        return name_of(passage.node, self.source_key, self.listed.can_find)

    @override
    def unnamed(self, passages: Sequence[NodeWithScore]) -> str | None:
        if any(isinstance(passage.node, Document) for passage in passages):
            return None  # such a node is itself a document
        keys = sorted({str(key) for passage in passages for key in passage.node.metadata})
        message = (
            f"no retrieved node names its document, by NodeRelationship.SOURCE or metadata[{self.source_key!r}]"
            if self.source_key
            else "no retrieved node has a ref_doc_id, which names its document (NodeRelationship.SOURCE)"
        )
        advice = f"; the keys of their metadata are {keys}: pass the right one as source_key=, or" if keys else ":"
        return f"{message}{advice} pass the engine documents=, a callable that returns the documents"

    @override
    def retrieved(self, passage: NodeWithScore) -> RetrievedChunk:
        node = passage.node
        ids = {node.node_id, *(child.node_id for child in node.child_nodes or ())}  # `AutoMergingRetriever` merges them
        return RetrievedChunk(frozenset(ids), retrieved_text(node), node.metadata)

    @override
    def chunks(self, source: Name, limits: NodeLimits | None) -> Iterator[StoredChunk]:
        limits = OPEN if limits is None else limits
        meets = test_of(limits.filters)

        def belongs(node: BaseNode) -> bool:
            return name_of(node, self.source_key, self.listed.can_find) == source and meets(node)

        shown = limits.bigger.shown(belongs, partial(self._hidden, source, limits))
        parent_start = limits.bigger.starts(self.docstore)
        for found in self._visible(source, limits):
            node = shown(found)
            link = Link.of(node, parent_start(node))
            parent = parent_of(found) if node is found else node.node_id
            yield StoredChunk(found.node_id, link.text, found.metadata, parent, host=(node, link))

    def _visible(self, source: Name, limits: NodeLimits) -> Iterator[BaseNode]:
        return filter(limits.let_through, self.listed.nodes(source, limits.filters))

    def _hidden(self, source: Name, limits: NodeLimits) -> Iterator[BaseNode]:
        """Yield the nodes of a document that the limits hide."""
        if limits:
            visible = set(self.ids(source, limits))
            yield from (node for node in self.listed.nodes(source, ()) if node.node_id not in visible)

    @override
    def ids(self, source: Name, limits: NodeLimits | None) -> list[str]:
        limits = OPEN if limits is None else limits
        if limits.documents is not None and source.key is None and source not in limits.documents:
            return []
        if limits.copies is not None or (limits.documents is not None and source.key):  # then ids are not enough
            return [node.node_id for node in self._visible(source, limits)]
        ids = self.listed.ids(source, limits.filters)
        return ids if limits.nodes is None else [id_ for id_ in ids if id_ in limits.nodes]

    @override
    def missing(self, source: Name, *, limited: bool) -> str:
        visible = " that the filters let through" if limited else ""
        return (
            f"the index has no node of the document {source!r}{visible}, nor the document itself: pass the engine "
            "documents=, or keep the originals with index.docstore.add_documents(documents)"
        )

    @override
    def original(self, source: Name, passages: Sequence[NodeWithScore]) -> BaseNode | None:
        """Return the document, if any of the passages was cut from this version of it."""
        original = self.docstore.get_document(str(source), raise_error=False)
        if original is None:
            return None
        version, about = original.hash, without_keys(original.metadata, self.place_keys)
        for passage in passages:
            cut_from, metadata = passage.node.relationships.get(NodeRelationship.SOURCE), passage.node.metadata
            known = cut_from.hash if isinstance(cut_from, RelatedNodeInfo) else None
            if known == version:
                return original
            if not known and all(metadata.get(key, value) == value for key, value in about.items()):
                return original
        return None

    @override
    def parts(self, source: Name, passages: Sequence[NodeWithScore]) -> Sequence[tuple[Name, Sequence[NodeWithScore]]]:
        pages: dict[str, list[NodeWithScore]] = {}
        for passage in passages if source.key and source.key != self.source_key else ():
            pages.setdefault(passage.node.ref_doc_id or "", []).append(passage)
        return () if "" in pages else [(Name.of(page), of) for page, of in pages.items()]

    @override
    def rebuild(self, chunks: Iterator[StoredChunk], found: Sequence[str]) -> tuple[RebuiltDocument, reader.Fields]:
        fields: dict[str, list[str]] = {kind: [] for kind in _EXCLUDED}

        def rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            for chunk in chunks:
                node, link = chunk.host
                links.append(link)
                for kind in _EXCLUDED:
                    fields[kind] += [key for key in getattr(node, kind) if key not in fields[kind]]
                yield link.text, node.metadata

        links: list[Link] = []
        held = numbered(rows(), start_key=self.start_key, order_key=self.order_key)
        placed = [replace(link, about=chunk) for link, chunk in zip(links, held, strict=True)]
        links.clear()
        return put_together(placed, found, ordered=self.ordered, by_place=self.order_key is not None), fields

    @override
    def document(self, source: Name, rebuilt: RebuiltDocument, fields: reader.Fields) -> BaseNode:
        metadata = {**fields["metadata"], KEY: rebuilt.label()}
        return labelled(Document(id_=str(source), text=rebuilt.text, **{**fields, "metadata": metadata})).node

    @override
    def alone(self, passage: NodeWithScore) -> BaseNode:
        node = passage.node
        if isinstance(node, Document):
            return node
        return labelled(node, **rebuild([Chunk(node.get_content())]).label()).node

    @override
    def text_of(self, document: BaseNode) -> str:
        return document.get_content()
