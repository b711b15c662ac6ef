"""What retrievers find in one document, and how the model reads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk that was found.

    Attributes:
        index: Which chunk of the document it is, from 0.
        text: Its text.
        score: How near it is to the question: the cosine of both vectors, or the BM25 score.
    """

    index: int
    text: str
    score: float


class Retriever(ABC):
    """Finds the passages of a document that are nearest to a question. Threads may share it."""

    @abstractmethod
    def search(self, chunks: Sequence[str], question: str, *, k: int, document_id: str) -> list[Found]:
        """Find the best passages.

        Args:
            chunks: All chunks of the document, in order.
            question: The question.
            k: How many to find; all if there are fewer.
            document_id: A digest of the document's text, under which what is made of it is kept.

        Returns:
            The passages, best first; of two with the same score, the earlier one first.
        """


def mark_of(found: Found) -> str:
    """Return what stands in front of a passage as the model reads it: the chunk's number, from 1 (section 3.2)."""
    return f"[{found.index + 1}] "
