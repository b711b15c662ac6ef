"""The user's texts, and what finds passages of them by their words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from typing_extensions import override

from langchain_selfroute import StoredDocuments
from selfroute.documents.index import Index
from selfroute.documents.sections import best_by_words
from selfroute_workbench.command.texts import Text, split


class _NoVectors(Embeddings):
    """Vectors of no dimension: the store is read, and never searched."""

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[] for _ in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        return []


class _ByWords(BaseRetriever):
    """Finds passages of a library by their words."""

    library: Any
    k: int

    @override
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        found: list[Document] = self.library.find(query, self.k)
        return found


class Library:
    """Texts, and a search over their passages by BM25, which needs neither an embedding model nor an index on disk."""

    def __init__(self, texts: Sequence[Text]) -> None:
        """Split texts into passages."""
        self.texts = {text.source: text for text in texts}
        self.passages = {str(passage.id): passage for text in texts for passage in split(text)}

    @property
    def documents(self) -> StoredDocuments:
        """The whole texts, as a chain takes its `documents`."""
        return self._documents

    def only(self, text: Text) -> Library:
        """Return the same of one text alone."""
        return Library([text])

    def retriever(self, count: int) -> BaseRetriever:
        """Return what finds passages."""
        return _ByWords(library=self, k=count)

    def find(self, question: str, count: int) -> list[Document]:
        """Return so many passages, those first that share most words with a question."""
        passages = list(self.passages.values())
        best = best_by_words(question, self._indexes)[:count]
        found = set(best)
        rest = (number for number in range(len(passages)) if number not in found)
        return [passages[number] for number, _ in zip((*best, *rest), range(count), strict=False)]

    @cached_property
    def _documents(self) -> StoredDocuments:
        store = InMemoryVectorStore(_NoVectors())
        store.add_documents(list(self.passages.values()))
        return StoredDocuments(store, filter={})

    @cached_property
    def _indexes(self) -> list[Index]:
        return [Index(passage.page_content) for passage in self.passages.values()]
