"""Choose the best sections of one question's documents, and join those of a document for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from selfroute.calls.host import Host
    from selfroute.calls.reading import Reading
    from selfroute.documents.sections import Run
    from selfroute.documents.window import Count

Document = TypeVar("Document")
_LEFT_OUT = "[...]"


class Sections(Generic[Document]):
    """The sections that one question's model has been, or may be, asked to read."""

    def __init__(self, host: Host[Document], reading: Reading[Document]) -> None:
        """Start with no section."""
        self._host, self._reading = host, reading
        self._runs: dict[int, Run] = {}  # where in which document each section stands, by its identity

    def best(self, budget: int, count: Count, *, always: int) -> list[Document]:
        """Return the best sections of the documents that were read, in their documents' order.

        Args:
            budget: The most tokens of all sections.
            count: Counts the tokens of a text.
            always: How many of the passages are among them whatever they take, the first ones.
        """
        return [self._section(run) for run in self._reading.ranking.fill(budget, count, always=always)]

    def _section(self, run: Run) -> Document:
        host, document = self._host, self._reading.documents[run.document]
        label = {"method": "sections", "start": run.start, "end": run.end, "document": host.source_of(document)}
        section = host.with_text(document, host.text_of(document)[run.start : run.end], **label)
        self._runs[id(section)] = run
        return section

    def joined(self, sections: Sequence[Document]) -> list[Document]:
        """Return the sections of each document as one text, with a mark where text is left out."""
        joined = []
        for number, found in groupby(sections, lambda section: self._runs[id(section)].document):
            document, runs = self._reading.documents[number], [self._runs[id(section)] for section in found]
            whole = self._host.text_of(document)
            text = f"\n{_LEFT_OUT}\n".join(whole[run.start : run.end] for run in runs)
            before = f"{_LEFT_OUT}\n" if whole[: runs[0].start].strip() else ""
            after = f"\n{_LEFT_OUT}" if whole[runs[-1].end :].strip() else ""
            joined.append(self._host.with_text(document, f"{before}{text}{after}"))
        return joined
