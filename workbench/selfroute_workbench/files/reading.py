"""Reads a file as text, by what it holds."""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from selfroute.error_text import first_line
from selfroute.errors import ConfigurationError

_READ = "PDF, docx, HTML, Markdown and other UTF-8 text can be read"
_NO_TEXT = f"this is not text: {_READ}"
_NO_UTF8 = "this is not UTF-8 text: save it in that encoding"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how Office files began until 2007, and encrypted ones do today
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 8192  # bytes
_LARGEST = 200_000_000  # bytes
_BETWEEN = "\n\n"
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*<(?:!doctype\s+html|html)\b",  # each comment ends one way
    re.IGNORECASE,
)
_INSTEAD = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "tables are not read: export them as CSV"),
    **dict.fromkeys((".pptx", ".ppt", ".odp"), "slides are not read: export them as PDF"),
    **dict.fromkeys(
        (".epub", ".mobi", ".azw3"), "books are not read: convert them to HTML (ebook-convert in.epub out.htmlz)"
    ),
    **dict.fromkeys((".doc", ".odt", ".rtf", ".pages"), "this kind of text is not read: save it as docx or PDF"),
}
_SUFFIXES = {".pdf": "PDF", ".docx": "docx", ".html": "HTML", ".htm": "HTML", ".xhtml": "HTML"}


class UnreadableFileError(ConfigurationError):
    """A file cannot be read as text; the message says what to do.

    Attributes:
        problem: The message without the file's name.
    """

    def __init__(self, name: object, problem: str) -> None:
        """Name the file, and say what is wrong with it."""
        super().__init__(f"{name}: {problem}")
        self.problem = problem


class NotTextError(UnreadableFileError):
    """A file is of a kind that holds no text, or that is not known."""


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a file.

    Attributes:
        text: The whole text.
        pages: Where in it each page begins; empty if the file has no pages.
    """

    text: str
    pages: tuple[int, ...] = ()


def read_file(path: Path) -> Content:
    """Read a file as text.

    Raises:
        UnreadableFileError: It is missing, a folder, empty, broken, encrypted, or has no text.
        NotTextError: It is of another kind.
    """
    problem = ""
    try:
        with path.open("rb") as file:
            data = file.read(_HEAD)
            if not _is_nothing(data, path.suffix):
                data += file.read(_LARGEST)
        if len(data) > _LARGEST:
            problem = f"it is larger than {_LARGEST // 1_000_000} MB: split it"
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as error:
        is_folder = os.path.isdir(path)  # noqa: PTH112 - Path's raises errors like this one
        problem = "this is a folder" if is_folder else f"it cannot be read: {error.strerror}"
    if problem:
        raise UnreadableFileError(path, problem)
    return read_bytes(data, str(path))


def read_bytes(data: bytes, name: str) -> Content:
    """Read the content of a file as text.

    Raises:
        UnreadableFileError: It is empty, broken, encrypted, or has no text.
        NotTextError: It is of another kind.
    """
    suffix = Path(name).suffix.lower()
    if data.startswith(_OLE):
        raise UnreadableFileError(name, "this is an old or encrypted Office file: save it as docx, without a password")
    if suffix in _INSTEAD:
        raise NotTextError(name, _INSTEAD[suffix])
    if _is_nothing(data, suffix):
        raise NotTextError(name, _NO_TEXT)
    if not data.strip():
        raise UnreadableFileError(name, "the file is empty: there is nothing to ask about")
    kind = _kind(data, suffix)
    pages = [_decoded(data, name)] if kind is None else _extracted(kind, data, name)
    pages = [_clean(page) for page in pages]
    if not any(page.strip() for page in pages):
        problem = "it has no text"
        if kind == "PDF":
            problem = "its pages are images without text: run OCR first (ocrmypdf in.pdf out.pdf)"
        raise UnreadableFileError(name, problem)
    starts = accumulate((len(page) + len(_BETWEEN) for page in pages[:-1]), initial=0)
    return Content(_BETWEEN.join(pages), tuple(starts) if kind == "PDF" else ())


def _kind(data: bytes, suffix: str) -> str | None:
    if b"%PDF-" in data[:1024]:
        return "PDF"
    if data.startswith(b"PK\3\4"):
        return "docx"
    return _SUFFIXES.get(suffix) or ("HTML" if _HTML.match(data[:_HEAD]) else None)


def _is_nothing(data: bytes, suffix: str) -> bool:
    """Return whether the beginning of a file shows that it has no text, so that the rest need not be read."""
    if suffix.lower() in _SUFFIXES or _kind(data, "") or data.startswith((_OLE, *_UTF16)):
        return False
    return b"\0" in data[:_HEAD]


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFileError(name, _NO_UTF8) from error


def _extracted(kind: str, data: bytes, name: str) -> list[str]:
    from selfroute_workbench.files import kinds  # noqa: PLC0415 - what it imports is not always installed

    try:
        return kinds.READERS[kind](data)
    except kinds.RefusedError as error:
        raise (NotTextError if error.unknown else UnreadableFileError)(name, str(error)) from error
    except RecursionError as error:
        raise UnreadableFileError(name, "its parts are nested too deeply: save it as plain text") from error
    except ModuleNotFoundError as error:
        install = f"to read {kind} files, install {error.name}: pip install selfroute-workbench"
        raise UnreadableFileError(name, install) from error
    except Exception as error:  # each library has errors of its own, and broken files find more
        raise UnreadableFileError(name, f"this is a broken {kind} file ({first_line(error)})") from error


def _clean(text: str) -> str:
    """Return a text that can be encoded, with newlines alone at the ends of lines."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
