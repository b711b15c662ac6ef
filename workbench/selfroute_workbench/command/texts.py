"""Reads the user's texts, and splits them into the passages to index."""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from langchain_core.documents import Document

from selfroute_workbench.demo.splitting import make_splitter
from selfroute_workbench.files import read_file


@dataclass(frozen=True)
class Text:
    """A whole text.

    Attributes:
        source: Its name: as the user wrote it, or a short one.
        text: The text.
        path: Its path on this machine; its name if empty.
        pages: Where each page begins; empty if the file has no pages.
    """

    source: str
    text: str
    path: str = ""
    pages: tuple[int, ...] = ()

    @cached_property
    def key(self) -> str:
        """A digest of the name, the path and the content."""
        return hashlib.sha256(f"{self.source}\0{self.path}\0{self.text}".encode()).hexdigest()[:32]

    @cached_property
    def version(self) -> str:
        """A digest of the content."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def find(self, piece: str, *, near: int) -> tuple[int, int] | None:
        """Return where a piece of the text begins and ends; None if it does not hold it."""
        if self.text.startswith(piece, near):
            return near, near + len(piece)
        found = re.finditer(r"\s+".join(map(re.escape, piece.split())), self.text)
        return min((one.span() for one in found), key=lambda span: abs(span[0] - near), default=None)

    def line_of(self, start: int) -> int:
        """Return the number of the line, from 1, that an offset is in."""
        return self.text.count("\n", 0, start) + 1

    def page_of(self, start: int) -> int | None:
        """Return the number of the page, from 1, that an offset is in; None if the file has no pages."""
        return bisect(self.pages, start) or None


def read_text(path: Path) -> Text:
    """Read a file as text."""
    content = read_file(path)
    # A name of other bytes than UTF-8's cannot be kept as it is.
    name, whole = (str(one).encode("utf-8", "backslashreplace").decode() for one in (path, path.resolve()))
    return Text(name, content.text, whole, content.pages)


def named_shortly(texts: Sequence[Text], given: Sequence[Path]) -> list[Text]:
    """Name texts by their paths below the folders that were given, and by more of a path where two share a name."""
    folders = [Path(os.path.abspath(folder)) for folder in given]  # noqa: PTH100 - a link keeps its own name
    paths = [Path(os.path.abspath(text.source)) for text in texts]  # noqa: PTH100
    below = [next((path.relative_to(each) for each in folders if path.is_relative_to(each)), Path()) for path in paths]
    sizes = [len(path.parts) or 1 for path in below]
    names: list[str] = []
    for _ in range(max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-size:]) for path, size in zip(paths, sizes, strict=True)]
        shared = Counter(names)
        sizes = [size + (shared[name] > 1) for name, size in zip(names, sizes, strict=True)]
    return [replace(text, source=name) for text, name in zip(texts, names, strict=True)]


def split(text: Text) -> list[Document]:
    """Split a text into passages that overlap, if possible at the end of a paragraph or a sentence.

    Their ids are others for another content; models see the title, and not the names of folders.
    """
    named = {"source": text.source, "path": text.path or text.source, "title": Path(text.source).name}
    passages = make_splitter().create_documents([text.text], [{**named, "text_key": text.key, "version": text.version}])
    for number, passage in enumerate(passages):
        passage.id = f"{text.key}-{number}"
    return passages
