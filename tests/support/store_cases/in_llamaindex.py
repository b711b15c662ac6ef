"""Stores of LlamaIndex: what all of them share, and those that come with the frameworks' own packages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from in_chroma import new_collection
from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_selfroute.stored.naming import Name
from selfroute.errors import ConfigurationError
from store_cases.base import ANSWER, QUESTION, Case, Piece, Read, Routed

SIZE = 8
EMBEDDING = MockEmbedding(embed_dim=SIZE)
VECTOR = [0.5] * SIZE


@dataclass(frozen=True)
class _Reader:
    stored: Any
    retriever: Any  # makes one: an index in memory tells it which nodes there are
    within: Any

    def read(self, piece: Piece) -> Read:
        return self.read_node(node_of(piece))

    def read_node(self, node: TextNode) -> Read:
        passage = NodeWithScore(node=node, score=1.0)
        (document,) = self.stored.limited_to(self.retriever())([passage], QueryBundle(QUESTION))
        return Read(document.get_content(), document.metadata["selfroute"])

    def listed(self, piece: Piece) -> int:
        return len(list(self.stored._store.nodes(Name.of(piece.source), [] if self.within is None else [self.within])))

    def forget(self) -> None:
        self.stored.forget()


class LlamaIndexCase(Case):
    """An index of LlamaIndex."""

    index: Any
    typed = False

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        """Index nodes as an index on a vector store does."""
        nodes = [node_of(piece, embedding=VECTOR) for piece in pieces]
        self.index.insert_nodes(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ids: list[str]) -> None:
        self.index.delete_nodes(ids, delete_from_docstore=True)

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Metadata filters, alone and nested."""
        own = MetadataFilter(key="tenant", value=tenant)
        other = MetadataFilter(key="tenant", value="nobody")
        either = MetadataFilters(filters=[own, other], condition=FilterCondition.OR)
        return {
            "==": MetadataFilters(filters=[own]),
            "in": MetadataFilters(filters=[MetadataFilter(key="tenant", value=[tenant], operator=FilterOperator.IN)]),
            "or": either,
        }

    def reader(self, *, within: Any = None, declared: Any = None) -> Any:
        """Read documents behind the index's own retriever."""
        options = {"similarity_top_k": 3} if within is None else {"similarity_top_k": 3, "filters": within}
        return _Reader(
            StoredDocuments(self.index, filters=declared), lambda: self.index.as_retriever(**options), within
        )

    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask through `SelfRouteQueryEngine.from_index`."""
        model = ScriptedLLM(draft=("unanswerable",), final=(ANSWER,), marker="Read the following text")
        options = {} if within is None else {"filters": within}
        engine = SelfRouteQueryEngine.from_index(self.index, llm=model, similarity_top_k=2, **options)
        response: Any = engine.query(QUESTION) if mode == "sync" else asyncio.run(engine.aquery(QUESTION))
        return Routed(response.metadata["route"], str(response), model.calls[-1].prompt)


def listing_of(index: Any) -> Any:
    """Return what lists the nodes of an index."""
    return StoredDocuments(index)._store


def filtered(
    case: Any, about: Sequence[Mapping[str, Any]], keys: Iterable[str], values: Iterable[Any]
) -> Iterator[tuple[tuple[str, str, Any], set[str], set[str]]]:
    """Yield each filter that the search takes, the ids that it finds, and those that are listed: none if refused."""
    nodes = [node_of(Piece(f"part {number} ", start=number * 7), embedding=VECTOR) for number, _ in enumerate(about)]
    for node, metadata in zip(nodes, about, strict=True):
        node.metadata = dict(metadata)
    case.index.insert_nodes(nodes)
    listing = listing_of(case.index)
    for operator, key, value in product(FilterOperator, keys, values):
        filters = MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])
        query = VectorStoreQuery(query_embedding=VECTOR, similarity_top_k=9, filters=filters)
        try:
            found = {node.node_id for node in case.store.query(query).nodes or ()}
        except Warning:
            found = set()  # so LanceDB says that there are none
        except Exception:  # noqa: BLE001, S112 - the search refuses the filter in many ways
            continue
        try:
            listed = {node.node_id for node in listing.nodes(Name.of("minutes"), (filters,))}
        except (ConfigurationError, TypeError):
            listed = set()
        yield (operator.name, key, value), found, listed


def node_of(piece: Piece, *, embedding: list[float] | None = None) -> TextNode:
    """Return a node as a splitter makes it, but without links to its neighbours."""
    end = None if piece.start is None else piece.start + len(piece.text)
    return TextNode(
        text=piece.text,
        metadata={"tenant": piece.tenant},
        start_char_idx=piece.start,
        end_char_idx=end,
        embedding=embedding,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=piece.source)},
    )


def page_of(text: str, path: str, page: int, **metadata: Any) -> TextNode:
    """Return the only node of a page, as a loader of PDFs makes them."""
    own = RelatedNodeInfo(node_id=f"{path}, page {page}")
    metadata |= {"file_path": path, "page_label": str(page)}
    return TextNode(text=text, metadata=metadata, embedding=VECTOR, relationships={NodeRelationship.SOURCE: own})


def nodes_of(rows: Iterable[tuple[Any, str | None]]) -> list[Any]:
    """Make nodes of metadata and texts, as LlamaIndex's stores do."""
    return [metadata_dict_to_node(metadata, text=text) for metadata, text in rows]


class DocstoreCase(LlamaIndexCase):
    """The docstore of an index in memory."""

    name = "llamaindex-docstore"
    copied = True
    many = 2_000  # LlamaIndex takes minutes for more

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.index = VectorStoreIndex([], embed_model=EMBEDDING)

    def dump(self) -> int:
        return len([node.get_content() for node in self.index.docstore.docs.values()])


class ChromaCase(LlamaIndexCase):
    """Chroma, embedded."""

    name = "llamaindex-chroma"
    needs = ("llama_index.vector_stores.chroma",)

    def __init__(self, folder: Path) -> None:
        from llama_index.vector_stores.chroma import ChromaVectorStore

        super().__init__(folder)
        self._collection = new_collection()
        store = ChromaVectorStore(chroma_collection=self._collection)
        self.index = VectorStoreIndex.from_vector_store(store, embed_model=EMBEDDING)

    def dump(self) -> int:
        found = self._collection.get(include=["documents", "metadatas"])
        return len(nodes_of(zip(found["metadatas"], found["documents"], strict=True)))


CASES: tuple[type[Case], ...] = (DocstoreCase, ChromaCase)
