"""Tell an agent that looks for itself: what a search finds, where words stand in a document, a stretch of it.

Nothing is told that the pipeline's own retriever and its wall would not let through, and no answer is longer than the
tokens that were allowed. Names, words and offsets come from a model: they are data, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from selfroute.calls.host import Host, check_question
from selfroute.documents.pages import Page, page_at, page_of
from selfroute.documents.sections import Run, ranked
from selfroute.errors import ConfigurationError, DocumentNotFoundError, InputError
from selfroute.usage.tokens import count_tokens

MOST_TOKENS = 2_000
"""How many tokens an answer has at most, unless it is said."""
_LEAST = 100
_UNREADABLE = (DocumentNotFoundError, ConfigurationError)

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool, as a model is told of it.

    Attributes:
        about: What it is for.
        question: The argument that says what is looked for.
        arguments: The type of each argument, its default (`...` if it must be given), and what it means.
    """

    about: str
    question: str
    arguments: Mapping[str, tuple[type, Any, str]]

    def schema(self, name: str, pydantic: Any) -> Any:
        """Return the class of pydantic that holds its arguments; the core does not import that package."""
        fields = {
            argument: (kind, pydantic.Field(default, description=about))
            for argument, (kind, default, about) in self.arguments.items()
        }
        return pydantic.create_model(name, **fields)


_DOCUMENT = (str, ..., "The document's name, as a search gives it")
TOOLS: Mapping[str, Tool] = {
    "search": Tool(
        "Search the documents. Returns the passages nearest to the query, each with the name of its document.",
        "query",
        {"query": (str, ..., "What to look for")},
    ),
    "find": Tool(
        "Find the parts of one document that share most with some words, with their offsets and pages.",
        "words",
        {"document": _DOCUMENT, "words": (str, ..., "Words to look for, or a question")},
    ),
    "open": Tool(
        "Read a stretch of one document, from an offset on.",
        "document",
        {"document": _DOCUMENT, "start": (int, 0, "The offset of the first character")},
    ),
}
"""The tools, by their names, which are also those of the methods of `Lookup`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent is told.

    Attributes:
        content: The text for the model.
        artifact: The same as plain data, for programs.
    """

    content: str
    artifact: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text for the model."""
        return self.content


class Lookup(Generic[Document]):
    """Looks something up for one question, which is the query or the words."""

    def __init__(self, host: Host[Document], *, max_tokens: int = MOST_TOKENS) -> None:
        """Take what does the work.

        Args:
            host: The host of the question.
            max_tokens: How many tokens an answer has at most.

        Raises:
            ConfigurationError: That is less than 100.
        """
        self._host, self._most = host, check_most(max_tokens)

    def look(self, tool: str, given: Mapping[str, Any]) -> Told:
        """Use one of the `TOOLS`, with its arguments."""
        told: Told = getattr(self, tool)(**given)
        return told

    async def alook(self, tool: str, given: Mapping[str, Any]) -> Told:
        """Do as `look` does, asynchronously."""
        told: Told = await getattr(self, f"a{tool}")(**given)
        return told

    def search(self, **_: Any) -> Told:
        """Return the passages that the retriever finds, as many as fit."""
        return self._passages(self._host.retrieve())

    async def asearch(self, **_: Any) -> Told:
        """Do as `search` does, asynchronously."""
        return self._passages(await self._host.aretrieve())

    def find(self, document: str, **_: Any) -> Told:
        """Return the sections of a document that share most with the words, as many as fit."""
        return self._sections(document, self._read(document, self._host.retrieve()))

    async def afind(self, document: str, **_: Any) -> Told:
        """Do as `find` does, asynchronously."""
        return self._sections(document, await self._aread(document, await self._host.aretrieve()))

    def open(self, document: str, start: int = 0) -> Told:
        """Return a document from an offset on, as much as fits."""
        return self._stretch(document, self._read(document, ()), start)

    async def aopen(self, document: str, start: int = 0) -> Told:
        """Do as `open` does, asynchronously."""
        return self._stretch(document, await self._aread(document, ()), start)

    def _read(self, name: str, passages: Sequence[Document]) -> Document | None:
        for named in self._naming(name, passages):
            try:
                documents = self._host.read(named)
            except _UNREADABLE:
                continue
            if found := self._called(name, documents):
                return found
        return None

    async def _aread(self, name: str, passages: Sequence[Document]) -> Document | None:
        for named in self._naming(name, passages):
            try:
                documents = await self._host.aread(named)
            except _UNREADABLE:
                continue
            if found := self._called(name, documents):
                return found
        return None

    def _naming(self, name: str, passages: Sequence[Document]) -> Iterator[Sequence[Document]]:
        """Yield passages that lead to a document: those that were found, or one that only names it."""
        if found := [passage for passage in passages if str(self._host.source_of(passage)) == name]:
            yield found
            return
        for key in (name, *([int(name)] if name.isascii() and name.isdigit() else [])):
            if (bare := self._host.naming(key)) is not None:
                yield [bare]

    def _called(self, name: str, documents: Sequence[Document]) -> Document | None:
        return next((one for one in documents if str(self._host.source_of(one)) == name), None)

    def _passages(self, passages: Sequence[Document]) -> Told:
        shown: list[dict[str, Any]] = []
        texts: list[str] = []
        left = self._most
        for passage in passages:
            name, page = self._host.source_of(passage), page_of(self._host.place_of(passage).metadata)
            head = f"[{_place(name, page)}]\n"
            told = head + self._host.text_of(passage)
            left -= count_tokens(told)
            if left < 0 and texts:
                texts.append(f"({len(passages) - len(shown)} more were found: search for something narrower.)")
                break
            texts.append(_cut(told, self._most))
            shown.append({"document": name, "page": page, "text": texts[-1][len(head) :]})
        return Told("\n\n".join(texts) or "Nothing was found.", {"passages": shown})

    def _sections(self, name: str, document: Document | None) -> Told:
        if document is None:
            return _absent(name)
        text, pages = self._host.text_of(document), self._pages(document)
        ranking = ranked(self._host.question, [text], ())
        runs = ranking.fill(self._most, count_tokens, always=0) or self._part_of(ranking.best, text)
        sections = [
            {"start": run.start, "end": run.end, "page": page_at(pages, run.start), "text": text[run.start : run.end]}
            for run in runs
        ]
        told = [f"[{_place(name, one['page'])}, from {one['start']:,}]\n{one['text']}" for one in sections]
        return Told("\n\n".join(told) or "Nothing was found.", {"document": name, "sections": sections})

    def _part_of(self, section: Run | None, text: str) -> list[Run]:
        """Return as much of a section as fits, from the sentence on that shares most with the words."""
        if section is None:
            return []
        from selfroute.citations import locate  # noqa: PLC0415 - most sections fit

        words, start, end = self._host.question, section.start, section.end
        start += next((one["start"] for one in locate(words, words, text[start:end], n=1)), 0)
        return [section._replace(start=start, end=start + len(_cut(text[start:end], self._most)))]

    def _stretch(self, name: str, document: Document | None, start: int) -> Told:
        if document is None:
            return _absent(name)
        text = self._host.text_of(document)
        begin = min(max(start, 0), len(text))
        shown = _cut(text[begin:], self._most)
        end, page = begin + len(shown), page_at(self._pages(document), begin)
        more = f"\n\n(It goes on: open it with start={end}.)" if end < len(text) else ""
        about = {"document": name, "page": page, "start": begin, "end": end, "length": len(text), "text": shown}
        return Told(f"[{_place(name, page)}, {begin:,} to {end:,} of {len(text):,}]\n{shown}{more}", about)

    def _pages(self, document: Document) -> Sequence[Sequence[Any]]:
        label = self._host.place_of(document).metadata.get("selfroute")
        return label.get("pages", ()) if isinstance(label, Mapping) else ()


def refused(words: str) -> Told | None:
    """Return what is wrong with the words that a model gave, if anything: an error would end the agent's run."""
    try:
        check_question(words)
    except InputError as error:
        return Told(f"Nothing was looked for: {error}.", {"refused": True})
    return None


def check_most(max_tokens: Any) -> int:
    """Return how many tokens an answer has at most.

    Raises:
        ConfigurationError: That is less than 100.
    """
    if not isinstance(max_tokens, int) or max_tokens < _LEAST:
        msg = f"max_tokens={max_tokens!r}: an answer needs at least {_LEAST} tokens"
        raise ConfigurationError(msg)
    return max_tokens


def _absent(name: str) -> Told:
    return Told(f"There is no such document: {name[:200]!r}.", {"document": name, "missing": True})


def _place(name: Any, page: Page | None) -> str:
    return f"{name}" if page is None else f"{name}, page {page}"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that has so many tokens at most."""
    while count_tokens(text) > most:
        text = text[: int(len(text) * most / count_tokens(text) * 0.98)]
    return text
