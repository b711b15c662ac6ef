"""Retrieve for one question, and read the documents behind the passages; note what fails on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from selfroute.calls.call import Call
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.effects import ReadDocuments, Retrieve

Attempt = Literal["retrieve", "source", "read"]
Document = TypeVar("Document")


class TriedQuestion(Generic[Document]):
    """A question that is retrieved for and read for, without asking a model.

    Attributes:
        call: The question.
        found: The retrieved passages, best first.
        fitting: Those that the first step would be given.
        to_read: The documents that the last step would be given; empty if no document was read.
        source: Where documents come from: stored documents, a list or a callable; None if that failed.
        errors: What failed, and how.
    """

    found: Sequence[Document] = ()
    fitting: Sequence[Document] = ()
    to_read: Sequence[Document] = ()
    source: Any = None
    errors: Mapping[Attempt, Exception] = {}

    def __init__(self, call: Call[Document]) -> None:
        """Start with nothing tried."""
        self.call, self.plan = call, call.plan
        self.host, self.reading, self.fits = call.host, call.reading, call.fitting

    def attempts(self) -> Iterator[tuple[Attempt, Retrieve | ReadDocuments]]:
        """Yield what to perform next, and its name; call `failed` before going on if it fails."""
        yield "retrieve", Retrieve(self.host.question)
        if self.errors:
            return
        self.found, self.fitting = tuple(self.reading.passages), tuple(self.call.context)
        try:
            self.source = self.host.source
        except Exception as error:  # noqa: BLE001 - it is a finding
            self.failed("source", error)
            return
        if self.found or self.stored is None:
            yield "read", ReadDocuments(self.fitting)
            self.to_read = self.call.context if self.read else ()

    def failed(self, what: Attempt, error: Exception) -> None:
        """Note that something failed."""
        self.errors = {**self.errors, what: error}

    @property
    def stored(self) -> BaseStoredDocuments[Document, Any] | None:
        """The stored documents, if these are where documents come from."""
        return self.source if isinstance(self.source, BaseStoredDocuments) else None

    @property
    def read(self) -> Sequence[Document]:
        """The whole documents; empty if none was read."""
        return self.reading.documents

    @property
    def behind(self) -> Sequence[Document]:
        """The whole documents that the last step reads, if there is room for them."""
        return self.reading.chosen if self.read else ()

    @property
    def drafts(self) -> bool:
        """Whether there is a first step over passages."""
        if self.plan.start == "auto" and self.plan.escalation is None:
            return not (self.read and self.reading.are_most(self.fitting))
        return self.plan.start not in ("sections", "long_context")

    def sections(self) -> Iterator[tuple[Sequence[Document], str]]:
        """Yield what each reading of sections would be given, and why it would be skipped, if it would."""
        sending = self.call.sending
        if self.drafts:
            sending.note_sent("rag", self.fitting)
        reads_them = self.read and self.plan.start != "long_context"
        for rung in range(self.plan.rungs if reads_them else 0):
            found, skipped = self.fits.fit_sections(ReadDocuments(self.fitting, step="sections", rung=rung))
            yield found, skipped
            if found:
                sending.note_sent("sections", found)

    def tokens_of(self, documents: Sequence[Document]) -> int:
        """Return about how many tokens of the last step's model some documents have."""
        fitting = self.fits
        return fitting.tokens(documents, fitting.count("long_context"))
