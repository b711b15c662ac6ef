"""A subclass of `StoredDocuments` decides what is read, within the limits of the retriever, in every mode."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_parts import MODES, QUESTION, ask
from langchain_selfroute import StoredDocuments
from langchain_stores import KINDS, chain_on, chunks_of, holding, prompts_of, read_by, store_with, text_of
from selfroute.errors import ConfigurationError

HIDDEN = "crates"  # in every paragraph


def _redacted(documents: list[Document]) -> list[Document]:
    return [Document(one.page_content.replace(HIDDEN, "***"), metadata=one.metadata) for one in documents]


class Redacting(StoredDocuments):
    def __call__(self, inputs: Any) -> list[Document]:
        return _redacted(super().__call__(inputs))


class RedactingLater(StoredDocuments):
    async def __call__(self, inputs: Any) -> list[Document]:  # type: ignore[override]
        await asyncio.sleep(0)
        return _redacted(await asyncio.to_thread(super().__call__, inputs))


class RedactingEventually(StoredDocuments):
    """Not a coroutine function, but what it returns is to be awaited."""

    def __call__(self, inputs: Any) -> Any:
        return self._later(inputs)

    async def _later(self, inputs: Any) -> list[Document]:
        await asyncio.sleep(0)
        return _redacted(super().__call__(inputs))


class Refusing(StoredDocuments):
    def __call__(self, inputs: Any) -> list[Document]:
        raise PermissionError(inputs["tenant"])


SYNC, ASYNC = (Redacting,), (RedactingLater, RedactingEventually)


def _cases() -> list[Any]:
    return [
        *[(kind, mode) for kind in SYNC for mode in MODES],
        *[(kind, mode) for kind in ASYNC for mode in MODES if mode.startswith("a")],
    ]


@pytest.mark.parametrize("store", KINDS)
@pytest.mark.parametrize(("kind", "mode"), _cases())
async def test_what_a_subclass_makes_of_the_documents_is_read(kind: Any, mode: str, store: str) -> None:
    vectorstore = store_with(store, chunks_of(text_of("north"), source="a"))
    chain = chain_on(vectorstore, kind(vectorstore))
    (document,) = await read_by(chain, mode)
    assert document.page_content == text_of("north").replace(HIDDEN, "***")
    assert HIDDEN not in prompts_of(chain.llm).partition("Read the following text")[2]


@pytest.mark.parametrize("store", KINDS)
@pytest.mark.parametrize(("kind", "mode"), _cases())
async def test_within_a_subclass_the_filter_of_the_call_holds(kind: Any, mode: str, store: str) -> None:
    chunks = [
        chunk for one in ("north", "south") for chunk in chunks_of(text_of(one), source="shared", tenant=one, year=1)
    ]
    vectorstore = store_with(store, chunks)
    retriever = vectorstore.as_retriever(search_kwargs={"filter": holding(store, tenant="north")})
    for filters in (None, holding(store, year=1)):  # its own filter does not stand in for the retriever's
        (document,) = await read_by(chain_on(vectorstore, kind(vectorstore, filter=filters), retriever), mode)
        assert document.page_content == text_of("north").replace(HIDDEN, "***")


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_subclass_raises_reaches_the_caller(mode: str) -> None:
    vectorstore = store_with("memory", chunks_of(text_of("north"), source="a"))
    chain = chain_on(vectorstore, Refusing(vectorstore))
    with pytest.raises(PermissionError, match="north"):
        await ask(chain, {"input": QUESTION, "tenant": "north"}, mode)


def test_the_lengths_of_what_a_subclass_reads_are_not_known() -> None:
    vectorstore = store_with("memory", chunks_of(text_of("north"), source="a"))
    stored = Refusing(vectorstore)
    passages = vectorstore.similarity_search("crane")
    scoped = stored.behind(vectorstore.as_retriever(), {})
    assert scoped.lengths(passages) is None
    assert StoredDocuments(vectorstore).behind(vectorstore.as_retriever(), {}).lengths(passages) is not None


def test_a_scope_ends_with_the_call_and_is_that_of_one_reader() -> None:
    chunks = [chunk for one in ("north", "south") for chunk in chunks_of(text_of(one), source="shared", tenant=one)]
    vectorstore = store_with("memory", chunks)
    retriever = vectorstore.as_retriever(search_kwargs={"filter": holding("memory", tenant="north")})
    other, seen = StoredDocuments(vectorstore), list[str]()

    class Nosy(StoredDocuments):
        def __call__(self, inputs: Any) -> list[Document]:
            with pytest.raises(ConfigurationError, match="cannot verify"):
                other(inputs)  # it is not known what the retriever hides from this one
            seen.append("refused")
            return super().__call__(inputs)

    nosy = Nosy(vectorstore)
    given = {"retrieved": retriever.invoke("crane")}
    (document,) = nosy.behind(retriever, {})(given)
    assert (document.page_content, seen) == (text_of("north"), ["refused"])
    with pytest.raises(ConfigurationError, match="cannot verify"):
        nosy(given)


@pytest.mark.parametrize("kind", ASYNC)
@pytest.mark.parametrize("mode", ["invoke", "stream"])
async def test_an_async_subclass_says_so_where_nothing_can_be_awaited(kind: Any, mode: str) -> None:
    vectorstore = store_with("memory", chunks_of(text_of("north"), source="a"))
    with pytest.raises(TypeError, match="ainvoke or astream"):
        await read_by(chain_on(vectorstore, kind(vectorstore)), mode)
