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

from langchain_selfroute.bound import ChainMethods
from langchain_selfroute.prompts import filling
from selfroute.arguments import Expected, check_takes
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.errors import ConfigurationError

_ANSWERING = (BaseLanguageModel, BasePromptTemplate)
_OTHER_PARTS = (Runnable, Embeddings, BaseStoredDocuments, BaseStore, Document, list, dict, str)


def _runnable_but(*others: type) -> Callable[[Any], bool]:
    """Return a test for a runnable that is not, and does not bind, retry or configure, one of these."""

    def fits(value: Any) -> bool:
        while isinstance(value, RunnableBindingBase):
            value = value.bound
        return isinstance(value, Runnable) and not isinstance(value, others)

    return fits


_is_other = _runnable_but(*_ANSWERING, BaseRetriever)


def _are_documents(value: Any) -> bool:
    if value == []:
        msg = "documents is empty: the last step would have nothing to read"
        raise ConfigurationError(msg)
    if isinstance(value, list):
        return all(isinstance(document, Document) for document in value)
    return _is_other(value) if isinstance(value, Runnable) else callable(value)


_MODEL = Expected(
    "a chat model or a runnable around one",
    'pass the model itself, such as init_chat_model("openai:gpt-4o-mini") or ChatOpenAI(model="gpt-4o-mini")',
    _runnable_but(BaseRetriever, BasePromptTemplate, ChainMethods),  # the last is a chain
)
_PROMPT = Expected(
    "a prompt template or another runnable that returns a prompt",
    'pass ChatPromptTemplate.from_template("... {context} ... {input}")',
    _runnable_but(BaseRetriever, BaseLanguageModel),
)
PARTS: Mapping[str, Expected] = {
    "retriever": Expected(
        "a retriever or another runnable that returns Documents",
        'pass vectorstore.as_retriever(search_kwargs={"k": 5}), or your function in a RunnableLambda',
        _runnable_but(*_ANSWERING),
    ),
    "llm": _MODEL,
    "long_context_llm": _MODEL,
    "documents": Expected(
        "a list of Documents, or a runnable or callable that takes {**inputs, 'retrieved': [...]} and returns one",
        "pass StoredDocuments(vectorstore) with the store that the retriever searches, or the Documents in a list",
        _are_documents,
    ),
    "rag_prompt": _PROMPT,
    "long_context_prompt": _PROMPT,
    "document_prompt": Expected(
        "a prompt template",
        'pass PromptTemplate.from_template("{source}: {page_content}")',
        lambda value: isinstance(value, BasePromptTemplate),
    ),
    "start": Expected(
        "'rag', 'sections', 'auto' or 'long_context', or a callable or runnable over the inputs that returns one of "
        "them",
        "pass a function, such as lambda inputs: 'long_context'",
        lambda value: _is_other(value) or not isinstance(value, Runnable),
    ),
}
"""What the fields of a chain take that hold a part of LangChain."""


def refuse_missing(name: str) -> None:
    """Refuse to do without a retriever or a model.

    Raises:
        ConfigurationError: It is missing.
    """
    if name in ("retriever", "llm"):
        msg = f"{name} is missing: {PARTS[name].how}"
        raise ConfigurationError(msg)


def checked(name: str, value: Any) -> Any:
    """Return the value of a part of the chain, checked.

    Raises:
        ConfigurationError: The field does not take it.
    """
    if value is None and name in ("long_context_llm", "document_prompt"):
        return None
    PARTS[name].check(name, value)
    if name == "documents" and not isinstance(value, list | Runnable):
        check_takes(name, value, "inputs")
    if name in ("rag_prompt", "long_context_prompt"):
        filling.check(name, value)
    return value


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
    how = "pass the store that holds the chunks, such as Chroma or FAISS; a retriever's is retriever.vectorstore"
    Expected("a vector store", how, lambda _: fits).check("vectorstore", value)
