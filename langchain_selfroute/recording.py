"""What the runs of a chain record: its results without the text of whole documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from langchain_selfroute.convert import OUTPUT_KEYS


def recorded_inputs(given: Any) -> Any:
    """Return an input as the chain's run records it: without the keys that the chain does not read.

    They are there if a result is passed in again, as the state of a LangGraph graph is, and may hold whole documents.
    """
    return {key: given[key] for key in given if key not in OUTPUT_KEYS} if isinstance(given, Mapping) else given


def recorded(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result, or the first chunk of one, as the chain's run records it: without the text of whole documents.

    The run of the model records that text with its prompt. Passages are short, so they are kept.
    """
    if result["route"] != "long_context":
        return dict(result)
    return {**result, "context": [_without_text(document) for document in result["context"]]}


def _without_text(document: Document) -> Document:
    text = f"({len(document.page_content):,} characters, which are in the prompt of the long_context run)"
    return Document(text, id=document.id, metadata=document.metadata)


class RecordedChunk(AddableDict):
    """A chunk as the chain's run records it, which passes through LangChain's tracing with the whole one inside it."""

    def __init__(self, whole: dict[str, Any]) -> None:
        super().__init__(recorded(whole))
        self.whole = AddableDict(whole)


def whole_chunk(chunk: AddableDict) -> Any:
    """Return a chunk as the reader gets it."""
    return chunk.whole if isinstance(chunk, RecordedChunk) else chunk
