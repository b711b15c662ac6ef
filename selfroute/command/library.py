"""Texts and the index of their passages, in an embedded Chroma."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import chromadb
from chromadb.api import ClientAPI
from chromadb.config import Settings

from selfroute.command.framework import Framework, Session
from selfroute.command.steering import Steering
from selfroute.command.texts import CHUNK_OVERLAP, CHUNK_SIZE, SEPARATORS, IndexedPassage, Text, split
from selfroute.errors import ConfigurationError
from selfroute.private import make_folder, umask

_BATCH = 64
_PAGE = 5000


class Library:
    """Texts and the index of their passages.

    An index in a folder keeps every text that was ever asked about; a library sees only its own texts.

    Attributes:
        texts: The texts by source.
        names: What the user calls each source.
        passages: All their passages by id.
    """

    def __init__(
        self,
        texts: Sequence[Text],
        *,
        framework: Framework,
        embeddings: Any,
        embeddings_name: str,
        folder: Path | None = None,
    ) -> None:
        """Open the index.

        Args:
            texts: The texts, each source once.
            framework: The framework that writes and reads the index.
            embeddings: The framework's embeddings, of passages and questions.
            embeddings_name: The name of the embeddings; another name is another index.
            folder: The folder to keep the index in; None for memory.

        Raises:
            ConfigurationError: The folder cannot be used.
        """
        self.texts = {text.source: text for text in texts}
        self.names = {text.source: text.name or text.source for text in texts}
        self.passages = {passage.id: passage for text in texts for passage in split(text)}
        with umask():  # in a folder that others may look into, Chroma's files are private
            client, name = _open(framework.NAME, embeddings_name, folder)
            self._collection = client.get_or_create_collection(
                name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
        self._index = framework.open_index(client, name, embeddings)

    def missing(self) -> list[IndexedPassage]:
        """Return the passages that the index does not hold yet."""
        known: set[str] = set()
        for page in _pages(list(self.passages), _PAGE):
            known.update(self._collection.get(ids=list(page), include=[])["ids"])
        return [passage for name, passage in self.passages.items() if name not in known]

    def index(self, passages: Sequence[IndexedPassage], *, on_progress: Callable[[int], object]) -> None:
        """Add passages, and delete those of earlier versions of the same sources.

        Args:
            passages: The passages that `missing` returned.
            on_progress: Called with the number of passages that have just been added.
        """
        for page in _pages(passages, _BATCH):
            with umask():
                self._index.add(page)
            on_progress(len(page))
        for source in {passage.source for passage in passages}:
            current = self.texts[source].key
            earlier: dict[str, Any] = {"$and": [{"source": source}, {"text_key": {"$ne": current}}]}
            self._collection.delete(where=earlier)

    def open_session(
        self, llm: Any, *, long_context_llm: Any, k: int, priced_as: str | None, steering: Steering
    ) -> AbstractContextManager[Session]:
        """Open a session over these texts; its ledger counts until the end of the context.

        Args:
            llm: The framework's model, for the first step.
            long_context_llm: The model of the second step; None for the same.
            k: How many passages the draft reads.
            priced_as: The model as which the first step is priced; None for itself.
            steering: Which questions read more than their passages.
        """
        texts = [*self.texts.values()]
        return self._index.open_session(
            texts, llm=llm, long_context_llm=long_context_llm, k=k, priced_as=priced_as, steering=steering
        )


def _open(framework: str, embeddings: str, folder: Path | None) -> tuple[ClientAPI, str]:
    """Open Chroma; return it with the name of the collection."""
    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        return chromadb.EphemeralClient(settings), f"selfroute-{uuid4().hex}"
    made_with = f"{framework} {embeddings} {CHUNK_SIZE} {CHUNK_OVERLAP} {SEPARATORS} titled"
    try:
        make_folder(folder)
        client = chromadb.PersistentClient(folder.resolve(), settings)
    except Exception as error:
        msg = f"--store {folder}: the index cannot be kept there ({error})"
        raise ConfigurationError(msg) from error
    return client, f"selfroute-{hashlib.sha256(made_with.encode()).hexdigest()[:16]}"


def _pages(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
