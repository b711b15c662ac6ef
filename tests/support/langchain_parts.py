"""Parts on LangChain's own base classes: a scripted model, a retriever, a tracer, and the four modes as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import Field

from langchain_selfroute import SelfRouteChain
from scenarios import (
    DOCUMENT_TEXTS,
    FINAL,
    PASSAGE_TEXTS,
    QUESTION,  # noqa: F401 - the tests take it from here, with the rest
    WHOLE,
    Pieces,
    text_of,
)
from scripted import Call, Scripted, ending

PASSAGES = [Document(text, metadata={"n": n}) for n, text in enumerate(PASSAGE_TEXTS, 1)]
DOCUMENTS = [
    Document(text, metadata={"source": source}) for text, source in zip(DOCUMENT_TEXTS, ("May", "June"), strict=True)
]
MODES = ("invoke", "ainvoke", "stream", "astream")
STREAMS = ("stream", "astream")
FAR_APART = ("invoke", "astream")  # for what happens before a mode matters


class ScriptedModel(Scripted, BaseChatModel):
    """Writes `draft` where the prompt holds passages, `final` where it holds whole documents."""

    draft: Any = None  # pieces, a function of the prompt that returns pieces, or None: must not be asked
    looks: Any = ()  # the replies to sections, in order: where text of the documents is left out of the prompt
    final: Any = None
    ends: Any = Field(default_factory=dict)  # step -> how its reply ends, in the provider's word
    refusals: Any = Field(default_factory=dict)  # step -> the text by which the model refuses
    tool_calls: Any = Field(default_factory=set)  # steps that call a tool
    usage: bool = False
    delay: float = 0.0  # seconds before each piece, or before the whole reply
    failures: Any = Field(default_factory=dict)  # step -> errors of its first calls, None for a call that goes well
    breaks_after: int | None = None  # pieces
    breaks_with: Any = ConnectionError("the line went dead")
    breaks_calls: int = 99  # how many of the first calls break
    marker: str = WHOLE
    label: str = "scripted"
    calls: Any = Field(default_factory=list, repr=False)  # kept when `configurable_fields` makes a new model
    profile: Any = None
    tokens: Any = None  # counts those of a prompt; by default they are words
    limit: Any = None  # of tokens in a prompt
    refuses: Any = None  # makes an error from the tokens of a prompt that is beyond the limit

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def model_name(self) -> str:
        """As LangChain's own models have it."""
        return self.label

    def _begin(self, messages: list[BaseMessage], options: dict[str, Any]) -> tuple[Call, Pieces]:
        return self._called("\n".join(str(message.text) for message in messages), messages, options)

    def _counts(self, call: Call, pieces: Pieces) -> Any:
        if not self.usage and self.tokens is None:
            return None
        (read, cached), written = self._read(call.prompt), len(text_of(pieces).split())
        return {
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            "input_token_details": {"cache_read": cached},
        }

    def _ending(self, call: Call) -> dict[str, Any]:
        about = {"model_name": self.label}
        about |= {"finish_reason": self.ends[call.step]} if call.step in self.ends else {}
        refusal = {"refusal": self.refusals.get(call.step)}
        calls = [{"name": "search", "args": {}, "id": "1"}] if call.step in self.tool_calls else []
        return {"response_metadata": about, "additional_kwargs": refusal, "tool_calls": calls}

    def _whole(self, call: Call, pieces: Pieces) -> ChatResult:
        call.emitted, call.ended = len(pieces), "exhausted"
        content = _content(text_of(pieces) if any(piece is not None for piece in pieces) else None)
        message = AIMessage(content, usage_metadata=self._counts(call, pieces), **self._ending(call))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _piece(self, call: Call, piece: str | None) -> ChatGenerationChunk:
        self._say(call)
        return ChatGenerationChunk(message=AIMessageChunk(_content(piece)))

    def _last(self, call: Call, pieces: Pieces) -> ChatGenerationChunk:
        counts = self._counts(call, pieces)
        message = AIMessageChunk("", usage_metadata=counts, chunk_position="last", **self._ending(call))
        return ChatGenerationChunk(message=message)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        call, pieces = self._begin(messages, {**options, "stop": stop})
        time.sleep(self.delay)
        return self._whole(call, pieces)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        call, pieces = self._begin(messages, {**options, "stop": stop})
        with ending(call):
            await asyncio.sleep(self.delay)
            return self._whole(call, pieces)

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        call, pieces = self._begin(messages, {**options, "stop": stop})
        with ending(call):
            for piece in pieces:
                time.sleep(self.delay)
                yield self._piece(call, piece)
            yield self._last(call, pieces)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        call, pieces = self._begin(messages, {**options, "stop": stop})
        with ending(call):
            for piece in pieces:
                await asyncio.sleep(self.delay)
                yield self._piece(call, piece)
            yield self._last(call, pieces)


def _content(piece: str | None) -> Any:
    return [] if piece is None else piece  # the host has no None: an empty list is its "no content"


class ListRetriever(BaseRetriever):
    """Returns its passages and keeps the queries."""

    passages: list[Document] = Field(default_factory=lambda: list(PASSAGES))
    failures: Any = Field(default_factory=list)
    queries: Any = Field(default_factory=list)
    k: int = 5

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.queries.append(query)
        if len(self.queries) <= len(self.failures) and (error := self.failures[len(self.queries) - 1]):
            raise error
        return self.passages[: self.k]


@dataclass
class Node:
    """A run without what differs from time to time."""

    kind: str
    name: str
    tags: list[str]
    error: str | None
    inputs: Any
    outputs: Any
    children: list[Node] = field(default_factory=list)


class TreeTracer(BaseTracer):
    """Keeps the tree of runs, the order in which they began and ended, and the custom events."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []
        self.log: list[tuple[str, str]] = []
        self.events: list[tuple[str, Any]] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    def _start_trace(self, run: Run) -> None:
        self.log.append(("start", run.name))
        super()._start_trace(run)

    def _end_trace(self, run: Run) -> None:
        self.log.append(("end", run.name))
        super()._end_trace(run)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **_: Any) -> None:
        self.log.append(("event", name))
        self.events.append((name, data))

    @property
    def root(self) -> Node:
        """The one finished tree."""
        assert len(self.roots) == 1, [run.name for run in self.roots]
        return node(self.roots[0])

    @property
    def open_runs(self) -> list[str]:
        """The names of the runs that never ended."""
        return [run.name for run in self.run_map.values()]


def node(run: Run) -> Node:
    """The run and what is below it."""
    children = [node(child) for child in sorted(run.child_runs, key=lambda child: child.dotted_order or "")]
    return Node(run.run_type, run.name, run.tags or [], run.error, run.inputs, run.outputs, children)


def all_of(of: Node) -> list[Node]:
    """The run and all that are below it."""
    return [of, *(inner for child in of.children for inner in all_of(child))]


def outline(of: Node) -> Any:
    """The names alone: `name`, or `{name: [children]}`."""
    return {of.name: [outline(child) for child in of.children]} if of.children else of.name


STEPS = {"answerability": "text", "sections": None}
"""The options of a chain here: two steps, as in the paper, unless a test says otherwise."""


def a_chain(draft: Any = ("unanswerable",), final: Any = FINAL, **fields: Any) -> SelfRouteChain:
    """A chain over a scripted model that can be found again as `chain.llm`."""
    model = {name: fields.pop(name) for name in tuple(fields) if name in ScriptedModel.model_fields and name != "name"}
    parts = {
        "retriever": ListRetriever(),
        "llm": ScriptedModel(draft=draft, final=final, **model),
        "documents": DOCUMENTS,
    }
    return SelfRouteChain(**{**STEPS, **parts, **fields})


async def chunks(
    chain: Runnable[Any, Any], given: Any, mode: str, config: RunnableConfig | None = None, **options: Any
) -> list[Any]:
    """All chunks of a stream; a whole reply is one chunk."""
    call: Callable[..., Any] = getattr(chain, mode)
    if mode == "stream":
        return list(call(given, config, **options))
    if mode == "astream":
        return [chunk async for chunk in call(given, config, **options)]
    return [await call(given, config, **options) if mode == "ainvoke" else call(given, config, **options)]


async def ask(
    chain: Runnable[Any, Any], given: Any, mode: str, config: RunnableConfig | None = None, **options: Any
) -> Any:
    """What a chain answers in one of the four modes; the chunks of a stream added up."""
    answer = reduce(add, await chunks(chain, given, mode, config, **options))
    return dict(answer) if isinstance(answer, dict) else answer
