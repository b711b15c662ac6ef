"""What the retriever may not see, the second step does not read: two tenants who call their documents alike.

Whatever hides the other tenant, the outcome is right or a loud error; no prompt ever holds the other's text.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableBinding,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_parts import FAR_APART, QUESTION, ask
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import (
    EMBEDDING,
    KINDS,
    Shelf,
    a_model,
    chain_on,
    chroma_class,
    chunks_of,
    holding,
    prompts_of,
    read_by,
    store_with,
    text_of,
    watched,
)
from langchain_walls import MINE, OTHER, House, chunks_about, no_leak, reads_its_own, refuses, two_tenants
from selfroute.errors import ConfigurationError
from selfroute.stores import chroma

both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", params=KINDS)
def house(request: pytest.FixtureRequest) -> House:
    return House(request.param, store_with(request.param, two_tenants()))


@pytest.fixture(scope="module", params=KINDS)
def apart(request: pytest.FixtureRequest) -> House:
    """The same tenants, whose documents have names of their own."""
    store = store_with(request.param, chunks_about(MINE, f"{MINE}.md") + chunks_about(OTHER, f"{OTHER}.md"))
    return House(request.param, store)


# Filters that can be seen


def _factory(config: Any) -> Any:
    return {"configurable": {"search": config["metadata"]["search"]}}


def _rewritten(given: Any, **_: Any) -> str:
    question: str = given["input"]
    return question.upper()


def _configurable(house: House) -> Any:
    return house.store.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))


SEEN: dict[str, Callable[[House], Runnable[Any, Any]]] = {
    "search_kwargs": lambda house: house.retriever(),
    "many passages": lambda house: house.retriever(k=20),
    "mmr": lambda house: house.store.as_retriever(
        search_type="mmr", search_kwargs={"filter": house.of(), "fetch_k": 5}
    ),
    "bind": lambda house: house.store.as_retriever().bind(filter=house.of()),
    "bind over another": lambda house: house.retriever(OTHER).bind(filter=house.of()),
    "bind over bind": lambda house: house.store.as_retriever().bind(filter=house.of(OTHER)).bind(filter=house.of()),
    "bind over alternatives over bind": lambda house: (
        RunnableBinding(bound=house.store.as_retriever(), kwargs={"filter": house.of(OTHER)})
        .configurable_alternatives(ConfigurableField(id="who"), default_key="me")
        .bind(filter=house.of())
    ),
    "with_config": lambda house: house.retriever().with_config(tags=["t"], metadata={"a": 1}),
    "with_retry": lambda house: house.retriever().with_retry(stop_after_attempt=2),
    "with_types": lambda house: house.retriever().with_types(input_type=str),
    "with_listeners": lambda house: house.retriever().with_listeners(on_end=lambda _: None),
    "retry, config, bind": lambda house: (
        house.store.as_retriever().bind(filter=house.of()).with_config(tags=["t"]).with_retry()
    ),
    "retry, then bind": lambda house: house.store.as_retriever().with_retry().bind(filter=house.of()),
    "rewriter": lambda house: RunnableLambda(_rewritten) | house.retriever(),
    "bound rewriter": lambda house: (RunnableLambda(_rewritten) | house.retriever()).bind(filter=house.of(OTHER)),
    "rewriter with retry": lambda house: (
        RunnablePassthrough() | (lambda given: given["input"]) | house.retriever()
    ).with_retry(),
    "configured": lambda house: _configurable(house).with_config(configurable={"search": {"filter": house.of()}}),
    "configured and bound": lambda house: _configurable(house).bind(filter=house.of()),
    "a factory of configs": lambda house: RunnableBinding(
        bound=_configurable(house),
        config={"metadata": {"search": {"filter": house.of()}}},
        config_factories=[_factory],
    ),
    "alternatives": lambda house: house.retriever().configurable_alternatives(
        ConfigurableField(id="who"), default_key="me", other=house.retriever(OTHER)
    ),
    "chosen alternative": lambda house: (
        house.retriever(OTHER)
        .configurable_alternatives(ConfigurableField(id="who"), default_key="other", me=house.retriever)
        .with_config(configurable={"who": "me"})
    ),
}


@both_modes
@pytest.mark.parametrize("name", SEEN)
async def test_the_filter_of_a_retriever_is_found_in_any_dress(house: House, name: str, mode: str) -> None:
    chain = chain_on(house.store, StoredDocuments(house.store), SEEN[name](house))
    for _ in range(2):  # and out of the cache
        await reads_its_own(chain, mode)


@both_modes
async def test_a_filter_given_to_from_vectorstore_holds_for_both_steps(house: House, mode: str) -> None:
    chain = SelfRouteChain.from_vectorstore(house.store, a_model(), k=30, filter=house.of())
    result = await ask(chain, QUESTION, mode)
    assert len(result["retrieved"]) == len(chunks_about(MINE))
    await reads_its_own(chain, mode)


FILTERS: dict[str, tuple[Any, Any]] = {
    "equal": ({"tenant": MINE}, lambda document: document.metadata["tenant"] == MINE),
    "in": ({"tenant": {"$in": [MINE, "Cedar"]}}, lambda document: document.metadata["tenant"] in (MINE, "Cedar")),
    "not": ({"tenant": {"$ne": OTHER}}, lambda document: document.metadata.get("tenant") != OTHER),
    "and": (
        {"$and": [{"tenant": MINE}, {"source": "handbook"}]},
        lambda document: (document.metadata["tenant"], document.metadata["source"]) == (MINE, "handbook"),
    ),
    "or in and": (
        {"$and": [{"source": {"$ne": "x"}}, {"$or": [{"tenant": MINE}, {"tenant": "Cedar"}]}]},
        lambda document: document.metadata["tenant"] in (MINE, "Cedar"),
    ),
    "or": (
        {"$or": [{"tenant": {"$in": [MINE]}}, {"$and": [{"tenant": "Cedar"}, {"source": "handbook"}]}]},
        lambda document: document.metadata["tenant"] in (MINE, "Cedar"),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("place", ["retriever", "both", "documents"])
async def test_a_filter_of_any_shape_holds(house: House, name: str, place: str) -> None:
    own = FILTERS[name][house.kind == "memory"]
    if place == "both":
        chain = SelfRouteChain.from_vectorstore(house.store, a_model(), filter=own)
    elif place == "retriever":
        chain = chain_on(
            house.store, StoredDocuments(house.store), house.store.as_retriever(search_kwargs={"filter": own})
        )
    else:
        chain = chain_on(house.store, StoredDocuments(house.store, filter=own), house.hidden())
    for _ in range(2):
        await reads_its_own(chain, "invoke")


@both_modes
async def test_both_filters_hold_together(house: House, mode: str) -> None:
    store = store_with(house.kind, [*two_tenants(), *chunks_about(MINE, year=7), *chunks_about(OTHER, year=7)])
    documents = StoredDocuments(store, filter=holding(house.kind, year=7))
    retriever = store.as_retriever(search_kwargs={"filter": house.of(), "k": 30})
    chain = chain_on(store, documents, retriever)
    with no_leak(chain):
        (document,) = await read_by(chain, mode)
    assert (document.page_content, document.metadata["selfroute"]["chunks"]) == (text_of(MINE), len(chunks_about(MINE)))
    assert document.metadata["year"] == 7


@both_modes
@pytest.mark.parametrize("filters", [(MINE, OTHER), (OTHER, MINE)])
async def test_filters_that_exclude_each_other_let_nothing_through(
    house: House, filters: tuple[str, str], mode: str
) -> None:
    documents = StoredDocuments(house.store, filter=house.of(filters[1]))
    chain = chain_on(house.store, documents, house.retriever(filters[0]))
    with pytest.raises(LookupError, match="that the filter lets through"):
        await ask(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag"]


@both_modes
async def test_an_empty_filter_says_that_nothing_is_hidden_but_what_the_retriever_hides(
    house: House, mode: str
) -> None:
    documents = StoredDocuments(house.store, filter={})
    await reads_its_own(chain_on(house.store, documents, house.retriever()), mode)
    for retriever in (house.hidden(), house.store.as_retriever(search_kwargs={"filter": None, "k": 1})):
        (document,) = await read_by(chain_on(house.store, documents, retriever), mode)
        assert all(f"Paragraph {n} of {owner}" in document.page_content for owner in (MINE, OTHER) for n in range(9))


async def test_an_empty_filter_of_the_retriever_hides_nothing() -> None:
    shelf, asked = Shelf(two_tenants()), list[Any]()

    def fetch(key: str, source: Any, condition: Any) -> list[Document]:
        asked.append(condition)
        return shelf.fetch(key, source, condition)

    own = lambda metadata: metadata["tenant"] == MINE  # noqa: E731
    for documents in (StoredDocuments(shelf, fetch=fetch), StoredDocuments(shelf, fetch=fetch, filter=own)):
        await read_by(chain_on(shelf, documents, shelf.as_retriever(search_kwargs={"filter": {}})))
    assert asked == [None, own]


@both_modes
async def test_only_the_part_of_a_document_that_the_filter_lets_through_is_read(mode: str, house: House) -> None:
    chunks = chunks_of(text_of(MINE), source="handbook")
    for n, chunk in enumerate(chunks):
        chunk.metadata["secret"] = int(n in (3, 4))
    store = store_with(house.kind, chunks)
    chain = SelfRouteChain.from_vectorstore(store, a_model(), filter=holding(house.kind, secret=0))
    (document,) = await read_by(chain, mode)
    assert all(hidden not in prompts_of(chain.llm) for hidden in ("Paragraph 3", "Paragraph 4"))
    gap = [chunks[3].metadata["start_index"] - 2, chunks[5].metadata["start_index"]]
    assert document.metadata["selfroute"] == {"method": "offsets", "chunks": 7, "gaps": [gap], "trimmed": False}


# Filters that change from call to call


PER_CALL: dict[str, Callable[[House], tuple[SelfRouteChain, Callable[[str], Any]]]] = {
    "search_kwargs": lambda house: (
        chain_on(house.store, StoredDocuments(house.store), _configurable(house)),
        lambda tenant: {"search": {"filter": house.of(tenant)}},
    ),
    "alternatives": lambda house: (
        chain_on(
            house.store,
            StoredDocuments(house.store),
            house.retriever(MINE).configurable_alternatives(
                ConfigurableField(id="who"), default_key=MINE, **{OTHER: house.retriever(OTHER)}
            ),
        ),
        lambda tenant: {"who": tenant},
    ),
    "prefixed alternatives": lambda house: (
        chain_on(
            house.store,
            StoredDocuments(house.store),
            house.retriever(MINE).configurable_alternatives(
                ConfigurableField(id="who"), default_key="no", prefix_keys=True, yes=_configurable(house)
            ),
        ),
        lambda tenant: {"who": "yes", "who==yes/search": {"filter": house.of(tenant)}},
    ),
    "after a rewriter": lambda house: (
        chain_on(
            house.store,
            StoredDocuments(house.store),
            RunnableLambda(lambda given: given["input"]) | _configurable(house).with_retry(),
        ),
        lambda tenant: {"search": {"filter": house.of(tenant)}},
    ),
}


@both_modes
@pytest.mark.parametrize("name", PER_CALL)
@pytest.mark.parametrize("how", ["invoke", "with_config", "around"])
async def test_a_filter_set_per_call_holds_for_that_call(house: House, name: str, how: str, mode: str) -> None:
    chain, configurable = PER_CALL[name](house)
    around = RunnableLambda(lambda given: chain.invoke(given), afunc=lambda given: chain.ainvoke(given))  # noqa: PLW0108
    for tenant in (MINE, OTHER, MINE, OTHER):
        config: Any = {"configurable": configurable(tenant)}
        if how == "invoke":
            await reads_its_own(chain, mode, config, tenant=tenant)
        elif how == "with_config":
            await reads_its_own(chain, mode, asked=chain.with_config(config), tenant=tenant)
        else:  # nobody hands the config on
            await reads_its_own(chain, mode, config, asked=around, tenant=tenant)


@both_modes
async def test_the_retriever_of_a_chain_may_be_set_per_call(house: House, mode: str) -> None:
    chain = chain_on(house.store, StoredDocuments(house.store), house.retriever())
    asked = chain.configurable_fields(retriever=ConfigurableField(id="retriever"))
    for tenant in (MINE, OTHER, MINE):
        config: Any = {"configurable": {"retriever": house.retriever(tenant)}}
        await reads_its_own(chain, mode, config, asked=asked, tenant=tenant)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_the_questions_of_a_batch_have_a_filter_each(house: House, mode: str) -> None:
    chain, configurable = PER_CALL["search_kwargs"](house)
    tenants = [MINE, OTHER] * 4
    configs: Any = [{"configurable": configurable(tenant)} for tenant in tenants]
    questions = [QUESTION] * len(tenants)
    results = await chain.abatch(questions, configs) if mode == "ainvoke" else chain.batch(questions, configs)
    assert [result["context"][0].page_content for result in results] == [text_of(tenant) for tenant in tenants]


async def test_tenants_ask_at_once_from_threads(house: House) -> None:
    chain, configurable = PER_CALL["search_kwargs"](house)
    together = threading.Barrier(4)

    def work(tenant: str) -> list[str]:
        together.wait(30)
        config: Any = {"configurable": configurable(tenant)}
        return [document.page_content for _ in range(6) for document in chain.invoke(QUESTION, config)["context"]]

    with ThreadPoolExecutor(4) as pool:
        tenants = [MINE, OTHER, MINE, OTHER]
        for tenant, texts in zip(tenants, pool.map(work, tenants), strict=True):
            assert texts == [text_of(tenant)] * 6


async def test_tenants_ask_at_once_from_tasks(house: House) -> None:
    chain, configurable = PER_CALL["search_kwargs"](house)
    tenants = [MINE, OTHER] * 5
    mode = ["ainvoke", "astream"]
    asked = [read_by(chain, mode[n % 2], {"configurable": configurable(tenant)}) for n, tenant in enumerate(tenants)]
    assert [[one.page_content for one in read] for read in await asyncio.gather(*asked)] == [
        [text_of(tenant)] for tenant in tenants
    ]


WHO: ContextVar[str] = ContextVar("who", default="nobody")


def _by_context(kind: str) -> tuple[Any, StoredDocuments]:
    """A retriever and documents whose filter depends on who asks."""
    if kind == "fetch":
        shelf = Shelf(two_tenants())
        allowed = lambda metadata: metadata["tenant"] == WHO.get()  # noqa: E731
        retriever: Any = shelf.as_retriever(search_kwargs={"filter": allowed})
        return retriever, StoredDocuments(shelf, fetch=shelf.fetch)
    if kind == "fetch by itself":
        shelf = Shelf(two_tenants())
        retriever = RunnableLambda(
            lambda given: [chunk for chunk in shelf.chunks if chunk.metadata["tenant"] == WHO.get()]
        )
        mine = lambda key, source, _: shelf.fetch(key, source, lambda metadata: metadata["tenant"] == WHO.get())  # noqa: E731
        return retriever, StoredDocuments(shelf, fetch=mine)
    store = store_with("memory", two_tenants())
    allowed = lambda document: document.metadata["tenant"] == WHO.get()  # noqa: E731
    return store.as_retriever(search_kwargs={"filter": allowed}), StoredDocuments(store)


@both_modes
@pytest.mark.parametrize("kind", ["memory", "fetch", "fetch by itself"])
async def test_a_filter_that_asks_who_is_asking_is_asked_each_time(kind: str, mode: str) -> None:
    retriever, documents = _by_context(kind)
    chain = SelfRouteChain(retriever=retriever, llm=a_model(), documents=documents)

    async def ask_as(tenant: str) -> None:
        WHO.set(tenant)
        for _ in range(2):
            (document,) = await read_by(chain, mode)
            assert document.page_content == text_of(tenant)

    await asyncio.gather(*(asyncio.create_task(ask_as(tenant)) for tenant in (MINE, OTHER, MINE, OTHER)))


# Filters that cannot be seen


class Hidden(BaseRetriever):
    """A retriever of the user's own."""

    inside: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found: list[Document] = self.inside.invoke(query)
        return found


class Adding(VectorStoreRetriever):
    """Adds a filter on its own."""

    allowed: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        kwargs["filter"] = self.allowed
        return super()._get_relevant_documents(query, run_manager=run_manager, **kwargs)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        kwargs["filter"] = self.allowed
        return await super()._aget_relevant_documents(query, run_manager=run_manager, **kwargs)


class Invoking(VectorStoreRetriever):
    """Adds a filter where it is called."""

    allowed: Any

    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        return super().invoke(input, config, **{**kwargs, "filter": self.allowed})

    async def ainvoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        return await super().ainvoke(input, config, **{**kwargs, "filter": self.allowed})


def _scored(found: list[Document]) -> list[Document]:
    return [
        Document(passage.page_content, id=passage.id, metadata={**passage.metadata, "relevance_score": 1 / (n + 1)})
        for n, passage in enumerate(found)
    ]


UNSEEN: dict[str, Callable[[House], Any]] = {
    "lambda": House.hidden,
    "lambda that returns a retriever": lambda house: RunnableLambda(
        lambda given: RunnableLambda(lambda _: given["input"]) | house.retriever()
    ),
    "own retriever": lambda house: Hidden(inside=house.retriever()),
    "own retriever, bound": lambda house: Hidden(inside=house.retriever()).bind().with_retry(),
    "subclass": lambda house: Adding(vectorstore=house.store, allowed=house.of()),
    "subclass that overrides invoke": lambda house: Invoking(vectorstore=house.store, allowed=house.of()),
    "reranker": lambda house: house.retriever() | RunnableLambda(lambda found: found[::-1]),
    "reranker that scores": lambda house: house.retriever() | RunnableLambda(_scored),
    "reranker that drops ids": lambda house: (
        house.retriever()
        | RunnableLambda(lambda found: [Document(one.page_content, metadata=one.metadata) for one in found])
    ),
    "fallbacks": lambda house: house.retriever().with_fallbacks([house.retriever(k=2)]),
    "map": lambda house: (
        RunnableParallel(found=RunnableLambda(lambda given: given["input"]) | house.retriever())
        | (lambda given: given["found"])
    ),
}


@both_modes
@pytest.mark.parametrize("name", UNSEEN)
async def test_what_can_not_be_seen_is_refused_where_names_are_shared(house: House, name: str, mode: str) -> None:
    for _ in range(2):
        await refuses(chain_on(house.store, StoredDocuments(house.store), UNSEEN[name](house)), mode, "in tenant")


@both_modes
@pytest.mark.parametrize("name", UNSEEN)
async def test_what_can_not_be_seen_is_read_where_all_chunks_are_like_the_passages(
    apart: House, name: str, mode: str
) -> None:
    chain = chain_on(apart.store, StoredDocuments(apart.store), UNSEEN[name](apart))
    for _ in range(2):
        await reads_its_own(chain, mode)


@pytest.mark.parametrize("name", UNSEEN)
async def test_a_filter_of_the_documents_says_what_can_not_be_seen(house: House, name: str) -> None:
    chain = chain_on(house.store, StoredDocuments(house.store, filter=house.of()), UNSEEN[name](house))
    await reads_its_own(chain, "invoke")


CALLED: dict[str, Callable[[StoredDocuments], Any]] = {
    "function": lambda stored: lambda given: stored(given),  # noqa: PLW0108
    "runnable": RunnableLambda,
    "method": lambda stored: stored.__call__,
    "sequence": lambda stored: RunnablePassthrough() | stored,
}


@both_modes
@pytest.mark.parametrize("name", CALLED)
async def test_documents_called_by_somebody_else_do_not_know_the_retriever(
    house: House, apart: House, name: str, mode: str
) -> None:
    await refuses(chain_on(house.store, CALLED[name](StoredDocuments(house.store)), house.retriever()), mode)
    await reads_its_own(chain_on(apart.store, CALLED[name](StoredDocuments(apart.store)), apart.retriever()), mode)
    own = StoredDocuments(house.store, filter=house.of())
    await reads_its_own(chain_on(house.store, CALLED[name](own), house.retriever()), mode)


async def test_what_was_read_where_it_is_known_is_not_shown_where_it_is_not(house: House) -> None:
    stored = StoredDocuments(house.store)
    (document,) = await read_by(chain_on(house.store, stored, house.store.as_retriever(search_kwargs={"k": 1})))
    assert document.metadata["selfroute"]["chunks"] == 18  # of both tenants, and kept
    await reads_its_own(chain_on(house.store, stored, house.retriever()), "invoke")
    await refuses(chain_on(house.store, stored, house.hidden()), "invoke")
    await refuses(chain_on(house.store, lambda given: stored(given), house.retriever()), "invoke")  # noqa: PLW0108


LESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "names another tenant": ({"tenant": MINE}, {"tenant": OTHER}),
    "names no tenant": ({"tenant": MINE}, {}),
    "alone names a tenant": ({}, {"tenant": OTHER}),
    "is of another type": ({"level": 1}, {"level": "1"}),
    "has more": ({"tenant": MINE}, {"tenant": MINE, "draft": True}),
    "has less": ({"tenant": MINE, "open": True}, {"tenant": MINE}),
    "mixes two passages": ({"tenant": MINE, "level": 1}, {"tenant": MINE, "level": 2}),
}


@both_modes
@every_kind
@pytest.mark.parametrize("name", LESS)
async def test_a_chunk_that_is_not_like_a_passage_may_be_hidden(kind: str, name: str, mode: str) -> None:
    own, other = LESS[name]
    mine, theirs = (chunks_of(text_of(who), source="handbook", **it) for who, it in ((MINE, own), (OTHER, other)))
    store = store_with(kind, [*mine, *theirs])
    passages = [store.similarity_search(chunk.page_content, k=1)[0] for chunk in mine[:3]]
    assert {passage.page_content for passage in passages} == {chunk.page_content for chunk in mine[:3]}
    chain = chain_on(store, StoredDocuments(store), RunnableLambda(lambda _: passages))
    await refuses(chain, mode, "differs from the retrieved passages in")


@both_modes
async def test_what_may_be_hidden_is_not_read_to_its_end(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chroma, "PAGE", 2)
    seen: list[Any] = []
    house = House("chroma", store_with("chroma", two_tenants(), of=watched(seen)))
    await refuses(chain_on(house.store, StoredDocuments(house.store), house.hidden()), mode, "in tenant")
    assert len(seen) == 1


async def test_passages_of_both_sides_vouch_for_both(house: House) -> None:
    passages = house.store.similarity_search(QUESTION, k=18)
    (document,) = StoredDocuments(house.store)({"input": QUESTION, "retrieved": passages})
    assert all(f"Paragraph {n} of {owner}" in document.page_content for owner in (MINE, OTHER) for n in range(9))


@pytest.mark.parametrize("key", ["page", "page_label", "chunk_index", "start_index"])
@every_kind
async def test_the_place_of_a_chunk_hides_nothing(kind: str, key: str) -> None:
    chunks = chunks_of(text_of(MINE), source="handbook", tenant=MINE)
    for n, chunk in enumerate(chunks):
        chunk.metadata[key] = n
    store = store_with(kind, chunks)
    chain = chain_on(store, StoredDocuments(store), RunnableLambda(lambda _: store.similarity_search(QUESTION, k=1)))
    (document,) = await read_by(chain)
    assert document.page_content.split() == text_of(MINE).split()


@pytest.mark.parametrize("key", ["row", "order", "index", "seq"])
@every_kind
async def test_a_number_that_may_be_of_something_else_may_hide(kind: str, key: str) -> None:
    chunks = chunks_of(text_of(MINE), source="handbook")
    for n, chunk in enumerate(chunks):
        chunk.metadata[key] = n
    store = store_with(kind, chunks)
    chain = chain_on(store, StoredDocuments(store), RunnableLambda(lambda _: store.similarity_search(QUESTION, k=1)))
    await refuses(chain, "invoke", f"differs from the retrieved passages in {key}")


# More than a filter


@both_modes
@pytest.mark.parametrize(
    "search", [{"where_document": {"$contains": MINE}}, {"ids": ["c0"]}, {"namespace": "ash"}, {"tenant": MINE}]
)
async def test_search_arguments_that_may_hide_something_are_refused_at_once(search: Any, mode: str) -> None:
    store = store_with("chroma")
    store.add_documents(chunks_about(MINE) + chunks_about(OTHER), ids=[f"c{n}" for n in range(18)])
    (name,) = search
    for retriever in (store.as_retriever(search_kwargs=search), store.as_retriever().bind(**search)):
        with pytest.raises(ConfigurationError, match=rf"search_kwargs have {name}.*filter="):
            chain_on(store, StoredDocuments(store), retriever)
    configurable = store.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))
    chain = chain_on(store, StoredDocuments(store), configurable)
    with no_leak(chain), pytest.raises((ConfigurationError, TypeError, ValueError)):
        await ask(chain, QUESTION, mode, {"configurable": {"search": search}})


@both_modes
async def test_search_arguments_go_with_a_filter_of_the_documents(mode: str) -> None:
    store = store_with("chroma", two_tenants())
    retriever = store.as_retriever(search_kwargs={"where_document": {"$contains": MINE}})
    await reads_its_own(chain_on(store, StoredDocuments(store, filter={"tenant": MINE}), retriever), mode)


def test_search_arguments_that_hide_nothing_are_fine() -> None:
    store = store_with("chroma", two_tenants())
    search = {"k": 1, "fetch_k": 3, "lambda_mult": 0.5, "score_threshold": 0.1, "filter": None, "where_document": None}
    for retriever in (store.as_retriever(search_kwargs=search), store.as_retriever().bind(**search)):
        chain_on(store, StoredDocuments(store), retriever)


def _store_that_hides(kind: str, name: str) -> Any:
    known: Any = InMemoryVectorStore if kind == "memory" else chroma_class()
    own = holding(kind, tenant=MINE)

    class Searching(known):  # type: ignore[misc]
        def similarity_search(self, query: str, k: int = 4, **more: Any) -> Any:
            return super().similarity_search(query, k, **{**more, "filter": own})

        async def asimilarity_search(self, query: str, k: int = 4, **more: Any) -> Any:
            return await super().asimilarity_search(query, k, **{**more, "filter": own})

    class Deeper(known):  # type: ignore[misc]
        """Where both kinds of search go through."""

        def similarity_search_with_score(self, query: str, k: int = 4, **more: Any) -> Any:
            return super().similarity_search_with_score(query, k, **{**more, "filter": own})

        def _similarity_search_with_score_by_vector(self, embedding: Any, k: int = 4, **more: Any) -> Any:
            return super()._similarity_search_with_score_by_vector(embedding, k, **{**more, "filter": own})

    if name == "patched":
        store = store_with(kind)
        inner, ainner = store.similarity_search, store.asimilarity_search
        store.similarity_search = lambda query, k=4, **_: inner(query, k, filter=own)
        store.asimilarity_search = lambda query, k=4, **_: ainner(query, k, filter=own)
    else:
        namesake = type(known.__name__, (Searching,), {})
        store = store_with(kind, of={"subclass": Searching, "deeper": Deeper, "namesake": namesake}[name])
    store.add_documents(two_tenants())
    return store


@both_modes
@every_kind
@pytest.mark.parametrize("name", ["subclass", "deeper", "namesake", "patched"])
async def test_a_store_that_searches_in_its_own_way_may_hide_something(kind: str, name: str, mode: str) -> None:
    store, own = _store_that_hides(kind, name), holding(kind, tenant=MINE)
    await refuses(SelfRouteChain.from_vectorstore(store, a_model()), mode)
    await reads_its_own(SelfRouteChain.from_vectorstore(store, a_model(), filter=own), mode)
    # What can be seen of it holds all the same.
    retriever = store.as_retriever(search_kwargs={"filter": holding(kind, source="handbook")})
    await refuses(chain_on(store, StoredDocuments(store), retriever), mode)
    seen = store.as_retriever(search_kwargs={"filter": own})
    for documents in (StoredDocuments(store), StoredDocuments(store, filter={})):
        await reads_its_own(chain_on(store, documents, seen), mode)


async def test_a_store_of_the_users_own_that_searches_as_ever_is_known() -> None:
    store = store_with("chroma", two_tenants(), of=watched([]))
    await reads_its_own(chain_on(store, StoredDocuments(store), House("chroma", store).retriever()), "invoke")
    chain = chain_on(store, StoredDocuments(store), store.as_retriever(search_kwargs={"k": 1}))
    (document,) = await read_by(chain)  # nothing hides anything
    assert document.metadata["selfroute"]["chunks"] == 18


# A store for each tenant


@both_modes
@every_kind
@pytest.mark.parametrize("named", [True, False])
async def test_another_store_than_the_retrievers_is_not_read(kind: str, named: bool, mode: str) -> None:
    names = [{"tenant": owner} if named else {} for owner in (MINE, OTHER)]
    mine, other = (
        store_with(kind, chunks_of(text_of(owner), source="handbook", **name))
        for owner, name in zip((MINE, OTHER), names, strict=True)
    )
    stored = StoredDocuments(other)
    chosen = other.as_retriever().configurable_fields(vectorstore=ConfigurableField(id="store"))
    retrievers = {
        "plain": mine.as_retriever(),
        "hidden": RunnableLambda(lambda given: mine.as_retriever().invoke(given["input"])),
        "chosen": chosen.with_config(configurable={"store": mine}),
        "without ids": mine.as_retriever()
        | RunnableLambda(lambda found: [Document(one.page_content, metadata=one.metadata) for one in found]),
    }
    for retriever in retrievers.values():
        await refuses(chain_on(other, stored, retriever), mode)


@both_modes
async def test_a_fetched_store_is_that_of_the_retriever_or_is_not_read(mode: str) -> None:
    mine, other = (Shelf(chunks_of(text_of(owner), source="handbook")) for owner in (MINE, OTHER))
    for filters in ({}, {"filter": {}}):
        stored = StoredDocuments(other, fetch=other.fetch, **filters)
        await refuses(chain_on(mine, stored), mode, "does not hold")
        (document,) = await read_by(chain_on(other, stored), mode)
        assert document.page_content == text_of(OTHER)


@both_modes
@every_kind
async def test_to_say_that_nothing_is_hidden_does_not_make_another_store_the_right_one(kind: str, mode: str) -> None:
    stores_of = [store_with(kind, chunks_of(text_of(owner), source="handbook")) for owner in (MINE, OTHER)]
    mine, other = stores_of
    chosen = other.as_retriever().configurable_fields(vectorstore=ConfigurableField(id="store"))
    for filters in ({"filter": {}}, {"filter": holding(kind, source="handbook")}):
        chain = chain_on(other, StoredDocuments(other, **filters), chosen)
        (document,) = await read_by(chain, mode)
        assert document.page_content == text_of(OTHER)
        chain.llm.calls.clear()
        for _ in range(2):
            await refuses(chain.model_copy(update={"retriever": mine.as_retriever()}), mode, "does not hold")
            with no_leak(chain), pytest.raises(ConfigurationError, match="does not hold"):
                await ask(chain, QUESTION, mode, {"configurable": {"store": mine}})


@both_modes
@every_kind
async def test_one_passage_of_another_store_is_enough_to_see_that(kind: str, mode: str) -> None:
    preamble = "All doors are shut at nine.\n\n"
    mine, other = (
        store_with(kind, chunks_of(preamble + text_of(owner), size=30, source="handbook")) for owner in (MINE, OTHER)
    )
    retriever = mine.as_retriever(search_kwargs={"k": 30})
    await refuses(chain_on(other, StoredDocuments(other, filter={}), retriever), mode, "does not hold")


@both_modes
@every_kind
async def test_a_passage_with_the_same_words_in_another_store_vouches_for_nothing(kind: str, mode: str) -> None:
    preamble = "All doors are shut at nine.\n\n"
    mine, other = (
        store_with(kind, chunks_of(preamble + text_of(owner), size=30, source="handbook")) for owner in (MINE, OTHER)
    )
    passages = mine.similarity_search(preamble.strip(), k=1)
    assert passages[0].page_content == preamble.strip()
    await refuses(chain_on(other, StoredDocuments(other), RunnableLambda(lambda _: passages)), mode, "does not hold")


@both_modes
async def test_two_objects_over_one_collection_are_one_store(mode: str) -> None:
    store = store_with("chroma", two_tenants())
    same = chroma_class()(store._collection.name, EMBEDDING, client=store._client)
    chain = chain_on(store, StoredDocuments(same), House("chroma", store).retriever())
    await reads_its_own(chain, mode)
    open_chain = chain_on(store, StoredDocuments(same), store.as_retriever(search_kwargs={"k": 1}))
    assert (await read_by(open_chain, mode))[0].metadata["selfroute"]["chunks"] == 18


@both_modes
async def test_the_same_ids_and_metadata_in_another_store_vouch_for_it(mode: str) -> None:
    """A search index of another kind beside the store that is read."""
    chunks = chunks_about(MINE)
    for n, chunk in enumerate(chunks):
        chunk.id = f"chunk {n}"
    index, store = store_with("memory", chunks), store_with("chroma", chunks)
    await reads_its_own(chain_on(store, StoredDocuments(store), index.as_retriever()), mode)
    for n, chunk in enumerate(chunks):
        chunk.id = f"another {n}"
    renamed = store_with("chroma", chunks)
    await refuses(chain_on(renamed, StoredDocuments(renamed), index.as_retriever()), mode, "does not hold")
    await reads_its_own(chain_on(renamed, StoredDocuments(renamed, filter={}), index.as_retriever()), mode)


@both_modes
async def test_a_store_that_says_more_of_its_chunks_may_be_read_if_nothing_is_hidden(mode: str) -> None:
    chunks = chunks_about(MINE)
    index = store_with("memory", [Document(chunk.page_content, metadata={"source": "handbook"}) for chunk in chunks])
    store = store_with("chroma", chunks)
    await refuses(chain_on(store, StoredDocuments(store), index.as_retriever()), mode, "in tenant")
    await reads_its_own(chain_on(store, StoredDocuments(store, filter={}), index.as_retriever()), mode)


@both_modes
async def test_a_passage_from_elsewhere_does_not_vouch_beside_one_from_here(house: House, mode: str) -> None:
    foreign = Document("Nobody knows me.", id="x", metadata={"source": "handbook", "tenant": OTHER})
    passages = house.retriever().invoke(QUESTION)
    for found in ([*passages, foreign], [foreign, *passages]):
        chain = chain_on(house.store, StoredDocuments(house.store), RunnableLambda(lambda _, found=found: found))
        await refuses(chain, mode, "in tenant")


@both_modes
async def test_passages_in_other_words_are_no_matter_where_it_is_said_what_is_hidden(house: House, mode: str) -> None:
    reworded = house.retriever() | RunnableLambda(
        lambda found: [Document(f"In short, {n}.", metadata=one.metadata) for n, one in enumerate(found)]
    )
    await refuses(chain_on(house.store, StoredDocuments(house.store), reworded), mode)
    await reads_its_own(chain_on(house.store, StoredDocuments(house.store, filter=house.of()), reworded), mode)


@every_kind
async def test_a_passage_without_text_vouches_for_nothing(kind: str) -> None:
    store = store_with(kind, chunks_of(text_of(OTHER), source="handbook"))
    for text in ("", " \n"):
        passages = [Document(text, metadata={"source": "handbook"}), Document("Tea.", metadata={"source": "x"})]
        chain = chain_on(store, StoredDocuments(store), RunnableLambda(lambda _, passages=passages: passages))
        await refuses(chain, "invoke", "does not hold")


async def test_a_filter_of_another_kind_of_store_is_refused() -> None:
    chunks = chunks_about(MINE)
    index, store = store_with("memory", chunks), store_with("chroma", chunks)
    retriever = index.as_retriever(search_kwargs={"filter": lambda document: document.metadata["tenant"] == MINE})
    await refuses(chain_on(store, StoredDocuments(store), retriever), "invoke", "Chroma takes a dict as filter")
    await refuses(
        chain_on(store, StoredDocuments(store, filter={}), retriever), "invoke", "Chroma takes a dict as filter"
    )


# Originals


def _docstore(*sources: str) -> InMemoryStore:
    docstore = InMemoryStore()
    originals = [(source, Document(f"The original of {OTHER}.", metadata={"source": source})) for source in sources]
    docstore.mset(originals)
    return docstore


@both_modes
async def test_an_original_that_holds_what_is_hidden_is_not_used(house: House, mode: str) -> None:
    docstore = _docstore("handbook")
    parts: list[tuple[Any, Any]] = [
        (StoredDocuments(house.store, docstore=docstore), house.retriever()),
        (StoredDocuments(house.store, docstore=docstore, filter=house.of()), house.hidden()),
        (
            StoredDocuments(house.store, docstore=docstore, filter=house.of()),
            house.store.as_retriever(search_kwargs={"filter": house.of()}),
        ),
    ]
    for stored, retriever in parts:
        await reads_its_own(chain_on(house.store, stored, retriever), mode)
    await refuses(chain_on(house.store, StoredDocuments(house.store, docstore=docstore), house.hidden()), mode)


@both_modes
async def test_an_original_of_which_nothing_is_hidden_is_used(apart: House, mode: str) -> None:
    docstore = InMemoryStore()
    docstore.mset([(f"{MINE}.md", Document("The original.", metadata={"tenant": MINE}))])
    for documents, retriever in (
        (StoredDocuments(apart.store, docstore=docstore), apart.retriever()),
        (StoredDocuments(apart.store, docstore=docstore, filter=apart.of()), apart.hidden()),
        (StoredDocuments(apart.store, docstore=docstore), apart.hidden()),
    ):
        (document,) = await read_by(chain_on(apart.store, documents, retriever), mode)
        assert (document.page_content, document.metadata["selfroute"]["method"]) == ("The original.", "original")


@both_modes
async def test_an_original_without_a_chunk_that_can_be_seen_is_not_used(house: House, mode: str) -> None:
    foreign = RunnableLambda(lambda _: [Document("A leaf.", metadata={"source": "lost", "tenant": MINE})])
    for filters in ({"filter": house.of()}, {}):
        chain = chain_on(house.store, StoredDocuments(house.store, docstore=_docstore("lost"), **filters), foreign)
        with no_leak(chain), pytest.raises(LookupError):
            await ask(chain, QUESTION, mode)


@both_modes
async def test_the_wall_of_a_fetched_store_holds_for_originals(mode: str) -> None:
    shelf, allowed = Shelf(two_tenants()), lambda metadata: metadata["tenant"] == MINE
    chain = SelfRouteChain.from_vectorstore(
        shelf, a_model(), fetch=shelf.fetch, filter=allowed, docstore=_docstore("handbook")
    )
    await reads_its_own(chain, mode)


async def test_fetch_takes_one_filter() -> None:
    shelf = Shelf(two_tenants())
    one, other = (lambda metadata: metadata["tenant"] == MINE), (lambda metadata: bool(metadata))  # noqa: PLW0108
    retriever = shelf.as_retriever(search_kwargs={"filter": one})
    await reads_its_own(chain_on(shelf, StoredDocuments(shelf, fetch=shelf.fetch, filter=one), retriever), "invoke")
    chain = chain_on(shelf, StoredDocuments(shelf, fetch=shelf.fetch, filter=other), retriever)
    await refuses(chain, "invoke", "fetch takes one filter")


# Parent documents


def _parents(house: House, **fields: Any) -> ParentDocumentRetriever:
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0, add_start_index=True)
    retriever = ParentDocumentRetriever(
        vectorstore=store_with(house.kind), docstore=InMemoryStore(), child_splitter=splitter, **fields
    )
    retriever.add_documents(
        [Document(text_of(owner), metadata={"source": "handbook", "tenant": owner}) for owner in (MINE, OTHER)]
    )
    return retriever


@both_modes
async def test_the_filter_of_a_parent_retriever_holds(house: House, mode: str) -> None:
    retriever = _parents(house, search_kwargs={"filter": house.of(), "k": 3})
    stored = StoredDocuments(retriever.vectorstore)
    for dressed in (retriever, retriever.with_retry(), retriever.with_config(tags=["t"])):
        await reads_its_own(chain_on(retriever.vectorstore, stored, dressed), mode)


@both_modes
async def test_a_parent_retriever_passes_over_what_is_bound_to_it(house: House, mode: str) -> None:
    retriever = _parents(house, search_kwargs={"filter": house.of(), "k": 3})
    bound = retriever.bind(filter=house.of(OTHER))
    await refuses(chain_on(retriever.vectorstore, StoredDocuments(retriever.vectorstore), bound), mode)


class OwnParents(ParentDocumentRetriever):
    """Hides something more."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [document for document in found if document.metadata["tenant"] == MINE]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = await super()._aget_relevant_documents(query, run_manager=run_manager)
        return [document for document in found if document.metadata["tenant"] == MINE]


@both_modes
async def test_a_parent_retriever_of_the_users_own_can_not_be_seen(house: House, mode: str) -> None:
    parents = _parents(house)
    retriever = OwnParents(
        vectorstore=parents.vectorstore,
        docstore=parents.docstore,
        child_splitter=parents.child_splitter,
        search_kwargs={"k": 18},
    )
    await refuses(chain_on(parents.vectorstore, StoredDocuments(parents.vectorstore), retriever), mode)


# The cache


@both_modes
async def test_each_filter_has_a_text_of_its_own_in_the_cache(mode: str) -> None:
    seen: list[Any] = []
    house = House("chroma", store_with("chroma", two_tenants(), of=watched(seen)))
    chain, configurable = PER_CALL["search_kwargs"](house)
    for _ in range(3):
        for tenant in (MINE, OTHER):
            await reads_its_own(chain, mode, {"configurable": configurable(tenant)}, tenant=tenant)
    assert [bool(options["include"]) for options in seen] == [True, True] + [False] * 4


@both_modes
async def test_a_chunk_that_goes_to_the_other_side_is_noticed(mode: str) -> None:
    chunks = chunks_about(MINE)
    store = store_with("chroma")
    ids = store.add_documents(chunks)
    chain = SelfRouteChain.from_vectorstore(store, a_model(), filter={"tenant": MINE}, k=3)
    assert (await read_by(chain, mode))[0].metadata["selfroute"]["chunks"] == 9
    away = next(
        n for n, chunk in enumerate(chunks) if chunk.page_content not in prompts_of(chain.llm).split(QUESTION)[0]
    )
    store.update_document(
        ids[away], Document("It is now Birch's.", metadata={**chunks[away].metadata, "tenant": OTHER})
    )
    with no_leak(chain):
        (document,) = await read_by(chain, mode)
    assert chunks[away].page_content not in document.page_content
    assert document.metadata["selfroute"]["chunks"] == 8


@both_modes
async def test_one_object_over_a_collection_for_each_tenant_keeps_their_texts_apart(mode: str) -> None:
    """Even where ids, names and the retrieved passage are the same."""
    houses = {}
    for owner in (MINE, OTHER):
        preamble = Document("All doors are shut at nine.", metadata={"source": "handbook", "start_index": 0})
        rest = Document(f"{owner} keeps the key.", metadata={"source": "handbook", "start_index": 28})
        houses[owner] = store_with("chroma")
        houses[owner].add_documents([preamble, rest], ids=["1", "2"])

    class Routed(chroma_class()):  # type: ignore[misc]
        @property
        def _collection(self) -> Any:
            return houses[WHO.get()]._collection

    routed = store_with("chroma", of=Routed)
    passages = houses[MINE].get_by_ids(["1"])
    chain = chain_on(routed, StoredDocuments(routed, filter={}), RunnableLambda(lambda _: passages))
    for owner in (MINE, OTHER, MINE):
        WHO.set(owner)
        (document,) = await read_by(chain, mode)
        assert document.page_content == f"All doors are shut at nine.\n{owner} keeps the key."
