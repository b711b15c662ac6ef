"""Reads the user's texts, and splits them into the passages to index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from langchain_text_splitters import RecursiveCharacterTextSplitter

from selfroute.errors import ConfigurationError

CHUNK_SIZE = 1200
CHUNK_OVERLAP = 200
SEPARATORS = ["\n\n", ". ", "\n", " ", ""]
_NO_TEXT = "this is not UTF-8 text: save it as UTF-8, or convert it (PDF, Word) to text first"


class UnreadableTextError(ConfigurationError):
    """A file cannot be read as text; the message says what to do."""


@dataclass(frozen=True)
class Text:
    """A whole text.

    Attributes:
        source: The file that it is from; its passages have it in their metadata.
        text: The whole text.
    """

    source: str
    text: str

    @cached_property
    def key(self) -> str:
        """A digest of the source and the content."""
        return hashlib.sha256(f"{self.source}\0{self.text}".encode()).hexdigest()[:32]

    def find(self, piece: str, *, near: int) -> tuple[int, int] | None:
        """Return where a piece of the text begins and ends; None if it does not hold it.

        Args:
            piece: The piece. Its white space may differ from the text's.
            near: Its offset if it does not; of several places, the nearest is taken.
        """
        if self.text.startswith(piece, near):
            return near, near + len(piece)
        found = re.finditer(r"\s+".join(map(re.escape, piece.split())), self.text)
        return min((one.span() for one in found), key=lambda span: abs(span[0] - near), default=None)

    def line_of(self, start: int) -> int:
        """Return the number of the line, from 1, that an offset is in."""
        return self.text.count("\n", 0, start) + 1


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A piece of a text, as the index holds it.

    Attributes:
        id: Its id; another content has another one.
        text: The piece.
        source: The file that its text is from.
        text_key: The key of its text.
        start: Its offset in its text, in characters.
    """

    id: str
    text: str
    source: str
    text_key: str
    start: int

    @property
    def metadata(self) -> dict[str, str | int]:
        """The metadata in the index."""
        title = Path(self.source).name  # models see this, and not the names of folders
        return {"source": self.source, "title": title, "text_key": self.text_key, "start_index": self.start}


def read_text(path: Path) -> Text:
    """Read a file as UTF-8 text.

    Raises:
        UnreadableTextError: It is missing, a folder, empty, or not text.
    """
    text = problem = ""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = _NO_TEXT
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
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


def split(text: Text) -> Iterator[IndexedPassage]:
    """Split a text into passages that overlap, if possible at the end of a paragraph or a sentence."""
    splitter = RecursiveCharacterTextSplitter(
        separators=SEPARATORS,
        keep_separator="end",
        chunk_size=CHUNK_SIZE,
        chunk_overlap=CHUNK_OVERLAP,
        add_start_index=True,
    )
    for number, chunk in enumerate(splitter.create_documents([text.text])):
        start = chunk.metadata["start_index"]
        yield IndexedPassage(f"{text.key}-{number}", chunk.page_content, text.source, text.key, start)
