"""Chains, stored documents and ledgers are copied as their parts are, or say which part cannot be."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import cloudpickle
import pytest
from langchain_openai import ChatOpenAI

from langchain_parts import MODES, QUESTION, ListRetriever, a_chain, ask
from langchain_selfroute import SelfRouteChain, SelfRouteLedger, StoredDocuments
from langchain_stores import a_model, chain_on, chunks_of, holding, read_by, store_with, text_of
from selfroute.errors import CopyError

COPIES: dict[str, Any] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}
OF_CHAINS = {**COPIES, "copy": copy.copy, "model_copy": lambda one: one.model_copy(deep=True)}


def _chains() -> dict[str, Any]:
    store = store_with("memory", chunks_of(text_of("north"), source="a"))
    return {
        "over a list": a_chain(),
        "over a store": chain_on(store, StoredDocuments(store)),
        "bound": chain_on(store, StoredDocuments(store)).with_config(callbacks=[SelfRouteLedger()], tags=["x"]),
        "retrying": chain_on(store, StoredDocuments(store)).with_retry(),
        "in a sequence": chain_on(store, StoredDocuments(store)).pick("answer"),
    }


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("kind", _chains())
@pytest.mark.parametrize("name", OF_CHAINS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_copy_of_a_chain_answers_as_the_chain_does(mode: str, name: str, kind: str, used: bool) -> None:
    chain = _chains()[kind]
    if name == "model_copy" and not isinstance(chain, SelfRouteChain):
        name = "deepcopy"
    if used:
        await ask(chain, QUESTION, mode)
    made = OF_CHAINS[name](chain)
    given, copied = await ask(chain, QUESTION, mode), await ask(made, QUESTION, mode)
    if isinstance(given, dict):
        del given["usage"], copied["usage"]  # a copy has not learned yet what the documents cost
    assert copied == given


@pytest.mark.parametrize("name", ["deepcopy", "cloudpickle"])  # the filter is a function without a name
async def test_a_copy_keeps_to_the_same_filter(name: str) -> None:
    chunks = [chunk for one in ("north", "south") for chunk in chunks_of(text_of(one), source="shared", tenant=one)]
    store = store_with("memory", chunks)
    retriever = store.as_retriever(search_kwargs={"filter": holding("memory", tenant="north")})
    made = COPIES[name](chain_on(store, StoredDocuments(store), retriever))
    (document,) = await read_by(made)
    assert document.page_content == text_of("north")


@pytest.mark.parametrize("name", [*COPIES, "model_copy"])
def test_a_chain_whose_parts_cannot_be_copied_says_which(name: str) -> None:
    store = store_with("chroma", chunks_of(text_of("north"), source="a"))
    client = SelfRouteChain(retriever=ListRetriever(), llm=ChatOpenAI(api_key="none"), documents=StoredDocuments(store))
    stored = SelfRouteChain(retriever=ListRetriever(), llm=a_model(), documents=StoredDocuments(store, filter={}))
    with pytest.raises(CopyError, match=r"this StoredDocuments .* its store \(Chroma\)") as refused:
        OF_CHAINS[name](stored)
    assert "\n" not in str(refused.value)
    with pytest.raises(CopyError, match=r"this SelfRouteChain .* its llm \(ChatOpenAI\)") as refused:
        OF_CHAINS[name](client)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [*COPIES, "copy"])
def test_a_copy_of_stored_documents_reads_for_itself(name: str) -> None:
    store = store_with("memory", chunks_of(text_of("north"), source="a"))
    stored = StoredDocuments(store, filter={})
    given = {"retrieved": store.similarity_search("crane")}
    read = stored(given)
    made = OF_CHAINS[name](stored)
    assert made(given) == read
    made.forget()
    assert made(given) == read


def test_copies_of_ledgers_go_on_by_themselves() -> None:
    ledger = SelfRouteLedger()
    ask_one = a_chain().with_config(callbacks=[ledger])
    ask_one.invoke(QUESTION)
    for name in [*COPIES, "copy"]:
        made = OF_CHAINS[name](ledger)
        assert made.to_dict() == ledger.to_dict()
        before = ledger.to_dict()
        a_chain().invoke(QUESTION, {"callbacks": [made]})
        assert made.to_dict()["queries"] == before["queries"] + 1
        assert ledger.to_dict() == before
