"""LlamaIndex's retrievers around others: what these may see of a document is read whole and in order, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceWindowNodeParser, TokenTextSplitter
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
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
from llama_index.core.vector_stores import FilterOperator, MetadataFilters
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from llamaindex_parts import FAR_APART, STREAMS, ask
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import STORES, First, a_chroma, declining, only, over, split
from selfroute.errors import ConfigurationError

NOTHING_HIDDEN = MetadataFilters(filters=[])
ASK = "What does the handbook say on page seven of the desk?"
A, A_OR_C = only("tenant", "a"), only("tenant", ["a", "c"], FilterOperator.IN)


def _handbook(tenant: str, tree: str) -> Document:
    lines = [f"Rule {n} of the handbook: the {tree} desk number {n} stands by the {tree}." for n in range(40)]
    return Document(id_="handbook", text="\n".join(lines), metadata={"tenant": tenant})


MINE, THEIRS = _handbook("a", "walnut"), _handbook("b", "birch")


class Words(BaseRetriever):
    """Finds those of its nodes that share the most words with the question, as `BM25Retriever` does."""

    __module__ = "llama_index.retrievers.bm25.base"

    def __init__(self, nodes: Sequence[BaseNode]) -> None:
        super().__init__()
        self._nodes = nodes
        self.corpus = [node_to_metadata_dict(node) | {"node_id": node.node_id} for node in nodes]
        self.corpus_weight_mask: list[int] | None = None

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = set(query_bundle.query_str.split())
        scored = [
            NodeWithScore(node=one, score=float(len(asked & {*one.get_content().split()}))) for one in self._nodes
        ]
        return sorted(scored, key=lambda item: -(item.score or 0))[:4]


Words.__name__ = Words.__qualname__ = "BM25Retriever"


class Hiding(BaseRetriever):
    """Somebody's own retriever."""

    def __init__(self, retriever: BaseRetriever) -> None:
        super().__init__()
        self._hidden = retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._hidden.retrieve(query_bundle)


class Changing(IdentityQueryTransform):
    """Somebody's own transformation."""


class Fusing(QueryFusionRetriever):
    """The host's own, derived."""


# How documents are cut, and which nodes are indexed

SMALL, LARGE = (TokenTextSplitter(chunk_size=size, chunk_overlap=0) for size in (40, 120))


class Nodes(NamedTuple):
    """Those that are indexed, and the bigger ones behind them."""

    indexed: list[BaseNode]
    bigger: list[BaseNode] = []  # noqa: RUF012


def _lines(document: Document) -> Nodes:
    return Nodes(split(document))


def _windows(document: Document) -> Nodes:
    parser = SentenceWindowNodeParser.from_defaults(sentence_splitter=lambda text: text.splitlines(True), window_size=1)
    return Nodes(parser.get_nodes_from_documents([document]))


def _levels(document: Document) -> Nodes:
    sizes = {"large": LARGE, "small": SMALL}
    parser = HierarchicalNodeParser.from_defaults(node_parser_ids=list(sizes), node_parser_map=sizes)
    nodes = parser.get_nodes_from_documents([document])
    return Nodes([node for node in nodes if not node.child_nodes], [node for node in nodes if node.child_nodes])


def _pointers(document: Document) -> Nodes:
    bigger = split(document, by=LARGE)
    small = [(one, node) for node in bigger for one in split(node, by=SMALL)]  # type: ignore[arg-type]
    return Nodes([IndexNode.from_text_node(one, node.node_id) for one, node in small], bigger)  # type: ignore[arg-type]


def _questions(document: Document) -> Nodes:
    bigger = split(document, by=LARGE)
    asked = [
        IndexNode(text=f"What says the handbook on desk {n}?", index_id=node.node_id, metadata=node.metadata)
        for n, node in enumerate(bigger)
    ]
    for one, node in zip(asked, bigger, strict=True):
        one.relationships = node.relationships
    return Nodes(asked, bigger)


def _both(document: Document) -> Nodes:
    found = _pointers(document)
    return Nodes([*found.indexed, *[IndexNode.from_text_node(one, one.node_id) for one in found.bigger]], found.bigger)  # type: ignore[arg-type]


class Parts(NamedTuple):
    """What a retriever is made of."""

    index: VectorStoreIndex
    nodes: Nodes
    filters: MetadataFilters | None = None

    @property
    def leaf(self) -> BaseRetriever:
        return self.index.as_retriever(similarity_top_k=4, filters=self.filters)

    @property
    def words(self) -> BaseRetriever:
        visible = [node for node in self.nodes.indexed if not self.filters or node.metadata["tenant"] == "a"]
        return Words(visible)


def _fusion(*retrievers: BaseRetriever, kind: type[QueryFusionRetriever] = QueryFusionRetriever) -> BaseRetriever:
    return kind([*retrievers], llm=MockLLM(), num_queries=1, use_async=False)


def _stored_words(parts: Parts) -> BaseRetriever:
    words = parts.words
    words.corpus = None  # type: ignore[attr-defined]
    return words


def _router(*retrievers: BaseRetriever) -> BaseRetriever:
    return RouterRetriever(
        First(), [RetrieverTool.from_defaults(one, description="d") for one in retrievers], llm=MockLLM()
    )


def _recursive(parts: Parts, **others: BaseRetriever) -> BaseRetriever:
    nodes = {node.node_id: node for node in parts.nodes.bigger}
    return RecursiveRetriever("root", {"root": parts.leaf, **others}, node_dict=nodes)


def _merging(parts: Parts) -> BaseRetriever:
    return AutoMergingRetriever(parts.leaf, parts.index.storage_context, simple_ratio_thresh=0.1)  # type: ignore[arg-type]


def _objects(parts: Parts) -> BaseRetriever:
    retriever = parts.leaf
    retriever.object_map = {node.node_id: node for node in parts.nodes.bigger}
    return retriever


RETRIEVERS: dict[str, tuple[Callable[[Document], Nodes], Callable[[Parts], BaseRetriever]]] = {
    "fusion": (_lines, lambda parts: _fusion(parts.leaf, parts.leaf)),
    "fusion with words": (_lines, lambda parts: _fusion(parts.words, parts.leaf)),
    "fusion of fusions": (_lines, lambda parts: _fusion(_fusion(parts.leaf), _fusion(parts.words))),
    "words": (_lines, lambda parts: parts.words),
    "fusion of words": (_lines, lambda parts: _fusion(parts.words, parts.words)),
    "router": (_lines, lambda parts: _router(parts.leaf, parts.leaf)),
    "transform": (_lines, lambda parts: TransformRetriever(parts.leaf, IdentityQueryTransform())),
    "windows": (_windows, lambda parts: parts.leaf),
    "fusion of windows": (_windows, lambda parts: _fusion(parts.leaf, parts.leaf)),
    "recursive": (_lines, _recursive),
    "recursive, parts to bigger nodes": (_pointers, _recursive),
    "recursive, questions to bigger nodes": (_questions, _recursive),
    "recursive, all in the index": (_both, _recursive),
    "recursive, in a fusion": (_pointers, lambda parts: _fusion(_recursive(parts))),
    "objects": (_pointers, _objects),
    "merging": (_levels, _merging),
    "merging in a transform": (_levels, lambda parts: TransformRetriever(_merging(parts), IdentityQueryTransform())),
}
SITUATIONS: dict[str, tuple[bool, MetadataFilters | None, MetadataFilters | None]] = {
    "nothing is hidden": (False, None, None),
    "it hides the other tenant": (True, A, None),
    "so do the documents": (True, A, A),
}


def _made(store: str, cut: Callable[[Document], Nodes], *documents: Document, vary: bool = False) -> Parts:
    cuts = [cut(document) for document in documents]
    nodes = Nodes([one for found in cuts for one in found.indexed], [one for found in cuts for one in found.bigger])
    for n, node in enumerate(nodes.indexed if vary else ()):
        node.metadata["heading"] = f"Heading {n}"
    index = STORES[store](nodes.indexed)
    if cut is _levels:
        index.docstore.add_documents([*nodes.bigger, *nodes.indexed])
    return Parts(index, nodes)


async def _asked(retriever: BaseRetriever, documents: StoredDocuments, mode: str = "query") -> Any:
    """What an engine answers, None if it refuses to; no word of the other tenant gets to a model."""
    llm = declining()
    after = [MetadataReplacementPostProcessor(target_metadata_key="window")]
    engine = SelfRouteQueryEngine(
        retriever, documents=documents, llm=llm, streaming=mode in STREAMS, node_postprocessors=after
    )
    try:
        asked = await ask(engine, ASK, mode)
    except (ConfigurationError, LookupError):
        asked = None
    assert all("birch" not in call.prompt for call in llm.calls)
    return asked


def _is_mine(asked: Any) -> None:
    assert asked, "refused"
    assert [source.split() for source in asked.sources] == [MINE.text.split()]
    assert asked.source_nodes[0].node.metadata["selfroute"]["gaps"] == []


@pytest.mark.parametrize("mode", FAR_APART)
@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("vary", [False, True], ids=["alike", "varying"])
@pytest.mark.parametrize("situation", list(SITUATIONS))
@pytest.mark.parametrize("name", list(RETRIEVERS))
async def test_what_the_retrievers_that_are_asked_let_through_is_read_whole_and_each_text_once(
    name: str, situation: str, vary: bool, store: str, mode: str
) -> None:
    (cut, wrap), (two, filters, declared) = RETRIEVERS[name], SITUATIONS[situation]
    parts = _made(store, cut, MINE, *[THEIRS] * two, vary=vary)._replace(filters=filters)
    _is_mine(await _asked(wrap(parts), StoredDocuments(parts.index, filters=declared), mode))


# What may hide more than the retrievers that are asked say


UNSEEN: dict[str, Callable[[Parts], BaseRetriever]] = {
    "they hide different things": lambda parts: _fusion(parts.leaf, parts._replace(filters=A_OR_C).leaf),
    "one is somebody's own": lambda parts: _fusion(parts.leaf, Hiding(parts.leaf)),
    "one of several is somebody's own, deeper": lambda parts: _fusion(parts.leaf, _fusion(Hiding(parts.leaf))),
    "the wrapper is derived from the host's": lambda parts: _fusion(parts.leaf, kind=Fusing),
    "the transformation is somebody's own": lambda parts: TransformRetriever(parts.leaf, Changing()),
    "words are searched in a store": lambda parts: _fusion(_stored_words(parts)),
    "words are searched instead": lambda parts: _router(parts.words, parts.leaf),
    "a link leads to somebody's own": lambda parts: _recursive(parts, other=Hiding(parts.leaf)),
}


@pytest.mark.parametrize("mode", FAR_APART)
@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("name", list(UNSEEN))
async def test_where_they_differ_or_are_unknown_nothing_is_read_unless_it_is_said_what_is_hidden(
    name: str, store: str, mode: str
) -> None:
    hidden = _made(store, _lines, MINE, THEIRS)._replace(filters=A)
    retriever = UNSEEN[name](hidden)
    assert await _asked(retriever, StoredDocuments(hidden.index), mode) is None
    _is_mine(await _asked(retriever, StoredDocuments(hidden.index, filters=A), mode))


@pytest.mark.parametrize("store", ["simple", "chroma"])
async def test_all_of_them_have_to_search_the_store_that_is_read(store: str) -> None:
    here, there = (_made(store, _lines, MINE, vary=True) for _ in range(2))
    for retriever in (_fusion(here.leaf, there.leaf), _fusion(there.leaf, here.leaf)):
        assert await _asked(retriever, StoredDocuments(here.index)) is None
        _is_mine(await _asked(retriever, StoredDocuments(here.index, filters=NOTHING_HIDDEN)))


@pytest.mark.parametrize("store", ["simple", "chroma"])
def test_what_words_are_searched_in_is_read_if_the_store_holds_the_same(store: str) -> None:
    nodes = split(MINE)
    nodes[3].set_content(nodes[3].get_content().replace("walnut", "birch"))  # type: ignore[attr-defined]
    index = STORES[store](nodes)
    weighted, other = Words(nodes), Words(nodes)
    weighted.corpus_weight_mask = [int(n != 3) for n in range(len(nodes))]
    other.corpus[3] |= node_to_metadata_dict(split(MINE)[3])
    documents = StoredDocuments(index)
    for retriever, seen in (
        (Words(nodes), nodes),  # first: the others get nothing that was read for it
        *((retriever, [*nodes[:3], *nodes[4:]]) for retriever in (weighted, other, Words([*nodes[:3], *nodes[4:]]))),
    ):
        (read,) = documents.behind(retriever)([NodeWithScore(node=nodes[0])], QueryBundle(ASK))
        assert read.get_content().split() == [word for node in seen for word in node.get_content().split()]


@pytest.mark.parametrize("store", ["simple", "chroma"])
def test_an_original_is_not_read_if_words_are_searched_in_other_texts(store: str) -> None:
    nodes = split(MINE)
    index, other = STORES[store](nodes), Words(nodes)
    index.docstore.add_documents([MINE])
    other.corpus[3] |= node_to_metadata_dict(nodes[4])
    for retriever, whole in ((Words(nodes), True), (other, False)):
        (read,) = StoredDocuments(index).behind(retriever)([NodeWithScore(node=nodes[0])], QueryBundle(ASK))
        assert (read.get_content() == MINE.text) is whole
        assert (nodes[3].get_content() in read.get_content()) is whole


@pytest.mark.parametrize("store", ["simple", "chroma"])
async def test_a_bigger_node_of_which_a_part_is_hidden_is_not_read(store: str) -> None:
    nodes = _pointers(MINE)
    secret = next(node for node in nodes.indexed if "number 20 " in node.get_content())
    around = next(node for node in nodes.bigger if node.node_id == secret.index_id)  # type: ignore[attr-defined]
    for node in (secret, around):
        node.set_content(node.get_content().replace("walnut", "birch"))  # type: ignore[attr-defined]
    for node in [*nodes.indexed, *nodes.bigger]:
        node.metadata["level"] = "secret" if node is secret else "open"
    index = STORES[store](nodes.indexed)
    for open_ones in (only("level", "open"), only("level", "secret", FilterOperator.NE)):
        parts = Parts(index, nodes, open_ones)
        (read,) = StoredDocuments(index).behind(_recursive(parts))(parts.leaf.retrieve(ASK), QueryBundle(ASK))
        text = " ".join(read.get_content().split())
        assert "birch" not in text
        assert all(f"walnut desk number {n} stands" in text for n in (0, 15, 25, 39))
        assert read.metadata["selfroute"]["gaps"]


@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("other", [{"tenant": "b"}, {}], ids=["of the other tenant", "of no tenant"])
async def test_a_bigger_node_that_does_not_meet_the_filters_is_not_read(other: dict[str, str], store: str) -> None:
    parts = _made(store, _pointers, MINE)._replace(filters=A)
    retriever = _recursive(parts)
    for one in parts.nodes.bigger:
        one.metadata = other
        one.set_content("secret")  # type: ignore[attr-defined]
    asked = await _asked(retriever, StoredDocuments(parts.index))
    assert [source.split() for source in asked.sources] == [MINE.text.split()]


async def test_a_bigger_node_of_another_document_is_not_read() -> None:
    parts, other = (_made("simple", _pointers, one) for one in (MINE, Document(id_="other", text=THEIRS.text)))
    retriever = _recursive(parts)
    for node, strange in zip(parts.nodes.bigger, other.nodes.bigger, strict=True):
        retriever._node_dict[node.node_id] = strange  # type: ignore[attr-defined]
    found = parts.leaf.retrieve(ASK)
    (read,) = StoredDocuments(parts.index).behind(retriever)(found, QueryBundle(ASK))
    assert read.get_content().split() == MINE.text.split()


async def test_the_links_of_another_store_are_not_followed() -> None:
    cuts = [_pointers(document) for document in (MINE, THEIRS)]
    for nodes in cuts:
        names = {node.node_id: f"node-{n}" for n, node in enumerate(nodes.bigger)}
        for one in nodes.indexed:
            one.index_id = names[one.index_id]  # type: ignore[attr-defined]
        for one in nodes.bigger:
            one.node_id = names[one.node_id]
    mine, theirs = (Parts(STORES["chroma"](nodes.indexed), nodes) for nodes in cuts)
    for documents in (StoredDocuments(theirs.index), StoredDocuments(theirs.index, filters=NOTHING_HIDDEN)):
        with pytest.raises(ConfigurationError):
            documents.behind(_recursive(mine))(_recursive(mine).retrieve(ASK), QueryBundle(ASK))


# The order of what was cut from bigger nodes


@pytest.mark.parametrize("parents", ["the index", "the retriever"])
async def test_leaves_are_put_where_they_stand_in_their_parents_whatever_the_order_of_the_store(parents: str) -> None:
    nodes = _levels(MINE)
    store = a_chroma()
    index = over(store, [*nodes.indexed[1::2], *nodes.indexed[::2]])
    index.docstore.add_documents([*nodes.bigger, *nodes.indexed])
    context = index.storage_context
    if parents == "the retriever":
        index = VectorStoreIndex.from_vector_store(store, embed_model=index._embed_model)
    retriever = AutoMergingRetriever(Parts(index, nodes).leaf, context, simple_ratio_thresh=0.1)  # type: ignore[arg-type]
    asked = await _asked(retriever, StoredDocuments(index))
    _is_mine(asked)
    assert asked.source_nodes[0].node.metadata["selfroute"]["method"] == "offsets"


def test_what_a_plain_retriever_read_before_is_not_given_to_one_that_knows_bigger_nodes() -> None:
    """And the other way round: the questions stand in the place of the text where nothing else is known."""
    parts = _made("chroma", _questions, MINE)
    documents, found = StoredDocuments(parts.index), parts.leaf.retrieve(ASK)
    recursive = _recursive(parts)
    for _ in range(2):
        for retriever, texts in ((parts.leaf, parts.nodes.indexed), (recursive, parts.nodes.bigger)):
            (read,) = documents.behind(retriever)(found, QueryBundle(ASK))
            assert read.get_content().split() == [word for node in texts for word in node.get_content().split()]
