"""Rebuild whole documents from their chunks, and fit them into a model's window."""

from selfroute.documents.chunks import Chunk
from selfroute.documents.rebuild import RebuiltDocument, rebuild

__all__ = ["Chunk", "RebuiltDocument", "rebuild"]
