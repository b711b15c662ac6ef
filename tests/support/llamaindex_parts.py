"""Parts on LlamaIndex's own base classes: a scripted model, a retriever, recorders, and the four modes as one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.schema import CBEventType
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    Document,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from pydantic import BaseModel, Field

from llamaindex_selfroute import SelfRouteQueryEngine
from scenarios import (
    DOCUMENT_TEXTS,
    FINAL,
    PASSAGE_TEXTS,
    QUESTION,
    WHOLE,
    Pieces,
    Scenario,
    text_of,
)
from scripted import Call, Scripted, ending

# Metadata as in the other framework's parts, hidden from the model as it is hidden there.
PASSAGES = [
    NodeWithScore(
        node=TextNode(text=text, id_=f"passage-{n}", metadata={"n": n}, excluded_llm_metadata_keys=["n"]),
        score=1 - n / 10,
    )
    for n, text in enumerate(PASSAGE_TEXTS, 1)
]
DOCUMENTS = [
    Document(text=text, id_=source, metadata={"source": source}, excluded_llm_metadata_keys=["source"])
    for text, source in zip(DOCUMENT_TEXTS, ("May", "June"), strict=True)
]
KEYS = {"route", "answerable", "finish_reason", "decision", "usage", "retrieved"}
MODES = ("query", "aquery", "stream", "astream")
STREAMS = ("stream", "astream")
FAR_APART = ("query", "astream")  # for what happens before a mode matters
AWAITED = ("aquery", "astream")

__all__ = ["QUESTION", "WHOLE"]


class _Details(BaseModel):
    cached_tokens: int


class Counts(BaseModel):
    """Token counts, in the shape of OpenAI's."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: _Details


class Raw(BaseModel):
    """The part of a provider's reply that matters; an object, as from OpenAI's package."""

    model: str
    usage: Counts | None = None
    finish_reason: str | None = None
    refusal: str | None = None


class ScriptedLLM(Scripted, LLM):
    """Writes `draft` where the prompt holds passages, `final` where it holds whole documents.

    Like the providers' packages it asks for a stream when the first piece is asked for, and reports its counts in the
    last piece, which has no text.
    """

    draft: Any = Field(
        None, exclude=True
    )  # pieces, a function of the prompt that returns them, None: must not be asked
    looks: Any = Field((), exclude=True)  # the replies to sections: where text of the documents is left out
    final: Any = Field(None, exclude=True)
    ends: Any = Field(default_factory=dict, exclude=True)  # step -> how its reply ends, in the provider's word
    refusals: Any = Field(default_factory=dict, exclude=True)  # step -> the text by which the model refuses
    tool_calls: Any = Field(default_factory=set, exclude=True)  # steps that call a tool
    usage: bool = False
    counts_on: bool = False  # reports counts in every piece, up to there
    delay: float = 0.0  # seconds before each packet, or before the whole reply
    packet: int = 1  # pieces that come at once
    failures: Any = Field(default_factory=dict, exclude=True)  # step -> errors of its first calls, None: goes well
    breaks_after: int | None = None  # pieces
    breaks_with: Any = Field(default_factory=lambda: ConnectionError("the line went dead"), exclude=True)
    breaks_calls: int = 99  # how many of the first calls break
    clings: bool = False  # a stream holds on to itself, as with openai's package: dropping does not close it
    marker: str = WHOLE
    is_chat: bool = True
    context_window: int = DEFAULT_CONTEXT_WINDOW  # the host's default: says nothing
    label: str = "scripted"
    tokens: Any = Field(None, exclude=True)  # counts those of a prompt; by default they are words
    limit: Any = Field(None, exclude=True)  # of tokens in a prompt
    refuses: Any = Field(None, exclude=True)  # makes an error from the tokens of a prompt that is beyond the limit
    calls: Any = Field(default_factory=list, exclude=True, repr=False)

    @classmethod
    def class_name(cls) -> str:
        return "scripted_llm"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window, num_output=64, is_chat_model=self.is_chat, model_name=self.label
        )

    def _begin(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> tuple[Call, Pieces]:
        if isinstance(asked, str):
            return self._called(asked, None, options)
        return self._called("\n".join(message.content or "" for message in asked), list(asked), options)

    def _raw(self, call: Call, pieces: Pieces) -> Raw:
        ending = {"finish_reason": self.ends.get(call.step), "refusal": self.refusals.get(call.step)}
        if not self.usage and self.tokens is None:
            return Raw(model=self.label, **ending)
        (read, cached), written = self._read(call.prompt), len(text_of(pieces).split())
        counts = Counts(
            prompt_tokens=read,
            completion_tokens=written,
            total_tokens=read + written,
            prompt_tokens_details=_Details(cached_tokens=cached),
        )
        return Raw(model=self.label, usage=counts, **ending)

    def _reply(self, call: Call, content: str | None, delta: str | None, raw: Raw) -> Any:
        counts = raw.usage.model_dump(exclude={"prompt_tokens_details"}) if raw.usage else {}
        if call.messages is None:
            return CompletionResponse(text=content or "", delta=delta, raw=raw, additional_kwargs=counts)
        calls = {"tool_calls": ["search"]} if call.step in self.tool_calls else {}
        message = ChatMessage(role=MessageRole.ASSISTANT, content=content, additional_kwargs=calls)
        return ChatResponse(message=message, delta=delta, raw=raw, additional_kwargs=counts)

    def _whole(self, call: Call, pieces: Pieces) -> Any:
        call.emitted, call.ended = len(pieces), "exhausted"
        content = text_of(pieces) if any(piece is not None for piece in pieces) else None
        return self._reply(call, content, None, self._raw(call, pieces))

    def _piece(self, call: Call, pieces: Pieces) -> Any:
        self._say(call)
        so_far = pieces[: call.emitted]
        raw = self._raw(call, so_far) if self.counts_on else Raw(model=self.label)
        return self._reply(call, text_of(so_far) or None, so_far[-1], raw)

    def _last(self, call: Call, pieces: Pieces) -> Any:
        return self._reply(call, text_of(pieces) or None, "", self._raw(call, pieces))

    def _ask(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> Any:
        call, pieces = self._begin(asked, options)
        time.sleep(self.delay)
        return self._whole(call, pieces)

    async def _aask(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> Any:
        call, pieces = self._begin(asked, options)
        with ending(call):
            await asyncio.sleep(self.delay)
            return self._whole(call, pieces)

    def _stream(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> Generator[Any, None, None]:
        def pour(cycle: list[Any]) -> Generator[Any, None, None]:
            call, pieces = self._begin(asked, options)
            with ending(call):
                for n in range(len(pieces)):
                    time.sleep(0 if n % self.packet else self.delay)
                    yield self._piece(call, pieces)
                yield self._last(call, pieces)

        cycle: list[Any] = []
        stream = pour(cycle)
        cycle += [stream] * self.clings
        return stream

    def _astream(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        async def pour(cycle: list[Any]) -> AsyncGenerator[Any, None]:
            call, pieces = self._begin(asked, options)
            with ending(call):
                for n in range(len(pieces)):
                    if n % self.packet == 0:
                        await asyncio.sleep(self.delay)
                    yield self._piece(call, pieces)
                yield self._last(call, pieces)

        cycle: list[Any] = []
        stream = pour(cycle)
        cycle += [stream] * self.clings
        return stream

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        return self._ask(messages, options)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        return await self._aask(messages, options)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        return self._stream(messages, options)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        return self._astream(messages, options)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        return self._ask(prompt, options)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        return await self._aask(prompt, options)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        return self._stream(prompt, options)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        return self._astream(prompt, options)


class ListRetriever(BaseRetriever):
    """Returns its passages and keeps the queries."""

    def __init__(
        self,
        passages: Sequence[NodeWithScore] = PASSAGES,
        failures: Sequence[Exception | None] = (),
        k: int = 5,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.passages, self.failures, self.similarity_top_k = list(passages), failures, k
        self.queries: list[QueryBundle] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.queries.append(query_bundle)
        if len(self.queries) <= len(self.failures) and (error := self.failures[len(self.queries) - 1]):
            raise error
        return self.passages[: self.similarity_top_k]


class EventRecorder(BaseEventHandler):
    """Keeps the events of the instrumentation."""

    events: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        return [event.class_name() for event in self.events]

    def of(self, kind: type[BaseEvent]) -> list[Any]:
        """Those of one class."""
        return [event for event in self.events if isinstance(event, kind)]


class SpanRecorder(BaseSpanHandler[BaseSpan]):
    """Keeps the spans: those that ended well, those that were dropped, those that are still open."""

    def __init__(self) -> None:
        super().__init__(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})

    def new_span(
        self, id_: str, bound_args: Any, instance: Any = None, parent_span_id: str | None = None, *_: Any, **__: Any
    ) -> BaseSpan:
        return BaseSpan(id_=id_, parent_id=parent_span_id)

    def prepare_to_exit_span(self, id_: str, bound_args: Any, instance: Any = None, **_: Any) -> BaseSpan | None:
        span = self.open_spans.get(id_)
        if span:
            self.completed_spans.append(span)
        return span

    def prepare_to_drop_span(self, id_: str, bound_args: Any, instance: Any = None, **_: Any) -> BaseSpan | None:
        span = self.open_spans.get(id_)
        if span:
            self.dropped_spans.append(span)
        return span

    @property
    def all(self) -> list[BaseSpan]:
        """Every span, however it ended."""
        return [*self.completed_spans, *self.dropped_spans, *self.open_spans.values()]

    @property
    def roots(self) -> list[str]:
        """The names of the spans without a parent."""
        return sorted(name_of(span) for span in self.all if span.parent_id is None)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """(parent, child) by name, sorted."""
        names = {span.id_: name_of(span) for span in self.all}
        return sorted((names[span.parent_id], name_of(span)) for span in self.all if span.parent_id)


def name_of(span: BaseSpan | str) -> str:
    """`Class.method`, without the id of the one call."""
    return (span if isinstance(span, str) else span.id_)[:-37]


class CallbackRecorder(BaseCallbackHandler):
    """Keeps what the host's older callbacks tell: (start | end, event), and the traces."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.log: list[tuple[str, str]] = []
        self.payloads: list[tuple[str, str, dict[Any, Any]]] = []
        self.traces: list[tuple[str, str | None]] = []

    def start_trace(self, trace_id: str | None = None) -> None:
        self.traces.append(("start", trace_id))

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None:
        self.traces.append(("end", trace_id))

    def on_event_start(
        self, event_type: CBEventType, payload: dict[str, Any] | None = None, event_id: str = "", **_: Any
    ) -> str:
        self._keep("start", event_type, payload)
        return event_id

    def on_event_end(self, event_type: CBEventType, payload: dict[str, Any] | None = None, **_: Any) -> None:
        self._keep("end", event_type, payload)

    @property
    def open(self) -> list[str]:
        """The events that began and never ended, but for the host's exceptions, which only begin."""
        began, ended = (Counter(event for what, event in self.log if what == when) for when in ("start", "end"))
        return sorted((began - ended - Counter({"exception": len(self.log)})).elements())

    def _keep(self, what: str, event_type: CBEventType, payload: dict[str, Any] | None) -> None:
        self.log.append((what, event_type.value))
        self.payloads.append((what, event_type.value, payload or {}))


@dataclass
class Recording:
    """What the host said while something ran."""

    events: EventRecorder = field(default_factory=EventRecorder)
    spans: SpanRecorder = field(default_factory=SpanRecorder)
    callbacks: CallbackRecorder = field(default_factory=CallbackRecorder)

    @property
    def manager(self) -> CallbackManager:
        """A callback manager that tells `callbacks`; callbacks reach only those that they are given to."""
        return CallbackManager([self.callbacks])


@contextmanager
def recorded() -> Iterator[Recording]:
    """Listen at the root dispatcher for a while."""
    recording, root = Recording(), get_dispatcher()
    before = root.event_handlers, root.span_handlers
    root.event_handlers = [*before[0], recording.events]
    root.span_handlers = [*before[1], recording.spans]
    try:
        yield recording
    finally:
        root.event_handlers, root.span_handlers = before


@dataclass
class Asked:
    """A response that was read to its end; its metadata are attributes, such as `route`."""

    response: Any
    pieces: list[str]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.metadata:
            raise AttributeError(name)
        return self.metadata[name]

    @property
    def metadata(self) -> dict[str, Any]:
        assert self.response.metadata is not None
        return self.response.metadata

    @property
    def source_nodes(self) -> list[NodeWithScore]:
        return self.response.source_nodes

    @property
    def sources(self) -> list[str]:
        """The texts of the source nodes."""
        return [item.node.get_content() for item in self.source_nodes]


async def ask(engine: Any, question: str | QueryBundle, mode: str) -> Asked:
    """What an engine answers in one of the four modes; the streams are read to the end."""
    response = await engine.aquery(question) if mode in AWAITED else engine.query(question)
    return Asked(response, [piece async for piece in pieces_of(response, mode)])


async def pieces_of(response: Any, mode: str) -> AsyncIterator[str]:
    """The pieces of a response, as its reader gets them."""
    if mode == "astream":
        assert isinstance(response, AsyncStreamingResponse)
        async for piece in response.async_response_gen():
            yield piece
    elif mode == "stream":
        assert isinstance(response, StreamingResponse)
        for piece in response.response_gen:
            yield piece
    else:
        assert isinstance(response, Response)
        assert response.response is not None
        yield response.response


STEPS = {"answerability": "text", "sections": None}
"""The options of an engine here: two steps, as in the paper, unless a test says otherwise."""


def an_engine(draft: Any = ("unanswerable",), final: Any = FINAL, **fields: Any) -> SelfRouteQueryEngine:
    """An engine over a scripted model that can be found again by `model_of`."""
    own = set(ScriptedLLM.__annotations__) | {"system_prompt"}
    model = {name: fields.pop(name) for name in tuple(fields) if name in own}
    parts = {
        "retriever": ListRetriever(),
        "llm": ScriptedLLM(draft=draft, final=final, **model),
        "documents": DOCUMENTS,
    }
    return SelfRouteQueryEngine(**{**STEPS, **parts, **fields})


def engine_for(scenario: Scenario, mode: str, **fields: Any) -> SelfRouteQueryEngine:
    """The engine of a scenario, for one of the modes."""
    retriever = ListRetriever([] if scenario.draft is None else PASSAGES)
    told = {
        "draft": scenario.draft,
        "final": scenario.final,
        "ends": scenario.ends,
        "retriever": retriever,
        "refusal": scenario.refusal,
        "streaming": mode in STREAMS,
    }
    return an_engine(**{**told, **fields})


def model_of(engine: SelfRouteQueryEngine) -> ScriptedLLM:
    """The model of the first step."""
    llm = engine._response_synthesizer._llm
    assert isinstance(llm, ScriptedLLM)
    return llm
