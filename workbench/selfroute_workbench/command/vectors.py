"""The user's texts, and what finds passages of them by vectors, in an embedded Chroma."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

import chromadb
from chromadb.api import ClientAPI
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from typing_extensions import override

from langchain_selfroute import StoredDocuments
from selfroute.errors import ConfigurationError
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.texts import Text
from selfroute_workbench.demo.splitting import CHUNK_OVERLAP, CHUNK_SIZE, SEPARATORS
from selfroute_workbench.private import make_folder, umask

_BATCH = 64
_PAGE = 5000


class VectorLibrary(Library):
    """Texts and the index of their passages' vectors.

    An index in a folder keeps every text that was ever asked about; a library sees only its own texts.
    """

    def __init__(
        self, texts: Sequence[Text], *, embeddings: Embeddings, embeddings_name: str, folder: Path | None = None
    ) -> None:
        """Open the index."""
        super().__init__(texts)
        self.own = {"text_key": {"$in": [text.key for text in texts]}}
        with umask():  # in a folder that others may look into, Chroma's files are private
            client, name = _open(embeddings_name, folder)
            cosine: Any = {"hnsw": {"space": "cosine"}}
            self.store = Chroma(name, embeddings, client=client, collection_configuration=cosine)

    @property
    @override
    def documents(self) -> StoredDocuments:
        """The whole texts, put together from the index."""
        return StoredDocuments(self.store, filter=self.own)

    @override
    def only(self, text: Text) -> VectorLibrary:
        alone = copy(self)
        alone.texts, alone.own = {text.source: text}, {"text_key": {"$in": [text.key]}}
        return alone

    @override
    def retriever(self, count: int) -> BaseRetriever:
        return self.store.as_retriever(search_kwargs=self.documents.search_kwargs(count))

    def missing(self) -> list[Document]:
        """Return the passages that the index does not hold yet."""
        known: set[str] = set()
        for page in _pages(list(self.passages), _PAGE):
            known.update(self.store.get(list(page), include=[])["ids"])
        return [passage for name, passage in self.passages.items() if name not in known]

    def characters_of(self, passages: Sequence[Document]) -> int:
        """Return how long the texts are, together, that passages belong to."""
        return sum(len(self.texts[source].text) for source in {passage.metadata["source"] for passage in passages})

    def index(self, passages: Sequence[Document], *, on_progress: Callable[[int], object]) -> None:
        """Add passages, and delete those of earlier versions of the same files."""
        for page in _pages(passages, _BATCH):
            with umask():
                self.store.add_documents(list(page))
            on_progress(len(page))
        for text in {self.texts[passage.metadata["source"]] for passage in passages}:
            # The same version may be there under another name, as `selfroute mcp` has it.
            self.store.delete(where={"$and": [{"path": text.path or text.source}, {"version": {"$ne": text.version}}]})


def _open(embeddings: str, folder: Path | None) -> tuple[ClientAPI, str]:
    """Open Chroma; return it with the name of the collection."""
    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        return chromadb.EphemeralClient(settings), f"selfroute-{uuid4().hex}"
    made_with = f"LangChain {embeddings} {CHUNK_SIZE} {CHUNK_OVERLAP} {SEPARATORS} versions"
    try:
        make_folder(folder)
        client = chromadb.PersistentClient(folder.resolve(), settings)
    except Exception as error:
        msg = f"--store {folder}: the index cannot be kept there ({error})"
        raise ConfigurationError(msg) from error
    return client, f"selfroute-{hashlib.sha256(made_with.encode()).hexdigest()[:16]}"


def _pages(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
