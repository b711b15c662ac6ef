"""Reads PDF, docx and HTML, by the packages of the extra `files`."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any
from zipfile import ZipFile

_BREAK = "\0"  # of a line; other white space is shown as one space
_LARGEST = 1_000_000_000  # bytes of a docx without its compression
_LEFT_OUT = ["head", "script", "style", "noscript", "template", "svg", "math", "select", "button", "iframe", "object"]
_SPACED = ["blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"]
_OTHER_BLOCKS = (
    "address|article|aside|body|br|caption|dd|dl|dt|details|dialog|div|fieldset|figcaption|figure|footer|form|header|"
    "hgroup|hr|li|main|nav|search|section|summary|tbody|tfoot|thead|tr"
)


class RefusedError(Exception):
    """A file cannot be read.

    Attributes:
        unknown: Whether it is of another kind than its reader reads.
    """

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        """Say why, and what to do."""
        super().__init__(message)
        self.unknown = unknown


def _pdf(data: bytes) -> list[str]:
    """Return the text of each page."""
    from pypdf import PdfReader  # noqa: PLC0415 - it may not be installed

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else what it finds odd is printed
    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        msg = "it is encrypted: save it without its password (qpdf --decrypt --password=... in.pdf out.pdf)"
        raise RefusedError(msg)
    return [page.extract_text() for page in reader.pages]


def _docx(data: bytes) -> list[str]:
    import mammoth  # noqa: PLC0415 - it may not be installed

    with ZipFile(BytesIO(data)) as parts:
        if "word/document.xml" not in parts.namelist():
            msg = "this is neither text nor a docx file"
            raise RefusedError(msg, unknown=True)
        if sum(part.file_size for part in parts.infolist()) > _LARGEST:
            msg = f"it holds more than {_LARGEST // 1_000_000} MB: split it"
            raise RefusedError(msg)
    without_images = mammoth.images.img_element(lambda _image: {})
    return _html(mammoth.convert_to_html(BytesIO(data), convert_image=without_images).value.encode())


def _html(data: bytes) -> list[str]:
    """Return the title and the text: without tags, scripts and styles, each block on a line of its own."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - it may not be installed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a page that looks like XML, or like the name of a file
        soup = BeautifulSoup(_as_utf8(data), "html.parser")
    title = soup.title.get_text() if soup.title else ""
    for tag in soup.find_all(_LEFT_OUT):
        tag.extract()
    for tag in soup.find_all("pre"):
        for string in tag.find_all(string=True):
            string.replace_with(type(string)(string.replace("\n", _BREAK)))
    for tag in soup.find_all(["td", "th", *_SPACED, *_OTHER_BLOCKS.split("|")]):
        _set_apart(tag)
    lines = (line.strip(" ") for line in re.sub(r"\s+", " ", soup.get_text()).split(_BREAK))
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"\|  +", "| ", "\n".join(lines))).strip()
    title = " ".join(title.split())
    return [f"{title}\n\n{text}" if title and not text.startswith(title) else text]


def _set_apart(tag: Any) -> None:
    """Put line breaks around a block, and bars between the cells of a table."""
    if tag.name in {"td", "th"}:
        tag.insert(0, " ")
        if tag.find_next_sibling(["td", "th"]):
            tag.append(" |")
    elif tag.parent.name in {"td", "th"} and len(tag.parent.find_all(recursive=False)) == 1:
        return  # the only block in a cell
    else:
        breaks = _BREAK * (2 if tag.name in _SPACED else 1)
        if tag.name not in {"br", "tr"}:
            tag.insert(0, breaks)
        tag.append(breaks)


def _as_utf8(data: bytes) -> bytes | str:
    """Return a page as text if it is UTF-8; else the package finds its encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data


READERS: Mapping[str, Callable[[bytes], list[str]]] = {"PDF": _pdf, "docx": _docx, "HTML": _html}
