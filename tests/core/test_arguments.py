"""An argument of the wrong kind is refused in one line: what it is, what is wanted, and how to get that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from typing import Any

import pytest
from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from llama_index.core import Document as Node
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import CompactAndRefine, get_response_synthesizer

import langchain_selfroute
import llamaindex_selfroute
from langchain_parts import ScriptedModel
from langchain_selfroute import SelfRouteChain
from langchain_stores import EMBEDDING
from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from llamaindex_selfroute.arguments import SynthesizerFields
from selfroute.errors import ConfigurationError, UnknownOptionError

SECRET = "sk-" + "abcdefghijklmnopqrstuvwx"
HIDDEN = "the secret text of a document"
STORE = InMemoryVectorStore.from_documents([Document("x", metadata={"source": "a"})], EMBEDDING)
RETRIEVER, MODEL = STORE.as_retriever(), ScriptedModel()
STORED = langchain_selfroute.StoredDocuments(STORE)
TEXTS = {"a name": "gpt-4o-mini", "a key": SECRET, "a long key": "a1" * 20, "a text": HIDDEN}

CHAIN_PARTS: dict[str, Any] = {
    "a store": STORE,
    "a retriever": RETRIEVER,
    "a retriever that retries": RETRIEVER.with_retry().with_config(tags=["x"]),
    "a model": MODEL,
    "a bound model": MODEL.bind(stop=["x"]),
    "embeddings": EMBEDDING,
    "stored documents": STORED,
    "a document store": InMemoryStore(),
    "a document": Document(HIDDEN),
    "a list": [HIDDEN],
    "a prompt": PromptTemplate.from_template("{context} {input}"),
    "a class": ScriptedModel,
    "a function": lambda given: given,
    "a dict": {},
    **TEXTS,
}


def a_chain(**part: Any) -> SelfRouteChain:
    return SelfRouteChain(**{"retriever": RETRIEVER, "llm": MODEL, "documents": STORED, **part})


Places = dict[str, tuple[Callable[..., object], set[str]]]  # what takes a part by its name, and which ones are right
CHAIN_PLACES: Places = {
    "retriever": (a_chain, {"a retriever", "a retriever that retries"}),
    "llm": (a_chain, {"a model", "a bound model"}),
    "long_context_llm": (a_chain, {"a model", "a bound model"}),
    "documents": (a_chain, {"stored documents", "a function"}),
    "rag_prompt": (a_chain, {"a prompt"}),
    "long_context_prompt": (a_chain, {"a prompt"}),
    "document_prompt": (a_chain, {"a prompt"}),
    "vectorstore": (lambda vectorstore: SelfRouteChain.from_vectorstore(vectorstore, MODEL), {"a store"}),
}

INDEX = VectorStoreIndex.from_documents([Node(text="x")], embed_model=MockEmbedding(embed_dim=4))
LLM, NODES = ScriptedLLM(), llamaindex_selfroute.StoredDocuments(INDEX)
ENGINE_PARTS: dict[str, Any] = {
    "an index": INDEX,
    "a store": INDEX.vector_store,
    "a retriever": INDEX.as_retriever(),
    "a model": LLM,
    "an embedding model": MockEmbedding(embed_dim=4),
    "stored documents": NODES,
    "a document store": INDEX.docstore,
    "a document": Node(text=HIDDEN),
    "a list": [HIDDEN],
    "a class": ScriptedLLM,
    "a function": lambda *given: given,
    "a synthesizer": CompactAndRefine(llm=LLM),
    "callbacks": CallbackManager(),
    "postprocessors": [SimilarityPostprocessor()],
    **TEXTS,
}


def a_synthesizer(**part: Any) -> SelfRouteSynthesizer:
    return SelfRouteSynthesizer(**{"documents": NODES, "llm": LLM, **part})


def an_engine(**part: Any) -> SelfRouteQueryEngine:
    return SelfRouteQueryEngine(**{"retriever": INDEX.as_retriever(), "documents": NODES, "llm": LLM, **part})


def an_engine_around(response_synthesizer: Any) -> SelfRouteQueryEngine:
    return SelfRouteQueryEngine(INDEX.as_retriever(), response_synthesizer)


ENGINE_PLACES: Places = {
    "retriever": (an_engine, {"a retriever"}),
    "llm": (a_synthesizer, {"a model"}),
    "long_context_llm": (a_synthesizer, {"a model"}),
    "documents": (a_synthesizer, {"stored documents", "a function"}),
    "callback_manager": (a_synthesizer, {"callbacks"}),
    "node_postprocessors": (an_engine, {"postprocessors"}),
    "index": (lambda index: SelfRouteQueryEngine.from_index(index, llm=LLM), {"an index"}),
    "response_synthesizer": (an_engine_around, set()),
}


@pytest.mark.parametrize(
    "place", [*(f"langchain {one}" for one in CHAIN_PLACES), *(f"llamaindex {one}" for one in ENGINE_PLACES)]
)
def test_arguments_of_the_wrong_kind(place: str) -> None:
    framework, argument = place.split()
    places, parts = (CHAIN_PLACES, CHAIN_PARTS) if framework == "langchain" else (ENGINE_PLACES, ENGINE_PARTS)
    build, right = places[argument]
    for name, part in parts.items():
        if name in right:
            build(**{argument: part})
            continue
        with pytest.raises(ConfigurationError) as refused:
            build(**{argument: part})
        told = str(refused.value)
        assert "\n" not in told
        wanted, _, rest = told.rpartition(", not ")
        assert wanted.startswith(f"{argument} must be a"), told
        how = rest.partition(": ")[2]
        assert how.startswith("pass "), told
        assert not any(secret in told for secret in (SECRET, "a1a1", HIDDEN)), told


CALLED: dict[str, tuple[Callable[[Any], object], int]] = {
    "langchain escalation": (
        lambda own: SelfRouteChain(retriever=RETRIEVER, llm=MODEL, documents=STORED, escalation=own),
        1,
    ),
    "langchain start": (lambda own: SelfRouteChain(retriever=RETRIEVER, llm=MODEL, documents=STORED, start=own), 1),
    "langchain documents": (lambda own: SelfRouteChain(retriever=RETRIEVER, llm=MODEL, documents=own), 1),
    "langchain fetch": (lambda own: langchain_selfroute.StoredDocuments(STORE, fetch=own), 3),
    "llamaindex escalation": (lambda own: SelfRouteSynthesizer(documents=NODES, llm=LLM, escalation=own), 1),
    "llamaindex start": (lambda own: SelfRouteSynthesizer(documents=NODES, llm=LLM, start=own), 1),
    "llamaindex documents": (lambda own: SelfRouteSynthesizer(documents=own, llm=LLM), 2),
    "llamaindex fetch": (lambda own: llamaindex_selfroute.StoredDocuments(INDEX, fetch=own), 2),
}
OWN: tuple[Callable[..., Any], ...] = (
    lambda: None,
    lambda _one: None,
    lambda _one, _two: None,
    lambda _one, _two, _three: None,
)


@pytest.mark.parametrize("place", CALLED)
def test_arguments_that_are_callables(place: str) -> None:
    build, taken = CALLED[place]
    name = place.split()[1]
    for number, own in enumerate(OWN):
        if number == taken:
            build(own)
            continue
        with pytest.raises(ConfigurationError, match=rf"^{name} is called with \(.*\), which yours does not take: "):
            build(own)
    build(wraps(OWN[(taken + 1) % 4])(lambda *given: given))
    build(partial(OWN[3], *[None] * (3 - taken)))


ENGINE = SelfRouteQueryEngine(INDEX.as_retriever(), llm=LLM)
SAID: dict[str, tuple[Callable[[], object], str, str]] = {
    "a store for a retriever": (
        lambda: a_chain(retriever=STORE),
        *("not an InMemoryVectorStore", "pass vectorstore.as_retriever("),
    ),
    "a retriever for a store": (
        lambda: langchain_selfroute.StoredDocuments(RETRIEVER),
        *("vectorstore must be a vector store, not a VectorStoreRetriever", "retriever.vectorstore"),
    ),
    "a name for the model": (
        lambda: SelfRouteChain.from_vectorstore(STORE, "openai:gpt-4o-mini"),
        *("llm must be a chat model or a runnable around one, not a text", "init_chat_model("),
    ),
    "a number for the model": (lambda: a_chain(llm=7), "not an int: ", "pass the model itself"),
    "an empty text for the model": (lambda: a_chain(llm=""), "not an empty text: ", "init_chat_model("),
    "a chain for the model": (
        lambda: a_chain(llm=a_chain().with_retry()),
        *("not a Runnable", "pass the model itself"),
    ),
    "no model": (lambda: SelfRouteChain(retriever=RETRIEVER, documents=STORED), "llm is missing", "init_chat_model("),
    "no retriever": (lambda: SelfRouteChain(llm=MODEL), "retriever is missing", "vectorstore.as_retriever("),
    "no documents": (
        lambda: SelfRouteChain(retriever=RunnableLambda(lambda _: []), llm=MODEL),
        *("documents is missing", "documents=StoredDocuments(vectorstore)"),
    ),
    "a misspelt option": (
        lambda: SelfRouteChain.from_vectorstore(STORE, MODEL, secions=4_000),
        *("no option 'secions'", "did you mean 'sections'?"),
    ),
    "another retriever": (
        lambda: ENGINE.with_retriever(INDEX),
        *("not a VectorStoreIndex", "pass index.as_retriever("),
    ),
    "a store for an index": (
        lambda: SelfRouteQueryEngine.from_index(INDEX.vector_store),
        *("not a SimpleVectorStore", "VectorStoreIndex.from_vector_store(vector_store)"),
    ),
    "no documents of an engine": (
        lambda: SelfRouteQueryEngine(Finder(), llm=LLM),
        *("documents is missing", "documents=StoredDocuments(index)"),
    ),
    "a model for the synthesizer": (
        lambda: SelfRouteQueryEngine(INDEX.as_retriever(), LLM),
        *("not a ScriptedLLM", "documents= and llm="),
    ),
    "a misspelt option of an engine": (
        lambda: SelfRouteQueryEngine.from_index(INDEX, llm=LLM, secions=4_000),
        *("no option 'secions'", "did you mean 'sections'?"),
    ),
}


class Finder:
    def retrieve(self, query: Any) -> list[Any]:
        return []


@pytest.mark.parametrize("name", SAID)
def test_arguments_say_what_to_pass(name: str) -> None:
    build, given, how = SAID[name]
    with pytest.raises(ConfigurationError) as refused:
        build()
    told = str(refused.value)
    assert (given in told, how in told, "\n" in told) == (True, True, False), told


PLACES: dict[str, tuple[Callable[..., object], Mapping[str, Any]]] = {
    "chain": (partial(SelfRouteChain.from_vectorstore, STORE, MODEL), SelfRouteChain.model_fields),
    "engine": (partial(SelfRouteQueryEngine.from_index, INDEX, llm=LLM), SynthesizerFields.__annotations__),
    "chat": (ENGINE.as_chat_engine, {}),
}
OF_HOSTS: dict[str, list[Callable[..., object]]] = {
    "chain": [
        create_retrieval_chain,
        create_stuff_documents_chain,
        RetrievalQA,
        RetrievalQA.from_chain_type,
        RetrievalQA.from_llm,
        ConversationalRetrievalChain,
        ConversationalRetrievalChain.from_llm,
        VectorStoreRetriever,
    ],
    "engine": [
        VectorStoreIndex.as_query_engine,
        RetrieverQueryEngine.from_args,
        get_response_synthesizer,
        VectorIndexRetriever,
        lambda similarity_cutoff, mmr_threshold, mmr_prefetch_factor: None,  # go on in kwargs
    ],
    "chat": [
        VectorStoreIndex.as_chat_engine,
        *(CondenseQuestionChatEngine.from_defaults, CondensePlusContextChatEngine.from_defaults),
        *(ContextChatEngine.from_defaults, CondensePlusContextChatEngine, ContextChatEngine),
        lambda token_limit, similarity_top_k, streaming: None,
    ],
}
OWN_PLACE = {"name", "vectorstore", "index", "query_engine"}  # what ours are made from, and what all of LangChain have


@pytest.mark.parametrize("place", PLACES)
def test_arguments_of_the_hosts_are_taken_or_answered(place: str) -> None:
    build, fields = PLACES[place]
    taken = {*signature(build).parameters, *fields, *OWN_PLACE}
    names = {name for of in OF_HOSTS[place] for name in getattr(of, "model_fields", signature(of).parameters)}
    for name in names - taken - {"self", "kwargs"}:
        with pytest.raises(UnknownOptionError) as refused:
            build(**{name: object()})
        assert f"there is no option '{name}' here: " in str(refused.value)


@pytest.mark.parametrize("key", [None, "", 7, ["source"], {"source"}, STORE, MODEL], ids=lambda key: type(key).__name__)
def test_source_key_is_a_text(key: Any) -> None:
    for build in (
        lambda: langchain_selfroute.StoredDocuments(STORE, source_key=key),
        lambda: SelfRouteChain.from_vectorstore(STORE, MODEL, source_key=key),
    ):
        with pytest.raises(ConfigurationError, match=r'source_key must be .*such as "source", not ') as refused:
            build()
        assert "\n" not in str(refused.value)


def test_start_is_no_part_of_another_kind() -> None:
    for part in ("a store", "a retriever", "a model", "a prompt", "a class", "a list"):
        with pytest.raises(ConfigurationError, match="start must be 'rag', 'sections', 'auto' or 'long_context'"):
            a_chain(start=CHAIN_PARTS[part])
    a_chain(start=RunnableLambda(lambda _: "rag"))


@pytest.mark.parametrize("junk", ["", 0, [], {}, False], ids=repr)
def test_arguments_that_are_empty_are_not_none(junk: Any) -> None:
    builds: list[Callable[[], object]] = [
        lambda: a_synthesizer(llm=junk),
        lambda: a_synthesizer(callback_manager=junk),
        lambda: SelfRouteQueryEngine(INDEX.as_retriever(), a_synthesizer(), callback_manager=junk),
        lambda: setattr(a_synthesizer(), "callback_manager", junk),
    ]
    for build in builds:
        with pytest.raises(ConfigurationError, match="must be a"):
            build()
