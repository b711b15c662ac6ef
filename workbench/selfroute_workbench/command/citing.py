"""Says where in the user's files an answer stands, and what of them was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from selfroute.citations import Citation
from selfroute.documents.label import label_in
from selfroute.documents.pages import placing_of
from selfroute_workbench.command.texts import Text


@dataclass(frozen=True, slots=True)
class FileCitation:
    """A stretch of a file in which the answer stands.

    Attributes:
        source: The file.
        line: The line of the file's text that it begins in, from 1.
        start: The offset of its first character in the file's text.
        end: The offset behind the last one.
        text: The file's text there.
        score: How much of the answer stands there, from 0 to 1.
        page: The page that it begins on, from 1; None if the file has no pages.
    """

    source: str
    line: int
    start: int
    end: int
    text: str
    score: float
    page: int | None = None


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of a file that was read; its fields are those of `FileCitation`."""

    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was read: whole, as much of it as the model takes, or sections of it.

    Attributes:
        source: The file.
        trimmed: Whether its text was cut.
        sections: The sections that were read; empty if it was not read by sections.
    """

    source: str
    trimmed: bool
    sections: Sequence[FileSection] = ()


def in_files(
    citations: Sequence[Citation], context: Sequence[Mapping[str, Any]], texts: Mapping[str, Text]
) -> list[FileCitation]:
    """Return citations with offsets into files in place of those into what the model was given.

    Args:
        citations: The citations.
        context: The metadata of the passages or documents that the model was given.
        texts: The texts of the files, by source. A citation that its file does not hold is left out.
    """
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
        placing = placing_of(metadata)
        return placing.begins - placing.shift
    start: int = metadata.get("start_index", 0)
    return start


def files_read(route: str, context: Sequence[Document], texts: Mapping[str, Text]) -> list[FileRead]:
    """Return the files that a question read.

    Args:
        route: The step that answered.
        context: The passages, sections or documents that it was given.
        texts: The texts of the files, by source.
    """
    if route == "rag":
        return []
    labels = [(one, one.metadata["source"], label_in(one.metadata)) for one in context]
    if route == "long_context":
        return [FileRead(source, label.get("trimmed", False)) for _, source, label in labels]
    found: dict[str, list[FileSection]] = {}
    for one, source, label in labels:
        start, end = texts[source].find(one.page_content, near=label["start"]) or (label["start"], label["end"])
        found.setdefault(source, []).append(FileSection(start, end, texts[source].page_of(start)))
    return [FileRead(source, trimmed=False, sections=sections) for source, sections in found.items()]
