"""Rebuild whole documents from their chunks, and fit them into a model's window."""

from selfroute.documents.chunks import Chunk, chunks_of, offset
from selfroute.documents.label import original_label
from selfroute.documents.overflow import is_too_long, read_less
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.window import Part, fit, room_in, trim

__all__ = [
    "Chunk",
    "Part",
    "RebuiltDocument",
    "chunks_of",
    "fit",
    "is_too_long",
    "offset",
    "original_label",
    "read_less",
    "rebuild",
    "room_in",
    "trim",
]
