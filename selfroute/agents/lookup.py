"""Look something up for an agent: what a search finds, where words stand in a document, a stretch of it.

Names, words and offsets come from a model, so they are data. A name opens nothing: a document is read only behind
passages of it that the pipeline's own retriever returns, under the configuration of this very call. No answer is longer
than the tokens that were allowed, and each argument gets an answer, since an error would end the agent's run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

from selfroute.agents.tools import MOST_TOKENS, TOOLS, ToolResult, absent, check_most, failed, invalid
from selfroute.calls.host import Host
from selfroute.documents.access import has_words
from selfroute.documents.cache import Recent
from selfroute.documents.label import label_in
from selfroute.documents.pages import Page, page_at, page_of
from selfroute.documents.sections import Run, ranked
from selfroute.errors import ConfigurationError, DocumentNotFoundError
from selfroute.languages.tokens import count_tokens
from selfroute.stores.listing import same_name

_UNREADABLE = (DocumentNotFoundError, ConfigurationError)
_MOST_QUERIES = 1_000

Document = TypeVar("Document")
_Wanted: TypeAlias = tuple[Host[Document], list[Document] | None]
_Steps: TypeAlias = Generator[_Wanted[Document], Any, ToolResult]


class Queries(Recent[str]):
    """The latest query for which a search returned a passage of a document, by the document's name and by who asked.

    A query is no evidence of anything: it is asked again before a document is read, and only what the retriever then
    returns counts. So agents of several users may share the tools.
    """

    def __init__(self) -> None:
        """Remember nothing."""
        super().__init__(_MOST_QUERIES)


class Lookup(Generic[Document]):
    """Looks something up for one question, which is the query, the words, or the name of a document."""

    def __init__(
        self,
        host: Callable[[], Host[Document]],
        *,
        max_tokens: int = MOST_TOKENS,
        queries: Queries | None = None,
        passing: tuple[type[Exception], ...] = (),
    ) -> None:
        """Take what does the work.

        Args:
            host: Returns the host of the question; called once its arguments were checked.
            max_tokens: How many tokens an answer has at most.
            queries: The queries of the searches before, which the tools of one agent share.
            passing: Exceptions of the framework that pass through, such as a graph's interrupt.

        Raises:
            ConfigurationError: `max_tokens` is less than 100.
        """
        self._made, self._most, self._passing = host, check_most(max_tokens), passing
        self._queries = Queries() if queries is None else queries

    @cached_property
    def _host(self) -> Host[Document]:
        return self._made()

    def look(self, tool: str, given: Mapping[str, Any]) -> ToolResult:
        """Use one of the `TOOLS`; wrong arguments and errors are reported in the result."""
        steps = self._steps(tool, given)
        wanted = _next(steps.send, None)
        while not isinstance(wanted, ToolResult):
            host, found = wanted
            try:
                got = host.retrieve() if found is None else host.read(found)
            except Exception as error:  # noqa: BLE001 - stores may raise anything
                wanted = _next(steps.throw, error)
            else:
                wanted = _next(steps.send, got)
        return wanted

    async def alook(self, tool: str, given: Mapping[str, Any]) -> ToolResult:
        """The async twin of `look`."""
        steps = self._steps(tool, given)
        wanted = _next(steps.send, None)
        while not isinstance(wanted, ToolResult):
            host, found = wanted
            try:
                got = await (host.aretrieve() if found is None else host.aread(found))
            except Exception as error:  # noqa: BLE001
                wanted = _next(steps.throw, error)
            else:
                wanted = _next(steps.send, got)
        return wanted

    def _steps(self, tool: str, given: Mapping[str, Any]) -> _Steps[Document]:
        """Yield a host that is to retrieve or, with passages, to read their documents; return the result of a tool."""
        try:
            if wrong := invalid(TOOLS[tool], given):
                return wrong
            if tool == "search":
                return self._passages((yield self._host, None))
            name: str = given["document"]
            document = yield from self._document(name)
            if document is None:
                return absent(name)
            return self._sections(name, document) if tool == "find" else self._stretch(name, document, given["start"])
        except self._passing:
            raise
        except Exception as error:  # noqa: BLE001
            return failed(tool, error)

    def _document(self, name: str) -> Generator[_Wanted[Document], Any, Document | None]:
        """Return a document if the retriever finds a passage of it; None if it does not, or may not see all of it."""
        for host in self._hosts(name):
            if found := self._of(host, name, (yield host, None)):
                try:
                    documents = yield host, found
                except _UNREADABLE:
                    continue
                if document := self._of_same(found, documents):
                    return document
        return None

    def _hosts(self, name: str) -> Iterator[Host[Document]]:
        """Yield hosts whose retrievers may find a passage of a document: by its latest query, or by the question."""
        query = self._queries.get((self._host.caller, name))
        if query is not None and query != self._host.question:
            yield self._host.asking(query)
        yield self._host

    def _of(self, host: Host[Document], name: str, passages: Sequence[Document]) -> list[Document]:
        """Return the passages of a document; one without a letter or a digit is evidence of nothing."""
        self._note(host, passages)
        return [one for one in passages if _names(host.source_of(one), name) and has_words(host.text_of(one))]

    def _note(self, host: Host[Document], passages: Sequence[Document]) -> None:
        for name in {str(host.source_of(passage)) for passage in passages}:
            self._queries.put((host.caller, name), host.question)

    def _of_same(self, passages: Sequence[Document], documents: Sequence[Document]) -> Document | None:
        """Return the document that the passages are from; 7 and "7" name two."""
        sources = list(map(self._host.source_of, passages))
        return next((one for one in documents if any(same_name(self._host.source_of(one), at) for at in sources)), None)

    def _passages(self, passages: Sequence[Document]) -> ToolResult:
        """Return the passages that the retriever found, as many as fit."""
        self._note(self._host, passages)
        shown: list[dict[str, Any]] = []
        texts: list[str] = []
        left = self._most
        for passage in passages:
            name, page = self._host.source_of(passage), page_of(self._host.place_of(passage).metadata)
            head = f"[{_place(name, page)}]\n"
            text = head + self._host.text_of(passage)
            left -= count_tokens(text)
            if left < 0 and texts:
                texts.append(f"({len(passages) - len(shown)} more were found: search for something narrower.)")
                break
            texts.append(_cut(text, self._most))
            shown.append({"document": name, "page": page, "text": texts[-1][len(head) :]})
        return ToolResult("\n\n".join(texts) or "Nothing was found.", {"passages": shown})

    def _sections(self, name: str, document: Document) -> ToolResult:
        """Return the sections of a document that share most with the words, as many as fit."""
        text, pages = self._host.text_of(document), self._pages(document)
        ranking = ranked(self._host.question, [text], ())
        runs = ranking.fill(self._most, count_tokens, always=0) or self._part_of(ranking.best, text)
        sections = [
            {"start": run.start, "end": run.end, "page": page_at(pages, run.start), "text": text[run.start : run.end]}
            for run in runs
        ]
        shown = [f"[{_place(name, one['page'])}, from {one['start']:,}]\n{one['text']}" for one in sections]
        return ToolResult("\n\n".join(shown) or "Nothing was found.", {"document": name, "sections": sections})

    def _part_of(self, section: Run | None, text: str) -> list[Run]:
        """Return as much of a section as fits, from the sentence on that shares most with the words."""
        if section is None:
            return []
        from selfroute.citations import locate  # noqa: PLC0415 - most sections fit

        words, start, end = self._host.question, section.start, section.end
        start += next((one["start"] for one in locate(words, words, text[start:end], n=1)), 0)
        return [section._replace(start=start, end=start + len(_cut(text[start:end], self._most)))]

    def _stretch(self, name: str, document: Document, start: int) -> ToolResult:
        """Return a document from an offset on, as much as fits."""
        text = self._host.text_of(document)
        begin = min(max(start, 0), len(text))
        shown = _cut(text[begin:], self._most)
        end, page = begin + len(shown), page_at(self._pages(document), begin)
        more = f"\n\n(It goes on: open it with start={end}.)" if end < len(text) else ""
        about = {"document": name, "page": page, "start": begin, "end": end, "length": len(text), "text": shown}
        return ToolResult(f"[{_place(name, page)}, {begin:,} to {end:,} of {len(text):,}]\n{shown}{more}", about)

    def _pages(self, document: Document) -> Sequence[Sequence[Any]]:
        pages: Sequence[Sequence[Any]] = label_in(
            self._host.place_of(document).metadata, self._host.text_of(document)
        ).get("pages", ())
        return pages


def _next(resume: Callable[[Any], _Wanted[Document]], value: Any) -> _Wanted[Document] | ToolResult:
    """Resume the steps of a tool through their `send` or `throw`; return what is wanted next, or the result."""
    try:
        return resume(value)
    except StopIteration as stop:
        result: ToolResult = stop.value
        return result


def _names(source: Any, name: str) -> bool:
    return source is not None and str(source) == name


def _place(name: Any, page: Page | None) -> str:
    return f"{name}" if page is None else f"{name}, page {page}"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that has so many tokens at most."""
    while count_tokens(text) > most:
        text = text[: int(len(text) * most / count_tokens(text) * 0.98)]
    return text
