"""Refuse arguments of the wrong kind, such as a vector store in place of a retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isroutine
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from langchain_selfroute import prompting
from langchain_selfroute.bound import ChainMethods
from selfroute.arguments import Wanted, check_takes
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.errors import ConfigurationError

_RETRIEVER = Wanted(
    "a retriever or another runnable that returns Documents",
    'pass vectorstore.as_retriever(search_kwargs={"k": 5}), or your function in a RunnableLambda',
)
_MODEL = Wanted(
    "a chat model or a runnable around one",
    'pass the model itself, such as init_chat_model("openai:gpt-4o-mini") or ChatOpenAI(model="gpt-4o-mini")',
)
_PROMPT = Wanted(
    "a prompt template or another runnable that returns a prompt",
    'pass ChatPromptTemplate.from_template("... {context} ... {input}")',
)
_DOCUMENT_PROMPT = Wanted("a prompt template", 'pass PromptTemplate.from_template("{source}: {page_content}")')
_DOCUMENTS = Wanted(
    "a list of Documents, or a runnable or callable that takes {**inputs, 'retrieved': [...]} and returns one",
    "pass StoredDocuments(vectorstore) with the store that the retriever searches, or the Documents in a list",
)
_START = Wanted(
    "'rag', 'sections', 'auto' or 'long_context', or a callable or runnable over the inputs that returns one of them",
    "pass a function, such as lambda inputs: 'long_context'",
)
_STORE = Wanted(
    "a vector store",
    "pass the store that holds the chunks, such as Chroma or FAISS; a retriever's is retriever.vectorstore",
)
_OTHER_PARTS = (Runnable, Embeddings, BaseStoredDocuments, BaseStore, Document, list, dict, str)


def refuse_missing(name: str) -> None:
    """Refuse to do without a retriever or a model.

    Raises:
        ConfigurationError: It is missing.
    """
    required = {"retriever": _RETRIEVER, "llm": _MODEL}
    if name in required:
        msg = f"{name} is missing: {required[name].how}"
        raise ConfigurationError(msg)


def checked(name: str, value: Any) -> Any:
    """Return the value of a part of the chain, checked.

    Raises:
        ConfigurationError: The field does not take it.
    """
    if not (value is None and name in _OPTIONAL):
        wanted, fits = _PARTS[name]
        wanted.check(name, value, fits=fits(value))
    if name == "documents" and not isinstance(value, list | Runnable):
        check_takes(name, value, "inputs")
    if name in ("rag_prompt", "long_context_prompt"):
        prompting.check(name, value)
    return value


def _are_documents(value: Any) -> bool:
    if value == []:
        msg = "documents is empty: the last step would have nothing to read"
        raise ConfigurationError(msg)
    if isinstance(value, list):
        return all(isinstance(document, Document) for document in value)
    return _OTHER(value) if isinstance(value, Runnable) else callable(value)


def _runnable_but(*others: type) -> Callable[[Any], bool]:
    """Return a test for a runnable that is not, and does not bind, retry or configure, one of these."""

    def fits(value: Any) -> bool:
        while isinstance(value, RunnableBindingBase):
            value = value.bound
        return isinstance(value, Runnable) and not isinstance(value, others)

    return fits


_ANSWERING = (BaseLanguageModel, BasePromptTemplate)
_A_MODEL = _runnable_but(BaseRetriever, BasePromptTemplate, ChainMethods)  # the last is a chain
_A_PROMPT = _runnable_but(BaseRetriever, BaseLanguageModel)
_OTHER = _runnable_but(*_ANSWERING, BaseRetriever)
_OPTIONAL = {"long_context_llm", "document_prompt"}
_PARTS: Mapping[str, tuple[Wanted, Callable[[Any], bool]]] = {
    "retriever": (_RETRIEVER, _runnable_but(*_ANSWERING)),
    "llm": (_MODEL, _A_MODEL),
    "long_context_llm": (_MODEL, _A_MODEL),
    "documents": (_DOCUMENTS, _are_documents),
    "rag_prompt": (_PROMPT, _A_PROMPT),
    "long_context_prompt": (_PROMPT, _A_PROMPT),
    "document_prompt": (_DOCUMENT_PROMPT, lambda value: isinstance(value, BasePromptTemplate)),
    "start": (
        _START,
        lambda value: _OTHER(value) or not isinstance(value, Runnable),
    ),
}
PARTS = frozenset(_PARTS)
"""The names of the fields that `checked` knows."""


def check_store(value: Any, *, searched: bool = False) -> None:
    """Check an argument for a vector store.

    Args:
        value: The argument. It may be a store of an unknown kind, which only the user's own `fetch` can list.
        searched: Whether a retriever is to be made of it.
    """
    if hasattr(value, "as_query_engine"):
        msg = "vectorstore is a LlamaIndex index: use SelfRouteQueryEngine.from_index(index) of llamaindex_selfroute"
        raise ConfigurationError(msg)
    unknown = value is not None and not isroutine(value) and not isinstance(value, _OTHER_PARTS)
    fits = isinstance(value, VectorStore) or (unknown and (not searched or hasattr(value, "as_retriever")))
    _STORE.check("vectorstore", value, fits=fits)
