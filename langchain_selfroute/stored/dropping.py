"""See which passages parts that we do not know drop from what the retrievers within them find."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from selfroute.documents.stored import ScopedDocuments


class FoundHeard(BaseCallbackHandler):
    """Notes what all retrievers find that run within the retrieval of one question."""

    run_inline = True

    def __init__(self, stored: ScopedDocuments[Document, Document]) -> None:
        """Note it as these documents name and read passages."""
        self._stored = stored
        self.found: set[tuple[Hashable | None, str]] = set()

    def on_retriever_end(self, documents: Sequence[Document], **_: Any) -> None:
        """Note what a retriever has found."""
        self.found |= self._stored.noted(documents)
