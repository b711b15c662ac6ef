"""What a framework does for one question: a `Host`, whose methods call nothing back; and checks of what users pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from selfroute.calls.caching import Prefix, ProviderCache, prefix_in
from selfroute.calls.memory import Memory
from selfroute.calls.plan import Plan
from selfroute.documents import overflow
from selfroute.effects import Decided, ReadDocuments, Route
from selfroute.errors import InputError, ReplyError
from selfroute.usage.account import Tally
from selfroute.usage.prices import PricedModel, is_one_model

Document = TypeVar("Document")
Model = TypeVar("Model")
Template = TypeVar("Template")
AnyHost = TypeVar("AnyHost", bound="Host[Any]")
_UNASKED = "nothing was retrieved and no model was asked"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Parts(Generic[Model, Template]):
    """The parts of a chain or engine that one question works with: a snapshot, which later changes do not affect.

    Attributes:
        models: The model of each step.
        prompts: The prompt of each step.
        documents: Where the whole documents come from.
        document_prompt: Formats each passage and document; None for their own format.
        plan: The options.
        memory: What is kept between questions.
    """

    models: Mapping[Route, Model]
    prompts: Mapping[Route, Template]
    documents: Any
    document_prompt: Any
    plan: Plan
    memory: Memory

    @property
    def one_model(self) -> bool:
        """Whether one model performs all steps."""
        return is_one_model(self.models)


class Place(NamedTuple):
    """Where a passage stands.

    Attributes:
        start: Its offset in the document, or on its page; None if that is not known.
        metadata: Its metadata, which may number its page, or the chunk itself.
    """

    start: Any
    metadata: Mapping[str, Any]


class Prompt:
    """A step's prompt, filled in. A framework whose prompts are no strings has a subclass.

    Attributes:
        value: The prompt as the framework sends it.
        context: The text of the passages or documents in it.
        schema: The length of a report's schema that is sent with it, in characters, which the core sets.
    """

    __slots__ = ("context", "schema", "value")

    def __init__(self, value: Any, context: str) -> None:
        """Keep a prompt with what it holds."""
        self.value, self.context, self.schema = value, context, 0

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return str(self.value)

    @property
    def texts(self) -> Sequence[str]:
        """The texts of its messages."""
        return [self.text]

    @property
    def is_known(self) -> bool:
        """Whether the prompt is known before its step; else only the step can make it."""
        return True

    def prefix(self, question: str) -> Prefix | None:
        """Return the prefix that the prompt shares with other questions on its documents; None if it shares nothing."""
        return prefix_in([("user", self.text)], context=self.context, question=question)

    def sent(self, question: str, cache: ProviderCache | None) -> Any:
        """Return the prompt as the framework sends it, so that the provider's prompt cache is hit."""
        prefix = self.prefix(question) if cache and cache.ttl else None
        return self.value if cache is None or prefix is None else self.marked(prefix, cache)

    def marked(self, prefix: Prefix, cache: ProviderCache) -> Any:  # noqa: ARG002
        """Return the same prompt with a mark where the documents end, so that the provider keeps them for that long."""
        return self.value


class Host(Protocol[Document]):
    """What a framework does for one question, and what it knows about its own models and documents.

    An adapter subclasses this and implements what raises `NotImplementedError`; `aask` only if it has an async mode.
    What does I/O has an async twin. `Call` does everything else.

    Attributes:
        question: The question.
        inputs: What else the call was given, for policies.
        caller: What the configuration says of who asks; None if it says nothing.
        source: The documents: stored ones that are limited to a view, a list, or anything else that `read` knows.
        one_model: Whether one model performs all steps.
        streaming: Whether replies come in pieces.
        tally: What collects a reply, a subclass of `Tally`.
        most_late: How many pieces of a reply that is hung up on may have come already.
    """

    question: str
    inputs: Mapping[str, Any] = {}
    caller: Hashable = None
    source: Any
    one_model: bool = True
    streaming: bool = True
    tally: type[Tally] = Tally
    most_late: int = 1

    def retrieve(self) -> Sequence[Document]:
        """Return the passages for the question, best first."""
        raise NotImplementedError

    async def aretrieve(self) -> Sequence[Document]:
        """The async twin of `retrieve`; by default in a thread."""
        return await asyncio.to_thread(self.retrieve)

    def read(self, passages: Sequence[Document]) -> Sequence[Document]:
        """Return the whole documents, best first."""
        raise NotImplementedError

    async def aread(self, passages: Sequence[Document]) -> Sequence[Document]:
        """The async twin of `read`; by default in a thread."""
        return await asyncio.to_thread(self.read, passages)

    def reading(self, effect: ReadDocuments) -> AbstractContextManager[list[Document]]:  # noqa: ARG002
        """Return a context in which documents are read and fitted, for traces; what was fitted is put into its list."""
        return nullcontext([])

    def areading(self, effect: ReadDocuments) -> AbstractAsyncContextManager[list[Document]]:  # noqa: ARG002
        """The async twin of `reading`."""
        return nullcontext([])

    def prompt(self, step: Route, context: Sequence[Document]) -> Prompt:
        """Return a step's prompt with passages, documents, or the sections of documents, each as one text."""
        raise NotImplementedError

    def ask(self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None) -> str | Iterator[Any]:
        """Ask a step's model; return its text, or an iterator of raw pieces, each of which the core adds to the tally.

        Args:
            step: The step.
            prompt: The prompt.
            tally: Collects a whole reply, and what the provider says of it.
            cache: The provider's cache, if it may hold the beginning of the prompt, and says how to mark that.
        """
        raise NotImplementedError

    async def aask(
        self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
    ) -> str | AsyncIterator[Any]:
        """The async twin of `ask`."""
        raise NotImplementedError

    def choose(self, start: Any) -> Any:
        """Return the first step, from the callable that the user passed as `start`."""
        return start({**self.inputs, "input": self.question})

    async def achoose(self, start: Any) -> Any:
        """The async twin of `choose`."""
        return self.choose(start)

    def announce(self, decided: Decided) -> None:
        """Report the route, as soon as it is decided."""

    async def aannounce(self, decided: Decided) -> None:
        """The async twin of `announce`."""
        self.announce(decided)

    def text_of(self, document: Document) -> str:
        """Return the text of a passage or document."""
        raise NotImplementedError

    def retrieved_text(self, passage: Document) -> str:
        """Return the text of a passage as it stands in its document."""
        return self.text_of(passage)

    def with_text(self, document: Document, text: str, /, **label: Any) -> Document:
        """Return a copy of a passage or document with less text.

        Args:
            document: The passage or document.
            text: The text that is left.
            label: What to say of it: `trimmed` and, if it is known, `read`, the stretch of the document that this is.
                A `method` is all that is said of it, but for its pages.
        """
        raise NotImplementedError

    def source_of(self, document: Document) -> Any:  # noqa: ARG002
        """Return the name of the document that a passage is from, or of a document itself; None if it has no name."""
        return None

    def asking(self: AnyHost, question: str) -> AnyHost:  # noqa: PYI019 - Python 3.10 has no Self
        """Return a host that asks the same parts, behind the same wall, for another question."""
        other = copy(self)
        other.question = question
        return other

    def place_of(self, passage: Document) -> Place:  # noqa: ARG002
        """Return where a passage stands."""
        return Place(None, {})

    def headings_of(self, passage: Document) -> Sequence[str]:  # noqa: ARG002
        """Return the headings that a splitter moved out of a passage's text, if its prompt would not show them."""
        return ()

    def window(self, step: Route) -> int | None:  # noqa: ARG002
        """Return the window of a step's model in tokens; None if the model does not report it."""
        return None

    def name_of(self, step: Route) -> PricedModel:  # noqa: ARG002
        """Return the name by which a step's model is priced; without a name if the model reports none."""
        return PricedModel()

    def account(self, step: Route) -> Hashable:  # noqa: ARG002
        """Return a key that differs between API accounts; valid in this process."""
        return None

    def takes_marks(self, step: Route) -> bool:  # noqa: ARG002
        """Return whether the client of a step's model sends marks for Anthropic's cache, and the user sets none."""
        return False

    def too_long(self, error: Exception) -> Exception | None:
        """Return the error that says a prompt was too long for the model's window; None if this is another one."""
        return error if overflow.is_too_long(error) else None

    def log_missing_usage(self, step: Route) -> None:
        """Log how to make a step's model report its token counts, if it can."""


def check_question(question: Any) -> None:
    """Check that a question is a text with something to see, before anything is retrieved or asked for it.

    Raises:
        InputError: It is something else, there is nothing to see, or it has half of a character.
    """
    if not isinstance(question, str):
        msg = f"the question must be a string, not {type(question).__name__}: {_UNASKED}"
        raise InputError(msg)
    try:
        question.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"the question has half of a character, {question[error.start]!a}, at position {error.start}: {_UNASKED}. "
            "Read the text as UTF-8, or pass question.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
        )
        raise InputError(msg) from None
    if not any(character.isprintable() and not character.isspace() for character in question):
        msg = f"the question is blank: {_UNASKED}"
        raise InputError(msg)


def items_of(found: Any, kinds: type[Any] | tuple[type[Any], ...], *, what: str) -> list[Any]:
    """Check what a component of the user's returned, and return it as a list.

    Args:
        found: What it returned.
        kinds: The accepted types.
        what: The beginning of the error message, such as "documents must return a list of Documents".

    Raises:
        ReplyError: It returned something else.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(found) is list or (isinstance(found, Iterable) and not isinstance(found, (str, Mapping, *kinds))):
        items = list(found)
        others = [item for item in items if type(item) is not kinds[0] and not isinstance(item, kinds)]
        if not others:
            return items
        found = others[0]
    msg = f"{what}; got {type(found).__name__}"
    raise ReplyError(msg)
