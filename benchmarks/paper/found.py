"""The chunks of a document, what retrievers find in them, and how the model reads it."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from selfroute.documents.cache import Recent

_DOCUMENTS = 32  # that stay in memory
WORDS = 300
_NO_SPACES = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\s{_NO_SPACES}]{{1,100}}")

Floats = NDArray[np.float32]


def chunks(text: str, words: int = WORDS) -> list[str]:
    """Split a text into chunks of a number of words that do not overlap (section 3.2); the last one has the rest.

    Words are separated by white space; in Chinese and Japanese each character is one, as in LongBench, and of a longer
    run every 100 characters. Each chunk is exactly as in the text, from its first word to its last.
    """
    found, pieces = _WORD.finditer(text), []
    while chunk := list(islice(found, words)):
        pieces.append(text[chunk[0].start() : chunk[-1].end()])
    return pieces


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found.

    Attributes:
        index: Where it stands among the passages of the document, from 0; for most retrievers these are the chunks.
        text: Its text.
        score: How near it is to the question: the cosine of both vectors, or the BM25 score.
    """

    index: int
    text: str
    score: float

    @property
    def mark(self) -> str:
        """What stands in front of it as the model reads it: the chunk's number, from 1 (section 3.2)."""
        return f"[{self.index + 1}] "


class Retriever(ABC):
    """Finds the passages of a document that are nearest to a question. Threads may share it."""

    def __init__(self) -> None:
        """Begin without documents."""
        self._documents: Recent[Any] = Recent(_DOCUMENTS)
        self._lock = threading.Lock()

    def search(self, chunks: Sequence[str], question: str, *, k: int, document_id: str) -> list[Found]:
        """Find the best passages.

        Args:
            chunks: All chunks of the document, in order.
            question: The question.
            k: How many to find at most.
            document_id: A digest of the document's text, under which its index is kept.

        Returns:
            The passages, best first; of two with the same score, the earlier one first.
        """
        if not chunks:
            return []
        document = document_id, *map(len, chunks)
        with self._lock:  # a document is indexed once, so that nothing is paid twice
            index = self._documents.get(document)
            if index is None:
                index = self._index(chunks)
                self._documents.put(document, index)
        return self._found(index, question, k)

    @abstractmethod
    def _index(self, chunks: Sequence[str]) -> Any:
        """Index a document."""

    @abstractmethod
    def _found(self, index: Any, question: str, k: int) -> list[Found]:
        """Find passages in it."""


class Dense(Retriever):
    """Compares vectors by their cosine.

    A model sees no more of a chunk than it takes: Contriever and Dragon 512 word pieces, all-MiniLM-L6-v2 256.
    """

    def __init__(self, questions: Any, passages: Any) -> None:
        """Take what embeds questions, and what embeds passages."""
        super().__init__()
        self._questions, self._passages = questions, passages

    @override
    def _index(self, chunks: Sequence[str]) -> tuple[Sequence[str], Floats]:
        return chunks, embed(self._passages.encode_document, list(chunks))

    @override
    def _found(self, index: tuple[Sequence[str], Floats], question: str, k: int) -> list[Found]:
        texts, vectors = index
        with self._lock:  # a tokenizer serves one thread at a time
            scores = vectors @ embed(self._questions.encode_query, question)
        return best_of(texts, scores, k)


def embed(encode: Callable[..., Any], texts: str | list[str]) -> Floats:
    """Return vectors of length 1, of shape (texts, dimensions) or (dimensions,)."""
    return np.asarray(encode(texts, normalize_embeddings=True, show_progress_bar=False), dtype=np.float32)


def best_of(texts: Sequence[str], scores: Floats, k: int | None = None) -> list[Found]:
    """Return the passages with the highest scores, best first."""
    best = np.argsort(-scores, kind="stable")[:k]
    return [Found(int(place), texts[place], float(scores[place])) for place in best]
