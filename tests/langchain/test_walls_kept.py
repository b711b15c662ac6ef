"""A question has one wall: that of its retriever when it was asked, however the retriever is changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, SelfQueryRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStoreRetriever

from langchain_parts import FAR_APART, MODES, QUESTION, ask
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_selfroute.stored.searches import searches_of
from langchain_stores import (
    KINDS,
    a_model,
    chain_on,
    chroma_class,
    chunks_of,
    prompts_of,
    read_by,
    store_with,
    text_of,
)
from langchain_walls import MINE, OTHER, House, chunks_about, no_leak, two_tenants
from langchain_wrappers import ensemble, queries, splitter
from selfroute.errors import ConfigurationError
from selfroute.policies import Case

every_mode = pytest.mark.parametrize("mode", MODES)
both_modes = pytest.mark.parametrize("mode", FAR_APART)


class Shared(NamedTuple):
    """A retriever that others use, too."""

    house: House
    search: VectorStoreRetriever
    filter: Any

    def replace(self) -> None:
        self.search.search_kwargs = {"filter": self.house.of(OTHER), "k": 3}

    def change_in_place(self) -> None:
        self.search.search_kwargs["filter"] = self.house.of(OTHER)

    def open(self) -> None:
        self.search.search_kwargs.clear()

    def change_filter(self) -> None:
        self.filter["tenant"] = OTHER


CHANGES: dict[str, Callable[[Shared], None]] = {
    "the arguments are replaced": Shared.replace,
    "the arguments are changed in place": Shared.change_in_place,
    "the arguments are emptied": Shared.open,
    "the filter is changed in place": Shared.change_filter,
}
AROUND: dict[str, Callable[[Shared], Any]] = {
    "itself": lambda shared: shared.search,
    "with retries": lambda shared: shared.search.with_retry().with_config(tags=["mine"]),
    "an alternative": lambda shared: shared.house.retriever(OTHER).configurable_alternatives(
        ConfigurableField(id="who"), default_key="no", prefix_keys=True, yes=shared.search
    ),
    "an ensemble": lambda shared: ensemble(shared.search, shared.search),
    "a rewriter": lambda shared: RunnableLambda(lambda given: given["input"]) | queries(shared.search),
}
CONFIG: Any = {"configurable": {"who": "yes"}}


def _shared(kind: str, **parts: Any) -> Shared:
    house = House(kind, store_with(kind, two_tenants(), **parts))
    condition = house.of()
    return Shared(house, house.store.as_retriever(search_kwargs={"filter": condition, "k": 3}), condition)


def _chain(shared: Shared, retriever: Any, **fields: Any) -> SelfRouteChain:
    def draft(_: str) -> tuple[str, ...]:
        change()
        return ("unanswerable",)

    change = fields.pop("change")
    documents = fields.pop("documents", None) or StoredDocuments(shared.house.store)
    llm = a_model(draft=draft)
    return SelfRouteChain(retriever=retriever, llm=llm, documents=documents, **fields)


@every_mode
@pytest.mark.parametrize(
    ("kind", "around", "change"),
    [("chroma", around, change) for around in AROUND for change in CHANGES]
    + [("memory", around, change) for around in ("itself", "an ensemble") for change in list(CHANGES)[:3]],
)
async def test_a_retriever_that_is_changed_while_the_draft_runs_changes_nothing(
    kind: str, around: str, change: str, mode: str
) -> None:
    shared = _shared(kind)
    chain = _chain(shared, AROUND[around](shared), change=lambda: CHANGES[change](shared))
    with no_leak(chain):
        (document,) = await read_by(chain, mode, CONFIG)
    assert document.page_content == text_of(MINE)
    next_one = await ask(chain, QUESTION, mode, CONFIG)  # the next question has the new wall
    assert {passage.metadata["tenant"] for passage in next_one["retrieved"]} & {OTHER}


@both_modes
@pytest.mark.parametrize("change", CHANGES)
async def test_sections_and_a_policy_stay_behind_the_same_wall(change: str, mode: str) -> None:
    shared, seen = _shared("chroma"), list[Document]()

    def policy(case: Case) -> bool:
        seen.extend(case.documents() if mode == "invoke" else ())
        return True

    fields: dict[str, Any] = {"sections": 300, "max_documents": 0, "escalation": policy}
    chain = _chain(shared, shared.search, change=lambda: CHANGES[change](shared), **fields)
    with no_leak(chain):
        result = await ask(chain, QUESTION, mode)
    assert OTHER not in "".join(document.page_content for document in seen)
    assert (result["route"], len(chain.llm.calls)) == ("sections", 2)
    assert [section.page_content for section in result["context"]] == [text_of(MINE)]


@both_modes
async def test_a_declared_filter_that_is_changed_while_the_draft_runs_changes_nothing(mode: str) -> None:
    for change in ("in place", "replaced"):
        shared = _shared("chroma")
        documents = StoredDocuments(shared.house.store, filter={"tenant": MINE})

        def changed(change: str = change, documents: StoredDocuments = documents) -> None:
            if change == "in place":
                documents.filter["tenant"] = OTHER
            else:
                documents.filter = {"tenant": OTHER}

        hidden = shared.house.hidden()
        chain = _chain(shared, hidden, change=changed, documents=documents)
        with no_leak(chain):
            (document,) = await read_by(chain, mode)
        assert document.page_content == text_of(MINE)


class Changing(DeterministicFakeEmbedding):
    """Somebody else sets the shared retriever while the question is embedded."""

    change: Any = None

    def embed_query(self, text: str) -> list[float]:
        if self.change:
            self.change()
        return super().embed_query(text)


@every_mode
@pytest.mark.parametrize("change", CHANGES)
async def test_a_retriever_that_is_changed_while_it_searches_searches_as_it_was(change: str, mode: str) -> None:
    embedding = Changing(size=4)

    def store(*args: Any, **options: Any) -> Any:
        return chroma_class()(args[0], embedding, **options)

    shared = _shared("chroma", of=store)
    embedding.change = lambda: CHANGES[change](shared)
    chain = _chain(shared, shared.search, change=lambda: None)
    with no_leak(chain):
        result = await ask(chain, QUESTION, mode)
    assert {passage.metadata["tenant"] for passage in result["retrieved"]} == {MINE}
    assert [document.page_content for document in result["context"]] == [text_of(MINE)]


def test_the_second_half_has_the_wall_of_its_own_call() -> None:
    shared = _shared("chroma")
    chain = _chain(shared, shared.search, change=lambda: None)
    row = chain.first_step.invoke(QUESTION)
    shared.replace()
    result = chain.second_step.invoke(row)
    assert {document.metadata["tenant"] for document in result["context"]} == {OTHER}


# Parts that are known by what they are


class _Clearance(BaseDocumentCompressor):
    """Drops what the user may not see, by its text."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [document for document in documents if "lifts 25 crates" not in document.page_content]


def _in_package(name: str) -> BaseDocumentCompressor:
    kind = type("Clearance", (_Clearance,), {"__module__": name})
    made: BaseDocumentCompressor = kind()
    return made


COMPRESSORS: dict[str, Callable[[], Any]] = {
    "in a package of the user's own": lambda: _in_package("acme.access"),
    "in a package that is called like a partner's": lambda: _in_package("langchain_acme.access"),
    "in LangChain's own package": lambda: _in_package("langchain_classic.retrievers.document_compressors.base"),
    "in a pipeline": lambda: DocumentCompressorPipeline(
        transformers=[splitter(900), _in_package("langchain_acme.access")]
    ),
}


def _dropping(name: str, store: Any) -> Runnable[Any, Any]:
    if name == "a function after the retriever":
        drop = _in_package("acme.access")
        return store.as_retriever(search_kwargs={"k": 9}) | RunnableLambda(
            lambda found: drop.compress_documents(found, QUESTION)
        )
    return ContextualCompressionRetriever(
        base_retriever=store.as_retriever(search_kwargs={"k": 9}), base_compressor=COMPRESSORS[name]()
    )


@every_mode
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*COMPRESSORS, "a function after the retriever"])
async def test_a_document_with_a_passage_that_an_unknown_part_dropped_is_refused(
    name: str, kind: str, mode: str
) -> None:
    """Even if its metadata are those of the others."""
    store = store_with(kind, chunks_about(MINE))
    chain = chain_on(store, StoredDocuments(store), _dropping(name, store))
    with pytest.raises(ConfigurationError, match=r"found, and then dropped.*filter="):
        await ask(chain, QUESTION, mode)
    assert "lifts 25 crates" not in prompts_of(chain.llm)
    declared = chain_on(store, StoredDocuments(store, filter={}), _dropping(name, store))
    (document,) = await read_by(declared, mode)
    assert document.page_content == text_of(MINE)


@every_mode
async def test_what_an_unknown_part_dropped_is_hidden_from_the_second_half_too(mode: str) -> None:
    store = store_with("chroma", chunks_about(MINE))
    chain = chain_on(store, StoredDocuments(store), _dropping("in a package of the user's own", store))
    row = chain.first_step.invoke(QUESTION)
    with pytest.raises(ConfigurationError, match="found, and then dropped"):
        await ask(chain.second_step, row, mode)
    assert "lifts 25 crates" not in prompts_of(chain.llm)


@both_modes
async def test_check_says_that_an_unknown_part_may_hide_something(mode: str) -> None:
    store = store_with("chroma", chunks_about(MINE))
    for name, ok in (("in a package that is called like a partner's", False), ("an empty pipeline", True)):
        empty = ContextualCompressionRetriever(
            base_retriever=store.as_retriever(), base_compressor=DocumentCompressorPipeline(transformers=[])
        )
        retriever = empty if ok else _dropping(name, store)
        chain = chain_on(store, StoredDocuments(store), retriever)
        findings = chain.check(QUESTION) if mode == "invoke" else await chain.acheck(QUESTION)
        (wall,) = (finding for finding in findings if finding.subject == "wall")
        assert wall.ok is ok
        assert ("no filter hides any chunk" in wall.message) is ok
    assert chain.llm.calls == []


@both_modes
async def test_an_unknown_part_that_drops_nothing_of_a_document_leaves_it_readable(mode: str) -> None:
    chunks = [*chunks_about(MINE), *chunks_of(text_of("Cedar"), source="other", tenant=MINE)]
    store = store_with("chroma", chunks)
    drop = RunnableLambda(lambda found: [one for one in found if one.metadata["source"] == "handbook"])
    chain = chain_on(store, StoredDocuments(store), store.as_retriever(search_kwargs={"k": 18}) | drop)
    (document,) = await read_by(chain, mode)
    assert document.page_content == text_of(MINE)


def test_a_parser_of_filters_is_known_by_what_it_makes_of_them() -> None:
    lark = pytest.importorskip("lark")
    base = pytest.importorskip("langchain_classic.chains.query_constructor.base")
    chroma = pytest.importorskip("langchain_community.query_constructors.chroma")
    house = House("chroma", store_with("chroma", two_tenants()))

    class Adding(lark.Transformer):  # type: ignore[misc,name-defined]
        """Adds something to each filter."""

    grammars = lark.Lark("start: /.+/", parser="lalr", transformer=Adding())
    parsers = {
        True: base.StructuredQueryOutputParser.from_components(),
        False: base.StructuredQueryOutputParser(ast_parse=grammars.parse),
    }
    for certain, parser in parsers.items():
        prompt = base.get_query_constructor_prompt("A handbook", [])
        retriever = SelfQueryRetriever(
            vectorstore=house.store,
            query_constructor=prompt | parser,
            structured_query_translator=chroma.ChromaTranslator(),
        )
        (search,) = searches_of(retriever, {}) or ()
        assert search.certain is certain
