"""The extra `files`: PDF, docx and HTML are read as text."""

import sys
from io import BytesIO
from zipfile import ZipFile

from pypdf import PdfWriter

from selfroute.files import UnreadableFileError, read_bytes

page = b"<html><title>Ferry</title><p>It leaves at <b>seven</b>.</html>"
assert read_bytes(page, "a.html").text == "Ferry\n\nIt leaves at seven.", page

XML = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body><w:p><w:r><w:t>It leaves at seven.</w:t></w:r></w:p></w:body></w:document>"
)
data = BytesIO()
with ZipFile(data, "w") as parts:
    parts.writestr("word/document.xml", XML)
assert read_bytes(data.getvalue(), "a.docx").text == "It leaves at seven."

empty, data = PdfWriter(), BytesIO()
empty.add_blank_page(100, 100)
empty.write(data)
try:
    read_bytes(data.getvalue(), "a.pdf")
except UnreadableFileError as error:
    assert "without text" in str(error), error
else:
    sys.exit("an empty page has a text")
