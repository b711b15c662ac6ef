"""What a question saved compared with always reading the documents: known for lists, and for what was read before."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from both_parts import everywhere, pipeline
from hosts_documents import MINE, MODES, house, of
from langchain_parts import DOCUMENTS, PASSAGES, QUESTION, a_chain
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import EMBEDDING, LONG, Shelf, a_model, chunks_of, holding, store_with, text_of
from selfroute.documents.cache import MOST, Recent

# In the frameworks: a document of about 700 characters in chunks, of which two are retrieved.

TEXT = text_of("North", 12)


def chain_over(store: Any, stored: Any, draft: Any = ("The crane lifts 4 crates.",), **fields: Any) -> SelfRouteChain:
    retriever = store.as_retriever(search_kwargs={"k": 2})
    return SelfRouteChain(retriever=retriever, llm=a_model(draft=draft, usage=True), documents=stored, **fields)


def decline_or_answer(prompt: str) -> tuple[str, ...]:
    return ("unanswerable",) if "Unknown?" in prompt else ("It lifts 4 crates.",)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["langchain memory", "langchain chroma", "llamaindex memory"])
async def test_savings_of_a_document_that_was_read(kind: str, mode: str) -> None:
    home = house(kind, of(MINE))
    documents, told = home.documents(), {"draft": decline_or_answer, "usage": True}
    asked = home.pipeline(None, documents, model=told)
    assert (await asked.ask(mode, "Known?")).usage["long_context_only"] is None
    read = (await asked.ask(mode, "Unknown?")).usage
    usage = (await asked.ask(mode, "Known?")).usage
    assert read["long_context_only"] == read["long_context"]["input_tokens"]
    assert read["token_ratio"] == pytest.approx(1 + read["rag"]["input_tokens"] / read["long_context_only"])
    assert usage["long_context"] is None
    assert usage["long_context_only"] == pytest.approx(read["long_context_only"], rel=0.05)
    documents.forget()
    assert (await asked.ask(mode, "Known?")).usage["long_context_only"] is None


@everywhere
async def test_savings_of_a_list(where: str) -> None:
    usage = (await pipeline(where, ("Mr Lin.",), None, usage=True).ask()).usage
    asked_for_all = (await pipeline(where, usage=True).ask()).usage["long_context"]["input_tokens"]
    assert usage["long_context_only"] == pytest.approx(asked_for_all, rel=0.15)


@everywhere
async def test_savings_call_no_callable(where: str) -> None:
    documents = lambda *_: pytest.fail("it was called")  # noqa: E731
    usage = (await pipeline(where, ("Mr Lin.",), None, documents=documents, usage=True).ask()).usage
    assert (usage["long_context_only"], usage["token_ratio"]) == (None, None)


@pytest.mark.parametrize("kind", ["memory", "chroma"])
def test_savings_behind_a_filter(kind: str) -> None:
    chunks = [
        *chunks_of(TEXT, source="report", tenant="north"),
        *chunks_of(text_of("South", 90), source="report", tenant="south"),
    ]
    store = store_with(kind, chunks)
    stored = StoredDocuments(store, filter=holding(kind, tenant="north"))
    chain = chain_over(store, stored, decline_or_answer)
    chain.invoke("Unknown?")
    only = chain.invoke("Known?")["usage"]["long_context_only"]
    # A callable may hide other things for each caller: what one saw is not told to the next.
    assert only is None if kind == "memory" else only < 300


class Opaque:
    """A filter that does not show what it lets through, as those of many stores."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant

    def __repr__(self) -> str:
        return "Opaque()"


def fails(*_: Any) -> Any:
    raise ValueError


def test_savings_behind_an_opaque_filter() -> None:
    north = chunks_of(text_of("North", 90), source="plan", tenant="north")
    shelf = Shelf([*north, Document("South", metadata={"source": "plan"})])

    def fetch(_: str, source: str, condition: Any) -> list[Document]:
        return [one for one in shelf.chunks if one.metadata.get("tenant", "south") == condition.tenant]

    shared = Recent[int](MOST)
    for tenant in ("north", "south"):
        stored = StoredDocuments(shelf, filter=Opaque(tenant), fetch=fetch)
        stored._cache.lengths = shared  # as if one store knew both
        chain = chain_over(shelf, stored, decline_or_answer)
        chain.invoke("Unknown?")
        assert chain.invoke("Known?")["usage"]["long_context_only"] is None


def test_savings_of_documents_that_cannot_be_read_cost_no_answer() -> None:
    shelf = Shelf(chunks_of(text_of("North"), source="north"))
    chain = chain_over(shelf, StoredDocuments(shelf, fetch=fails), ("It lifts 4.",))
    assert chain.invoke(QUESTION)["usage"]["long_context_only"] is None


def test_savings_of_documents_beyond_the_window() -> None:
    long = [Document("word " * 5_000, metadata={"source": "long"})]
    chain = a_chain(("Mr Lin.",), None, documents=long, max_context_tokens=500, marker=LONG)
    assert chain.invoke(QUESTION)["usage"]["long_context_only"] == pytest.approx(500, rel=0.2)
    unbounded = a_chain(("Mr Lin.",), None, documents=long, marker=LONG)
    assert unbounded.invoke(QUESTION)["usage"]["long_context_only"] == pytest.approx(6_250, rel=0.05)


def test_savings_of_passages_without_a_source() -> None:
    store = InMemoryVectorStore.from_documents([*DOCUMENTS, *PASSAGES], EMBEDDING)
    chain = chain_over(store, StoredDocuments(store), decline_or_answer)
    chain.retriever.search_kwargs["k"] = 4
    chain.invoke("Unknown?")
    assert chain.invoke("Known?")["usage"]["long_context_only"] > 0
