"""The walls of LlamaIndex's own engines, stores and indices; `tests/hosts` has what both frameworks share."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core import KeywordTableIndex, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilters, SimpleVectorStore

from hosts_documents import (
    FAR_APART,
    ITS_OWN,
    MINE,
    NOTHING_HIDDEN,
    ORIGINAL,
    OTHER,
    QUESTION,
    Holds,
    InLlamaIndex,
    Narrowing,
    Piece,
    Pipeline,
    cut,
    house,
    in_turn,
    of,
    reads,
    refuses,
    shared,
    two_tenants,
)
from langchain_stores import text_of
from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import First, ListingShelf, Words, a_chroma, declining, only, split
from llamaindex_wrappers import Dropping, document
from scenarios import DRAFTED
from selfroute.errors import ConfigurationError, DocumentNotFoundError

both_modes = pytest.mark.parametrize("mode", FAR_APART)
KINDS = ("memory", "chroma", "again", "listing")
everywhere = in_turn(KINDS)
every_kind = pytest.mark.parametrize("kind", KINDS)
THEIRS = Holds("tenant", OTHER)


def _shared(kind: str) -> InLlamaIndex:
    return shared(f"llamaindex {kind}")  # type: ignore[no-any-return]


class Narrow(VectorIndexRetriever):
    """The host's own, narrowed."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._filters = only("tenant", MINE)
        try:
            return super()._retrieve(query_bundle)
        finally:
            self._filters = None

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


class Similar(SimilarityPostprocessor):
    """The host's own, which drops more."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return DROPPING.postprocess_nodes(super()._postprocess_nodes(nodes, query_bundle))


class Choosing(SelfRouteQueryEngine):
    """An engine that drops the other tenant's nodes."""

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return DROPPING.postprocess_nodes(super().retrieve(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.retrieve(query_bundle)


class Forbidding(StoredDocuments):
    """Documents that nobody may read."""

    def __call__(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[BaseNode]:
        msg = "nobody may read this"
        raise DocumentNotFoundError(msg)


DROPPING = Dropping(without=OTHER)
Make = Callable[[InLlamaIndex, Any], Any]  # an engine of a house, with the parts of its model


def _synthesizer(home: InLlamaIndex, parts: Any, *condition: Any) -> SelfRouteSynthesizer:
    return SelfRouteSynthesizer(documents=home.documents(*condition), **parts)


def _engine(home: InLlamaIndex, parts: Any, retriever: Any, documents: Any = None, **fields: Any) -> Any:
    return SelfRouteQueryEngine(retriever, documents=documents or home.documents(), **parts, **fields)


def _of_index(home: InLlamaIndex, parts: Any, *condition: Any, **fields: Any) -> Any:
    filters = {"filters": home.filter(condition[0])} if condition else {}
    return SelfRouteQueryEngine.from_index(home.index, **filters, **parts, **fields)


def _router(home: InLlamaIndex, parts: Any) -> Any:
    engines = [_of_index(home, parts, condition) for condition in (ITS_OWN, THEIRS)]
    return RouterQueryEngine(First(), [QueryEngineTool.from_defaults(one) for one in engines], llm=parts["llm"])


def _of_two(home: InLlamaIndex, parts: Any) -> Any:
    synthesizer = _synthesizer(home, parts)
    return [
        SelfRouteQueryEngine(home.search(condition), response_synthesizer=synthesizer)
        for condition in (THEIRS, ITS_OWN, THEIRS)
    ][1]


READ: dict[str, Make] = {
    "the documents have that of the host's engine": lambda home, parts: home.index.as_query_engine(
        filters=home.filter(ITS_OWN), response_synthesizer=_synthesizer(home, parts, ITS_OWN), llm=parts["llm"]
    ),
    "a postprocessor of the host's does no harm": lambda home, parts: _engine(
        home, parts, home.search(ITS_OWN), node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)]
    ),
    "with_retriever leads away from the other": lambda home, parts: _engine(
        home, parts, home.search(THEIRS)
    ).with_retriever(home.search(ITS_OWN)),
    "from_index leads away from no filter": lambda home, parts: _of_index(home, parts).with_retriever(
        home.search(ITS_OWN)
    ),
    "from_index has it for every retriever": lambda home, parts: _of_index(home, parts, ITS_OWN).with_retriever(
        home.hidden(home.search(ITS_OWN))
    ),
    "two engines share a synthesizer": _of_two,
    "a router leads to one of two": _router,
    "the search has harmless arguments": lambda home, parts: _engine(
        home,
        parts,
        home.search(ITS_OWN, vector_store_query_mode="mmr", vector_store_kwargs={"mmr_threshold": 0.5})
        if home.kind == "chroma"
        else home.search(ITS_OWN),
    ),
}
REFUSED: dict[str, Make] = {
    "a subclass of the host's retriever hides it": lambda home, parts: _engine(
        home, parts, Narrow(home.index, similarity_top_k=4, embed_model=home.embedding)
    ),
    "the host's engine hides it": lambda home, parts: home.index.as_query_engine(
        filters=home.filter(ITS_OWN), response_synthesizer=_synthesizer(home, parts), llm=parts["llm"]
    ),
    "a postprocessor drops it": lambda home, parts: _engine(
        home, parts, home.search(k=18), node_postprocessors=[DROPPING]
    ),
    "a subclass of the host's postprocessor drops it": lambda home, parts: _of_index(
        home, parts, similarity_top_k=18, node_postprocessors=[Similar(similarity_cutoff=0.0)]
    ),
    "a postprocessor drops it behind another retriever": lambda home, parts: _of_index(
        home, parts, node_postprocessors=[DROPPING]
    ).with_retriever(home.search(k=18)),
    "a subclass of the engine drops it": lambda home, parts: Choosing(
        home.search(k=18), documents=home.documents(), **parts
    ),
    "a subclass of the engine drops it behind another retriever": lambda home, parts: Choosing(
        home.search(ITS_OWN), documents=home.documents(), **parts
    ).with_retriever(home.search(k=18)),
    "a subclass of the documents gives none": lambda home, parts: _engine(
        home, parts, home.search(ITS_OWN), Forbidding(home.index)
    ),
    "documents of the other tenant are given this one's retriever": lambda home, parts: _engine(
        home, parts, home.search(THEIRS), home.documents(THEIRS)
    ).with_retriever(home.search(ITS_OWN)),
}


def _asking(make: Make, home: Any) -> Pipeline:
    model = declining()
    return Pipeline(
        "llamaindex", lambda streaming: make(home, {"llm": model, "streaming": streaming, **DRAFTED}), model
    )


@everywhere
@pytest.mark.parametrize("name", READ)
async def test_a_filter_that_is_seen_holds_for_the_whole_document(name: str, kind: str, mode: str) -> None:
    await reads(_asking(READ[name], _shared(kind)), mode)


@everywhere
@pytest.mark.parametrize("name", REFUSED)
async def test_unseen_filter_is_refused(name: str, kind: str, mode: str) -> None:
    pipeline = _asking(REFUSED[name], _shared(kind))
    for _ in range(2):
        await refuses(pipeline, mode, None, (ConfigurationError, LookupError))


@everywhere
async def test_another_index_than_that_of_the_engine_is_not_read(kind: str, mode: str) -> None:
    mine, theirs = (house(f"llamaindex {kind}", cut(text_of(owner))) for owner in (MINE, OTHER))
    theirs.index.docstore.add_documents([document(OTHER)])
    makes: list[Make] = [
        lambda home, parts: _of_index(home, parts).with_retriever(mine.search()),
        lambda home, parts: mine.index.as_query_engine(
            response_synthesizer=_synthesizer(home, parts), llm=parts["llm"]
        ),
        lambda home, parts: _engine(home, parts, mine.search(), home.documents(fetch=lambda *_: home.index.none)),
    ]
    theirs.index.none = [theirs.passage(piece).node for piece in cut(text_of(OTHER))]
    for make in makes:
        await refuses(_asking(make, theirs), mode)


async def test_nested_engine_has_its_own_retriever() -> None:
    """Also if both share a synthesizer."""
    home, found = _shared("memory"), list[str]()

    def draft(_: str) -> tuple[str, ...]:
        found.extend(item.node.metadata["tenant"] for item in theirs.retrieve(QueryBundle(QUESTION)))
        return ("unanswerable",)

    model = declining(draft=draft)
    synthesizer = _synthesizer(home, {"llm": model})
    theirs, mine = (
        SelfRouteQueryEngine(home.search(one), response_synthesizer=synthesizer) for one in (THEIRS, ITS_OWN)
    )
    await reads(Pipeline("llamaindex", lambda _: mine, model), times=1)
    assert set(found) == {OTHER}


# Filters of all kinds, and other limits


@pytest.mark.parametrize("kind", ["memory", "chroma"])
async def test_filters_that_a_store_does_not_know_open_nothing(kind: str) -> None:
    home = _shared(kind)
    unknown = only("tenant", "x", FilterOperator.TEXT_MATCH)
    for filters in (unknown, MetadataFilters(filters=only("tenant", OTHER).filters, condition=FilterCondition.NOT)):
        documents = StoredDocuments(home.index, filters=filters)
        pipeline = home.pipeline(home.hidden(home.search(ITS_OWN)), documents)
        try:
            await reads(pipeline)
        except (ConfigurationError, LookupError):
            assert pipeline.model.steps == ["rag"]


@in_turn(["memory", "listing"])
async def test_a_retriever_of_some_nodes_leads_to_these_alone(kind: str, mode: str) -> None:
    home = _shared(kind)
    own = [node for node in home.nodes if node.metadata["tenant"] == MINE]
    ids = [node.node_id for node in own]

    def some(ids: list[str]) -> Any:
        return VectorIndexRetriever(home.index, node_ids=ids, similarity_top_k=4, embed_model=home.embedding)

    documents = home.documents()
    await reads(home.pipeline(some(ids), documents), mode)
    originals = home.documents(originals=[Piece(text_of(MINE), about={"tenant": MINE})])
    for one in (documents, originals):
        (read,) = (await home.pipeline(some([*ids[:3], *ids[4:]]), one).ask(mode)).documents
        assert own[3].get_content() not in read.text
        assert read.label["gaps"]


@every_kind
async def test_a_retriever_of_some_documents_leads_to_these_alone(kind: str) -> None:
    home = house(f"llamaindex {kind}", of(MINE) + of(OTHER, "other"))
    engine = home.pipeline(home.search(k=4, doc_ids=["handbook"])).of(False)
    with pytest.raises(LookupError):
        engine.synthesize(QueryBundle(QUESTION), [home.passage(one) for one in of(OTHER, "other")])
    hits = [NodeWithScore(node=node) for node in home.nodes[:3]]
    assert engine.synthesize(QueryBundle(QUESTION), hits).source_nodes[0].node.node_id == "handbook"


@both_modes
@pytest.mark.parametrize("hiding", [{"where": {"tenant": MINE}}, {"where_document": {"$contains": MINE}}], ids=str)
async def test_arguments_for_the_store_may_hide_anything(hiding: Any, mode: str) -> None:
    home = _shared("chroma")
    retriever = home.search(vector_store_kwargs=hiding)
    for one in (retriever, QueryFusionRetriever([retriever, home.search()], num_queries=1, llm=MockLLM())):
        with pytest.raises(ConfigurationError, match=f"vector_store_kwargs have {next(iter(hiding))}.*filters="):
            await home.pipeline(one).ask(mode)
    await reads(home.pipeline(retriever, home.documents(ITS_OWN)), mode)


# Originals


@every_kind
async def test_original_is_told_by_its_metadata(kind: str) -> None:
    home = house(f"llamaindex {kind}", of(MINE))
    for owner, label in ((MINE, "original"), (OTHER, "offsets")):
        documents = home.documents(originals=[Piece(text_of(MINE), about={"tenant": owner})])
        assert (await reads(home.pipeline(documents=documents))).label["method"] == label


@every_kind
@pytest.mark.parametrize("condition", [None, ITS_OWN], ids=["seen", "filtered"])
async def test_an_original_of_another_version_or_tenant_is_not_read(kind: str, condition: Any) -> None:
    home = InLlamaIndex(kind)
    home.index.insert_nodes(split(document(MINE)))  # which know the version
    changed = document(MINE)
    changed.set_content(text_of(OTHER))
    for original, label in ((document(MINE), ORIGINAL), (changed, {}), (document(OTHER), {})):
        documents = home.documents(originals=[])
        documents.docstore.add_documents([original])
        for dress in (lambda retriever: retriever, home.hidden):
            read = await reads(home.pipeline(dress(home.search(condition)), documents))
            assert (read.label == ORIGINAL) is (label == ORIGINAL)


# Indices that share something


@both_modes
@pytest.mark.parametrize("kind", [VectorStoreIndex, SummaryIndex])
async def test_indices_that_share_their_stores_do_not_share_documents(kind: Any, mode: str) -> None:
    more: Any = {"embed_model": Words()} if kind is VectorStoreIndex else {}
    context = StorageContext.from_defaults()
    mine, _ = (kind(split(document(owner)), storage_context=context, **more) for owner in (MINE, OTHER))
    home = InLlamaIndex.on("memory", mine)
    for retriever in (mine.as_retriever(), Narrowing(mine.as_retriever())):
        await reads(home.pipeline(retriever), mode)
    await reads(_asking(_of_index, home), mode)


@both_modes
async def test_an_index_that_does_not_know_its_nodes_is_not_trusted(mode: str) -> None:
    more: Any = {"llm": ScriptedLLM(draft=("KEYWORDS: crane",)), "storage_context": StorageContext.from_defaults()}
    mine, _ = (KeywordTableIndex(split(document(owner)), **more) for owner in (MINE, OTHER))
    await refuses(_asking(_of_index, InLlamaIndex.on("memory", mine)), mode)


class _Tenants:
    """A mixin: a store of somebody's own that finds only what is of one tenant."""

    def query(self, query: Any, **given: Any) -> Any:
        query.filters = only("tenant", MINE)
        return super().query(query, **given)  # type: ignore[misc]


def _tenants_chroma() -> Any:
    store = a_chroma()
    return type("TenantsChroma", (_Tenants, type(store)), {})(store.client)


@both_modes
@pytest.mark.parametrize(
    "make",
    [type("Simple", (_Tenants, SimpleVectorStore), {}), type("Shelf", (_Tenants, ListingShelf), {}), _tenants_chroma],
    ids=["simple", "shelf", "chroma"],
)
async def test_store_that_hides_things_is_refused(make: Callable[[], Any], mode: str) -> None:
    home = house("llamaindex memory", two_tenants(), over=make())
    await refuses(home.built(), mode)
    await reads(home.pipeline(home.search(), home.documents(ITS_OWN)), mode)


class _Careless(ListingShelf):
    """Lists whatever it has."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return self.found(None)


@pytest.mark.parametrize("module", [__name__, "llama_index.vector_stores.careless"], ids=["own", "an integration's"])
@pytest.mark.parametrize("condition", [ITS_OWN, Holds("tenant", OTHER, "!="), NOTHING_HIDDEN], ids=str)
async def test_careless_store_opens_nothing(condition: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Careless, "__module__", module)
    home = house("llamaindex listing", [*two_tenants(), *of(OTHER, "other")], over=_Careless())
    asked: list[Any] = []

    def fetch(_: str, filters: MetadataFilters | None) -> list[Any]:
        asked.append(filters)
        return [node for node in home.index.vector_store.found(None) if node.ref_doc_id == "handbook"]

    if condition == NOTHING_HIDDEN:
        await reads(home.built(ITS_OWN))
        return
    await reads(home.pipeline(home.search(condition), home.documents(fetch=fetch)), times=1)
    assert asked == [home.filter(condition)]


@pytest.mark.parametrize("beside", [[], [("tenant", "north")]], ids=["alone", "beside another"])
def test_empty_list_of_tenants_lets_nothing_through(beside: list[tuple[str, str]]) -> None:
    nodes = split(
        *(Document(text=f"{one.title()}'s own words.", metadata={"tenant": one}) for one in ("north", "south"))
    )
    index = VectorStoreIndex(
        nodes, storage_context=StorageContext.from_defaults(vector_store=a_chroma()), embed_model=Words()
    )
    nobody = MetadataFilters(filters=[], condition=FilterCondition.OR)
    filters = MetadataFilters(filters=[*(only(*one).filters[0] for one in beside), nobody])
    engine = SelfRouteQueryEngine(
        index.as_retriever(similarity_top_k=1), documents=StoredDocuments(index, filters=filters), llm=declining()
    )
    with pytest.raises(ConfigurationError, match="leave the empty MetadataFilters out"):
        engine.query("words")


class Keeping(SelfRouteSynthesizer):
    """Keeps the bundles of its questions."""

    def synthesize(self, query: Any, *given: Any, **named: Any) -> Any:
        self._memory.bundles = [query]  # type: ignore[attr-defined]
        return super().synthesize(query, *given, **named)


def test_each_question_is_asked_behind_a_view_of_its_own() -> None:
    index = _shared("memory").index
    retriever = index.as_retriever(similarity_top_k=1, filters=only("tenant", MINE))
    synthesizer = Keeping(documents=StoredDocuments(index), llm=declining(), answerability="text")
    engine = SelfRouteQueryEngine(retriever, synthesizer)
    first = engine.query(QUESTION)
    kept = synthesizer._memory.bundles[0]  # type: ignore[attr-defined]
    retriever._filters = only("tenant", OTHER)
    for bundle in (kept, copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):  # noqa: S301
        second = engine.query(bundle)
        texts = [answer.source_nodes[0].node.get_content() for answer in (first, second)]
        assert [text.count(text_of(MINE)[:40]) for text in texts] == [1, 0]
        assert [text.count(text_of(OTHER)[:40]) for text in texts] == [0, 1]
        assert second.metadata["route"] == "long_context"
