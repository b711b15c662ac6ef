"""Refuse arguments of the wrong kind, such as an index in place of a retriever."""

from __future__ import annotations

from inspect import isroutine
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.schema import BaseComponent, BaseNode

from selfroute.arguments import Wanted
from selfroute.documents.stored import StoredReader
from selfroute.errors import ConfigurationError

_RETRIEVER = Wanted("a retriever", "pass index.as_retriever(similarity_top_k=5)")
_MODEL = Wanted("a LlamaIndex LLM", 'pass the model itself, such as OpenAI(model="gpt-4o-mini")')
_DOCUMENTS = Wanted(
    "a list of Documents, or a callable, sync or async, that takes (nodes, query_bundle) and returns them",
    "pass StoredDocuments(index) with the index that the retriever searches, or the Documents in a list",
)
_INDEX = Wanted(
    "an index, such as a VectorStoreIndex",
    "pass the index that the retriever searches, or VectorStoreIndex.from_vector_store(vector_store)",
)
_SYNTHESIZER = Wanted(
    "a SelfRouteSynthesizer",
    "pass SelfRouteSynthesizer(documents=..., llm=...), or leave it out and pass documents= and llm= instead",
)
_CALLBACKS = Wanted("a CallbackManager", "pass CallbackManager([handler])")
_POSTPROCESSORS = Wanted("a list of node postprocessors", "pass [SimilarityPostprocessor(similarity_cutoff=0.7)]")


def check_retriever(value: Any) -> None:
    """Check an argument for a retriever."""
    _RETRIEVER.check("retriever", value, fits=isinstance(value, BaseRetriever) or hasattr(value, "retrieve"))


def check_model(name: str, value: Any) -> None:
    """Check an argument for a model."""
    if isinstance(value, StructuredLLM):
        msg = f"{name} is a StructuredLLM, which cannot write the refusal: pass the LLM itself"
        raise ConfigurationError(msg)
    _MODEL.check(name, value, fits=isinstance(value, LLM))


def check_documents(value: Any) -> None:
    """Check an argument for the source of whole documents; a list is not empty."""
    if isinstance(value, list | tuple):
        if not value:
            msg = "documents is empty: the second step would have nothing to read"
            raise ConfigurationError(msg)
        fits = all(isinstance(document, BaseNode) for document in value)
    else:
        fits = isinstance(value, StoredReader) or isroutine(value) or _is_users_own(value)
    _DOCUMENTS.check("documents", value, fits=fits)


def _is_users_own(value: Any) -> bool:
    """Return whether a callable is not LlamaIndex's: its embeddings and postprocessors can be called, too."""
    return callable(value) and not isinstance(value, BaseComponent)


def check_index(value: Any) -> None:
    """Check an argument for an index."""
    _INDEX.check("index", value, fits=isinstance(value, BaseIndex))


def check_callbacks(value: Any) -> None:
    """Check an argument for the callback manager."""
    _CALLBACKS.check("callback_manager", value, fits=isinstance(value, CallbackManager))


def check_postprocessors(value: Any) -> None:
    """Check an argument for the postprocessors of an engine."""
    fits = isinstance(value, list | tuple)
    wrong = (
        [one for one in value if isinstance(one, type) or not hasattr(one, "postprocess_nodes")] if fits else [value]
    )
    _POSTPROCESSORS.check("node_postprocessors", wrong[0] if wrong else value, fits=not wrong)


def check_synthesizer(value: Any, kind: type) -> None:
    """Check an argument for the synthesizer, which is of this class."""
    _SYNTHESIZER.check("response_synthesizer", value, fits=isinstance(value, kind))
