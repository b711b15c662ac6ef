"""What reading a file takes is bounded, whoever wrote the file: it grows with the file, and ends at limits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from files_parts import SENTENCES, pdf
from selfroute_workbench.files import UnreadableFileError, kinds, read_bytes

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
PARAGRAPH = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"


def docx(body: str, *, before: str = "") -> bytes:
    """Make a docx file of XML as nobody would write it."""
    data = BytesIO()
    relation = f'<Relationship Id="r" Type="{OFFICE}" Target="word/document.xml"/>'
    with ZipFile(data, "w", ZIP_DEFLATED) as parts:
        parts.writestr("_rels/.rels", f'<Relationships xmlns="{RELATIONS}">{relation}</Relationships>')
        parts.writestr(
            "word/document.xml", f'{before}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        )
    return data.getvalue()


def drawn_twice(depth: int) -> bytes:
    """Make a PDF whose page draws a form that draws another one twice, and so on."""
    head = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>"
    parts = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", head, stream("/F Do")]
    for number in range(depth):
        inner = f"/Resources<</XObject<</F {6 + number} 0 R>>>>" if number < depth - 1 else ""
        parts.append(stream("/F Do /F Do" if inner else "0 0 m", f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]{inner}"))
    made, places = "%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{part}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(parts) + 1
    end = f"trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{len(made)}\n%%EOF"
    return f"{made}xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()


def stream(content: str, about: str = "") -> str:
    return f"<<{about}/Length {len(content)}>>stream\n{content}\nendstream"


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions that something takes, also of those that are written in C."""
    count = 0

    def note(_frame: object, _event: str, _arg: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


MARKUP: dict[str, Callable[[int], bytes]] = {
    "nested blocks": lambda n: b"<html>" + b"<div>" * n + b"x",
    "blocks in a cell": lambda n: b"<html><table><tr><td>" + b"<p>x" * n + b"</table>",
    "blocks side by side in a cell": lambda n: b"<html><table><tr><td>" + b"<p>x</p>" * n + b"</table>",
    "cells in a row": lambda n: b"<html><table><tr>" + b"<td>x</td>" * n + b"</table>",
    "cells in one another": lambda n: b"<html><table><tr>" + b"<td>x" * n,
    "pictures in one another": lambda n: b"<html>" + b"<svg>" * n + b"x",
    "pictures around the block of a cell": lambda n: b"<html><td>" + b"<svg></svg>" * n + b"<p>x</p>" + b"<svg>" * n,
    "lines in one another": lambda n: b"<html>" + b"<pre>\n" * n + b"x",
    "comments": lambda n: b"<html>" + b"<!-- c -->" * n + b"x",
}


@pytest.mark.parametrize("shape", MARKUP)
def test_markup_work_is_linear(shape: str) -> None:
    made = MARKUP[shape]
    kinds.READERS["HTML"](made(1))  # what is done once
    once, twice = (calls_of(lambda n=n: kinds.READERS["HTML"](made(n))) for n in (400, 800))  # type: ignore[misc]
    assert twice < 2.3 * once


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a"])
@pytest.mark.parametrize("begin", ["<!-- c -->\n", "<!--->-->", "<!-- - -- -> -->", "<!-- c "])
def test_kind_behind_comments(name: str, begin: str) -> None:
    text = f"{begin * 600}# Title\ntext"
    assert read_bytes(text.encode(), name).text == text
    page = read_bytes(f"{begin * 9}<html><p>text".encode(), name).text
    assert page == ("text" if begin.endswith((">\n", "->")) else f"{begin * 9}<html><p>text")


ENTITIES = f"<!DOCTYPE l [<!ENTITY a '{'<w:p/>' * 10}'><!ENTITY b '{'&a;' * 10}'>]>"
TOO_MUCH: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "tags": (lambda: b"<html>" + b"<p>" * 3_001, "a.html", "3,000 elements"),
    "paragraphs": (lambda: docx("<w:p/>" * 3_000), "a.docx", "3,000 elements"),
    "a text": (lambda: docx(PARAGRAPH.replace("x", "x" * 100_001)), "a.docx", "100,000 characters"),
    "entities": (lambda: docx("&b;" * 30, before=ENTITIES), "a.docx", "3,000 elements"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_markup_limits(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kinds._MOST_OF_MARKUP == {"elements": 300_000, "characters": 10_000_000}, "more than any real file"
    monkeypatch.setattr(kinds, "_MOST_OF_MARKUP", {"elements": 3_000, "characters": 100_000})
    made, name, most = TOO_MUCH[case]
    with pytest.raises(UnreadableFileError, match=f"{name}: it holds more than {most}: split it"):
        read_bytes(made(), name)


@pytest.mark.parametrize(
    ("kind", "most", "data"),
    [
        ("pages", 2, pdf(SENTENCES)),
        ("characters", 60, pdf(SENTENCES)),
        ("drawing operators", 30, pdf(SENTENCES)),
        ("drawing operators", 1000, drawn_twice(60)),
    ],
)
def test_pdf_limits(monkeypatch: pytest.MonkeyPatch, kind: str, most: int, data: bytes) -> None:
    monkeypatch.setitem(kinds._MOST_OF_PDF, kind, most)
    with pytest.raises(UnreadableFileError, match=f"it holds more than {most:,} {kind}: split it"):
        read_bytes(data, "a.pdf")


def test_docx_nested_too_deeply() -> None:
    table = "<w:tbl><w:tr><w:tc>" * 300 + PARAGRAPH + "</w:tc></w:tr></w:tbl>" * 300
    with pytest.raises(UnreadableFileError, match=r"a\.docx: its parts are nested too deeply: save it as plain text"):
        read_bytes(docx(table), "a.docx")
