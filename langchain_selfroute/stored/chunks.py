"""The chunks of a vector store and their documents, as the core's reader asks for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from typing_extensions import override

from langchain_selfroute.convert import retrieved_of
from langchain_selfroute.stored.limits import ADVICE, ChunkLimits
from langchain_selfroute.stored.originals import HELD
from langchain_selfroute.stored.stores import Store
from selfroute.documents import reader
from selfroute.documents.access import RetrievedChunk, StoredChunk
from selfroute.documents.chunks import Chunk
from selfroute.documents.label import KEY, Label, original_label
from selfroute.documents.rebuild import RebuiltDocument, rebuild

_SOURCES = (str, int, float)  # what names a document


@dataclass(slots=True, eq=False)
class StoredChunks(reader.Store[Document, Document]):
    """The chunks of a vector store.

    Attributes:
        listed: Lists the chunks of one document.
        source_key: The key of the metadata that names a chunk's document.
        docstore: Holds original documents, or their texts, by source; None to read chunks alone.
        order_key: The key of the metadata that numbers the chunks of a document; None for the usual ones.
    """

    listed: Store
    source_key: str
    docstore: BaseStore[str, Document] | None
    order_key: str | None = None

    advice = ADVICE
    order_advice = 'split it with add_start_index=True, or number its chunks in metadata["chunk_index"]'
    number_advice = 'number its pages in metadata["page"], or its chunks in metadata["chunk_index"]'
    match_ids = True

    @property
    @override
    def ordered(self) -> bool:  # type: ignore[override]
        return self.listed.ordered

    @override
    def name(self, passage: Document) -> Hashable | None:
        source = passage.metadata.get(self.source_key)
        if isinstance(source, float) and not isfinite(source):  # not all stores can compare these
            return None
        return source if isinstance(source, _SOURCES) else None

    @override
    def unnamed(self, passages: Sequence[Document]) -> str | None:
        key = self.source_key
        unfit = [passage.metadata[key] for passage in passages if key in passage.metadata]
        if unfit:
            shown = str(unfit[0]) if isinstance(unfit[0], float | None) else f"a {type(unfit[0]).__name__}"
            return (
                f"metadata[{key!r}] of a retrieved passage is {shown}, which cannot name its document: "
                f"index the chunks with a string or a number as metadata[{key!r}], or pass another key as source_key="
            )
        keys = sorted({str(key) for passage in passages for key in passage.metadata})
        return (
            f"no retrieved passage has metadata[{key!r}], which names its document; the keys are {keys}: "
            "pass the right one as source_key="
            if keys
            else "the chunks have no metadata, so nothing says which document they are of: index them with "
            f"metadata such as {{{key!r}: 'report.pdf'}}, or pass the documents themselves as documents="
        )

    @override
    def retrieved(self, passage: Document) -> RetrievedChunk:
        ids = frozenset([passage.id] if passage.id else [])
        return RetrievedChunk(ids, passage.page_content, passage.metadata)

    @override
    def chunks(self, source: Any, limits: ChunkLimits | None) -> Iterator[StoredChunk]:
        found = self.listed.chunks(self.source_key, source, limits.conditions if limits else [])
        if limits is None or limits.originals is None:
            return found
        declared = len(limits.conditions) > len(limits.theirs)
        held = self.listed.chunks(self.source_key, source, limits.theirs) if declared else None
        return limits.originals.behind(source, found, held)

    @override
    def ids(self, source: Any, limits: ChunkLimits | None) -> list[str]:
        return self.listed.ids(self.source_key, source, limits.conditions if limits else [])

    @override
    def missing(self, source: Any, *, limited: bool) -> str:
        visible = " that the filter lets through" if limited else ""
        return (
            f"the vector store has no chunk of {source!r}{visible}: no chunk has this value as "
            f"metadata[{self.source_key!r}]"
        )

    @override
    def original(self, source: Any, passages: Sequence[Document]) -> Document | None:
        found = self.docstore.mget([source])[0] if self.docstore else None
        if found is None:
            return None
        if isinstance(found, str):
            found = Document(found, metadata={self.source_key: source})
        (document,) = retrieved_of([found], what=HELD)
        return _labelled(document, original_label(document.page_content))

    @override
    def document(self, source: Any, rebuilt: RebuiltDocument, fields: reader.Fields) -> Document:
        return Document(rebuilt.text, metadata={**fields["metadata"], KEY: rebuilt.label()})

    @override
    def alone(self, passage: Document) -> Document:
        return _labelled(passage, rebuild([Chunk(passage.page_content)]).label())

    @override
    def text_of(self, document: Document) -> str:
        return document.page_content


def _labelled(document: Document, label: Label) -> Document:
    return Document(document.page_content, id=document.id, metadata={**document.metadata, KEY: label})
