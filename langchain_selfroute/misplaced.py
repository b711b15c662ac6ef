"""Refuse LangChain's parts where another one is wanted, such as a vector store in place of a retriever."""

from __future__ import annotations

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

from selfroute.documents.stored import StoredReader
from selfroute.misplaced import Kinds, Place

_STORE, _RETRIEVER, _MODEL = "a vector store", "a retriever", "a model"
_EMBEDDINGS, _STORED, _DOCSTORE = "embeddings", "a source of documents", "a document store"
_DOCUMENT, _LIST, _PROMPT = "a document", "a list", "a prompt"
_KINDS = Kinds(
    {
        _STORE: VectorStore,
        _RETRIEVER: BaseRetriever,
        _MODEL: BaseLanguageModel,
        _EMBEDDINGS: Embeddings,
        _STORED: StoredReader,
        _DOCSTORE: BaseStore,
        _DOCUMENT: Document,
        _LIST: list,
        _PROMPT: BasePromptTemplate,
    }
)
_AS_RETRIEVER = 'pass vectorstore.as_retriever(search_kwargs={"k": 5})'
_WRAPPED = "wrap it, RunnableLambda(your_function)"
_AS_DOCUMENTS = "pass it as documents=, and vectorstore.as_retriever() as retriever="
_AS_MODEL = 'pass the model itself, init_chat_model("openai:gpt-4o-mini") or ChatOpenAI(model="gpt-4o-mini")'
_NAMED = "pass the model itself, init_chat_model({name}) or ChatOpenAI(model={name})"
_AS_STORED = "pass StoredDocuments(vectorstore), with the store that the retriever searches"
_FROM_DOCUMENTS = "pass the store that holds them, such as Chroma.from_documents(documents, embeddings)"

_RETRIEVERS = Place(
    "a retriever or another runnable that returns Documents",
    _AS_RETRIEVER,
    {
        "function": _WRAPPED,
        _MODEL: f"pass it as llm=, and for this {_AS_RETRIEVER.removeprefix('pass ')}",
        _EMBEDDINGS: f"{_AS_RETRIEVER}, of a store that embeds with them",
        _STORED: _AS_DOCUMENTS,
        _DOCUMENT: _AS_DOCUMENTS,
        _LIST: _AS_DOCUMENTS,
        _DOCSTORE: "pass it as StoredDocuments(vectorstore, docstore=...), and vectorstore.as_retriever() for this",
    },
)
_MODELS = Place(
    "a chat model or a runnable around one",
    _AS_MODEL,
    {
        "function": _WRAPPED,
        "text": _NAMED,
        _STORE: f"pass the store to from_vectorstore(vectorstore, llm), and for this {_AS_MODEL.removeprefix('pass ')}",
        _RETRIEVER: f"pass it as retriever=, and for this {_AS_MODEL.removeprefix('pass ')}",
    },
)
_SOURCES = Place(
    "a list of Documents, or a runnable or callable that takes {**inputs, 'retrieved': [...]} and returns one",
    "pass StoredDocuments(vectorstore), or the Documents in a list",
    {
        _STORE: "pass StoredDocuments(vectorstore)",
        _RETRIEVER: _AS_STORED,
        _MODEL: _AS_STORED,
        _EMBEDDINGS: _AS_STORED,
        _DOCSTORE: "pass StoredDocuments(vectorstore, docstore=docstore)",
    },
)
_STORES = Place(
    "a vector store",
    "pass the store that holds the chunks, such as Chroma or FAISS",
    {
        _RETRIEVER: "pass the store that it searches, retriever.vectorstore",
        _MODEL: "pass the store first, from_vectorstore(vectorstore, llm) or StoredDocuments(vectorstore)",
        _EMBEDDINGS: "pass the store that embeds with them",
        _STORED: "pass the store that it reads; StoredDocuments itself goes to SelfRouteChain(documents=...)",
        _DOCUMENT: _FROM_DOCUMENTS,
        _LIST: _FROM_DOCUMENTS,
        _DOCSTORE: "pass the store that holds the chunks; this one goes to docstore=",
    },
)
_AS_PROMPT = 'pass ChatPromptTemplate.from_template("... {context} ... {input}")'
_PROMPTS = Place(
    "a prompt template or another runnable that returns a prompt",
    _AS_PROMPT,
    {"function": _WRAPPED, "text": "pass ChatPromptTemplate.from_template(text)"},
)
_FORMATS = Place("a prompt template", 'pass PromptTemplate.from_template("{source}: {page_content}")')
_STARTS = Place(
    "'rag', 'auto' or 'long_context', or a callable or runnable that takes the inputs and returns one of them",
    "pass a function, such as lambda inputs: 'long_context'",
)


def checked_retriever(name: str, value: Any) -> Any:
    """Return a part that is given as a retriever.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, Runnable) or _kind(value) in (_MODEL, _PROMPT):
        _KINDS.refuse(name, _within(value), _RETRIEVERS)
    return value


def checked_model(name: str, value: Any) -> Any:
    """Return a part that is given as a model.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, Runnable) or _kind(value) in (_RETRIEVER, _PROMPT):
        _KINDS.refuse(name, _within(value), _MODELS)
    return value


def checked_prompt(name: str, value: Any) -> Any:
    """Return a part that is given as the prompt of a step.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, Runnable) or _kind(value) in (_RETRIEVER, _MODEL):
        _KINDS.refuse(name, _within(value), _PROMPTS)
    return value


def checked_format(name: str, value: Any) -> Any:
    """Return a part that is given as the template of a document.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(value, BasePromptTemplate):
        _KINDS.refuse(name, _within(value), _FORMATS)
    return value


def checked_start(value: Any) -> Any:
    """Return what is given to choose the first step.

    Raises:
        ConfigurationError: It is a part that cannot choose.
    """
    if isinstance(value, Runnable) and _kind(value) in (_RETRIEVER, _MODEL, _PROMPT):
        _KINDS.refuse("start", _within(value), _STARTS)
    return value


def checked_documents(value: Any) -> Any:
    """Return a part that is given as the source of whole documents; a list is not empty.

    Raises:
        ConfigurationError: It is something else.
    """
    usable = isinstance(value, Runnable) or (callable(value) and not isinstance(value, type))
    if isinstance(value, list):
        usable = all(isinstance(document, Document) for document in value)
    if not usable or _kind(value) in (_MODEL, _RETRIEVER, _PROMPT):
        _KINDS.refuse("documents", _within(value), _SOURCES)
    return value


def checked_store(value: Any, *, searched: bool = False) -> None:
    """Check a part that is given as a vector store.

    Args:
        value: The part. It may be a store of an unknown kind, which only the user's own `fetch` can list.
        searched: Whether a retriever is to be made of it.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, VectorStore):
        return
    known = value is None or isinstance(value, Runnable) or _KINDS.of(value) is not None
    if known or (searched and not hasattr(value, "as_retriever")):
        _KINDS.refuse("vectorstore", _within(value), _STORES)


def _kind(value: Any) -> str | None:
    return _KINDS.of(_within(value))


def _within(value: Any) -> Any:
    """Return what is bound, retried or configured, if the value is such a wrapper."""
    while isinstance(value, RunnableBindingBase):
        value = value.bound
    return value
