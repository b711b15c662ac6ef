"""Read the files that people have: PDF, docx, HTML, Markdown and plain text; alone, in folders, by wildcards."""

from selfroute_workbench.files.finding import STANDARD_INPUT, Found, find
from selfroute_workbench.files.reading import Content, NotTextError, UnreadableFileError, read_bytes, read_file

__all__ = [
    "STANDARD_INPUT",
    "Content",
    "Found",
    "NotTextError",
    "UnreadableFileError",
    "find",
    "read_bytes",
    "read_file",
]
