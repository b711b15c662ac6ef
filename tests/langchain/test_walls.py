"""The walls of LangChain's own ways to dress, configure and call a retriever; `tests/hosts` has what both share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBinding,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever

from hosts_documents import (
    FAR_APART,
    ITS_OWN,
    MINE,
    NOTHING_HIDDEN,
    OTHER,
    QUESTION,
    Holds,
    InLangChain,
    Pipeline,
    apart,
    cut,
    house,
    in_turn,
    no_leak,
    of,
    reads,
    refuses,
    shared,
    two_tenants,
)
from langchain_stores import KINDS, chroma_class, text_of
from langchain_wrappers import Shelves, ensemble, parents, queries
from scenarios import STARTED
from selfroute.errors import ConfigurationError

everywhere = in_turn(KINDS)
both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_kind = pytest.mark.parametrize("kind", KINDS)
THEIRS = Holds("tenant", OTHER)


def _shared(kind: str) -> InLangChain:
    return shared(f"langchain {kind}")  # type: ignore[no-any-return]


def _apart(kind: str) -> InLangChain:
    return apart(f"langchain {kind}")  # type: ignore[no-any-return]


# Filters that can be seen


def _factory(config: Any) -> Any:
    return {"configurable": {"search": config["metadata"]["search"]}}


def _rewritten(given: Any, **_: Any) -> str:
    question: str = given["input"]
    return question.upper()


def _configurable(home: InLangChain) -> Any:
    return home.search().configurable_fields(search_kwargs=ConfigurableField(id="search"))


def _as_found(passages: Any) -> Any:
    return passages


def _bound(home: InLangChain, condition: Holds = ITS_OWN) -> Any:
    return home.search().bind(filter=home.filter(condition))


SEEN: dict[str, Callable[[InLangChain], Any]] = {
    "mmr": lambda home: home.store.as_retriever(
        search_type="mmr", search_kwargs={"filter": home.filter(ITS_OWN), "fetch_k": 5}
    ),
    "bind": _bound,
    "bind over another": lambda home: home.search(THEIRS).bind(filter=home.filter(ITS_OWN)),
    "bind over alternatives over bind": lambda home: (
        RunnableBinding(bound=home.search(), kwargs={"filter": home.filter(THEIRS)})
        .configurable_alternatives(ConfigurableField(id="who"), default_key="me")
        .bind(filter=home.filter(ITS_OWN))
    ),
    "with_config": lambda home: home.search(ITS_OWN).with_config(tags=["t"], metadata={"a": 1}),
    "with_retry": lambda home: home.search(ITS_OWN).with_retry(stop_after_attempt=2),
    "with_listeners": lambda home: home.search(ITS_OWN).with_listeners(on_end=lambda _: None),
    "retry, config, bind": lambda home: _bound(home).with_config(tags=["t"]).with_retry(),
    "retry, then bind": lambda home: home.search().with_retry().bind(filter=home.filter(ITS_OWN)),
    "rewriter": lambda home: RunnableLambda(_rewritten) | home.search(ITS_OWN),
    "bound rewriter": lambda home: (RunnableLambda(_rewritten) | home.search(ITS_OWN)).bind(filter=home.filter(THEIRS)),
    "rewriter with retry": lambda home: (
        RunnablePassthrough() | (lambda given: given["input"]) | home.search(ITS_OWN)
    ).with_retry(),
    "bind over a branch": lambda home: (
        RunnableLambda(_rewritten)
        | RunnableBranch((bool, home.search()), RunnableBranch((bool, home.search()), home.search()))
        .bind(filter=home.filter(ITS_OWN))
        .with_retry()
    ),
    "configured": lambda home: _configurable(home).with_config(
        configurable={"search": {"filter": home.filter(ITS_OWN)}}
    ),
    "configured and bound": lambda home: _configurable(home).bind(filter=home.filter(ITS_OWN)),
    "a factory of configs": lambda home: RunnableBinding(
        bound=_configurable(home),
        config={"metadata": {"search": {"filter": home.filter(ITS_OWN)}}},
        config_factories=[_factory],
    ),
    "alternatives": lambda home: home.search(ITS_OWN).configurable_alternatives(
        ConfigurableField(id="who"), default_key="me", other=home.search(THEIRS)
    ),
    "chosen alternative": lambda home: (
        home.search(THEIRS)
        .configurable_alternatives(ConfigurableField(id="who"), default_key="other", me=lambda: home.search(ITS_OWN))
        .with_config(configurable={"who": "me"})
    ),
    "parents": lambda home: _parents(home, ITS_OWN),
}


def _parents(home: InLangChain, condition: Holds | None = None) -> Any:
    shelves = Shelves(home.kind, (MINE, OTHER), condition)
    retriever, home.store = parents(shelves.whole(), shelves)
    return retriever


@everywhere
@pytest.mark.parametrize("name", SEEN)
async def test_the_filter_of_a_retriever_is_found_in_any_dress(kind: str, name: str, mode: str) -> None:
    home = _shared(kind) if "parents" not in name else house(f"langchain {kind}")
    retriever = SEEN[name](home)
    # Parents are whole documents: after a draft there would be nothing more to read.
    await reads(home.pipeline(retriever, **(STARTED if name == "parents" else {})), mode)


# Filters that change from call to call


def _prefixed(home: InLangChain) -> Any:
    return home.search(ITS_OWN).configurable_alternatives(
        ConfigurableField(id="who"), default_key="no", prefix_keys=True, yes=_configurable(home)
    )


PER_CALL: dict[str, tuple[Callable[[InLangChain], Any], Callable[[InLangChain, Holds], Any]]] = {
    "search_kwargs": (_configurable, lambda home, one: {"search": {"filter": home.filter(one)}}),
    "alternatives": (
        lambda home: home.search(ITS_OWN).configurable_alternatives(
            ConfigurableField(id="who"), default_key=MINE, **{OTHER: home.search(THEIRS)}
        ),
        lambda home, one: {"who": one.value},
    ),
    "prefixed alternatives": (
        _prefixed,
        lambda home, one: {"who": "yes", "who==yes/search": {"filter": home.filter(one)}},
    ),
    "after a rewriter": (
        lambda home: RunnableLambda(lambda given: given["input"]) | _configurable(home).with_retry(),
        lambda home, one: {"search": {"filter": home.filter(one)}},
    ),
    "the chain's retriever": (lambda home: home.search(ITS_OWN), lambda home, one: {"retriever": home.search(one)}),
}


@everywhere
@pytest.mark.parametrize("name", PER_CALL)
@pytest.mark.parametrize("how", ["invoke", "with_config", "around"])
async def test_a_filter_set_per_call_holds_for_that_call(kind: str, name: str, how: str, mode: str) -> None:
    home, (dress, configurable) = _shared(kind), PER_CALL[name]
    pipeline = home.pipeline(dress(home))
    chain = pipeline.of(False)
    if name == "the chain's retriever":
        chain = chain.configurable_fields(retriever=ConfigurableField(id="retriever"))
    around = RunnableLambda(lambda given: chain.invoke(given), afunc=lambda given: chain.ainvoke(given))  # noqa: PLW0108
    for one in (ITS_OWN, THEIRS, ITS_OWN):
        config: Any = {"configurable": configurable(home, one)}
        asked = {"invoke": chain, "with_config": chain.with_config(config), "around": around}[how]
        handed = None if how == "with_config" else config  # `around` does not hand it on
        await reads(pipeline.through(asked), mode, handed, owner=one.value)


@pytest.mark.parametrize("how", ["batch", "abatch"])
@every_kind
async def test_the_questions_of_a_batch_have_a_filter_each(kind: str, how: str) -> None:
    home, (dress, configurable) = _shared(kind), PER_CALL["search_kwargs"]
    chain, tenants = home.pipeline(dress(home)).of(False), [ITS_OWN, THEIRS] * 4
    configs: Any = [{"configurable": configurable(home, one)} for one in tenants]
    questions = [QUESTION] * len(tenants)
    results = await chain.abatch(questions, configs) if how == "abatch" else chain.batch(questions, configs)
    assert [result["context"][0].page_content for result in results] == [text_of(one.value) for one in tenants]


WHO: ContextVar[str] = ContextVar("who", default="nobody")


def _by_context(kind: str) -> Pipeline:
    """A retriever and documents whose filter depends on who asks."""
    home = house(f"langchain {kind.split(maxsplit=1)[0]}", two_tenants())
    allowed = lambda one: getattr(one, "metadata", one)["tenant"] == WHO.get()  # noqa: E731
    if kind == "fetch by itself":
        retriever: Any = RunnableLambda(lambda _: [chunk for chunk in home.store.chunks if allowed(chunk)])
        own = home.documents(fetch=lambda key, source, _: home.store.fetch(key, source, allowed))
        return home.pipeline(retriever, own)  # type: ignore[no-any-return]
    return home.pipeline(home.search(filter=allowed))  # type: ignore[no-any-return]


@both_modes
@pytest.mark.parametrize("kind", ["memory", "fetch", "fetch by itself"])
async def test_a_filter_that_asks_who_is_asking_is_asked_each_time(kind: str, mode: str) -> None:
    pipeline = _by_context(kind)

    async def ask_as(tenant: str) -> None:
        WHO.set(tenant)
        for _ in range(2):
            assert (await pipeline.ask(mode)).read == [text_of(tenant)]

    await asyncio.gather(*(asyncio.create_task(ask_as(tenant)) for tenant in (MINE, OTHER, MINE, OTHER)))


# Filters that cannot be seen


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


def _again(found: list[Document], **more: Any) -> list[Document]:
    return [Document(one.page_content, id=more.get("id", one.id), metadata=one.metadata | more) for one in found]


UNSEEN: dict[str, Callable[[InLangChain], Any]] = {
    "lambda": lambda home: RunnableLambda(lambda given: home.search(ITS_OWN).invoke(given["input"])),
    "lambda that returns a retriever": lambda home: RunnableLambda(
        lambda given: RunnableLambda(lambda _: given["input"]) | home.search(ITS_OWN)
    ),
    "own retriever, bound": lambda home: home.hidden(home.search(ITS_OWN)).bind().with_retry(),
    "subclass": lambda home: Adding(vectorstore=home.store, allowed=home.filter(ITS_OWN)),
    "subclass that overrides invoke": lambda home: Invoking(vectorstore=home.store, allowed=home.filter(ITS_OWN)),
    "reranker": lambda home: home.search(ITS_OWN) | RunnableLambda(lambda found: found[::-1]),
    "reranker that scores": lambda home: (
        home.search(ITS_OWN) | RunnableLambda(lambda found: _again(found, relevance_score=1.0))
    ),
    "reranker that drops ids": lambda home: (
        home.search(ITS_OWN)
        | RunnableLambda(lambda found: [Document(one.page_content, metadata=one.metadata) for one in found])
    ),
    "fallbacks": lambda home: home.search(ITS_OWN).with_fallbacks([home.search(ITS_OWN, k=2)]),
    "map": lambda home: (
        RunnableParallel(found=RunnableLambda(lambda given: given["input"]) | home.search(ITS_OWN))
        | (lambda given: given["found"])
    ),
}


@everywhere
@pytest.mark.parametrize("name", UNSEEN)
async def test_unseen_filter_is_refused(kind: str, name: str, mode: str) -> None:
    home, other = _shared(kind), _apart(kind)
    for _ in range(2):
        await refuses(home.pipeline(UNSEEN[name](home)), mode, "in tenant")
    await reads(home.pipeline(UNSEEN[name](home), home.documents(ITS_OWN)), mode)
    await reads(other.pipeline(UNSEEN[name](other)), mode)


# More than a filter


@both_modes
@pytest.mark.parametrize(
    "search", [{"where_document": {"$contains": MINE}}, {"ids": []}, {"namespace": "ash"}, {"tenant": MINE}]
)
async def test_search_arguments_may_hide_something(search: Any, mode: str) -> None:
    home = _shared("chroma")
    search = {"ids": home.ids[:1]} if "ids" in search else search
    home.pipeline(home.search(fetch_k=3, lambda_mult=0.5, score_threshold=0.1, where_document=None))  # hide nothing
    inner, plain = home.search(**search), home.search()
    mine = home.search(ITS_OWN, **search)
    wrapped = (
        *(ensemble(inner), queries(inner), queries(ensemble(plain, inner)), ensemble(mine, inner)),
        *(inner.with_fallbacks([inner]), plain.with_fallbacks([plain.bind(**search).with_retry()])),
        inner.configurable_fields(search_kwargs=ConfigurableField(id="search")) | RunnableLambda(_as_found),
        *(inner | RunnableLambda(_as_found), RunnableParallel(found=inner).pick("found")),
        RunnableLambda(_rewritten) | RunnableBranch((bool, plain.bind(**search)), mine),
    )
    for retriever in (inner, plain.bind(**search), *wrapped):
        with pytest.raises(ConfigurationError, match=rf"search_kwargs have {next(iter(search))}.*filter="):
            home.pipeline(retriever)
    pipeline = home.pipeline(_configurable(home))
    with no_leak(pipeline), pytest.raises((ConfigurationError, TypeError, ValueError)):
        await pipeline.ask(mode, config={"configurable": {"search": search}})
    if "where_document" in search:
        await reads(home.pipeline(inner, home.documents(ITS_OWN)), mode)


def _store_that_hides(kind: str, name: str) -> InLangChain:
    known: Any = InMemoryVectorStore if kind == "memory" else chroma_class()
    own = _shared(kind).filter(ITS_OWN)

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

    namesake = type(known.__name__, (Searching,), {})
    kinds = {"subclass": Searching, "deeper": Deeper, "namesake": namesake, "patched": known}
    home: InLangChain = house(f"langchain {kind}", two_tenants(), over=kinds[name])
    if name == "patched":
        inner, ainner = home.store.similarity_search, home.store.asimilarity_search
        home.store.similarity_search = lambda query, k=4, **_: inner(query, k, filter=own)
        home.store.asimilarity_search = lambda query, k=4, **_: ainner(query, k, filter=own)
    return home


@everywhere
@pytest.mark.parametrize("name", ["subclass", "deeper", "namesake", "patched"])
async def test_a_store_that_searches_in_its_own_way_may_hide_something(kind: str, name: str, mode: str) -> None:
    home = _store_that_hides(kind, name)
    await refuses(home.built(), mode)
    await refuses(home.pipeline(queries(home.search())), mode, "in tenant")
    await reads(home.built(ITS_OWN), mode)
    # What can be seen of it holds all the same.
    await refuses(home.pipeline(home.search(Holds("source", "handbook"))), mode)
    for documents in (home.documents(), home.documents(NOTHING_HIDDEN)):
        await reads(home.pipeline(home.search(ITS_OWN), documents), mode)


@every_kind
async def test_a_store_of_the_users_own_that_searches_as_ever_is_known(kind: str) -> None:
    known: Any = InMemoryVectorStore if kind == "memory" else chroma_class()
    home = house(f"langchain {kind}", two_tenants(), over=type("Own", (known,), {}))
    await reads(home.pipeline(home.search(ITS_OWN)))
    (document,) = (await home.pipeline(home.search(k=1)).ask()).documents  # nothing hides anything
    assert document.label["chunks"] == 18


class Odd:
    """Makes another filter out of a comparison, as the fields of some query languages do."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant

    def __call__(self, document: Document) -> bool:
        return bool(document.metadata["tenant"] == self.tenant)

    def __eq__(self, other: object) -> Any:
        return Odd("both")

    __hash__ = None  # type: ignore[assignment]


async def test_filter_with_an_odd_equality() -> None:
    home = _shared("memory")
    mine, theirs = (home.search(filter=Odd(tenant), k=2) for tenant in (MINE, OTHER))
    await refuses(home.pipeline(ensemble(mine, theirs.bind(filter=Odd(MINE)))))
    home.filters_as, as_ever = (lambda _: Odd(OTHER)), home.filters_as
    documents = home.documents(Holds("odd", "one"))
    home.filters_as = as_ever
    await refuses(home.pipeline(mine, documents), match="that the filter lets through", error=LookupError)


async def test_filter_of_another_store_is_refused() -> None:
    index, home = house("langchain memory", of(MINE)), house("langchain chroma", of(MINE))
    for documents in (home.documents(), home.documents(ITS_OWN)):
        await refuses(home.pipeline(index.search(ITS_OWN), documents), match="Chroma takes a dict as filter")
    shelf = house("langchain fetch", two_tenants())
    await refuses(shelf.pipeline(shelf.search(ITS_OWN), shelf.documents(Holds("source", "x"))), match="one filter")


# A store for each tenant


@everywhere
async def test_another_store_that_is_chosen_for_a_call_is_not_read(kind: str, mode: str) -> None:
    mine, other = (house(f"langchain {kind}", cut(text_of(owner))) for owner in (MINE, OTHER))
    chosen = other.search().configurable_fields(vectorstore=ConfigurableField(id="store"))
    config: Any = {"configurable": {"store": mine.store}}
    for documents in (other.documents(), other.documents(Holds("source", "handbook"))):
        pipeline = other.pipeline(chosen, documents)
        assert (await pipeline.ask(mode)).read == [text_of(OTHER)]
        await refuses(pipeline.through(pipeline.of(False).with_config(config)), mode, "does not hold")
        await refuses(other.pipeline(chosen.with_config(config), documents), mode, "does not hold")


# Parent documents
