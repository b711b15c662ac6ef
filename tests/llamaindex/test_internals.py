"""A private name of LlamaIndex that has gone is no error at import, and a clear one at the first use."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import StorageContext
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)
from llama_index.core.schema import Document, QueryBundle
from llama_index.core.vector_stores import simple

from host_names import private_names, run
from langchain_stores import text_of as a_text
from llamaindex_parts import QUESTION
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments, internals
from llamaindex_stores_parts import STORES, declining, only, split
from scenarios import FINAL, text_of
from selfroute.errors import ConfigurationError

OF_CLASSES: dict[str, Any] = {
    "_get_messages": LLM,
    "_get_prompt": LLM,
    "_apply_node_postprocessors": RetrieverQueryEngine,
    "_async_apply_node_postprocessors": RetrieverQueryEngine,
}
OF_ENGINES = ("_response_synthesizer", "_node_postprocessors")
OF_RETRIEVERS = ("_filters", "_doc_ids", "_node_ids", "_index", "_kwargs")
OF_WRAPPERS: dict[str, Any] = {
    "_retrievers": lambda leaf: QueryFusionRetriever([leaf], llm=MockLLM(), num_queries=1, use_async=False),
    "_retriever_dict": lambda leaf: RecursiveRetriever("root", {"root": leaf}),
    "_node_dict": lambda leaf: RecursiveRetriever("root", {"root": leaf}),
    "_vector_retriever": lambda leaf: AutoMergingRetriever(leaf, StorageContext.from_defaults()),
    "_storage_context": lambda leaf: AutoMergingRetriever(leaf, StorageContext.from_defaults()),
    "_query_transform": lambda leaf: TransformRetriever(leaf, IdentityQueryTransform()),
    "_retriever": lambda leaf: TransformRetriever(leaf, IdentityQueryTransform()),
}
OF_MODULES = ("_build_metadata_filter_fn",)
HARMLESS = ("_should_use_structure_outputs", "_prepare_schema")  # without them, a report is asked for in another way
OWN = ("_query", "_aquery")  # the engine has them itself
OPENINFERENCE = ("_Span", "_process_event")  # of a package that need not be there
REFUSED = [*OF_CLASSES, *OF_ENGINES, *OF_RETRIEVERS, *OF_MODULES]


def test_every_private_name_is_known_here() -> None:
    known = {*REFUSED, *OF_WRAPPERS, *HARMLESS, *OWN, *OPENINFERENCE, "_vector_store"}
    assert private_names(internals) == known


def _engine(**fields: Any) -> tuple[SelfRouteQueryEngine, Any]:
    index = STORES["listing"](split(Document(text=a_text("Ash", 20), id_="a", metadata={"tenant": "north"})))
    retriever = index.as_retriever(filters=only("tenant", "north"))
    return SelfRouteQueryEngine(retriever, documents=StoredDocuments(index), llm=declining(**fields)), retriever


@pytest.mark.parametrize("name", REFUSED)
def test_name_that_has_gone_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, retriever = _engine(is_chat=name != "_get_prompt")
    internals.selects_nodes_as.cache_clear()
    nodes = retriever.retrieve(QUESTION)  # which needs most of them, too
    holder = {**dict.fromkeys(OF_ENGINES, engine), **dict.fromkeys(OF_RETRIEVERS, retriever), **OF_CLASSES}
    for gone in ("build_metadata_filter_fn", name) if name in OF_MODULES else (name,):
        monkeypatch.delattr(holder.get(name, simple), gone, raising=name not in OF_MODULES)
    with pytest.raises(ConfigurationError, match=r"LlamaIndex has changed .*; use llama-index-core 0\.12"):
        engine.synthesize(QueryBundle(QUESTION), nodes)
    internals.selects_nodes_as.cache_clear()


@pytest.mark.parametrize("name", list(OF_WRAPPERS))
def test_a_name_of_a_wrapper_that_has_gone_is_said_too(name: str) -> None:
    engine, retriever = _engine()
    nodes, wrapper = retriever.retrieve(QUESTION), OF_WRAPPERS[name](retriever)
    delattr(wrapper, name)
    with pytest.raises(ConfigurationError, match=r"LlamaIndex has changed .*; use llama-index-core 0\.12"):
        engine.with_retriever(wrapper).synthesize(QueryBundle(QUESTION), nodes)


def test_store_that_is_no_longer_named_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, retriever = _engine()
    nodes = retriever.retrieve(QUESTION)
    monkeypatch.delattr(retriever, "_vector_store")
    response = engine.synthesize(QueryBundle(QUESTION), nodes)  # the node alone vouches for the document
    assert str(response) == text_of(FINAL)


@pytest.mark.parametrize("name", HARMLESS)
def test_model_without_a_response_format(name: str) -> None:
    class Model:
        def _should_use_structure_outputs(self) -> bool:
            return True

        def _prepare_schema(self, options: Any, report: Any) -> Any:
            return {"response_format": report}

    assert internals.report_options(Model(), dict)
    delattr(Model, name)
    assert internals.report_options(Model(), dict) == {}


@pytest.mark.matrix
def test_nothing_private_is_needed_at_import() -> None:
    run(f"""
import llama_index.core
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core import StorageContext
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)
from llama_index.core.vector_stores import simple
for name in {sorted(private_names(internals) | {"build_metadata_filter_fn"})}:
    for holder in (LLM, RetrieverQueryEngine, VectorIndexRetriever, simple):
        if name in vars(holder):
            delattr(holder, name)
import llamaindex_selfroute
""")
