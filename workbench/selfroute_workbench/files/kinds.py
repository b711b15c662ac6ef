"""Reads PDF, docx and HTML, by the packages of the extra `files`."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZipFile

_BREAK = "\0"  # of a line; other white space is shown as one space
_MOST_OF_MARKUP = {"elements": 300_000, "characters": 10_000_000}
_MOST_OF_PDF = {"pages": 10_000, "drawing operators": 5_000_000, "characters": 10_000_000}
_END = "<!---->"  # ends what is open, such as a comment, which Python's parser would try again from each "<" in it
_LEFT_OUT = ["head", "script", "style", "noscript", "template", "svg", "math", "select", "button", "iframe", "object"]
_CELLS = ["td", "th"]
_SPACED = ["blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"]
_OTHER_BLOCKS = (
    "address|article|aside|body|br|caption|dd|dl|dt|details|dialog|div|fieldset|figcaption|figure|footer|form|header|"
    "hgroup|hr|li|main|nav|search|section|summary|tbody|tfoot|thead|tr"
)
_BLOCKS = frozenset([*_SPACED, *_OTHER_BLOCKS.split("|")])


class RefusedError(Exception):
    """A file cannot be read.

    Attributes:
        unknown: Whether it is of another kind than its reader reads.
    """

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        """Say why, and what to do."""
        super().__init__(message)
        self.unknown = unknown


class _Work:
    """Counts what reading a file takes, and refuses the file when that is more than real documents take."""

    def __init__(self, most: Mapping[str, int]) -> None:
        """Take the most of each kind."""
        self._left, self._most = dict(most), most

    def add(self, kind: str, number: int = 1) -> None:
        """Add some of a kind.

        Raises:
            RefusedError: They are too many.
        """
        self._left[kind] -= number
        if self._left[kind] < 0:
            msg = f"it holds more than {self._most[kind]:,} {kind}: split it"
            raise RefusedError(msg)


def _pdf(data: bytes) -> list[str]:
    """Return the text of each page."""
    from pypdf import PdfReader  # noqa: PLC0415 - it may not be installed

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else what it finds odd is printed
    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        msg = "it is encrypted: save it without its password (qpdf --decrypt --password=... in.pdf out.pdf)"
        raise RefusedError(msg)
    work = _Work(_MOST_OF_PDF)
    pages = []
    for page in reader.pages:
        work.add("pages")
        pages.append(page.extract_text(visitor_operand_before=lambda *_: work.add("drawing operators")))
        work.add("drawing operators", 0)  # pypdf goes on after an error in a form that is drawn
        work.add("characters", len(pages[-1]))
    return pages


def _docx(data: bytes) -> list[str]:
    import mammoth  # noqa: PLC0415 - it may not be installed

    with ZipFile(BytesIO(data)) as parts:
        if "word/document.xml" not in parts.namelist():
            msg = "this is neither text nor a docx file"
            raise RefusedError(msg, unknown=True)
        work = _Work(_MOST_OF_MARKUP)
        for part in parts.infolist():
            with parts.open(part) as file, suppress(ExpatError, LookupError, ValueError):  # no XML
                _count(file, work)
    without_images = mammoth.images.img_element(lambda _image: {})
    return _html(mammoth.convert_to_html(BytesIO(data), convert_image=without_images).value.encode())


def _count(file: IO[bytes], work: _Work) -> None:
    """Count the elements and characters of XML, entities replaced, without keeping any."""
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda *_: work.add("elements")
    parser.CharacterDataHandler = lambda text: work.add("characters", len(text))
    parser.ParseFile(file)


def _html(data: bytes) -> list[str]:
    """Return the title and the text: without tags, scripts and styles, each block on a line of its own."""
    from bs4 import BeautifulSoup, UnicodeDammit  # noqa: PLC0415 - it may not be installed

    try:
        page = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        page = UnicodeDammit(data, is_html=True).unicode_markup or ""
    work = _Work(_MOST_OF_MARKUP)

    class Counted(BeautifulSoup):
        """A page whose elements are counted as they are found; tags within a script are text."""

        def handle_starttag(self, *args: Any, **kwargs: Any) -> Any:
            work.add("elements")
            return super().handle_starttag(*args, **kwargs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a page that looks like XML, or like the name of a file
        soup = Counted(page + _END, "html.parser")
    title = soup.title.get_text() if soup.title else ""
    lines = (line.strip(" ") for line in re.sub(r"\s+", " ", "".join(_shown(soup))).split(_BREAK))
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"\|  +", "| ", "\n".join(lines))).strip()
    title = " ".join(title.split())
    return [f"{title}\n\n{text}" if title and not text.startswith(title) else text]


@dataclass(slots=True)
class _Element:
    """An element that is being read: what stands at its end, whether it is shown, and whether its lines are."""

    tag: Any
    end: str = ""
    shown: bool = True
    lined: bool = False


def _shown(soup: Any) -> Iterator[str]:
    """Yield the text of a page in one pass, since every change of its tree would look through the tree."""
    from bs4 import CData, Tag  # noqa: PLC0415 - it may not be installed
    from bs4.element import NavigableString  # noqa: PLC0415

    around = [_Element(soup)]
    for node in soup.descendants:
        while around[-1].tag is not node.parent:
            yield around.pop().end
        outer = around[-1]
        if isinstance(node, Tag):
            shown = outer.shown and node.name not in _LEFT_OUT
            start, end = _set_apart(node) if shown else ("", "")
            yield start
            around.append(_Element(node, end, shown, outer.lined or node.name == "pre"))
        elif outer.shown and type(node) in (NavigableString, CData):  # comments are kinds of strings, too
            yield node.replace("\n", _BREAK) if outer.lined else node
    yield from (element.end for element in reversed(around))


def _set_apart(tag: Any) -> tuple[str, str]:
    """Return what stands at the start and the end of an element: line breaks, and bars between the cells of a table."""
    if tag.name in _CELLS:
        return " ", " |" if tag.find_next_sibling(_CELLS) else ""
    if tag.name not in _BLOCKS or (tag.parent.name in _CELLS and _is_alone(tag)):
        return "", ""
    breaks = _BREAK * (2 if tag.name in _SPACED else 1)
    return "" if tag.name in {"br", "tr"} else breaks, breaks


def _is_alone(tag: Any) -> bool:
    """Return whether an element is the only one that is shown of those in its parent."""
    others = (one.name for some in (tag.previous_siblings, tag.next_siblings) for one in some)
    return all(name is None or name in _LEFT_OUT for name in others)


READERS: Mapping[str, Callable[[bytes], list[str]]] = {"PDF": _pdf, "docx": _docx, "HTML": _html}
