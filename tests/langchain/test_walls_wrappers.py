"""LangChain's own retrievers around a plain search are seen through: its filter is the wall, and nothing else is one.

Whole documents are complete where nothing is hidden. Whatever the retriever is, the other tenant's text never gets into
the prompt with the documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.chains.query_constructor.base import StructuredQueryOutputParser
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MergerRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Comparator, Comparison, StructuredQuery

from langchain_parts import FAR_APART, QUESTION, ask
from langchain_selfroute import StoredDocuments
from langchain_stores import KINDS, chain_on, holding, read_by, store_with, text_of
from langchain_walls import MINE, OTHER, House, refuses, two_tenants
from langchain_wrappers import (
    WRAPPERS,
    Longest,
    Shelves,
    asking_itself,
    built,
    ensemble,
    parents,
    queries,
    splitter,
    summaries,
    time_weighted,
)
from selfroute.errors import ConfigurationError

pytestmark = pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning")
both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_wrapper = pytest.mark.parametrize("name", WRAPPERS)
BOTH = (MINE, OTHER)


def _mode(name: str, mode: str) -> str:
    return "invoke" if name == "rephrased" else mode  # LangChain's own has no async


async def _documents(chain: Any, mode: str) -> list[Document]:
    """What the second step reads; the other tenant is never in its prompt."""
    chain.llm.calls.clear()
    try:
        return await read_by(chain, mode)
    finally:
        prompts = [call.prompt for call in chain.llm.calls if call.step == "long_context"]
        assert not any(OTHER in prompt for prompt in prompts)


async def _reads_its_own(chain: Any, mode: str) -> None:
    for _ in range(2):
        (document,) = await _documents(chain, mode)
        assert document.page_content == text_of(MINE)
        assert document.metadata["tenant"] == MINE
        assert document.metadata["selfroute"]["gaps"] == []


@both_modes
@every_kind
@every_wrapper
async def test_where_nothing_is_hidden_the_whole_document_is_read(name: str, kind: str, mode: str) -> None:
    retriever, store = built(name, Shelves(kind, varied=True))
    await _reads_its_own(chain_on(store, StoredDocuments(store), retriever), _mode(name, mode))


@both_modes
@every_kind
@every_wrapper
@pytest.mark.parametrize("declared", ["nothing", "the filter", "that nothing is hidden"])
async def test_the_filter_of_the_search_inside_is_the_wall(name: str, kind: str, declared: str, mode: str) -> None:
    own = holding(kind if name != "time weighted" else "memory", tenant=MINE)
    retriever, store = built(name, Shelves(kind, BOTH, {"filter": own}))
    documents = StoredDocuments(store, filter={"nothing": None, "the filter": own}.get(declared, {}))
    await _reads_its_own(chain_on(store, documents, retriever), _mode(name, mode))


@both_modes
@every_kind
@every_wrapper
async def test_without_a_filter_the_retriever_may_show_both_tenants(name: str, kind: str, mode: str) -> None:
    retriever, store = built(name, Shelves(kind, BOTH))
    documents = await read_by(chain_on(store, StoredDocuments(store), retriever), _mode(name, mode))
    text = "".join(document.page_content for document in documents)
    assert all(f"Paragraph {n} of {owner}" in text for owner in BOTH for n in range(9))


# What cannot be seen through


class OwnEnsemble(EnsembleRetriever):
    """May hide something."""


class _Namesake(BaseRetriever):
    """Is called like a wrapper of LangChain's."""

    retrievers: list[Any]
    allowed: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found: list[Document] = self.retrievers[0].invoke(query, filter=self.allowed)
        return found


_Namesake.__name__ = "EnsembleRetriever"


class OwnCompressor(BaseDocumentCompressor):
    """Hides the other tenant."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [document for document in documents if document.metadata["tenant"] == MINE]


class OwnReranker(CrossEncoderReranker):
    """Hides the other tenant."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [document for document in documents if document.metadata["tenant"] == MINE]


class OwnRetriever(BaseRetriever):
    """Hides what it likes."""

    inside: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found: list[Document] = self.inside.invoke(query)
        return found


def _shown(compressor: Any, house: House) -> Any:
    return ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=house.store.as_retriever(search_kwargs={"k": 18})
    )


def _asking(house: House, **fields: Any) -> Any:
    return asking_itself(Shelves(house.kind), house.store, **fields)


def _translator(**added: Any) -> Any:
    """A translator of the user's own, which adds something to each search."""
    base = pytest.importorskip("langchain_community.query_constructors.chroma").ChromaTranslator

    class Own(base):  # type: ignore[misc]
        def visit_structured_query(self, structured_query: StructuredQuery) -> Any:
            return structured_query.query, added

    return Own()


def _own_chain(given: Any) -> StructuredQuery:
    mine = Comparison(comparator=Comparator.EQ, attribute="tenant", value=MINE)
    return StructuredQuery(query=given["query"], filter=mine, limit=None)


def _configurable(house: House) -> Any:
    fields = house.store.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))
    return fields.with_config(configurable={"search": {"filter": house.of()}})


UNKNOWN: dict[str, Callable[[House], Any]] = {
    "unequal filters": lambda house: ensemble(
        house.retriever(), house.store.as_retriever(search_kwargs={"filter": holding(house.kind, source="x"), "k": 1})
    ),
    "unequal filters, bound": lambda house: MergerRetriever(
        retrievers=[house.retriever(k=2), ensemble(house.store.as_retriever().bind(filter=house.of("Cedar")))]
    ),
    "another store beside it": lambda house: ensemble(
        house.store.as_retriever(search_kwargs={"filter": house.of(), "k": 3}),
        store_with(house.kind).as_retriever(search_kwargs={"k": 1}),
    ),
    "own retriever inside": lambda house: ensemble(house.retriever(), OwnRetriever(inside=house.retriever())),
    "own ensemble": lambda house: OwnEnsemble(retrievers=[house.retriever()]),
    "own ensemble of the same name": lambda house: _Namesake(
        retrievers=[house.store.as_retriever()], allowed=house.of()
    ),
    "own compressor": lambda house: _shown(OwnCompressor(), house),
    "own reranker": lambda house: _shown(OwnReranker(model=Longest(), top_n=9), house),
    "own compressor in a pipeline": lambda house: _shown(
        DocumentCompressorPipeline(transformers=[splitter(900), OwnCompressor()]), house
    ),
    "bound to a wrapper that ignores it": lambda house: queries(house.retriever()).bind(filter=house.of(OTHER)),
    "bound to an ensemble": lambda house: ensemble(house.retriever()).bind(filter=house.of(OTHER)),
    "configured where the config does not get": lambda house: ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Longest(), top_n=2), base_retriever=_configurable(house)
    ),
    "only words": lambda house: Shelves(house.kind).words(),
    "only words, reranked": lambda house: ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Longest(), top_n=2), base_retriever=Shelves(house.kind).words()
    ),
    "own translator": lambda house: _asking(house, structured_query_translator=_translator(filter=house.of())),
}


@both_modes
@every_kind
@pytest.mark.parametrize("name", UNKNOWN)
async def test_what_may_hide_more_than_its_filters_say_is_refused(name: str, kind: str, mode: str) -> None:
    house = House(kind, store_with(kind, two_tenants()))
    chain = chain_on(house.store, StoredDocuments(house.store), UNKNOWN[name](house))
    await refuses(chain, mode, "in tenant")
    own = StoredDocuments(house.store, filter=house.of())
    await _reads_its_own(chain_on(house.store, own, UNKNOWN[name](house)), mode)


@both_modes
async def test_a_chain_of_the_users_own_that_writes_queries_may_hide_something(mode: str) -> None:
    house = House("chroma", store_with("chroma", two_tenants()))
    asking = _asking(house, query_constructor=RunnableLambda(_own_chain))
    await refuses(chain_on(house.store, StoredDocuments(house.store), asking), mode, "in tenant")


AT_LEAST: dict[str, Callable[[House, Any], Any]] = {
    "own compressor": lambda house, inner: ContextualCompressionRetriever(
        base_compressor=OwnCompressor(), base_retriever=inner
    ),
    "own translator": lambda house, inner: _asking(
        house, structured_query_translator=_translator(), search_kwargs=inner.search_kwargs
    ),
    "own chain": lambda house, inner: _asking(
        house, query_constructor=RunnableLambda(_no_filter), search_kwargs=inner.search_kwargs
    ),
}


def _no_filter(given: Any) -> StructuredQuery:
    return StructuredQuery(query=given["query"], filter=None, limit=None)


@both_modes
@every_kind
@pytest.mark.parametrize("name", AT_LEAST)
@pytest.mark.parametrize("declared", [None, {}])
async def test_the_filter_inside_holds_also_where_more_may_be_hidden(
    name: str, kind: str, declared: Any, mode: str
) -> None:
    house = House(kind, store_with(kind, two_tenants()))
    documents = StoredDocuments(house.store, filter=declared)
    await _reads_its_own(chain_on(house.store, documents, AT_LEAST[name](house, house.retriever())), mode)


@every_kind
async def test_a_search_argument_that_may_hide_something_is_refused_within_a_wrapper(kind: str) -> None:
    store = store_with(kind, two_tenants())
    inner = store.as_retriever(search_kwargs={"namespace": "ash"})
    for retriever in (ensemble(inner), queries(inner), queries(ensemble(store.as_retriever(), inner))):
        with pytest.raises(ConfigurationError, match=r"search_kwargs have namespace.*filter="):
            chain_on(store, StoredDocuments(store), retriever)


@both_modes
async def test_a_wrapper_over_a_store_that_hides_something_by_itself_is_refused(mode: str) -> None:
    class Hiding(type(store_with("memory"))):  # type: ignore[misc]
        def similarity_search(self, query: str, k: int = 4, **more: Any) -> Any:
            return super().similarity_search(query, k, **{**more, "filter": holding("memory", tenant=MINE)})

        async def asimilarity_search(self, query: str, k: int = 4, **more: Any) -> Any:
            return self.similarity_search(query, k, **more)

    store = store_with("memory", two_tenants(), of=Hiding)
    await refuses(chain_on(store, StoredDocuments(store), queries(store.as_retriever())), mode, "in tenant")


async def test_a_filter_that_makes_another_filter_out_of_a_comparison_is_not_taken_for_the_same() -> None:
    class Odd:
        """As the fields of some query languages."""

        def __init__(self, tenant: str) -> None:
            self.tenant = tenant

        def __call__(self, document: Document) -> bool:
            return bool(document.metadata["tenant"] == self.tenant)

        def __eq__(self, other: object) -> Any:
            return Odd("both")

        __hash__ = None  # type: ignore[assignment]

    store = store_with("memory", two_tenants())
    inner = [store.as_retriever(search_kwargs={"filter": Odd(tenant), "k": 2}) for tenant in BOTH]
    await refuses(
        chain_on(store, StoredDocuments(store), ensemble(inner[0], inner[0].bind(filter=Odd(MINE)))), "invoke"
    )
    documents = StoredDocuments(store, filter=Odd(OTHER))
    with pytest.raises(LookupError, match="that the filter lets through"):
        await ask(chain_on(store, documents, inner[0]), QUESTION, "invoke")


# Originals


@both_modes
@every_kind
async def test_originals_are_read_and_not_their_summaries(kind: str, mode: str) -> None:
    shelves = Shelves(kind)
    retriever, store = summaries(shelves, shelves.chunks())
    (document,) = await read_by(chain_on(store, StoredDocuments(store), retriever), mode)
    assert document.page_content == text_of(MINE)
    assert document.metadata["selfroute"]["method"] == "offsets"


@every_kind
async def test_an_original_that_changes_is_noticed(kind: str) -> None:
    shelves = Shelves(kind)
    retriever, store = summaries(shelves, shelves.chunks())
    read = StoredDocuments(store).behind(retriever, {})
    given = {"input": QUESTION, "retrieved": shelves.chunks()[1:2]}
    assert read(given)[0].page_content == text_of(MINE)
    retriever.docstore.mset([("id0", Document("It is new.", metadata=shelves.chunks()[0].metadata))])
    assert read(given)[0].page_content.startswith("It is new.")


class ByText(BaseDocumentCompressor):
    """Hides the other tenant, whatever the metadata say."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [document for document in documents if OTHER not in document.page_content]


@both_modes
@every_kind
async def test_originals_that_say_less_than_their_chunks_vouch_for_nothing(kind: str, mode: str) -> None:
    shelves = Shelves(kind, BOTH)
    retriever, store = summaries(shelves, shelves.chunks())
    bare = [Document(one.page_content, metadata={"source": "handbook"}) for one in shelves.chunks()]
    retriever.docstore.mset([(f"id{n}", original) for n, original in enumerate(bare)])
    hiding = ContextualCompressionRetriever(
        base_compressor=ByText(), base_retriever=retriever.model_copy(update={"search_kwargs": {"k": 9}})
    )
    await refuses(chain_on(store, StoredDocuments(store), hiding), mode)


@both_modes
@every_kind
@pytest.mark.parametrize("beside", ["chunks", "other originals"])
async def test_originals_beside_something_else_are_not_taken_for_the_whole(kind: str, beside: str, mode: str) -> None:
    shelves = Shelves(kind)
    retriever, store = summaries(shelves, shelves.chunks())
    other = retriever.model_copy(update={"docstore": InMemoryStore()})
    both = ensemble(retriever, store.as_retriever() if beside == "chunks" else other)
    await refuses(chain_on(store, StoredDocuments(store), both), mode)


@both_modes
@every_kind
async def test_originals_without_a_source_are_documents_themselves(kind: str, mode: str) -> None:
    originals = [Document(f"Original {n}.") for n in range(3)]
    retriever, store = summaries(Shelves(kind), originals)
    documents = await read_by(chain_on(store, StoredDocuments(store), retriever, max_documents=None), mode)
    assert sorted(document.page_content for document in documents) == [one.page_content for one in originals]
    with pytest.raises(LookupError, match="no retrieved passage has metadata"):  # those of others have to name one
        await ask(chain_on(store, StoredDocuments(store), store.as_retriever()), QUESTION, mode)


async def test_a_chunk_without_an_original_is_not_read_behind_a_retriever_of_originals() -> None:
    shelves = Shelves("memory")
    retriever, store = summaries(shelves, shelves.chunks())
    about = {"source": "handbook", "tenant": MINE}
    store.add_documents([Document("Loose.", metadata=about), Document("Loose.", metadata={**about, "doc_id": None})])
    (document,) = await read_by(chain_on(store, StoredDocuments(store), retriever))
    assert document.page_content == text_of(MINE)


@every_kind
async def test_an_original_that_is_gone_is_an_error(kind: str) -> None:
    shelves = Shelves(kind)
    retriever, store = summaries(shelves, shelves.chunks())
    retriever.docstore.mdelete(["id1"])
    with pytest.raises(LookupError, match=r"docstore does not hold 'id1'.*'handbook'.*index the document again"):
        await ask(chain_on(store, StoredDocuments(store), retriever), QUESTION, "invoke")


@every_kind
async def test_originals_whose_chunks_do_not_name_the_source_are_an_error_that_says_so(kind: str) -> None:
    retriever, store = parents(Shelves(kind).whole(), Shelves(kind), child_metadata_fields=["tenant"])
    with pytest.raises(LookupError, match="index chunks and summaries with the source of their originals"):
        await ask(chain_on(store, StoredDocuments(store), retriever), QUESTION, "invoke")


async def test_parents_are_put_in_their_own_order() -> None:
    retriever, store = parents(Shelves("memory").whole(), Shelves("memory"), parent_splitter=splitter(120))
    store.store = dict(sorted(store.store.items()))  # by random ids, as some stores list them
    (document,) = await read_by(chain_on(store, StoredDocuments(store), retriever))
    assert document.page_content == text_of(MINE)
    assert document.metadata["selfroute"] == {"method": "offsets", "chunks": 5, "gaps": [], "trimmed": False}


@both_modes
@every_kind
async def test_an_original_is_read_only_if_a_chunk_of_it_can_be_seen(kind: str, mode: str) -> None:
    secret = [n in (1, 3) for n in range(5)]
    originals = Shelves(kind).chunks()
    for original, hidden in zip(originals, secret, strict=True):
        original.metadata["secret"] = int(hidden)
    retriever, store = summaries(Shelves(kind, search={"filter": holding(kind, secret=0)}), originals)
    (document,) = await read_by(chain_on(store, StoredDocuments(store), retriever), mode)
    assert [one.page_content in document.page_content for one in originals] == [not hidden for hidden in secret]
    assert len(document.metadata["selfroute"]["gaps"]) == 2


@both_modes
@every_kind
async def test_an_original_is_not_read_if_a_declared_filter_hides_a_chunk_of_it(kind: str, mode: str) -> None:
    originals = Shelves(kind).chunks()
    for original in originals:
        original.metadata["secret"] = 0
    retriever, store = summaries(Shelves(kind), originals)
    store.add_documents([Document("More of it.", metadata={**originals[2].metadata, "secret": 1, "doc_id": "id2"})])
    documents = StoredDocuments(store, filter=holding(kind, secret=0))
    (document,) = await read_by(chain_on(store, documents, retriever), mode)
    assert [one.page_content in document.page_content for one in originals] == [n != 2 for n in range(5)]


@both_modes
async def test_a_docstore_that_names_documents_by_source_comes_before_the_originals(mode: str) -> None:
    whole = InMemoryStore()
    whole.mset([("handbook", Document("All of it.", metadata={"source": "handbook"}))])
    retriever, store = summaries(Shelves("memory"), Shelves("memory").chunks())
    (document,) = await read_by(chain_on(store, StoredDocuments(store, docstore=whole), retriever), mode)
    assert document.page_content == "All of it."


async def test_the_lengths_of_originals_become_known_as_those_of_other_documents() -> None:
    retriever, store = summaries(Shelves("memory"), Shelves("memory").chunks())
    stored = StoredDocuments(store)
    read = stored.behind(retriever, {})
    passages = retriever.invoke(QUESTION)

    by_chunks = stored.behind(store.as_retriever(), {})
    (document,) = read({"input": QUESTION, "retrieved": passages})
    assert [size.characters for size in read.lengths(passages)()] == [len(document.page_content)]
    assert by_chunks.lengths(passages)() is None  # these are other documents


# What the models of a retriever write


async def test_a_filter_that_a_model_writes_is_no_wall_and_the_fixed_one_stays_one() -> None:
    pytest.importorskip("lark")
    store = store_with("chroma", two_tenants())
    shelves = Shelves("chroma", search={"filter": {"tenant": MINE}})
    asking = asking_itself(shelves, store, f'eq(\\"tenant\\", \\"{OTHER}\\")')
    constructor: Any = asking.query_constructor
    constructor.bound.last.ast_parse = StructuredQueryOutputParser.from_components().ast_parse
    assert {passage.metadata["tenant"] for passage in asking.invoke(QUESTION)} == {OTHER}  # LangChain's own doing
    await _reads_its_own(chain_on(store, StoredDocuments(store), asking), "invoke")


# What LangChain adds to the metadata


@both_modes
async def test_recent_passages_that_langchain_adds_do_not_open_the_wall(mode: str) -> None:
    own = holding("memory", tenant=MINE)
    retriever, store = time_weighted(Shelves("memory", BOTH, {"filter": own}), default_salience=2.0)
    assert OTHER in {passage.metadata["tenant"] for passage in retriever.invoke(QUESTION)}
    await _reads_its_own(chain_on(store, StoredDocuments(store), retriever), mode)
