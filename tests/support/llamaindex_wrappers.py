"""LlamaIndex's retrievers around others, each as its users build it, and parts that may hide more than filters say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llama_index.core import Document
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceWindowNodeParser, TokenTextSplitter
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from hosts_documents import ITS_OWN, MINE, OTHER, Condition, Holds, InLlamaIndex, Narrowing, meets
from langchain_stores import text_of
from llamaindex_stores_parts import STORES, First, only, split


class Words(BaseRetriever):
    """Finds those of its nodes that share the most words with the question, as `BM25Retriever` does."""

    __module__ = "llama_index.retrievers.bm25.base"

    def __init__(self, nodes: Sequence[BaseNode]) -> None:
        super().__init__()
        self._nodes = nodes
        self.corpus: Any = [node_to_metadata_dict(node) | {"node_id": node.node_id} for node in nodes]
        self.corpus_weight_mask: list[int] | None = None

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = set(query_bundle.query_str.split())
        scored = [
            NodeWithScore(node=one, score=float(len(asked & {*one.get_content().split()}))) for one in self._nodes
        ]
        return sorted(scored, key=lambda item: -(item.score or 0))[:4]


Words.__name__ = Words.__qualname__ = "BM25Retriever"


# How documents are cut, and which nodes are indexed

SMALL, LARGE = (TokenTextSplitter(chunk_size=size, chunk_overlap=0) for size in (40, 120))


class Nodes(NamedTuple):
    """Those that are indexed, and the bigger ones behind them."""

    indexed: list[Any]
    bigger: list[Any] = []  # noqa: RUF012


def lines(document: Document) -> Nodes:
    """Small nodes alone."""
    return Nodes(split(document))


def _windows(document: Document) -> Nodes:
    parser = SentenceWindowNodeParser.from_defaults(sentence_splitter=lambda text: text.splitlines(True), window_size=1)
    return Nodes(parser.get_nodes_from_documents([document]))


def levels(document: Document) -> Nodes:
    """Leaves, and the parents that they were cut from."""
    sizes: Any = {f"{size}": TokenTextSplitter(chunk_size=size, chunk_overlap=0) for size in (120, 60, 30)}
    parser = HierarchicalNodeParser.from_defaults(node_parser_ids=list(sizes), node_parser_map=sizes)
    nodes = parser.get_nodes_from_documents([document])
    return Nodes([node for node in nodes if not node.child_nodes], [node for node in nodes if node.child_nodes])


def pointers(document: Document) -> Nodes:
    """Small nodes that lead to the bigger ones that they were cut from."""
    bigger: Any = split(document, by=LARGE)
    small = [(one, node) for node in bigger for one in split(node, by=SMALL)]
    return Nodes([IndexNode.from_text_node(one, node.node_id) for one, node in small], bigger)  # type: ignore[arg-type]


def questions(document: Document) -> Nodes:
    """Questions that lead to the nodes that answer them."""
    bigger = split(document, by=LARGE)
    asked = [
        IndexNode(text=f"What does crane {n} lift?", index_id=node.node_id, metadata=node.metadata)
        for n, node in enumerate(bigger)
    ]
    for one, node in zip(asked, bigger, strict=True):
        one.relationships = node.relationships
    return Nodes(asked, bigger)


def _both(document: Document) -> Nodes:
    found = pointers(document)
    return Nodes([*found.indexed, *[IndexNode.from_text_node(one, one.node_id) for one in found.bigger]], found.bigger)


class Parts(NamedTuple):
    """What a retriever is made of."""

    home: Any
    nodes: Nodes
    condition: Condition | None = None

    @property
    def leaf(self) -> Any:
        return self.home.search(self.condition)

    @property
    def words(self) -> Any:
        return Words([one for one in self.nodes.indexed if self.condition is None or meets(one.metadata, ITS_OWN)])


def fusion(*retrievers: Any, kind: type[QueryFusionRetriever] = QueryFusionRetriever, of: Any = list) -> BaseRetriever:
    """All of them at once."""
    return kind(of(retrievers), llm=MockLLM(), num_queries=1, use_async=False)


def _router(*retrievers: Any) -> BaseRetriever:
    tools = [RetrieverTool.from_defaults(one, description="d") for one in retrievers]
    return RouterRetriever(First(), tools, llm=MockLLM())


def recursive(parts: Parts, **others: BaseRetriever) -> Any:
    """A retriever that follows links."""
    nodes = {node.node_id: node for node in parts.nodes.bigger}
    return RecursiveRetriever("root", {"root": parts.leaf, **others}, node_dict=nodes)


def merging(parts: Parts, context: Any = None) -> Any:
    """A retriever that returns parents in the place of leaves."""
    return AutoMergingRetriever(parts.leaf, context or parts.home.index.storage_context, simple_ratio_thresh=0.1)  # type: ignore[arg-type]


def _objects(parts: Parts) -> Any:
    retriever = parts.leaf
    retriever.object_map = {node.node_id: node for node in parts.nodes.bigger}
    return retriever


def _transformed(inner: Any, transform: Any = None) -> BaseRetriever:
    return TransformRetriever(inner, transform or IdentityQueryTransform())


WRAPPERS: dict[str, tuple[Callable[[Document], Nodes], Callable[[Parts], Any]]] = {
    "fusion": (lines, lambda parts: fusion(parts.leaf, parts.leaf)),
    "fusion with words": (lines, lambda parts: fusion(parts.words, parts.leaf)),
    "fusion of fusions": (lines, lambda parts: fusion(fusion(parts.leaf), fusion(parts.words))),
    "words": (lines, lambda parts: parts.words),
    "fusion of words": (lines, lambda parts: fusion(parts.words, parts.words)),
    "router": (lines, lambda parts: _router(parts.leaf, parts.leaf)),
    "transform": (lines, lambda parts: _transformed(parts.leaf)),
    "windows": (_windows, lambda parts: parts.leaf),
    "fusion of windows": (_windows, lambda parts: fusion(parts.leaf, parts.leaf)),
    "recursive": (lines, recursive),
    "recursive, parts to bigger nodes": (pointers, recursive),
    "recursive, questions to bigger nodes": (questions, recursive),
    "recursive, all in the index": (_both, recursive),
    "recursive, in a fusion": (pointers, lambda parts: fusion(recursive(parts))),
    "objects": (pointers, _objects),
    "merging": (levels, merging),
    "merging in a transform": (levels, lambda parts: _transformed(merging(parts))),
}


def document(owner: str) -> Document:
    """The document of a tenant, whose metadata models do not see."""
    return Document(
        id_="handbook",
        text=text_of(owner),
        metadata={"tenant": owner},
        excluded_llm_metadata_keys=["tenant"],
        excluded_embed_metadata_keys=["tenant"],
    )


def made(kind: str, cut: Callable[[Document], Nodes], *documents: Document, varied: bool = False) -> Parts:
    """A house with nodes in it that were cut so; `varied` ones have metadata of their own."""
    cuts = [cut(one) for one in documents]
    nodes = Nodes([one for found in cuts for one in found.indexed], [one for found in cuts for one in found.bigger])
    for n, node in enumerate(nodes.indexed if varied else ()):
        node.metadata["heading"] = f"Heading {n}"
    index = STORES["simple" if kind == "memory" else kind](nodes.indexed)
    if cut is levels:
        index.docstore.add_documents([*nodes.bigger, *nodes.indexed])
    return Parts(InLlamaIndex.on(kind, index), nodes)


def built(
    name: str, kind: str, owners: Sequence[str] = (MINE,), condition: Condition | None = None, varied: bool = False
) -> tuple[Any, Any]:
    """A house, and the retriever of this name over its index."""
    cut, wrap = WRAPPERS[name]
    parts = made(kind, cut, *map(document, owners), varied=varied)._replace(condition=condition)
    return parts.home, wrap(parts)


# What may hide more than the retrievers that are asked say


class Changing(IdentityQueryTransform):
    """Somebody's own transformation."""


class Fusing(QueryFusionRetriever):
    """The host's own, derived."""


def _stored_words(home: Any) -> BaseRetriever:
    words = _words(home)
    words.corpus = None
    return words


def _words(home: Any) -> Words:
    return Words([node for node in home.nodes if meets(node.metadata, ITS_OWN)])


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "unequal filters": lambda home: fusion(home.search(ITS_OWN), home.search(Holds("tenant", [MINE, "Cedar"], "in"))),
    "own retriever inside": lambda home: fusion(home.search(ITS_OWN), Narrowing(home.search(ITS_OWN))),
    "own retriever, deeper": lambda home: fusion(home.search(ITS_OWN), fusion(Narrowing(home.search(ITS_OWN)))),
    "own fusion": lambda home: fusion(home.search(ITS_OWN), kind=Fusing),
    "own transformation": lambda home: _transformed(home.search(ITS_OWN), Changing()),
    "words in a store": lambda home: fusion(_stored_words(home)),
    "words instead": lambda home: _router(_words(home), home.search(ITS_OWN)),
    "a link to somebody's own": lambda home: recursive(
        Parts(home, Nodes(home.nodes), ITS_OWN), other=Narrowing(home.search(ITS_OWN))
    ),
}


# A search that is changed while a question is asked

CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "replaced": lambda _, search: setattr(search, "_filters", only("tenant", OTHER)),
    "changed in place": lambda _, search: setattr(search._filters.filters[0], "value", OTHER),
    "dropped": lambda _, search: setattr(search, "_filters", None),
}
AROUND: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda home, search: search,
    "a fusion": lambda home, search: fusion(search, search),
    "a fusion of a tuple": lambda home, search: fusion(search, search, of=tuple),
    "a fusion in a transform": lambda home, search: _transformed(fusion(search, search)),
}


# Parts that are known by what they are


class Dropping(BaseNodePostprocessor):
    """Drops nodes with these words, as `KeywordNodePostprocessor` does."""

    without: str = ""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [item for item in nodes if self.without not in item.node.get_content()]


class Masking(Dropping):
    """Masks nodes in place, as `PIINodePostprocessor` does."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for item in nodes:
            item.node.set_content(item.node.get_content().replace(self.without, "****"))  # type: ignore[attr-defined]
        return nodes


def _after(*parts: Callable[[str], Any]) -> Callable[[Any, str], tuple[Any, dict[str, Any]]]:
    return lambda home, without: (home.search(k=18), {"node_postprocessors": [part(without) for part in parts]})


def _from(module: str, kind: type[Dropping] = Dropping) -> Callable[[str], Any]:
    return lambda without: type("Own", (kind,), {"__module__": module})(without=without)


def _similar(_: str) -> Any:
    return SimilarityPostprocessor(similarity_cutoff=0.0)


DROPPING: dict[str, Callable[[Any, str], tuple[Any, dict[str, Any]]]] = {
    "the user's own": _after(lambda without: Dropping(without=without)),
    "an integration's": _after(_from("llama_index.postprocessor.acme.base")),
    "in the host's own package": _after(_from("llama_index.core.postprocessor.node")),
    "one between others": _after(_similar, lambda without: Dropping(without=without), _similar),
    "one that masks": _after(lambda without: Masking(without=without)),
    "an integration's that masks": _after(_from("llama_index.postprocessor.presidio.base", Masking)),
}


def _cut_off(home: Any) -> tuple[Any, dict[str, Any]]:
    some = home.found(home.search(k=18))
    return home.search(k=18), {"node_postprocessors": [SimilarityPostprocessor(similarity_cutoff=some[3].score)]}


HARMLESS: dict[str, Callable[[Any], tuple[Any, dict[str, Any]]]] = {"a cut-off": _cut_off}
