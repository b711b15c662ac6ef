"""Read the files that people have: PDF, docx, HTML, Markdown and plain text; alone, in folders, by wildcards."""

from selfroute.files.finding import Found, find
from selfroute.files.reading import Content, NotTextError, UnreadableFileError, read_bytes, read_file

__all__ = ["Content", "Found", "NotTextError", "UnreadableFileError", "find", "read_bytes", "read_file"]
