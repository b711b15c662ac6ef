"""The protocols that a framework's part of the command follows; `loading.py` imports one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from chromadb.api import ClientAPI

from selfroute.checking import Findings
from selfroute.command.citing import FileCitation
from selfroute.command.history import Turn
from selfroute.command.steering import Steering
from selfroute.command.texts import IndexedPassage, Text
from selfroute.usage.ledger import Ledger

Name = Literal["langchain", "llamaindex"]
Show = Callable[[str, str], object]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a file that was read.

    Attributes:
        start: The offset of its first character in the file's text.
        end: The offset behind the last one.
        page: The page that it begins on, from 1; None if the file has no pages.
    """

    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A document that was read: whole, as much of it as the model takes, or sections of it.

    Attributes:
        source: Its name.
        trimmed: Whether its text was cut.
        sections: The sections that were read; empty if it was not read by sections.
    """

    source: str
    trimmed: bool
    sections: Sequence[Section] = ()


def documents_read(
    route: str, context: Iterable[tuple[str, Mapping[str, Any]]], texts: Mapping[str, Text]
) -> list[Read]:
    """Return the documents that a question read.

    Args:
        route: The step that answered.
        context: The text and the metadata of each passage, section or document that it was given.
        texts: The texts of the files, by source.
    """
    if route == "rag":
        return []
    labels = [(text, metadata["source"], metadata.get("selfroute", {})) for text, metadata in context]
    if route == "long_context":
        return [Read(source, label.get("trimmed", False)) for _, source, label in labels]
    found: dict[str, list[Section]] = {}
    for text, source, label in labels:
        start, end = texts[source].find(text, near=label["start"]) or (label["start"], label["end"])
        found.setdefault(source, []).append(Section(start, end, texts[source].page_of(start)))
    return [Read(source, trimmed=False, sections=sections) for source, sections in found.items()]


@dataclass(frozen=True, slots=True)
class Output:
    """An answer, and how it came about.

    Attributes:
        question: The question.
        answer: The answer.
        route: The step that produced it.
        answerable: Whether the question was answered.
        decision: Why it took that route.
        usage: The tokens and the cost of all steps, and those of the long context alone.
        retrieved: The ids of the passages that the draft reads, nearest first; more may have been retrieved.
        read: The documents that were read, in the order in which the model was given them.
        citations: Where in the files the answer stands, best first.
    """

    question: str
    answer: str
    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    retrieved: Sequence[str]
    read: Sequence[Read]
    citations: Sequence[FileCitation] = ()


class Session(Protocol):
    """Self-Route over an index, with a ledger."""

    @property
    def ledger(self) -> Ledger:
        """Adds up the tokens and the cost of the questions."""

    def ask(self, question: str) -> Output:
        """Answer a question."""

    def stream(self, question: str, show: Show, *, turns: Sequence[Turn] = (), alone: str | None = None) -> Output:
        """Answer a question piece by piece.

        Args:
            question: The question.
            show: Called with the route and the next piece of the answer, at least once.
            turns: What was said before; empty if the question begins a conversation.
            alone: The question as `reword` words it; None for the question itself.
        """

    def reword(self, question: str, turns: Sequence[Turn]) -> tuple[str, int]:
        """Have the model word a question so that it can be understood without what was said before.

        Returns:
            That question, and about how many tokens it took.
        """

    def check(self, question: str) -> Findings:
        """Try everything on a question as far as no model is asked, and return what was found."""


class Index(Protocol):
    """The passages in a collection of Chroma, in the framework's format."""

    def add(self, passages: Sequence[IndexedPassage]) -> None:
        """Embed passages and add them."""

    def open_session(  # noqa: PLR0913 - what a session needs
        self,
        texts: Sequence[Text],
        *,
        llm: Any,
        long_context_llm: Any,
        k: int,
        priced_as: str | None,
        steering: Steering,
    ) -> AbstractContextManager[Session]:
        """Open a session over these texts of the index; its ledger counts until the end of the context."""


class Framework(Protocol):
    """A framework. Its embeddings and models are `Any` to the rest of the command."""

    NAME: str

    def load_embeddings(self, name: str | None = None) -> Any:
        """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

        Raises:
            ConfigurationError: It cannot be loaded.
        """

    def load_model(self, provider: str, model: str, *, base_url: str | None) -> Any:
        """Make a chat model.

        Raises:
            ConfigurationError: The framework does not know the provider, or a key is missing.
            ImportError: The provider's package is not installed.
        """

    def extractive_reader(self, embeddings: Any) -> Any:
        """Make the model that answers if the user names none."""

    def recorded_model(self) -> Any:
        """Make the model that answers the demo's questions from the recording that comes with the package."""

    def open_index(self, client: ClientAPI, collection: str, embeddings: Any) -> Index:
        """Open the index in an existing collection."""
