"""Makes files of the kinds that people have."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from docx import Document
from fpdf import FPDF

SENTENCES = ("The ferry leaves Haldon pier at seven.", "Captain Orla Venn sails it.", "The crossing costs nine crowns.")


def pdf(pages: Sequence[str], *, password: str | None = None) -> bytes:
    """Make a PDF with a text on each page; an empty one leaves a page with a drawing."""
    made = FPDF()
    if password is not None:
        made.set_encryption("owner", password)
    made.set_font("Helvetica", size=12)
    for text in pages:
        made.add_page()
        made.rect(5, 5, 100, 100)
        made.multi_cell(0, 8, text)
    return bytes(made.output())


def docx(paragraphs: Sequence[str], *, table: Sequence[Sequence[str]] = ()) -> bytes:
    """Make a docx file with paragraphs, and a table below them."""
    made = Document()
    made.add_heading("The timetable")
    for text in paragraphs:
        made.add_paragraph(text)
    grid = made.add_table(len(table), len(table[0]) if table else 1)
    for cell, text in zip(grid._cells, (text for row in table for text in row), strict=True):
        cell.text = text
    data = BytesIO()
    made.save(data)
    return data.getvalue()


def html(paragraphs: Sequence[str], *, title: str = "The timetable", encoding: str = "utf-8") -> bytes:
    """Make a web page, with what its readers do not see."""
    text = "".join(f"<p>{text}</p>" for text in paragraphs)
    head = f"<meta charset={encoding}><title>{title}</title><style>p {{ color: red }}</style>"
    page = f"<!DOCTYPE html><html><head>{head}</head><body>{text}<script>alert('unseen')</script><!-- unseen --></body>"
    return page.encode(encoding)


WHOLE = "\n\n".join(SENTENCES)
READABLE = {
    "a.pdf": pdf(SENTENCES),
    "owner.pdf": pdf(SENTENCES, password=""),
    "a.docx": docx(SENTENCES),
    "a.html": html(SENTENCES),
    "latin.htm": html([*SENTENCES, "Fähre"], encoding="latin-1"),
    "a.md": WHOLE.encode(),
    "a.txt": WHOLE.replace("\n", "\r\n").encode(),
    "marked.txt": WHOLE.encode("utf-8-sig"),
    "utf16.txt": WHOLE.encode("utf-16"),
    "pdf": pdf(SENTENCES),
    "docx": docx(SENTENCES),
    "html": html(SENTENCES),
}
UNREADABLE = {
    "scan.pdf": (pdf(["", ""]), "its pages are images without text: run OCR first"),
    "locked.pdf": (pdf(SENTENCES, password=SENTENCES[0]), "it is encrypted: save it without its password"),
    "broken.pdf": (pdf(SENTENCES)[:300], "this is a broken PDF file"),
    "text.pdf": (WHOLE.encode(), "this is a broken PDF file"),
    "broken.docx": (docx(SENTENCES)[:2000], "this is a broken docx file"),
    "old.doc": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "this is an old or encrypted Office file: save",
    ),
    "latin.txt": (b"F\xe4hre", "this is not UTF-8 text: save it in that encoding"),
    "empty.txt": (b" \n", "the file is empty"),
    "empty.html": (b"<html><script>1</script></html>", "it has no text"),
}
UNKNOWN = {
    "program": b"\x7fELF\0\0\1" * 20,
    "photo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(600),
    "table.xlsx": docx(SENTENCES).replace(b"word/document.xml", b"xl/worksheets.xml"),
}
