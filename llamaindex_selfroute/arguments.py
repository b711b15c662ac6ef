"""Refuse arguments and fields of the wrong kind, such as an index in place of a retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isroutine
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.memory import BaseMemory
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseComponent, BaseNode
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_selfroute.convert import Source
from llamaindex_selfroute.prompts.filling import checked_prompt
from selfroute.answerability.structured import Answerability
from selfroute.arguments import Expected, check_takes, refuse_unknown
from selfroute.calls.settings import DEFAULTS, Options, Settings, checked
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.errors import ConfigurationError

PROMPTS = ("rag_prompt", "long_context_prompt")


def _are_documents(value: Any) -> bool:
    if isinstance(value, list | tuple):
        if not value:
            msg = "documents is empty: the last step would have nothing to read"
            raise ConfigurationError(msg)
        return all(isinstance(document, BaseNode) for document in value)
    if isinstance(value, BaseStoredDocuments) or isroutine(value):
        return True
    return callable(value) and not isinstance(value, BaseComponent)  # LlamaIndex's embeddings can be called, too


def _is_kind(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


_RETRIEVER = Expected(
    "a retriever",
    "pass index.as_retriever(similarity_top_k=5)",
    lambda value: isinstance(value, BaseRetriever) or hasattr(value, "retrieve"),
)
_MODEL = Expected("a LlamaIndex LLM", 'pass the model itself, such as OpenAI(model="gpt-4o-mini")', _is_kind(LLM))
_DOCUMENTS = Expected(
    "a list of Documents, or a callable, sync or async, that takes (nodes, query_bundle) and returns them",
    "pass StoredDocuments(index) with the index that the retriever searches, or the Documents in a list",
    _are_documents,
)
_INDEX = Expected(
    "an index, such as a VectorStoreIndex",
    "pass the index that the retriever searches, or VectorStoreIndex.from_vector_store(vector_store)",
    _is_kind(BaseIndex),
)
_FILTERS = Expected(
    "MetadataFilters",
    'pass MetadataFilters(filters=[MetadataFilter(key="tenant", value="north")])',
    _is_kind(MetadataFilters | None),
)
_CALLBACKS = Expected("a CallbackManager", "pass CallbackManager([handler])", _is_kind(CallbackManager))
_POSTPROCESSORS = Expected(
    "a list of node postprocessors", "pass [SimilarityPostprocessor(similarity_cutoff=0.7)]", lambda _: False
)
check_index = partial(_INDEX.check, "index")
check_filters = partial(_FILTERS.check, "filters")
_MEMORY = Expected("a memory", "pass ChatMemoryBuffer.from_defaults() of llama_index.core.memory", _is_kind(BaseMemory))
check_memory = partial(_MEMORY.check, "memory")
check_callbacks = partial(_CALLBACKS.check, "callback_manager")


def check_postprocessors(value: Any) -> None:
    """Check an argument for the postprocessors of an engine."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if one is value or isinstance(one, type) or not hasattr(one, "postprocess_nodes"):
            _POSTPROCESSORS.check("node_postprocessors", one)


def check_retriever(value: Any) -> None:
    """Check an argument for a retriever."""
    if isinstance(value, BaseQueryEngine):
        msg = (
            f"retriever is a {type(value).__name__}: pass index.as_retriever(), or use SelfRouteQueryEngine.from_index"
        )
        raise ConfigurationError(msg)
    _RETRIEVER.check("retriever", value)


def check_model(name: str, value: Any) -> Any:
    """Return an argument for a model, checked."""
    if isinstance(value, StructuredLLM):
        msg = f"{name} is a StructuredLLM, which cannot write the refusal: pass the LLM itself"
        raise ConfigurationError(msg)
    return _MODEL.check(name, value)


def _checked_documents(value: Any) -> Any:
    if not isinstance(_DOCUMENTS.check("documents", value), list | tuple):
        check_takes("documents", value, "nodes", "query_bundle")
    return value


class SynthesizerFields(Options, total=False):
    """The optional keyword arguments of `SelfRouteSynthesizer`, which documents them."""

    long_context_llm: LLM | None
    rag_prompt: BasePromptTemplate | None
    long_context_prompt: BasePromptTemplate | None
    document_prompt: BasePromptTemplate | None
    streaming: bool


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse an option that a synthesizer does not have, with what stands for it."""
    if unknown := fields.keys() - SynthesizerFields.__annotations__.keys():
        refuse_unknown(min(unknown), known=SynthesizerFields.__annotations__)


def _kept_as(name: str, doc: str) -> Any:
    """Return a property whose value is kept under LlamaIndex's own name."""
    return property(attrgetter(name), lambda self, value: setattr(self, name, value), doc=doc)


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

    llm = _kept_as("_llm", "The model of the first step.")
    streaming = _kept_as("_streaming", "Whether to answer in pieces.")

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


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "documents": _checked_documents,
    "callback_manager": check_callbacks,
    "llm": partial(check_model, "llm"),
    "long_context_llm": _optional(partial(check_model, "long_context_llm")),
    "document_prompt": _optional(partial(checked_prompt, "document_prompt", variables={"content"})),
    **{name: partial(checked_prompt, name) for name in PROMPTS},
    **{name: partial(checked, name) for name in Settings.model_fields},
}


_FIELD_DEFAULTS = {**vars(DEFAULTS), "streaming": False}  # the default of all other fields is None


def check_alone(synthesizer: Any, fields: dict[str, Any]) -> None:
    """Check that the fields of a synthesizer are not also passed separately."""
    if fields["llm"] is synthesizer.llm:
        del fields["llm"]  # LlamaIndex passes it to its own engines along with a synthesizer, too
    twice = [name for name, value in fields.items() if value != _FIELD_DEFAULTS.get(name)]
    if twice:
        msg = f"pass {', '.join(twice)} to the response_synthesizer, which holds these fields"
        raise ConfigurationError(msg)
