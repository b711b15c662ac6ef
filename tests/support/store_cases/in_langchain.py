"""Stores of LangChain: what all of them share, and those that come with the frameworks' own packages."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from in_chroma import new_chroma
from langchain_parts import ScriptedModel
from langchain_selfroute import SelfRouteChain, StoredDocuments
from store_cases.base import ANSWER, QUESTION, Case, Piece, Read, Routed

SIZE = 8


class HashEmbeddings(Embeddings):
    """Turns a text into numbers that look random and are always the same."""

    def embed_query(self, text: str) -> list[float]:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()
        return [byte / 255 + 0.01 for byte in digest]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@dataclass(frozen=True)
class _Reader:
    stored: Any
    retriever: Any
    within: Any

    def read(self, piece: Piece) -> Read:
        passage = Document(piece.text, metadata={self.stored.source_key: piece.source, "tenant": piece.tenant})
        (document,) = self.stored.limited_to(self.retriever, {})({"input": QUESTION, "retrieved": [passage]})
        return Read(document.page_content, document.metadata["selfroute"])

    def listed(self, piece: Piece) -> int:
        conditions = [] if self.within is None else [self.within]
        return len(list(self.stored._store.chunks(self.stored.source_key, piece.source, conditions)))

    def forget(self) -> None:
        self.stored.forget()


def read(stored: StoredDocuments, source: Any, condition: Any = None, key: str = "source") -> str:
    """Read a document behind the store's own retriever, which has this filter."""
    store = stored._store
    retriever = store.wrapper.as_retriever(search_kwargs={store.filter_key: condition})
    (document,) = stored.limited_to(retriever, {})(
        {"input": QUESTION, "retrieved": [Document("", metadata={key: source})]}
    )
    return str(document.page_content)


class LangChainCase(Case):
    """A vector store of LangChain."""

    vectorstore: VectorStore
    filter_key = "filter"
    source_key = "source"

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        """Index chunks as `add_documents` does."""
        return self.vectorstore.add_documents([_document(piece, self.source_key) for piece in pieces])

    def delete(self, ids: list[str]) -> None:
        self.vectorstore.delete(ids)

    def reader(self, *, within: Any = None, declared: Any = None) -> Any:
        """Read documents behind the store's own retriever."""
        search = {"k": 3} if within is None else {"k": 3, self.filter_key: within}
        stored = StoredDocuments(self.vectorstore, source_key=self.source_key, filter=declared)
        return _Reader(stored, self.vectorstore.as_retriever(search_kwargs=search), within)

    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask through `SelfRouteChain.from_vectorstore`."""
        model = ScriptedModel(draft=("unanswerable",), final=(ANSWER,), marker="Read the following text")
        chain = SelfRouteChain.from_vectorstore(self.vectorstore, model, k=2, source_key=self.source_key, filter=within)
        result = chain.invoke(QUESTION) if mode == "sync" else asyncio.run(chain.ainvoke(QUESTION))
        return Routed(result["route"], result["answer"], model.calls[-1].prompt)


def _document(piece: Piece, source_key: str) -> Document:
    about: dict[str, Any] = {source_key: piece.source, "tenant": piece.tenant}
    return Document(piece.text, metadata=about if piece.start is None else {**about, "start_index": piece.start})


class InMemoryCase(LangChainCase):
    """LangChain's `InMemoryVectorStore`."""

    name = "langchain-memory"
    not_filters = ({"tenant": "north"}, "tenant = 'north'")
    copied = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.vectorstore = InMemoryVectorStore(HashEmbeddings())

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """A callable."""
        return {"callable": lambda document: document.metadata["tenant"] == tenant}

    def dump(self) -> int:
        return len([(entry["text"], entry["metadata"]) for entry in self.vectorstore.store.values()])


class ChromaCase(LangChainCase):
    """Chroma, embedded."""

    name = "langchain-chroma"
    not_filters = (len, "tenant = 'north'")
    needs = ("langchain_chroma",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.vectorstore = new_chroma(HashEmbeddings())

    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Dicts of Chroma's `where`."""
        return {"dict": {"tenant": tenant}, "$in": {"tenant": {"$in": [tenant]}}}

    def dump(self) -> int:
        return len(self.vectorstore.get(include=["documents", "metadatas"])["ids"])


CASES: tuple[type[Case], ...] = (InMemoryCase, ChromaCase)
