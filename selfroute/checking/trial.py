"""Retrieve for one question, and read the document behind the best passage; note what fails on the way."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

from selfroute.documents.stored import ScopedDocuments
from selfroute.flow import ReadDocuments, Retrieve
from selfroute.performing import BaseSteps

Attempt = Literal["retrieve", "source", "read"]
Document = TypeVar("Document")


class Trial(BaseSteps[Document]):
    """The steps of a question that goes only as far as no model is asked.

    Attributes:
        found: The retrieved passages, best first.
        fitting: Those that the first step would be given.
        behind: Those of the document that is tried: the one that the best passage with a name comes from.
        source: Where documents come from: `ScopedDocuments`, a list or a callable; None if that failed.
        errors: What failed, and how.
    """

    found: Sequence[Document] = ()
    fitting: Sequence[Document] = ()
    behind: Sequence[Document] = ()
    source: Any = None
    errors: Mapping[Attempt, Exception] = {}

    def attempts(self) -> Iterator[tuple[Attempt, Retrieve | ReadDocuments]]:
        """Yield what to perform next, and its name; call `failed` before going on if it fails."""
        yield "retrieve", Retrieve(self.question)
        if self.errors:
            return
        self.found, self.fitting = tuple(self.passages), tuple(self.context)
        try:
            self.source = self._source()
        except Exception as error:  # noqa: BLE001 - it is a finding
            self.failed("source", error)
            return
        self.behind = self.found if self.stored is None else _of_one_document(self.stored, self.found)
        if self.behind or self.stored is None:
            self.passages = list(self.behind)
            yield "read", ReadDocuments(self.behind)

    def failed(self, what: Attempt, error: Exception) -> None:
        """Note that something failed."""
        self.errors = {**self.errors, what: error}

    @property
    def stored(self) -> ScopedDocuments[Document, Any] | None:
        """The stored documents, if these are where documents come from."""
        return self.source if isinstance(self.source, ScopedDocuments) else None

    @property
    def to_read(self) -> Sequence[Document]:
        """What the second step would be given; empty if no document was read."""
        return self.context if self.read else ()

    @property
    def drafts(self) -> bool:
        """Whether there is a first step over passages."""
        return bool(self.settings.start != "long_context")

    def tokens_of(self, documents: Sequence[Document]) -> int:
        """Return about how many tokens of the second step's model some documents have."""
        count = self._count("long_context")
        return sum(count(self._text_of(document)) for document in documents)


def _of_one_document(stored: ScopedDocuments[Document, Any], passages: Sequence[Document]) -> Sequence[Document]:
    names: Sequence[Hashable | None] = [None] * len(passages)
    with suppress(Exception):  # reading fails in the same way
        names = stored.names(passages)
    best = next((name for name in names if name is not None), None)
    return [one for one, name in zip(passages, names, strict=True) if name == best]
