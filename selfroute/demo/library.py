"""The user's texts: read, split, indexed in an embedded Chroma, and handed over whole for the second step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import chromadb
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import RecursiveCharacterTextSplitter

from selfroute.errors import ConfigurationError

CHUNK_SIZE = 1200
CHUNK_OVERLAP = 200
_SEPARATORS = ["\n\n", ". ", "\n", " ", ""]
_BATCH = 64
_PAGE = 5000
_NO_TEXT = "this is not UTF-8 text: save it as UTF-8, or convert it (PDF, Word) to text first"


class UnreadableTextError(ConfigurationError):
    """A file is not what can be read as text; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Text:
    """A whole text.

    Attributes:
        source: Where it is from; in the metadata of its passages under this name.
        text: All of it.
    """

    source: str
    text: str

    @property
    def key(self) -> str:
        """Names this text with this content."""
        return hashlib.sha256(f"{self.source}\0{self.text}".encode()).hexdigest()[:32]


def read_text(path: Path) -> Text:
    """Read a file as UTF-8 text.

    Raises:
        UnreadableTextError: It is missing, a folder, empty, or no text.
    """
    text = problem = ""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = _NO_TEXT
    except OSError as error:
        problem = f"it can not be read: {error.strerror}"
        if path.is_dir():
            problem = f"this is a folder: name the files in it, for example {path / '*.txt'}"
    if "\0" in text:
        problem = _NO_TEXT
    elif not text.strip() and not problem:
        problem = "the file is empty: there is nothing to ask about"
    if problem:
        msg = f"{path}: {problem}"
        raise UnreadableTextError(msg)
    return Text(str(path.resolve()), text)


def split(text: Text) -> list[Document]:
    """Split a text into passages with `source`, `start_index` and the `text_key` of what they were cut from."""
    splitter = RecursiveCharacterTextSplitter(
        separators=_SEPARATORS,
        keep_separator="end",
        chunk_size=CHUNK_SIZE,
        chunk_overlap=CHUNK_OVERLAP,
        add_start_index=True,
    )
    passages = splitter.create_documents([text.text], [{"source": text.source, "text_key": text.key}])
    for number, passage in enumerate(passages):
        passage.id = f"{text.key}-{number}"
    return passages


class Library:
    """Texts and the index of their passages.

    An index that is kept in a folder holds every text that was ever asked about there; a library sees only its own.
    """

    def __init__(
        self, texts: Sequence[Text], *, embeddings: Embeddings, embeddings_name: str, folder: Path | None = None
    ) -> None:
        """Open the index.

        Args:
            texts: The texts, each source once.
            embeddings: Embeds passages and questions.
            embeddings_name: What the embeddings are; another name is another index.
            folder: Where the index is kept; None for one in memory.

        Raises:
            ConfigurationError: The folder can not be used.
        """
        self.texts = {text.source: text for text in texts}
        self._store = _open(embeddings, embeddings_name, folder)

    def missing(self) -> list[Document]:
        """Return the passages that the index does not hold yet."""
        passages = [passage for text in self.texts.values() for passage in split(text)]
        known: set[str] = set()
        for page in _pages(passages, _PAGE):
            known.update(self._store.get(ids=[str(passage.id) for passage in page], include=[])["ids"])
        return [passage for passage in passages if passage.id not in known]

    def index(self, passages: Sequence[Document], *, on_progress: Callable[[int], object]) -> None:
        """Add passages, and drop those of former contents of the same sources.

        Args:
            passages: What `missing` returned.
            on_progress: Is told how many were added, time and again.
        """
        for page in _pages(passages, _BATCH):
            self._store.add_documents(list(page))
            on_progress(len(page))
        for source in {passage.metadata["source"] for passage in passages}:
            current = self.texts[source].key
            self._store.delete(where={"$and": [{"source": source}, {"text_key": {"$ne": current}}]})

    def retriever(self, k: int) -> BaseRetriever:
        """Return a retriever of the k nearest passages of these texts."""
        keys = [text.key for text in self.texts.values()]
        return self._store.as_retriever(search_kwargs={"k": k, "filter": {"text_key": {"$in": keys}}})

    def whole_documents(self, inputs: Mapping[str, Any]) -> list[Document]:
        """Return the whole texts that the retrieved passages are from, best first: `documents=` of a chain."""
        sources = dict.fromkeys(passage.metadata["source"] for passage in inputs["retrieved"])
        return [Document(self.texts[source].text, metadata={"source": source}) for source in sources]


def _open(embeddings: Embeddings, name: str, folder: Path | None) -> Chroma:
    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        client, collection = chromadb.EphemeralClient(settings), f"selfroute-{uuid4().hex}"
    else:
        made_with = f"{name} {CHUNK_SIZE} {CHUNK_OVERLAP} {_SEPARATORS}"
        collection = f"selfroute-{hashlib.sha256(made_with.encode()).hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            client = chromadb.PersistentClient(folder, settings)
        except Exception as error:
            msg = f"--store {folder}: the index can not be kept there ({error})"
            raise ConfigurationError(msg) from error
    return Chroma(
        collection_name=collection,
        client=client,
        embedding_function=embeddings,
        collection_configuration={"hnsw": {"space": "cosine"}},
    )


def _pages(passages: Sequence[Document], size: int) -> Iterable[Sequence[Document]]:
    return (passages[start : start + size] for start in range(0, len(passages), size))
