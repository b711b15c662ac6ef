"""Refuse LlamaIndex's parts where another one is wanted, such as an index in place of a retriever."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from selfroute.documents.stored import StoredReader
from selfroute.errors import ConfigurationError
from selfroute.misplaced import Kinds, Place

_INDEX, _STORE, _RETRIEVER, _MODEL = "an index", "a vector store", "a retriever", "a model"
_EMBEDDINGS, _STORED, _DOCSTORE = "an embedding model", "a source of documents", "a document store"
_NODE, _LIST, _SYNTHESIZER = "a node", "a list", "a response synthesizer"
_KINDS = Kinds(
    {
        _INDEX: BaseIndex,
        _STORE: BasePydanticVectorStore,
        _RETRIEVER: BaseRetriever,
        _MODEL: LLM,
        _EMBEDDINGS: BaseEmbedding,
        _STORED: StoredReader,
        _DOCSTORE: BaseDocumentStore,
        _SYNTHESIZER: BaseSynthesizer,
        _NODE: BaseNode,
        _LIST: (list, tuple),
    }
)
_AS_RETRIEVER = "pass index.as_retriever(similarity_top_k=5)"
_OF_STORE = "VectorStoreIndex.from_vector_store(vector_store)"
_AS_DOCUMENTS = "pass it as documents=, and index.as_retriever() for this"
_AS_STORED = "pass StoredDocuments(index), with the index that the retriever searches"
_AS_MODEL = 'pass the model itself, such as OpenAI(model="gpt-4o-mini")'
_AS_INDEX = "pass the index, such as VectorStoreIndex.from_documents(documents)"

_RETRIEVERS = Place(
    "a retriever",
    _AS_RETRIEVER,
    {
        _STORE: f"pass {_OF_STORE}.as_retriever(similarity_top_k=5)",
        _MODEL: "pass it as llm=, and index.as_retriever(similarity_top_k=5) for this",
        _STORED: _AS_DOCUMENTS,
        _NODE: _AS_DOCUMENTS,
        _LIST: _AS_DOCUMENTS,
        _SYNTHESIZER: "pass it as response_synthesizer=, and index.as_retriever(similarity_top_k=5) for this",
    },
)
_MODELS = Place(
    "a LlamaIndex LLM",
    _AS_MODEL,
    {
        "text": "pass the model itself, such as OpenAI(model={name}) from llama_index.llms.openai",
        _INDEX: f"pass it to from_index(index, llm=...), and for this {_AS_MODEL.removeprefix('pass ')}",
        _RETRIEVER: f"pass it as retriever=, and for this {_AS_MODEL.removeprefix('pass ')}",
    },
)
_SOURCES = Place(
    "a list of Documents, or a callable, sync or async, that takes (nodes, query_bundle) and returns them",
    "pass StoredDocuments(index), or the Documents in a list",
    {
        _INDEX: "pass StoredDocuments(index)",
        _STORE: f"pass StoredDocuments({_OF_STORE})",
        _RETRIEVER: _AS_STORED,
        _MODEL: _AS_STORED,
        _EMBEDDINGS: _AS_STORED,
        _SYNTHESIZER: _AS_STORED,
        _DOCSTORE: "pass StoredDocuments(index, docstore=docstore)",
    },
)
_INDICES = Place(
    "an index, such as a VectorStoreIndex",
    _AS_INDEX,
    {
        _STORE: f"pass {_OF_STORE}",
        _RETRIEVER: "pass the index that it was made from, or SelfRouteQueryEngine(retriever, documents=...)",
        _MODEL: "pass the index first, and the model as llm=",
        _EMBEDDINGS: "pass the index that embeds with it, VectorStoreIndex.from_documents(documents, embed_model=...)",
        _STORED: "pass the index that it reads; StoredDocuments itself goes to SelfRouteQueryEngine(documents=...)",
        _DOCSTORE: "pass the index; the document store goes to StoredDocuments(index, docstore=...)",
    },
)
_SYNTHESIZERS = Place(
    "a SelfRouteSynthesizer",
    "pass SelfRouteSynthesizer(documents=..., llm=...), or leave it out and pass documents= and llm= instead",
    {
        _MODEL: "pass it as llm=",
        _STORED: "pass it as documents=",
        _NODE: "pass it in a list as documents=",
        _LIST: "pass it as documents=",
        _INDEX: "pass StoredDocuments(index) as documents=",
    },
)
_CALLBACKS = Place("a CallbackManager", "pass CallbackManager([handler])", {_LIST: "pass CallbackManager(handlers)"})
_POSTPROCESSORS = Place("a list of node postprocessors", "pass [SimilarityPostprocessor(similarity_cutoff=0.7)]")


def check_retriever(value: Any) -> None:
    """Check a part that is given as a retriever.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, type) or not (isinstance(value, BaseRetriever) or hasattr(value, "retrieve")):
        _KINDS.refuse("retriever", value, _RETRIEVERS)


def check_model(name: str, value: Any) -> None:
    """Check a part that is given as a model.

    Raises:
        ConfigurationError: It is something else, or a StructuredLLM.
    """
    if isinstance(value, StructuredLLM):
        msg = f"{name} is a StructuredLLM, which cannot write the refusal: pass the LLM itself"
        raise ConfigurationError(msg)
    if not isinstance(value, LLM):
        _KINDS.refuse(name, value, _MODELS)


def checked_documents(value: Any) -> Any:
    """Return a part that is given as the source of whole documents; a list is not empty.

    Raises:
        ConfigurationError: It is something else, or an empty list.
    """
    if isinstance(value, list | tuple):
        if not value:
            msg = "documents is empty: the second step would have nothing to read"
            raise ConfigurationError(msg)
        usable = all(isinstance(document, BaseNode) for document in value)
    else:
        usable = callable(value) and (isinstance(value, StoredReader) or _KINDS.of(value) in {None, "function"})
    if not usable:
        _KINDS.refuse("documents", value, _SOURCES)
    return value


def check_index(value: Any) -> None:
    """Check a part that is given as an index.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, BaseIndex):
        _KINDS.refuse("index", value, _INDICES)


def checked_callbacks(value: Any) -> CallbackManager:
    """Return a part that is given as the callback manager.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, CallbackManager):
        _KINDS.refuse("callback_manager", value, _CALLBACKS)
    return value


def check_postprocessors(value: Any) -> None:
    """Check what is given as the postprocessors of an engine.

    Raises:
        ConfigurationError: It is no list, or one of them is something else.
    """
    items = value if isinstance(value, list | tuple) else (value,)
    wrong = [one for one in items if isinstance(one, type) or not hasattr(one, "postprocess_nodes")]
    if wrong or items is not value:
        _KINDS.refuse("node_postprocessors", wrong[0] if wrong else value, _POSTPROCESSORS)


def refuse_synthesizer(value: Any) -> None:
    """Refuse a part that is given as a response synthesizer.

    Raises:
        ConfigurationError: Always.
    """
    _KINDS.refuse("response_synthesizer", value, _SYNTHESIZERS)
