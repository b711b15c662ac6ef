"""Real vector stores with small documents in them, and chains on them that decline the passages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from in_chroma import new_chroma
from langchain_parts import QUESTION, ScriptedModel, ask
from langchain_selfroute import SelfRouteChain
from scenarios import DRAFTED, FINAL

KINDS = ("memory", "chroma")
EMBEDDING = DeterministicFakeEmbedding(size=4)
LONG = "Read the following text"  # how the prompt of the second step begins


def text_of(owner: str, paragraphs: int = 9) -> str:
    """A document that names its owner in every chunk."""
    return "\n\n".join(
        f"Paragraph {n} of {owner}: the crane of {owner} lifts {n * n} crates." for n in range(paragraphs)
    )


def chunks_of(text: str, *, size: int = 90, overlap: int = 0, **metadata: Any) -> list[Document]:
    """The chunks of a document, with offsets."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, add_start_index=True)
    return splitter.split_documents([Document(text, metadata=metadata)])


def store_with(
    kind: str, chunks: Iterable[Document] = (), *, of: Any = None, embedding: Any = EMBEDDING, client: Any = None
) -> Any:
    """A store of the kind that holds the chunks; `of` is a class of the user's own, `client` that of a server."""
    chunks = list(chunks)
    if kind == "memory":
        store: Any = (of or InMemoryVectorStore)(embedding)
    else:
        store = new_chroma(embedding, of=of, client=client)
    if chunks:
        store.add_documents(chunks)
    return store


def chroma_class() -> Any:
    """`langchain_chroma.Chroma`, where it is installed."""
    return pytest.importorskip("langchain_chroma").Chroma


def holding(kind: str, **values: Any) -> Any:
    """A filter in the store's own words: the metadata hold these values."""
    if kind == "memory":
        return lambda document: all(document.metadata.get(key) == value for key, value in values.items())
    conditions = [{key: value} for key, value in values.items()]
    return conditions[0] if len(conditions) == 1 else {"$and": conditions}


def a_model(**fields: Any) -> ScriptedModel:
    """Declines the passages, answers from the documents."""
    return ScriptedModel(**{"draft": ("unanswerable",), "final": FINAL, "marker": LONG, **fields})


def chain_on(store: VectorStore, documents: Any, retriever: Any = None, **fields: Any) -> SelfRouteChain:
    """A chain over a store; without a retriever over the store's own."""
    parts = {"retriever": retriever or store.as_retriever(), "llm": a_model(), "documents": documents}
    return SelfRouteChain(**{**DRAFTED, **parts, **fields})


async def read_by(
    chain: Runnable[Any, Any], mode: str = "invoke", config: RunnableConfig | None = None
) -> list[Document]:
    """The documents that the second step of a chain was given."""
    result = await ask(chain, QUESTION, mode, config)
    assert result["route"] == "long_context"
    context: list[Document] = result["context"]
    return context


def prompts_of(model: Any) -> str:
    """All that a model was asked."""
    return "\n".join(call.prompt for call in model.calls)


class Shelf(VectorStore):
    """A store of the user's own, over a list; its filters are callables over the metadata."""

    def __init__(self, chunks: Iterable[Document] = ()) -> None:
        self.chunks = list(chunks)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **_: Any) -> Shelf:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, filter: Any = None, **_: Any) -> list[Document]:  # noqa: A002
        found = (chunk for chunk in reversed(self.chunks) if not filter or filter(chunk.metadata))
        return [chunk for chunk, _ in zip(found, range(k), strict=False)]

    def fetch(self, key: str, source: Any, filter: Any) -> list[Document]:  # noqa: A002
        """What `StoredDocuments(fetch=)` takes."""
        found = (chunk for chunk in self.chunks if chunk.metadata.get(key) == source)
        return [chunk for chunk in found if not filter or filter(chunk.metadata)]
