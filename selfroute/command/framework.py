"""What the demo needs of a framework. `with_langchain` and `with_llamaindex` bring it; only one is ever imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from chromadb.api import ClientAPI

from selfroute.command.texts import Passage, Text
from selfroute.usage.ledger import Ledger

Name = Literal["langchain", "llamaindex"]
Show = Callable[[str, str], object]


@dataclass(frozen=True, slots=True)
class Read:
    """A document that was read whole, or as much of it as the model takes."""

    source: str
    trimmed: bool

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Read:
        """Take it from a document's metadata."""
        return cls(metadata["source"], metadata.get("selfroute", {}).get("trimmed", False))


@dataclass(frozen=True, slots=True)
class Output:
    """What became of a question.

    Attributes:
        question: The question.
        answer: The answer.
        route: The step that produced it.
        answerable: Whether there is one.
        decision: Why it took that route.
        usage: What both steps took, and what the long context alone would have taken.
        retrieved: The ids of the passages that were retrieved, nearest first.
        read: The documents that were read on the long-context route, best first.
    """

    question: str
    answer: str
    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    retrieved: Sequence[str]
    read: Sequence[Read]


class Pipeline(Protocol):
    """Self-Route over an index."""

    @property
    def ledger(self) -> Ledger:
        """Adds up what the questions take."""

    def ask(self, question: str) -> Output:
        """Answer a question."""

    def stream(self, question: str, show: Show) -> Output:
        """Answer a question in pieces.

        Args:
            question: The question.
            show: Is given the route and the next piece of the answer, once at least.
        """


class Index(Protocol):
    """The passages in a collection of Chroma, as the framework keeps them."""

    def add(self, passages: Sequence[Passage]) -> None:
        """Embed passages and add them."""

    def pipeline(
        self, texts: Sequence[Text], *, llm: Any, long_context_llm: Any, k: int
    ) -> AbstractContextManager[Pipeline]:
        """Put Self-Route on the index, seeing these texts only; its ledger counts until the end of the context."""


class Framework(Protocol):
    """A framework. Its embeddings and its models are `Any` to the rest of the demo."""

    NAME: str

    def load_embeddings(self, name: str | None = None) -> Any:
        """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

        Raises:
            ConfigurationError: It can not be loaded.
        """

    def load_model(self, provider: str, model: str, *, base_url: str | None) -> Any:
        """Make a chat model.

        Raises:
            ConfigurationError: The framework does not know the provider, or a key is missing.
            ImportError: The provider's package is not installed.
        """

    def extractive_reader(self, embeddings: Any) -> Any:
        """Make the model that stands in for a language model."""

    def open_index(self, client: ClientAPI, collection: str, embeddings: Any) -> Index:
        """Open the index in a collection that is there."""


def load(name: Name) -> Framework:
    """Import a framework's part."""
    # Only here: each is heavy, and perhaps not installed.
    if name == "llamaindex":
        from selfroute.demo import with_llamaindex  # noqa: PLC0415

        return with_llamaindex
    from selfroute.demo import with_langchain  # noqa: PLC0415

    return with_langchain
