"""Hold what one question reads: its passages, the documents behind them, and the sections of these."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from selfroute.documents.cache import Size
from selfroute.documents.headings import headed, headings_at
from selfroute.documents.label import label_in
from selfroute.documents.stored import BaseStoredDocuments

if TYPE_CHECKING:
    from selfroute.calls.host import Host
    from selfroute.calls.plan import Plan
    from selfroute.documents.sections import Ranking, Run
    from selfroute.documents.window import Count
    from selfroute.usage.account import Account

Document = TypeVar("Document")
_LEFT_OUT = "[...]"
_MOST = 0.6  # of the documents; passages that are more cost more than they save


class Reading(Generic[Document]):
    """The passages and documents of one question.

    Attributes:
        passages: The retrieved passages, best first.
        documents: The whole documents; empty until they are read.
    """

    def __init__(self, host: Host[Document], plan: Plan, account: Account) -> None:
        """Start with nothing read."""
        self._host, self._plan, self._account = host, plan, account
        self.passages: Sequence[Document] = ()
        self.documents: Sequence[Document] = ()
        self._is_read = False
        self._failed: Exception | None = None
        self._lock = Lock()
        self._pending: asyncio.Future[Sequence[Document]] | None = None
        self._ranking: Ranking | None = None
        self._chosen: Sequence[Document] | None = None
        self._drafted: tuple[Sequence[Document] | None, Sequence[Document]] = None, ()

    def read(self) -> Sequence[Document]:
        """Read the documents, unless a policy did so before, which may ask from several threads."""
        with self._lock:
            if self._failed:
                raise self._failed
            if not self._is_read:
                try:
                    self._take(self._host.read(self.passages))
                except Exception as error:
                    self._failed = error  # a callable that failed is not called again for this question
                    raise
        return self.documents

    def _take(self, documents: Sequence[Document]) -> None:
        self.documents, self._is_read = _each_once(documents, list(map(self._host.text_of, documents))), True

    async def aread(self) -> Sequence[Document]:
        """The async twin of `read`; also if a policy asks twice at the same time."""
        if not self._is_read:
            await self._keep(await self._begin())
        return self.documents

    async def aread_early(self) -> Sequence[Document]:
        """Read the documents for a policy; if that stops waiting, the next step still has them."""
        if not self._is_read:
            reading = self._begin()
            self._account.on_close(lambda _: reading.cancel())
            await self._keep(await asyncio.shield(reading))
        return self.documents

    def _begin(self) -> asyncio.Future[Sequence[Document]]:
        if self._pending is None or self._pending.cancelled():  # by a policy that did not wait for it
            self._pending = asyncio.ensure_future(self._host.aread(self.passages))
        return self._pending

    async def _keep(self, documents: Sequence[Document]) -> None:
        self._take(documents)
        await asyncio.to_thread(lambda: self.chosen)  # ranking a long text would block the event loop

    @property
    def is_read(self) -> bool:
        """Whether the documents were read."""
        return self._is_read

    @property
    def is_stored(self) -> bool:
        """Whether the documents are those that a store holds."""
        return isinstance(self._host.source, BaseStoredDocuments)

    @property
    def is_at_hand(self) -> bool:
        """Whether reading the documents calls nothing of the user's."""
        with suppress(Exception):
            return self._is_read or self.is_stored or isinstance(self._host.source, list | tuple)
        return False

    @property
    def ranking(self) -> Ranking:
        """The sections of the documents that were read, best first; ranked once a question."""
        if self._ranking is None:
            from selfroute.documents.sections import ranked  # noqa: PLC0415 - most questions end before

            host = self._host
            names = [host.source_of(document) for document in self.documents]
            origins = [
                [at for at, other in enumerate(names) if type(other) is type(name) and other == name is not None]
                for name in map(host.source_of, self.passages)
            ]
            passages = [host.retrieved_text(passage) for passage in self.passages]
            texts = [host.text_of(document) for document in self.documents]
            self._ranking = ranked(host.question, texts, passages, origins=origins)
        return self._ranking

    @property
    def chosen(self) -> Sequence[Document]:
        """The documents that the last step reads: those given, or the best of stored ones.

        Without a limit these are all behind the passages of the draft, as published: sections look further.
        """
        most = self._plan.most_compared
        if not self.is_stored or (most is not None and len(self.documents) <= most):
            return self.documents
        if self._chosen is None:
            if most is None:
                drafted, found = ([self._host.source_of(one) for one in some] for some in (self.drafted, self.passages))
                further = [name for name in found if name not in drafted]
                self._chosen = [one for one in self.documents if self._host.source_of(one) not in further]
            else:
                self._chosen = [self.documents[number] for number in self.ranking.documents[:most]]
        return self._chosen

    @property
    def drafted(self) -> Sequence[Document]:
        """The passages that the draft reads: the first ones, each text once."""
        if self._drafted[0] is not self.passages:
            host, distinct = self._host, self.passages
            if _repeat(list(map(host.retrieved_text, distinct))):
                headed = [(host.retrieved_text(one), *host.headings_of(one)) for one in distinct]
                distinct = _each_once(distinct, headed)
            self._drafted = self.passages, distinct[: self._plan.draft_passages]
        return self._drafted[1]

    def length(self, documents: Sequence[Document]) -> int:
        """Return the length of passages or documents, in characters."""
        return sum([len(self._host.text_of(document)) for document in documents])

    def are_most(self, passages: Sequence[Document]) -> bool:
        """Return whether passages are most of their documents, so that a draft costs more than it saves.

        The documents are read for this if their length is not known.
        """
        with suppress(Exception):  # an answer from passages needs no documents
            if self.sizes() is None:
                self.read()
        return self._are_most(passages)

    async def aare_most(self, passages: Sequence[Document]) -> bool:
        """The async twin of `are_most`."""
        with suppress(Exception):
            if self.sizes() is None:
                await self.aread()
        return self._are_most(passages)

    def _are_most(self, passages: Sequence[Document]) -> bool:
        most = self._plan.most_compared
        names = [self._host.source_of(passage) for passage in self.passages]
        others = [name for at, name in enumerate(names) if name not in names[:at]]
        if most is not None and len(others) > most and self.is_stored:
            return False  # the documents that are left out may hold the answer
        sizes = self.sizes()
        whole = sum(size.characters for size in sizes) if sizes else 0
        return 0 < whole * _MOST <= self.length(passages)

    def sizes(self) -> Sequence[Size] | None:
        """Return the sizes of the documents that the last step reads, None if they are not known."""
        return [Size(None, self.length(self.chosen))] if self._is_read else self.known_sizes()

    def known_sizes(self) -> Sequence[Size] | None:
        """Return the sizes that are known without reading the documents for this question; None if they are not."""
        with suppress(Exception):  # an answer from passages needs no documents
            source = self._host.source
            if isinstance(source, BaseStoredDocuments):
                return source.reader.sizes(self._of_the_best(), source.view)
            if isinstance(source, list | tuple):
                return [Size(None, self.length(source))]
        return None

    def _of_the_best(self) -> Sequence[Document]:
        """Return the passages of the documents that would be read, by the ranks of these passages alone."""
        most, names = self._plan.most_compared, [self._host.source_of(passage) for passage in self.passages]
        if most is None:
            return self.drafted
        if len(set(names)) <= most:
            return self.passages
        worth: dict[Any, float] = {}
        for rank, name in enumerate(names):
            worth[name] = worth.get(name, 0) + 1 / (1 + rank)
        best = sorted(worth, key=worth.__getitem__, reverse=True)[:most]
        return [passage for passage, name in zip(self.passages, names, strict=True) if name in best]


def _repeat(texts: Sequence[Any]) -> bool:
    return len(set(texts)) < len(texts)


def _each_once(given: Sequence[Document], texts: Sequence[Any]) -> Sequence[Document]:
    """Return passages or documents without those that repeat the text of one before, as of a file indexed twice."""
    if not _repeat(texts):
        return given
    first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    return [one for at, one in enumerate(given) if first[texts[at]] == at]


class SectionReader(Generic[Document]):
    """Chooses the best sections of one question's documents, and joins them for a prompt."""

    def __init__(self, host: Host[Document], reading: Reading[Document]) -> None:
        """Start with no section chosen."""
        self._host, self._reading = host, reading
        self._runs: dict[int, Run] = {}  # where in which document each section stands, by its identity

    def best(self, budget: int, count: Count, *, always: int) -> list[Document]:
        """Return the best sections of the documents that were read, in their documents' order.

        Args:
            budget: The most tokens of all sections.
            count: Counts the tokens of a text.
            always: How many of the first passages are always among them.
        """
        return [self._section(run) for run in self._reading.ranking.fill(budget, count, always=always)]

    def beyond(self, sections: Sequence[Document], documents: Sequence[Document]) -> list[Document]:
        """Return the sections that are of none of some documents."""
        numbers = {at for at, one in enumerate(self._reading.documents) if any(one is other for other in documents)}
        return [section for section in sections if self._runs[id(section)].document not in numbers]

    def _label_of(self, document: Document) -> Mapping[str, Any]:
        return label_in(self._host.place_of(document).metadata, self._host.text_of(document))

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
            headings = getattr(self._label_of(document), "headings", ())
            texts = [headed(whole[run.start : run.end], headings_at(headings, run.start)) for run in runs]
            text = f"\n{_LEFT_OUT}\n".join(texts)
            before = f"{_LEFT_OUT}\n" if whole[: runs[0].start].strip() else ""
            after = f"\n{_LEFT_OUT}" if whole[runs[-1].end :].strip() else ""
            joined.append(self._host.with_text(document, f"{before}{text}{after}"))
        return joined
