"""Refuse arguments and fields of the wrong kind, such as an index in place of a retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isroutine
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseComponent, BaseNode
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_selfroute.convert import Source, checked_prompt
from selfroute.answerability.structured import Answerability
from selfroute.arguments import Wanted, check_takes
from selfroute.calls.settings import Options, Settings, checked
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.errors import ConfigurationError

PROMPTS = ("rag_prompt", "long_context_prompt")
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
_FILTERS = Wanted("MetadataFilters", 'pass MetadataFilters(filters=[MetadataFilter(key="tenant", value="north")])')
_CALLBACKS = Wanted("a CallbackManager", "pass CallbackManager([handler])")
_POSTPROCESSORS = Wanted("a list of node postprocessors", "pass [SimilarityPostprocessor(similarity_cutoff=0.7)]")


def check_retriever(value: Any) -> None:
    """Check an argument for a retriever."""
    if isinstance(value, BaseQueryEngine):
        msg = (
            f"retriever is a {type(value).__name__}: pass index.as_retriever(), or use SelfRouteQueryEngine.from_index"
        )
        raise ConfigurationError(msg)
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
            msg = "documents is empty: the last step would have nothing to read"
            raise ConfigurationError(msg)
        fits = all(isinstance(document, BaseNode) for document in value)
    else:
        fits = isinstance(value, BaseStoredDocuments) or isroutine(value) or _is_users_own(value)
    _DOCUMENTS.check("documents", value, fits=fits)
    if not isinstance(value, list | tuple):
        check_takes("documents", value, "nodes", "query_bundle")


def _is_users_own(value: Any) -> bool:
    """Return whether a callable is not LlamaIndex's: its embeddings and postprocessors can be called, too."""
    return callable(value) and not isinstance(value, BaseComponent)


def check_index(value: Any) -> None:
    """Check an argument for an index."""
    _INDEX.check("index", value, fits=isinstance(value, BaseIndex))


def check_filters(value: Any) -> None:
    """Check an argument for the filters."""
    _FILTERS.check("filters", value, fits=isinstance(value, MetadataFilters | None))


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


class SynthesizerFields(Options, total=False):
    """The optional keyword arguments of `SelfRouteSynthesizer`, which documents them."""

    long_context_llm: LLM | None
    rag_prompt: BasePromptTemplate | None
    long_context_prompt: BasePromptTemplate | None
    document_prompt: BasePromptTemplate | None
    streaming: bool


class CheckedFields:
    """The fields of a synthesizer, checked whenever they are set; they count from the next query on.

    What LlamaIndex also reads is kept under LlamaIndex's own names.

    Attributes:
        documents: Where the whole documents come from.
        long_context_llm: The model of the last step; None for `llm`.
        rag_prompt: The prompt of the first step.
        long_context_prompt: The prompt of the last step.
        document_prompt: Formats each node and document in the context; None for their own format.
    """

    if TYPE_CHECKING:  # a value is checked when it is set, so what is read has the right type
        answerability: Answerability | None
        documents: Source
        long_context_llm: LLM | None
        rag_prompt: BasePromptTemplate
        long_context_prompt: BasePromptTemplate
        document_prompt: BasePromptTemplate | None
        _llm: LLM
        _streaming: bool
        _callback_manager: CallbackManager

        def __setattr__(self, name: str, value: Any) -> None: ...

    else:

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, _CHECKS[name](value) if name in _CHECKS else value)

    @property
    def llm(self) -> LLM:
        """The model of the first step."""
        return self._llm

    @llm.setter
    def llm(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def streaming(self) -> bool:
        """Whether to answer in pieces."""
        return self._streaming

    @streaming.setter
    def streaming(self, streaming: bool) -> None:
        self._streaming = streaming

    @property
    def callback_manager(self) -> CallbackManager:
        """The callback manager; setting it sets it on both models."""
        return self._callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        self._callback_manager = callback_manager
        for model in (self.llm, self.long_context_llm):
            if model:
                model.callback_manager = callback_manager


def _passing(check: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Return a function that checks a value and returns it."""

    def passed(value: Any) -> Any:
        check(value)
        return value

    return passed


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "documents": _passing(check_documents),
    "callback_manager": _passing(check_callbacks),
    "llm": _passing(partial(check_model, "llm")),
    "long_context_llm": _optional(_passing(partial(check_model, "long_context_llm"))),
    "document_prompt": _optional(partial(checked_prompt, "document_prompt", variables={"content"})),
    **{name: partial(checked_prompt, name) for name in PROMPTS},
    **{name: partial(checked, name) for name in Settings.model_fields},
}
