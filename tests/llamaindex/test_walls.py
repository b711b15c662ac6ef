"""What a retriever may not see, the second step does not read: either the right document or a loud error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import pytest
from llama_index.core import Document, KeywordTableIndex, MockEmbedding, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, TokenTextSplitter, get_leaf_nodes
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)

from llamaindex_parts import FAR_APART, MODES, STREAMS, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import (
    STORES,
    First,
    ListingShelf,
    Shelf,
    Words,
    a_chroma,
    chroma,
    declining,
    only,
    over,
    simple,
    split,
)
from scenarios import FOUND
from selfroute.errors import ConfigurationError, DocumentNotFoundError

both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_store = pytest.mark.parametrize("store", list(STORES))
everywhere = pytest.mark.parametrize(
    ("store", "mode"),
    [(store, mode) for mode in MODES for store in STORES if store in ("simple", "chroma")]
    + [("from_vector_store", "aquery"), ("listing", "stream")],
)

ASK = "What does the handbook say on page seven of the desk?"


def _handbook(tenant: str, tree: str, rank: int, **more: Any) -> Document:
    lines = [f"Rule {n} of the handbook: the {tree} desk number {n * rank} stands by the {tree}." for n in range(40)]
    return Document(id_="handbook", text="\n".join(lines), metadata={"tenant": tenant, "rank": rank, **more})


SIZES = (("large", 120), ("small", 40))
MINE = _handbook("a", "walnut", 1)
THEIRS = _handbook("b", "birch", 2)
NODES = split(MINE, THEIRS)
A = only("tenant", "a")
B = only("tenant", "b")


@cache
def _index(store: str) -> VectorStoreIndex:
    """Both tenants' handbooks; nobody changes it."""
    return STORES[store](NODES)


NOTHING_HIDDEN = MetadataFilters(filters=[])


class Parts(NamedTuple):
    """What an engine is made of."""

    index: VectorStoreIndex
    llm: ScriptedLLM
    streaming: bool

    def engine(self, retriever: BaseRetriever, **fields: Any) -> SelfRouteQueryEngine:
        documents = fields.pop("documents", None) or StoredDocuments(self.index)
        return SelfRouteQueryEngine(retriever, documents=documents, llm=self.llm, streaming=self.streaming, **fields)

    def of_index(self, **fields: Any) -> SelfRouteQueryEngine:
        return SelfRouteQueryEngine.from_index(self.index, llm=self.llm, streaming=self.streaming, **fields)

    def synthesizer(self, **fields: Any) -> SelfRouteSynthesizer:
        documents = fields.pop("documents", None) or StoredDocuments(self.index, **fields)
        return SelfRouteSynthesizer(documents=documents, llm=self.llm, streaming=self.streaming)

    def retriever(self, filters: MetadataFilters | None = A, **fields: Any) -> BaseRetriever:
        return self.index.as_retriever(similarity_top_k=4, filters=filters, **fields)


class ScopedDocuments(BaseRetriever):
    """Somebody's retriever, which hides things in a way of its own."""

    def __init__(self, retriever: BaseRetriever) -> None:
        super().__init__()
        self._hidden = retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._hidden.retrieve(query_bundle)


class Narrow(VectorIndexRetriever):
    """The host's own, narrowed."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._filters = A
        try:
            return super()._retrieve(query_bundle)
        finally:
            self._filters = None

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


class Dropping(BaseNodePostprocessor):
    """Drops what is not of tenant a."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [item for item in nodes if item.node.metadata["tenant"] == "a"]


class Similar(SimilarityPostprocessor):
    """The host's own, which drops more."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return Dropping().postprocess_nodes(super()._postprocess_nodes(nodes, query_bundle))


class Choosing(SelfRouteQueryEngine):
    """An engine that drops what is not of tenant a."""

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return Dropping().postprocess_nodes(super().retrieve(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.retrieve(query_bundle)


class Forbidding(StoredDocuments):
    """Documents that nobody may read."""

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:
        msg = "nobody may read this"
        raise DocumentNotFoundError(msg)


def _router(parts: Parts) -> RouterQueryEngine:
    engines = [parts.of_index(filters=filters) for filters in (A, B)]
    return RouterQueryEngine(First(), [QueryEngineTool.from_defaults(engine) for engine in engines], llm=parts.llm)


def _of_two(parts: Parts, *, which: int) -> SelfRouteQueryEngine:
    """One of two engines that share a synthesizer; the other was made before and after."""
    synthesizer = parts.synthesizer()
    engines = [
        SelfRouteQueryEngine(parts.retriever(filters), response_synthesizer=synthesizer) for filters in (B, A, B)
    ]
    return engines[which]


def _fusion(*retrievers: BaseRetriever) -> QueryFusionRetriever:
    return QueryFusionRetriever([*retrievers], llm=MockLLM(), num_queries=1, use_async=False)


READ: dict[str, Callable[[Parts], Any]] = {
    "the retriever has it": lambda parts: parts.engine(parts.retriever()),
    "all retrievers of a fusion have it": lambda parts: parts.engine(_fusion(parts.retriever(), parts.retriever())),
    "from_index has it": lambda parts: parts.of_index(filters=A),
    "both have it": lambda parts: parts.engine(parts.retriever(), documents=StoredDocuments(parts.index, filters=A)),
    "each has another": lambda parts: parts.engine(
        parts.retriever(only("rank", 3, FilterOperator.LT)), documents=StoredDocuments(parts.index, filters=A)
    ),
    "each has another, the other way round": lambda parts: parts.engine(
        parts.retriever(), documents=StoredDocuments(parts.index, filters=only("rank", 3, FilterOperator.LT))
    ),
    "the retriever has it, and to the documents nothing is hidden": lambda parts: parts.engine(
        parts.retriever(), documents=StoredDocuments(parts.index, filters=NOTHING_HIDDEN)
    ),
    "the documents have that of a retriever that hides it": lambda parts: parts.engine(
        ScopedDocuments(parts.retriever()), documents=StoredDocuments(parts.index, filters=A)
    ),
    "the documents have that of the host's engine": lambda parts: parts.index.as_query_engine(
        filters=A, response_synthesizer=parts.synthesizer(filters=A), llm=parts.llm
    ),
    "a postprocessor of the host's does no harm": lambda parts: parts.engine(
        parts.retriever(), node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)]
    ),
    "with_retriever leads away from the other": lambda parts: parts.engine(parts.retriever(B)).with_retriever(
        parts.retriever()
    ),
    "from_index leads away from no filter": lambda parts: parts.of_index().with_retriever(parts.retriever()),
    "from_index has it for every retriever": lambda parts: parts.of_index(filters=A).with_retriever(
        ScopedDocuments(parts.retriever())
    ),
    "two engines share a synthesizer": lambda parts: _of_two(parts, which=1),
    "a router leads to one of two": _router,
}
REFUSED: dict[str, Callable[[Parts], Any]] = {
    "a retriever hides it": lambda parts: parts.engine(ScopedDocuments(parts.retriever())),
    "a subclass of the host's retriever hides it": lambda parts: parts.engine(Narrow(parts.index, similarity_top_k=4)),
    "the host's engine hides it": lambda parts: parts.index.as_query_engine(
        filters=A, response_synthesizer=parts.synthesizer(), llm=parts.llm
    ),
    "a retriever in a fusion hides it": lambda parts: parts.engine(_fusion(ScopedDocuments(parts.retriever()))),
    "a callable around the documents hides it": lambda parts: parts.engine(
        parts.retriever(), documents=lambda nodes, query: [*StoredDocuments(parts.index)(nodes, query)]
    ),
    "a postprocessor drops it": lambda parts: parts.engine(
        parts.index.as_retriever(similarity_top_k=len(NODES)), node_postprocessors=[Dropping()]
    ),
    "a subclass of the host's postprocessor drops it": lambda parts: parts.of_index(
        similarity_top_k=len(NODES), node_postprocessors=[Similar(similarity_cutoff=0.0)]
    ),
    "a postprocessor drops it behind another retriever": lambda parts: parts.of_index(
        node_postprocessors=[Dropping()]
    ).with_retriever(parts.index.as_retriever(similarity_top_k=len(NODES))),
    "a subclass of the engine drops it": lambda parts: Choosing(
        parts.index.as_retriever(similarity_top_k=len(NODES)),
        documents=StoredDocuments(parts.index),
        llm=parts.llm,
        streaming=parts.streaming,
    ),
    "a subclass of the engine drops it behind another retriever": lambda parts: Choosing(
        parts.retriever(), documents=StoredDocuments(parts.index), llm=parts.llm, streaming=parts.streaming
    ).with_retriever(parts.index.as_retriever(similarity_top_k=len(NODES))),
    "a subclass of the documents gives none": lambda parts: parts.engine(
        parts.retriever(), documents=Forbidding(parts.index)
    ),
    "an engine for the other tenant's documents is given this one's retriever": lambda parts: parts.engine(
        parts.retriever(B), documents=StoredDocuments(parts.index, filters=B)
    ).with_retriever(parts.retriever()),
}


async def _asked(engine: Any, llm: ScriptedLLM, mode: str) -> Any:
    """What an engine answers, None if it refuses to; no word of the other tenant gets to a model."""
    llm.calls.clear()
    try:
        asked = await ask(engine, ASK, mode)
    except (ConfigurationError, LookupError):
        asked = None
    assert "walnut" in llm.calls[0].prompt
    for call in llm.calls:
        assert "birch" not in call.prompt
    return asked


def _parts(index: VectorStoreIndex, mode: str) -> Parts:
    return Parts(index, declining(), mode in STREAMS)


@everywhere
@pytest.mark.parametrize("way", list(READ))
async def test_a_filter_that_is_seen_holds_for_the_whole_document(way: str, store: str, mode: str) -> None:
    parts = _parts(_index(store), mode)
    engine = READ[way](parts)
    for _ in range(2):  # once out of the cache
        asked = await _asked(engine, parts.llm, mode)
        assert asked
        assert (asked.text, asked.sources) == (FOUND, [MINE.text])
        label = asked.source_nodes[0].node.metadata["selfroute"]
        assert (label["method"], label["gaps"]) == ("offsets", [])


@everywhere
@pytest.mark.parametrize("way", list(REFUSED))
async def test_what_hides_something_unseen_is_refused_and_nothing_is_read(way: str, store: str, mode: str) -> None:
    parts = _parts(_index(store), mode)
    engine = REFUSED[way](parts)
    for _ in range(2):
        assert await _asked(engine, parts.llm, mode) is None
        assert parts.llm.steps == ["rag"]


@every_store
def test_where_nothing_is_hidden_both_are_read(store: str) -> None:
    """Or the tests above would show nothing."""
    index = _index(store)
    retriever = index.as_retriever(similarity_top_k=len(NODES))
    for documents in (StoredDocuments(index), StoredDocuments(index, filters=NOTHING_HIDDEN)):
        for one in (retriever, ScopedDocuments(retriever)):
            engine = SelfRouteQueryEngine(one, documents=documents, llm=declining())
            (source,) = engine.query(ASK).source_nodes
            assert "walnut" in source.text
            assert "birch" in source.text


# Filters of all kinds


def _all_of(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


def _one(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


FLAT = {
    "in": only("tenant", ["a", "c"], FilterOperator.IN),
    "not in": only("tenant", ["b"], FilterOperator.NIN),
    "not": only("tenant", "b", FilterOperator.NE),
    "less": only("rank", 2, FilterOperator.LT),
    "or": _all_of(_one("tenant", "a"), _one("tenant", "c"), condition=FilterCondition.OR),
    "and": _all_of(_one("tenant", "a"), _one("rank", 1)),
    "its document": _all_of(_one("tenant", "a"), _one("ref_doc_id", "handbook"), _one("doc_id", "handbook")),
}
NESTED = {
    "and of ors": _all_of(
        _all_of(_one("tenant", "a"), _one("tenant", "c"), condition=FilterCondition.OR),
        _one("rank", 0, FilterOperator.GT),
    ),
    "or of ands": _all_of(
        _all_of(_one("tenant", "a"), _one("rank", 1)),
        _all_of(_one("tenant", "b"), _one("rank", 1)),
        condition=FilterCondition.OR,
    ),
}


@every_store
@pytest.mark.parametrize("name", [*FLAT, *NESTED])
async def test_filters_of_all_kinds_hold(name: str, store: str) -> None:
    filters = {**FLAT, **NESTED}[name]
    parts = _parts(_index(store), "query")
    ways = {
        "the retriever has them": lambda: parts.engine(parts.retriever(filters)),
        "from_index has them": lambda: parts.of_index(filters=filters),
        "the documents have them": lambda: parts.engine(
            ScopedDocuments(parts.retriever()), documents=StoredDocuments(parts.index, filters=filters)
        ),
    }
    for way, make in ways.items():
        if store == "simple" and name in NESTED and "documents" not in way:
            with pytest.raises(ValueError, match="Nested"):  # the host's own store knows none
                make().query(ASK)
            continue
        asked = await _asked(make(), parts.llm, "query")
        assert asked
        assert asked.sources == [MINE.text]


@every_store
@pytest.mark.parametrize(
    "filters",
    [
        only("tenant", "x", FilterOperator.TEXT_MATCH),
        _all_of(_one("tenant", "b"), condition=FilterCondition.NOT),
    ],
    ids=["text", "not"],
)
async def test_filters_that_a_store_does_not_know_open_nothing(filters: MetadataFilters, store: str) -> None:
    parts = _parts(_index(store), "query")
    engine = parts.engine(ScopedDocuments(parts.retriever()), documents=StoredDocuments(parts.index, filters=filters))
    if store != "listing":
        asked = await _asked(engine, parts.llm, "query")
        assert asked is None or asked.sources == [MINE.text]


@pytest.mark.parametrize("store", ["simple", "listing"])
@both_modes
async def test_a_retriever_of_some_nodes_leads_to_these_alone(store: str, mode: str) -> None:
    parts = _parts(_index(store), mode)
    ids = [node.node_id for node in NODES if node.metadata["tenant"] == "a"]
    asked = await _asked(
        parts.engine(VectorIndexRetriever(parts.index, node_ids=ids, similarity_top_k=4)), parts.llm, mode
    )
    assert asked.sources == [MINE.text]
    few = VectorIndexRetriever(parts.index, node_ids=[*ids[:3], *ids[4:]], similarity_top_k=4)
    hidden = next(node for node in NODES if node.node_id == ids[3])
    docstore = SimpleDocumentStore()
    docstore.add_documents([MINE])
    for documents in (None, StoredDocuments(parts.index, docstore=docstore)):
        asked = await _asked(parts.engine(few, documents=documents), parts.llm, mode)
        assert hidden.get_content() not in parts.llm.calls[-1].prompt
        assert asked.source_nodes[0].node.metadata["selfroute"]["gaps"]


@every_store
def test_a_retriever_of_some_documents_leads_to_these_alone(store: str) -> None:
    other = Document(id_="other", text=THEIRS.text, metadata=THEIRS.metadata)
    index = STORES[store]([*split(MINE), *split(other)])
    llm = declining()
    engine = SelfRouteQueryEngine(
        index.as_retriever(similarity_top_k=4, doc_ids=["handbook"]), documents=StoredDocuments(index), llm=llm
    )
    hits = [NodeWithScore(node=node) for node in split(other)]
    with pytest.raises(LookupError):
        engine.synthesize(QueryBundle(ASK), hits)
    hits = [NodeWithScore(node=node) for node in split(MINE)]
    assert engine.synthesize(QueryBundle(ASK), hits).source_nodes[0].node.node_id == "handbook"


@both_modes
async def test_arguments_for_the_store_may_hide_anything(mode: str) -> None:
    parts = _parts(chroma(NODES), mode)
    for hiding in ({"where": {"tenant": "a"}}, {"where_document": {"$contains": "walnut"}}):
        retriever = parts.retriever(None, vector_store_kwargs=hiding)
        assert await _asked(parts.engine(retriever), parts.llm, mode) is None
        engine = parts.engine(retriever, documents=StoredDocuments(parts.index, filters=A))
        asked = await _asked(engine, parts.llm, mode)
        assert asked.sources == [MINE.text]
    harmless = parts.retriever(A, vector_store_query_mode="mmr", vector_store_kwargs={"mmr_threshold": 0.5})
    asked = await _asked(parts.engine(harmless), parts.llm, mode)
    assert asked.sources == [MINE.text]


# Other metadata than a tenant's name


@everywhere
async def test_what_lacks_the_key_of_a_hidden_filter_is_not_read(store: str, mode: str) -> None:
    public, internal = split(_handbook("a", "walnut", 1, public="yes")), split(_handbook("a", "birch", 1))
    parts = _parts(STORES[store]([*public, *internal]), mode)
    engine = parts.engine(ScopedDocuments(parts.retriever(only("public", "yes"))))
    assert await _asked(engine, parts.llm, mode) is None
    asked = await _asked(parts.engine(parts.retriever(only("public", "yes"))), parts.llm, mode)
    assert asked.sources == [MINE.text]


@every_store
async def test_pages_and_headings_hide_nothing(store: str) -> None:
    nodes = split(MINE)
    for n, node in enumerate(nodes):
        node.metadata.update(page_label=str(n), page=n, header_path=f"/{n}/")
    parts = _parts(STORES[store](nodes), "query")
    asked = await _asked(parts.engine(ScopedDocuments(parts.retriever())), parts.llm, "query")
    assert asked.sources == [MINE.text]
    for n, node in enumerate(nodes):
        node.metadata["reader"] = f"reader {n}"
    parts = _parts(STORES[store](nodes), "query")
    assert await _asked(parts.engine(ScopedDocuments(parts.retriever())), parts.llm, "query") is None
    asked = await _asked(parts.engine(parts.retriever()), parts.llm, "query")
    assert asked.sources == [MINE.text]


@both_modes
async def test_what_was_hidden_later_in_chroma_itself_is_not_read(mode: str) -> None:
    parts = _parts(chroma(split(_handbook("a", "walnut", 1), _handbook("a", "birch", 1))), mode)
    collection = parts.index.vector_store.client
    for id_, text in zip(*(collection.get()[key] for key in ("ids", "documents")), strict=True):
        if "birch" in text:
            collection.update(id_, metadatas={"tenant": "b"})
    assert await _asked(parts.engine(ScopedDocuments(parts.retriever())), parts.llm, mode) is None
    asked = await _asked(parts.engine(parts.retriever()), parts.llm, mode)
    assert asked.sources == [MINE.text]


# Originals


@everywhere
async def test_an_original_with_hidden_parts_is_not_read(store: str, mode: str) -> None:
    parts = _parts(STORES[store](NODES), mode)
    parts.index.docstore.add_documents([THEIRS])
    for engine in (parts.of_index(filters=A), parts.engine(parts.retriever())):
        asked = await _asked(engine, parts.llm, mode)
        assert asked.sources == [MINE.text]
    assert await _asked(parts.engine(ScopedDocuments(parts.retriever())), parts.llm, mode) is None


@everywhere
@pytest.mark.parametrize("filters", [None, A])
async def test_an_original_of_the_other_tenant_is_not_read(
    store: str, mode: str, filters: MetadataFilters | None
) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents([MINE])
    docstore.add_documents([THEIRS])  # in its place
    parts = _parts(STORES[store](split(MINE)), mode)
    for hide in (lambda retriever: retriever, ScopedDocuments):
        engine = parts.engine(hide(parts.retriever(filters)), documents=StoredDocuments(parts.index, docstore=docstore))
        asked = await _asked(engine, parts.llm, mode)
        assert asked.sources == [MINE.text]


@every_store
async def test_an_original_is_told_by_its_metadata_where_nodes_name_no_version_of_it(store: str) -> None:
    nodes = [node.model_copy(deep=True) for node in split(MINE)]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="handbook")
    parts = _parts(STORES[store](nodes), "query")
    for original, expected in ((MINE, "original"), (THEIRS, "offsets")):
        docstore = SimpleDocumentStore()
        docstore.add_documents([original])
        engine = parts.engine(parts.retriever(None), documents=StoredDocuments(parts.index, docstore=docstore))
        asked = await _asked(engine, parts.llm, "query")
        assert asked.sources == [MINE.text]
        assert asked.source_nodes[0].node.metadata["selfroute"]["method"] == expected


@every_store
def test_an_original_of_which_the_index_has_nothing_is_not_read_through_a_filter(store: str) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents([MINE])
    index = STORES[store](split(Document(id_="other", text="Other.", metadata={"tenant": "a"})))
    documents = StoredDocuments(index, docstore=docstore)
    engine = SelfRouteQueryEngine(index.as_retriever(filters=A), documents=documents, llm=declining())
    with pytest.raises(LookupError):
        engine.synthesize(QueryBundle(ASK), [NodeWithScore(node=split(MINE)[0])])


@pytest.mark.parametrize("kept_in", ["the index", "the document store", "nothing"])
@pytest.mark.parametrize(
    "open_ones", [only("level", "open"), only("level", "secret", FilterOperator.NE)], ids=["open", "not secret"]
)
@pytest.mark.parametrize("mode", ["query", "astream"])
async def test_what_was_put_together_from_hidden_parts_is_not_read(
    open_ones: MetadataFilters, kept_in: str, mode: str
) -> None:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={name: TokenTextSplitter(chunk_size=size, chunk_overlap=0) for name, size in SIZES},
    )
    nodes = split(_handbook("a", "walnut", 1), by=parser)
    leaves = get_leaf_nodes(nodes)
    leaves[3].set_content(leaves[3].get_content().replace("walnut", "birch"))
    parent = next(node for node in nodes if node.node_id == leaves[3].parent_node.node_id)
    parent.set_content(parent.get_content().replace("walnut", "birch"))
    for node in leaves:
        node.metadata["level"] = "secret" if node is leaves[3] else "open"
    if kept_in == "the index":
        parent.metadata["level"] = "secret"
    parts = _parts(simple(nodes if kept_in == "the index" else leaves), mode)
    if kept_in == "the document store":
        parts.index.docstore.add_documents(nodes)
    seen, unseen = parts.retriever(open_ones), ScopedDocuments(parts.retriever(open_ones))
    documents = StoredDocuments(parts.index, filters=open_ones)
    for engine in (
        parts.engine(seen),
        parts.engine(seen, documents=documents),
        parts.engine(unseen, documents=documents),
    ):
        asked = await _asked(engine, parts.llm, mode)
        assert "Rule 39 of the handbook: the walnut desk" in asked.sources[0]
    assert await _asked(parts.engine(unseen), parts.llm, mode) is None


# Indices that share something


@both_modes
@pytest.mark.parametrize("kind", [VectorStoreIndex, SummaryIndex])
async def test_indices_that_share_their_stores_do_not_share_documents(kind: Any, mode: str) -> None:
    shared = {"embed_model": Words()} if kind is VectorStoreIndex else {}
    shared["storage_context"] = StorageContext.from_defaults()
    mine = kind(split(MINE), **shared)
    kind(split(THEIRS), **shared)
    parts = _parts(mine, mode)
    for engine in (
        parts.of_index(),
        parts.engine(mine.as_retriever()),
        parts.engine(ScopedDocuments(mine.as_retriever())),
    ):
        asked = await _asked(engine, parts.llm, mode)
        assert asked.sources == [MINE.text]


@both_modes
async def test_an_index_that_does_not_know_its_nodes_is_not_trusted(mode: str) -> None:
    shared = {"llm": ScriptedLLM(draft=("KEYWORDS: desk",)), "storage_context": StorageContext.from_defaults()}
    parts = _parts(KeywordTableIndex(split(MINE), **shared), mode)
    KeywordTableIndex(split(THEIRS), **shared)
    assert await _asked(parts.of_index(), parts.llm, mode) is None


@everywhere
async def test_an_index_of_the_other_tenant_is_not_read(store: str, mode: str) -> None:
    mine, theirs = (STORES[store](split(_handbook("x", tree, 1))) for tree in ("walnut", "birch"))
    llm, streaming = declining(), mode in STREAMS
    synthesizer = SelfRouteSynthesizer(documents=StoredDocuments(theirs), llm=llm, streaming=streaming)
    fetched = StoredDocuments(theirs, fetch=lambda document, filters: split(_handbook("x", "birch", 1)))
    engines = {
        "fetched": SelfRouteQueryEngine(mine.as_retriever(), documents=fetched, llm=llm, streaming=streaming),
        "with_retriever": SelfRouteQueryEngine.from_index(theirs, llm=llm, streaming=streaming).with_retriever(
            mine.as_retriever()
        ),
        "with_retriever, filters": SelfRouteQueryEngine.from_index(
            theirs, filters=only("tenant", "x"), llm=llm, streaming=streaming
        ).with_retriever(mine.as_retriever(filters=only("tenant", "x"))),
        "its retriever": SelfRouteQueryEngine(mine.as_retriever(), response_synthesizer=synthesizer),
        "the host's": mine.as_query_engine(response_synthesizer=synthesizer, llm=llm),
        "of its own": SelfRouteQueryEngine(ScopedDocuments(mine.as_retriever()), response_synthesizer=synthesizer),
    }
    theirs.docstore.add_documents([_handbook("x", "birch", 1)])
    for name, engine in engines.items():
        assert await _asked(engine, llm, mode) is None, name
        assert llm.steps == ["rag"]


@every_store
def test_one_passage_from_here_does_not_vouch_for_others_from_elsewhere(store: str) -> None:
    mine, theirs = (STORES[store](split(_handbook("x", tree, 1))) for tree in ("walnut", "birch"))
    documents = StoredDocuments(theirs, filters=NOTHING_HIDDEN)
    engine = SelfRouteQueryEngine(mine.as_retriever(), documents=documents, llm=declining())
    here, elsewhere = (index.as_retriever(similarity_top_k=1).retrieve(ASK) for index in (theirs, mine))
    assert "birch" in engine.synthesize(QueryBundle(ASK), here).source_nodes[0].text
    for hits in (elsewhere, [*here, *elsewhere], [*elsewhere, *here]):
        with pytest.raises(ConfigurationError):
            engine.synthesize(QueryBundle(ASK), hits)


@every_store
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_passage_without_text_from_elsewhere_opens_nothing(text: str, store: str) -> None:
    index = STORES[store](split(THEIRS))
    blank = TextNode(text=text, metadata=THEIRS.metadata)
    blank.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="handbook")
    with pytest.raises(ConfigurationError):
        StoredDocuments(index)([NodeWithScore(node=blank)], QueryBundle(ASK))


class _TenantsChroma:
    """A mixin: a store of somebody's own that finds only what is of tenant a."""

    def query(self, query: Any, **given: Any) -> Any:
        query.filters = A
        return super().query(query, **given)  # type: ignore[misc]


class _TenantsSimple(_TenantsChroma, SimpleVectorStore):
    pass


class _TenantsShelf(_TenantsChroma, ListingShelf):
    pass


def _tenants_chroma() -> Any:
    store = a_chroma()
    kind = type("TenantsChroma", (_TenantsChroma, type(store)), {})
    return kind(store.client)


@both_modes
@pytest.mark.parametrize("make", [_TenantsSimple, _TenantsShelf, _tenants_chroma])
async def test_a_store_that_hides_things_when_it_is_searched_is_refused(make: Callable[[], Any], mode: str) -> None:
    parts = _parts(over(make(), NODES), mode)
    assert await _asked(parts.of_index(), parts.llm, mode) is None
    engine = parts.engine(parts.retriever(None), documents=StoredDocuments(parts.index, filters=A))
    asked = await _asked(engine, parts.llm, mode)
    assert asked.sources == [MINE.text]


class _Careless(ListingShelf):
    """Lists whatever it has."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return self.found(None)


async def test_a_store_that_lists_more_than_it_is_asked_for_opens_nothing() -> None:
    other = Document(id_="other", text=THEIRS.text, metadata=MINE.metadata)
    parts = _parts(over(_Careless(), [*NODES, *split(other)]), "query")
    asked = await _asked(parts.of_index(filters=A), parts.llm, "query")
    assert asked.sources == [MINE.text]


@pytest.mark.parametrize("filters", [*FLAT.values(), *NESTED.values()], ids=[*FLAT, *NESTED])
async def test_a_fetch_that_minds_no_filters_opens_nothing(filters: MetadataFilters) -> None:
    shelf = Shelf()
    index = over(shelf, NODES)
    parts = _parts(index, "query")
    asked_for = []

    def fetch(document: str, filters: MetadataFilters | None) -> list[BaseNode]:
        asked_for.append(filters)
        return shelf.found(None)

    engine = parts.engine(parts.retriever(filters), documents=StoredDocuments(index, fetch=fetch))
    asked = await _asked(engine, parts.llm, "query")
    assert asked.sources == [MINE.text]
    assert asked_for == [filters]


# One after the other, and at once


@every_store
def test_what_was_read_for_one_is_not_shown_to_the_other(store: str) -> None:
    index = _index(store)
    documents = StoredDocuments(index)
    engines = {
        tree: SelfRouteQueryEngine(
            index.as_retriever(similarity_top_k=4, filters=filters), documents=documents, llm=declining()
        )
        for tree, filters in (("walnut", A), ("birch", B))
    }
    for tree in ("walnut", "birch", "birch", "walnut"):
        (source,) = engines[tree].query(ASK).source_nodes
        assert source.text == (MINE if tree == "walnut" else THEIRS).text
    with pytest.raises(ConfigurationError):
        documents(engines["walnut"].retrieve(QueryBundle(ASK)), QueryBundle(ASK))
    for both in ((A, B), (B, A)):
        narrowed = StoredDocuments(index, filters=both[0])
        engine = SelfRouteQueryEngine(index.as_retriever(filters=both[1]), documents=narrowed, llm=declining())
        with pytest.raises(LookupError, match="filters let through"):
            engine.query(ASK)


def _engines(index: VectorStoreIndex, **fields: Any) -> list[tuple[SelfRouteQueryEngine, ScriptedLLM, str, str]]:
    """Engines of two tenants over one `StoredDocuments`, with what each has to read, and what it must not."""
    documents = StoredDocuments(index)
    engines = []
    for filters, text, other in ((A, MINE.text, "birch"), (B, THEIRS.text, "walnut")):
        llm = declining()
        retriever = index.as_retriever(similarity_top_k=4, filters=filters)
        engine = SelfRouteQueryEngine(retriever, documents=documents, llm=llm, **fields)
        engines.append((engine, llm, text, other))
    return engines


@every_store
def test_two_tenants_in_many_threads_do_not_meet(store: str) -> None:
    engines = _engines(_index(store))
    with ThreadPoolExecutor(8) as threads:
        asked = [(engine, threads.submit(engine.query, ASK)) for engine, *_ in engines * 10]
        for number, (_, answer) in enumerate(asked):
            assert [source.text for source in answer.result().source_nodes] == [engines[number % 2][2]]
    for _, llm, _, other in engines:
        assert all(other not in call.prompt for call in llm.calls)


@every_store
@pytest.mark.parametrize("mode", ["aquery", "astream"])
async def test_two_tenants_in_many_tasks_do_not_meet(store: str, mode: str) -> None:
    engines = _engines(_index(store), streaming=mode in STREAMS)
    asked = await asyncio.gather(*(ask(engine, ASK, mode) for engine, *_ in engines * 10))
    for number, answer in enumerate(asked):
        assert answer.sources == [engines[number % 2][2]]
    for _, llm, _, other in engines:
        assert all(other not in call.prompt for call in llm.calls)


async def test_a_filter_that_is_set_later_holds() -> None:
    parts = _parts(simple(NODES), "query")
    retriever = parts.retriever(B)
    engine = parts.engine(retriever)
    engine.query(ASK)
    retriever._filters = A
    asked = await _asked(engine, parts.llm, "query")
    assert asked.sources == [MINE.text]


@pytest.mark.parametrize("name", ["_filters", "_doc_ids", "_node_ids", "_index"])
def test_a_host_that_keeps_its_filters_elsewhere_is_refused(name: str) -> None:
    index = VectorStoreIndex.from_documents([Document(text="public part", id_="m")], embed_model=MockEmbedding(8))
    retriever = index.as_retriever()
    stored = StoredDocuments(index, filters=MetadataFilters(filters=[]))
    nodes = retriever.retrieve("?")
    delattr(retriever, name)
    with pytest.raises(ConfigurationError, match="LlamaIndex has changed"):
        stored.behind(retriever)(nodes, None)


def test_a_node_that_names_no_document_is_read_once() -> None:
    node = TextNode(text="alone", id_="n1")
    index = VectorStoreIndex.from_documents([Document(text="other", id_="m")], embed_model=MockEmbedding(8))
    found = index.as_retriever().retrieve("?")
    twice = [*found, NodeWithScore(node=node), NodeWithScore(node=node)]
    read = StoredDocuments(index, filters=MetadataFilters(filters=[]))(twice, None)
    assert [document.get_content() for document in read] == ["other", "alone"]
