"""Read the originals that LangChain's multi-vector retrievers return in place of the chunks that they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from langchain_selfroute.convert import retrieved_of
from selfroute.documents.access import StoredChunk
from selfroute.errors import DocumentNotFoundError

HELD = "docstore must hold Documents or strings; if it holds bytes, wrap it in create_kv_docstore"


@dataclass(frozen=True, slots=True)
class Originals:
    """The originals of a `MultiVectorRetriever` or a `ParentDocumentRetriever`.

    Attributes:
        docstore: Holds them by id.
        id_key: The key of a chunk's metadata that holds the id of its original.
    """

    docstore: BaseStore[str, Document]
    id_key: str

    @property
    def key(self) -> Hashable | None:
        """Identifies them; None if they cannot be identified."""
        return (self.id_key, self.docstore) if isinstance(self.docstore, Hashable) else None

    def behind(
        self, source: Any, visible: Iterable[StoredChunk], held: Iterable[StoredChunk] | None
    ) -> Iterator[StoredChunk]:
        """Yield the originals of some chunks, each once, in the order of the chunks.

        Args:
            source: The document that the chunks are from, for error messages.
            visible: The chunks that may be read.
            held: The chunks that the retriever finds, if a filter hides some of these; an original with a hidden chunk
                is left out.

        Raises:
            DocumentNotFoundError: No chunk leads to an original, or the docstore lacks one of them.
        """
        counts = self._counts(visible)
        if held is not None:
            found = self._counts(held)
            counts = Counter({id_: count for id_, count in counts.items() if found[id_] == count})
        if not counts:
            msg = (
                f"nothing in the vector store that may be read leads to an original of {source!r}: index chunks and "
                "summaries with the source of their originals in their metadata, as the originals have it"
            )
            raise DocumentNotFoundError(msg)
        originals: list[Any] = self.docstore.mget(list(counts))
        for id_, original in zip(counts, originals, strict=True):
            if original is None:
                msg = (
                    f"the retriever's docstore does not hold {id_!r}, the original of a chunk of {source!r}: "
                    "delete the chunk from the vector store, or index the document again"
                )
                raise DocumentNotFoundError(msg)
            (document,) = retrieved_of([original], what=HELD)
            yield StoredChunk(id_, document.page_content, document.metadata)

    def _counts(self, chunks: Iterable[StoredChunk]) -> Counter[str]:
        """Return how many of the chunks each original has; the retriever does not return chunks without one."""
        ids = (chunk.metadata.get(self.id_key) for chunk in chunks)
        return Counter(id_ for id_ in ids if id_ is not None)  # some stores fill in None
