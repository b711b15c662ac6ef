"""Splits texts into the passages that the demo and the command search."""

from __future__ import annotations

from langchain_text_splitters import RecursiveCharacterTextSplitter

CHUNK_SIZE = 1200
CHUNK_OVERLAP = 200
SEPARATORS = ["\n\n", ". ", "\n", " ", ""]


def make_splitter() -> RecursiveCharacterTextSplitter:
    """Return what splits texts into passages that overlap, if possible at the end of a paragraph or a sentence."""
    return RecursiveCharacterTextSplitter(
        separators=SEPARATORS,
        keep_separator="end",
        chunk_size=CHUNK_SIZE,
        chunk_overlap=CHUNK_OVERLAP,
        add_start_index=True,
    )
