"""Says where in the user's files an answer stands, and what of them was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from selfroute.citations import Citation
from selfroute.documents.label import label_in
from selfroute.documents.pages import position_of
from selfroute_workbench.command.texts import Text


@dataclass(frozen=True, slots=True)
class FilePassage:
    """A passage that was found. `source` is the file's name; pages count from 1, and may be unknown."""

    source: str
    page: int | None
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class FileCitation:
    """A stretch of a file in which the answer stands; else as `FilePassage`."""

    source: str
    line: int
    start: int
    end: int
    text: str
    score: float
    page: int | None = None


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of a file that was read; else as `FilePassage`."""

    source: str
    page: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was read: whole, as much of it as the model takes, or sections of it."""

    source: str
    trimmed: bool
    sections: Sequence[FileSection] = ()


def passages_in(passages: Sequence[Document], texts: Mapping[str, Text]) -> list[FilePassage]:
    """Return passages with their places in the files."""
    found = []
    for passage in passages:
        text, start = texts[passage.metadata["source"]], passage.metadata["start_index"]
        found.append(FilePassage(text.source, text.page_of(start), start, passage.page_content))
    return found


def in_files(
    citations: Sequence[Citation], context: Sequence[Mapping[str, Any]], texts: Mapping[str, Text]
) -> list[FileCitation]:
    """Return citations with offsets into files in place of those into what the model was given."""
    found = []
    for citation in citations:
        metadata = context[citation["document"]]
        text = texts[metadata["source"]]
        if span := text.find(citation["text"], near=_offset(metadata) + citation["start"]):
            start, end = span
            page, line, words = text.page_of(start), text.line_of(start), text.text[start:end]
            found.append(FileCitation(text.source, line, start, end, words, citation["score"], page))
    return found


def _offset(metadata: Mapping[str, Any]) -> int:
    """Return what the citations of a passage, or of what was read of a document, count from in its file."""
    if label_in(metadata):
        position = position_of(metadata)
        return position.begins - position.shift
    start: int = metadata.get("start_index", 0)
    return start


def files_read(route: str, context: Sequence[Document], texts: Mapping[str, Text]) -> list[FileRead]:
    """Return the files that a question read."""
    if route == "rag":
        return []
    labels = [(one, texts[one.metadata["source"]], label_in(one.metadata)) for one in context]
    if route == "long_context":
        return [FileRead(text.source, label.get("trimmed", False)) for _, text, label in labels]
    found: dict[str, list[FileSection]] = {}
    for one, text, label in labels:
        start, end = text.find(one.page_content, near=label["start"]) or (label["start"], label["end"])
        found.setdefault(text.source, []).append(FileSection(text.source, text.page_of(start), start, end))
    return [FileRead(source, trimmed=False, sections=sections) for source, sections in found.items()]
