"""Refuse arguments of the wrong kind, such as a vector store in place of a retriever."""

from __future__ import annotations

from collections.abc import Iterable
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

from selfroute.arguments import Wanted, refuse_unknown
from selfroute.documents.stored import StoredReader
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
    "'rag', 'auto' or 'long_context', or a callable or runnable that takes the inputs and returns one of them",
    "pass a function, such as lambda inputs: 'long_context'",
)
_STORE = Wanted(
    "a vector store",
    "pass the store that holds the chunks, such as Chroma or FAISS; a retriever's is retriever.vectorstore",
)
_OTHER_PARTS = (Runnable, Embeddings, StoredReader, BaseStore, Document, list, dict, str)


def refuse_missing(name: str, problem: str, *, known: Iterable[str]) -> None:
    """Refuse an argument if pydantic found that it is missing or unknown.

    Args:
        name: Its name.
        problem: The type of pydantic's error.
        known: The names that are known.

    Raises:
        ConfigurationError: It is missing or unknown.
    """
    if problem == "extra_forbidden":
        refuse_unknown(name, known=known)
    required = {"retriever": _RETRIEVER, "llm": _MODEL}
    if problem == "missing" and name in required:
        msg = f"{name} is missing: {required[name].how}"
        raise ConfigurationError(msg)


def check_retriever(value: Any) -> None:
    """Check an argument for a retriever."""
    _RETRIEVER.check("retriever", value, fits=_is_runnable(value, other_than=(BaseLanguageModel, BasePromptTemplate)))


def check_model(name: str, value: Any, *, chain: type) -> None:
    """Check an argument for a model, which is not a chain of the class."""
    _MODEL.check(name, value, fits=_is_runnable(value, other_than=(BaseRetriever, BasePromptTemplate, chain)))


def check_prompt(name: str, value: Any) -> None:
    """Check an argument for the prompt of a step."""
    _PROMPT.check(name, value, fits=_is_runnable(value, other_than=(BaseRetriever, BaseLanguageModel)))


def check_document_prompt(value: Any) -> None:
    """Check an argument for the prompt that formats a document."""
    _DOCUMENT_PROMPT.check("document_prompt", value, fits=isinstance(value, BasePromptTemplate))


def check_start(value: Any) -> None:
    """Check a runnable that chooses the first step."""
    parts = (BaseRetriever, BaseLanguageModel, BasePromptTemplate)
    _START.check("start", value, fits=not isinstance(value, Runnable) or _is_runnable(value, other_than=parts))


def check_documents(value: Any) -> None:
    """Check an argument for the source of whole documents."""
    if isinstance(value, list):
        fits = all(isinstance(document, Document) for document in value)
    elif isinstance(value, Runnable):
        fits = _is_runnable(value, other_than=(BaseLanguageModel, BaseRetriever, BasePromptTemplate))
    else:
        fits = callable(value)
    _DOCUMENTS.check("documents", value, fits=fits)


def check_store(value: Any, *, searched: bool = False) -> None:
    """Check an argument for a vector store.

    Args:
        value: The argument. It may be a store of an unknown kind, which only the user's own `fetch` can list.
        searched: Whether a retriever is to be made of it.
    """
    unknown = value is not None and not isroutine(value) and not isinstance(value, _OTHER_PARTS)
    fits = isinstance(value, VectorStore) or (unknown and (not searched or hasattr(value, "as_retriever")))
    _STORE.check("vectorstore", value, fits=fits)


def _is_runnable(value: Any, *, other_than: tuple[type, ...]) -> bool:
    """Return whether a value is a runnable that is not, and does not bind, retry or configure, one of these."""
    while isinstance(value, RunnableBindingBase):
        value = value.bound
    return isinstance(value, Runnable) and not isinstance(value, other_than)
