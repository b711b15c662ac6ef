"""One question through either framework in any mode, in the words of neither.

`where` is a host and a mode, such as `"langchain astream"`. A `Pipeline` is a chain or an engine over scripted parts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeVar
from uuid import NAMESPACE_OID, uuid5

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.prompts import PromptTemplate as LangChainPrompt
from llama_index.core import PromptTemplate as LlamaIndexPrompt
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.vector_stores import MetadataFilters

import langchain_parts
import langchain_selfroute
import langchain_stores
import llamaindex_parts
import llamaindex_selfroute
import llamaindex_stores_parts
from llamaindex_selfroute import SelfRouteDecisionEvent
from scenarios import DOCUMENT_TEXTS, FINAL, PASSAGE_TEXTS, QUESTION, Scenario
from steering import LONG_TEXTS, UNANSWERABLE, Steered

Result = TypeVar("Result")
LANGCHAIN = [f"langchain {mode}" for mode in langchain_parts.MODES]
LLAMAINDEX = [f"llamaindex {mode}" for mode in llamaindex_parts.MODES]
COMPLETION = [f"completion {mode}" for mode in llamaindex_parts.MODES]  # LlamaIndex, with a model that is no chat model
EVERYWHERE = [*LANGCHAIN, *LLAMAINDEX]
EVERY_MODEL = [*EVERYWHERE, *COMPLETION]
HOSTS = (LANGCHAIN[0], LLAMAINDEX[0])
SYNC = [where for where in EVERYWHERE if not where.split()[1].startswith("a")]
AWAITED = [where for where in EVERYWHERE if where not in SYNC]
STREAMS = [where for where in EVERYWHERE if where.endswith("stream")]
FAR_APART = [f"langchain {mode}" for mode in langchain_parts.FAR_APART]
FAR_APART += [f"llamaindex {mode}" for mode in llamaindex_parts.FAR_APART]

everywhere = pytest.mark.parametrize("where", EVERYWHERE)
every_model = pytest.mark.parametrize("where", EVERY_MODEL)
every_stream = pytest.mark.parametrize("where", [where for where in EVERY_MODEL if where.endswith("stream")])
awaited = pytest.mark.parametrize("where", AWAITED)
far_apart = pytest.mark.parametrize("where", FAR_APART)  # for what happens before a mode matters
each_host = pytest.mark.parametrize("where", HOSTS)


def in_the_words_of(host: str, mode: str) -> str:
    """A mode in the word of the host; `whole` and `awhole` are those of neither."""
    ours = {"whole": 0, "awhole": 1}
    return (langchain_parts if is_langchain(host) else llamaindex_parts).MODES[ours[mode]] if mode in ours else mode


class Text(NamedTuple):
    """A passage or a document: its text, the name of its document, where it begins there, and other metadata."""

    text: str
    name: str | None = None
    start: int | None = None
    metadata: Mapping[str, Any] = {}


Texts = Sequence[str | Text]


def is_langchain(where: str) -> bool:
    """Whether LangChain is the host."""
    return where.startswith("langchain")


def document(where: str, given: str | Text) -> Any:
    """A document of the framework."""
    text, name, _, metadata = given if isinstance(given, Text) else Text(given)
    if is_langchain(where):
        return LangChainDocument(text, metadata={**({} if name is None else {"source": name}), **metadata})
    return LlamaIndexDocument(text=text, metadata=dict(metadata), id_=_id_of(text) if name is None else name)


def _id_of(text: str) -> str:
    return str(uuid5(NAMESPACE_OID, ascii(text)))  # as random as LlamaIndex's own, but the same in each process


def passage(where: str, given: str | Text) -> Any:
    """A passage of the framework, as a retriever returns it."""
    text, name, start, metadata = given if isinstance(given, Text) else Text(given)
    if is_langchain(where):
        begins = {} if start is None else {"start_index": start}
        return document(where, Text(text, name, None, {**begins, **metadata}))
    more: dict[str, Any] = {"id_": _id_of(text)}
    if start is not None:
        more = {"id_": f"{name}-{start}", "start_char_idx": start, "end_char_idx": start + len(text)}
    if name is not None:
        more["relationships"] = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
    return NodeWithScore(node=TextNode(text=text, metadata=dict(metadata), **more), score=0.5)


def reading(texts: Texts, where: str, log: list[Any]) -> Callable[..., Any]:
    """A callable that returns documents and logs each reading."""

    def read(*given: Any) -> list[Any]:
        log.append(given)
        time.sleep(0.002)  # so that threads would meet
        return [document(where, text) for text in texts]

    return read


def retriever(where: str, texts: Texts = PASSAGE_TEXTS, **fields: Any) -> Any:
    """A retriever that returns passages, and keeps its `queries`; `failures` are the errors of its first calls."""
    parts: Any = langchain_parts if is_langchain(where) else llamaindex_parts
    return parts.ListRetriever(passages=[passage(where, text) for text in texts], **{"k": 999, **fields})


def store_of(where: str, texts: Texts, kind: str = "memory") -> Any:
    """A store of LangChain, or an index of LlamaIndex, that holds passages."""
    chunks = [passage(where, one) for one in texts]
    if is_langchain(where):
        return langchain_stores.store_with(kind, chunks)
    kind = "simple" if kind == "memory" else kind
    return llamaindex_stores_parts.STORES[kind]([one.node for one in chunks])


def stored(where: str, store: Any, **options: Any) -> Any:
    """The documents of a store; with `open_to_all`, nothing of them is hidden from anybody."""
    if options.pop("open_to_all", False):
        options |= {"filter": {}} if is_langchain(where) else {"filters": MetadataFilters(filters=[])}
    return (langchain_selfroute if is_langchain(where) else llamaindex_selfroute).StoredDocuments(store, **options)


def template(where: str, text: str) -> Any:
    """A prompt in the words of the framework: `{context}`, `{question}` and `{refusal}`; `{text}` of a document."""
    if is_langchain(where):
        return LangChainPrompt.from_template(text.replace("{question}", "{input}").replace("{text}", "{page_content}"))
    for ours, theirs in (("{context}", "{context_str}"), ("{question}", "{query_str}"), ("{text}", "{content}")):
        text = text.replace(ours, theirs)
    return LlamaIndexPrompt(text)


def _with_window(where: str, given: dict[str, Any]) -> dict[str, Any]:
    """Say the `window` of a model in the words of the host."""
    window = given.pop("window", None)
    if window:
        given |= {"profile": {"max_input_tokens": window}} if is_langchain(where) else {"context_window": window}
    return given


def model(where: str, **script: Any) -> Any:
    """A scripted model; it declares a `window` if that is given."""
    script = _with_window(where, script)
    if is_langchain(where):
        return langchain_parts.ScriptedModel(**script)
    return llamaindex_parts.ScriptedLLM(**{"is_chat": not where.startswith("completion"), **script})


class Read(NamedTuple):
    """A document or a section that an answer is from: its metadata but for its name and our label, and these."""

    text: str
    name: Any
    about: Mapping[str, Any]
    label: Mapping[str, Any]


@dataclass
class Outcome:
    """What a question came to; `told` has the answer and all that is said about it, and can be read as attributes.

    Attributes:
        told: `answer`, `route`, `decision` and the others.
        context: The texts that it is from, with their metadata.
        names: The names of their documents.
        found: The passages that were retrieved; in LlamaIndex their ids.
        calls: The calls of the model.
        pieces: The text as it came.
        sources: What it is from, in the list of the host.
        response: The response of LlamaIndex.
    """

    told: dict[str, Any]
    context: list[tuple[str, Mapping[str, Any]]]
    names: list[Any]
    found: list[Any]
    calls: list[Any]
    pieces: list[str]
    sources: list[Any]
    response: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.told:
            raise AttributeError(name)
        return self.told[name]

    @property
    def retrieved(self) -> int:
        """How many passages were retrieved."""
        return len(self.found)

    @property
    def read(self) -> list[str]:
        """The texts that the answer is from."""
        return [text for text, _ in self.context]

    @property
    def documents(self) -> list[Read]:
        """The same, with what is said of them."""
        found = []
        for (text, metadata), name in zip(self.context, self.names, strict=True):
            about = {key: value for key, value in metadata.items() if key not in ("selfroute", "source")}
            found.append(Read(text, name, about, metadata.get("selfroute", {})))
        return found

    @property
    def verdict(self) -> tuple[str, str, bool, str]:
        """The route, the answer, whether it is one, and the signal of the decision."""
        return self.route, self.answer, self.answerable, self.decision["signal"]

    @property
    def labels(self) -> list[Any]:
        """What is said under our name of each text that was read."""
        return [metadata.get("selfroute") for _, metadata in self.context]

    @property
    def steps(self) -> list[str]:
        """The steps that the model was asked for."""
        return [call.step for call in self.calls]

    @property
    def prompts(self) -> list[str]:
        """What the model was asked."""
        return [call.prompt for call in self.calls]

    @property
    def hung_up(self) -> set[str]:
        """The steps whose reply was broken off."""
        return {call.step for call in self.calls if call.ended == "closed"}


@dataclass
class Pipeline:
    """A chain or an engine, asked in one mode.

    Attributes:
        where: The host and the mode.
        asked: The chain or the engine.
        model: The scripted model; None if the models are clients of a server.
        config: The config of a call of LangChain.
        response: The response of LlamaIndex whose pieces were asked for last.
    """

    where: str
    asked: Any
    model: Any = None
    config: dict[str, Any] = field(default_factory=dict)
    response: Any = None

    @property
    def mode(self) -> str:
        """The mode, in the host's word."""
        return self.where.split()[1]

    @property
    def streams(self) -> bool:
        """Whether the answer is streamed."""
        return self.mode.endswith("stream")

    @property
    def holder(self) -> Any:
        """What holds the options as attributes."""
        return self.asked if is_langchain(self.where) else self.asked._response_synthesizer

    @property
    def _calls(self) -> list[Any]:
        return getattr(self.model, "calls", [])

    @property
    def queries(self) -> list[Any]:
        """What the retriever was asked."""
        return self.asked.retriever.queries  # type: ignore[no-any-return]

    def again(self, asked: Any) -> Pipeline:
        """The same with another chain or engine, such as a copy."""
        one = Pipeline(self.where, asked, None, self.config)
        one.model = one.holder.llm
        return one

    async def ask(self, question: Any = QUESTION) -> Outcome:
        """Ask, and read a stream to its end."""
        before = len(self._calls)
        if is_langchain(self.where):
            return self._told(await langchain_parts.chunks(self.asked, question, self.mode, self.config), before)
        call = self.asked.aquery if self.where in AWAITED or self.mode.startswith("a") else self.asked.query
        return await self._response(call(question), before)

    def now(self, question: Any = QUESTION) -> Outcome:
        """Ask where no event loop runs."""
        return self.run(self.ask(question))

    def run(self, asking: Coroutine[Any, Any, Result]) -> Result:
        """Do what asks this, in an event loop if that is awaited, and otherwise without any."""
        if self.where in AWAITED:
            return asyncio.run(asking)
        with pytest.raises(StopIteration) as done:
            asking.send(None)  # there is nothing in it to wait for
        result: Result = done.value.value
        return result

    async def pieces(self, question: Any = QUESTION) -> AsyncIterator[str]:
        """The pieces of text as they come; closing this closes the stream."""
        if is_langchain(self.where):
            chunks: Any = getattr(self.asked, self.mode)(question, self.config)
            try:
                async for chunk in _each(chunks):
                    if chunk.get("answer"):
                        yield chunk["answer"]
            finally:
                chunks.close() if self.mode == "stream" else await chunks.aclose()
            return
        awaited = self.mode == "astream"
        response = self.response = await self.asked.aquery(question) if awaited else self.asked.query(question)
        pieces = response.async_response_gen() if awaited else response.response_gen
        try:
            async for piece in _each(pieces):
                yield piece
        finally:
            await pieces.aclose() if awaited else pieces.close()

    def _told(self, chunks: list[Any], before: int) -> Outcome:
        told = dict(reduce(add, chunks))
        read, found = told.pop("context"), told.pop("retrieved")
        context = [(one.page_content, one.metadata) for one in read]
        names = [one.metadata.get("source") for one in read]
        pieces = [chunk["answer"] for chunk in chunks if "answer" in chunk]
        return Outcome(told, context, names, found, self._calls[before:], pieces, read)

    async def _response(self, response: Any, before: int) -> Outcome:
        response = await response if isinstance(response, Awaitable) else response
        asked = llamaindex_parts.Asked(
            response, [piece async for piece in llamaindex_parts.pieces_of(response, self.mode)]
        )
        told = {"answer": asked.text, **asked.metadata}
        context = [(one.node.get_content(), one.node.metadata) for one in asked.source_nodes]
        names = [_document_of(one.node) for one in asked.source_nodes]
        found = told.pop("retrieved")
        calls, sources = self._calls[before:], asked.source_nodes
        return Outcome(told, context, names, found, calls, asked.pieces, sources, response)


async def _each(items: Any) -> AsyncIterator[Any]:
    """Each item of an iterator, sync or not, which stays open."""
    if hasattr(items, "__anext__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _document_of(node: BaseNode) -> str:
    """The id of a node's document; that of the node where a damaged row has left no such thing."""
    source = node.relationships.get(NodeRelationship.SOURCE)
    return source.node_id if isinstance(source, RelatedNodeInfo) else node.node_id


def pipeline(where: str, draft: Any = UNANSWERABLE, final: Any = FINAL, **fields: Any) -> Pipeline:
    """A chain or an engine over a scripted model.

    Args:
        where: The host and the mode.
        draft: The pieces of the first reply.
        final: Those of the second.
        fields: `passages` and a list of `documents` are `Texts`; the others are fields of the host or of the model.
    """
    host, mode = where.split()
    where, fields = f"{host} {in_the_words_of(host, mode)}", _with_window(where, fields)
    if isinstance(fields.get("documents"), list | tuple):
        texts = fields["documents"]
        fields["documents"] = [document(where, one) if isinstance(one, str | Text) else one for one in texts]
    if "passages" in fields:
        fields["retriever"] = retriever(where, fields.pop("passages"))
    if is_langchain(where):
        chain = langchain_parts.a_chain(draft, final, **fields)
        return Pipeline(where, chain, chain.llm)
    if where.startswith("completion"):
        fields.setdefault("is_chat", False)
    fields.setdefault("streaming", where.endswith("stream"))
    engine = llamaindex_parts.an_engine(draft, final, **fields)
    return Pipeline(where, engine, engine._response_synthesizer.llm)


def pipeline_for(where: str, scenario: Scenario, **fields: Any) -> Pipeline:
    """The chain or the engine of a scenario."""
    script = {"draft": scenario.draft, "final": scenario.final, "ends": scenario.ends, "refusal": scenario.refusal}
    script["passages"] = PASSAGE_TEXTS if scenario.draft is not None else ()
    script["documents"] = DOCUMENT_TEXTS
    if isinstance(scenario, Steered):
        script |= {"looks": scenario.looks, "passages": scenario.found, "documents": LONG_TEXTS, **scenario.options}
    if "retriever" in fields:
        del script["passages"]
    return pipeline(where, **{**script, **fields})


async def outcome(where: str, scenario: Scenario, **fields: Any) -> Outcome:
    """Ask the question of a scenario."""
    return await pipeline_for(where, scenario, **fields).ask()


@dataclass
class Seen:
    """What the tracers and handlers of the host saw."""

    tracer: langchain_parts.TreeTracer | None
    recording: llamaindex_parts.Recording | None

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The decisions that were announced, each with its route."""
        if self.tracer:
            return [data for _, data in self.tracer.events]
        assert self.recording
        events = self.recording.events.of(SelfRouteDecisionEvent)
        return [{"route": event.route, "decision": event.decision} for event in events]

    @property
    def open(self) -> list[str]:
        """What began and never ended: runs; spans, and events of the older callbacks."""
        if self.tracer:
            return self.tracer.open_runs
        assert self.recording
        return [*self.recording.spans.open_spans, *self.recording.callbacks.open]

    @property
    def errors(self) -> int:
        """How many runs or spans ended in an error."""
        if self.tracer:
            return sum(bool(run.error) for run in langchain_parts.all_of(self.tracer.root))
        assert self.recording
        return len(self.recording.spans.dropped_spans)


@contextmanager
def seen(one: Pipeline) -> Iterator[Seen]:
    """Watch what a pipeline is asked."""
    if is_langchain(one.where):
        tracer = langchain_parts.TreeTracer()
        one.config["callbacks"] = [tracer]
        yield Seen(tracer, None)
    else:
        with llamaindex_parts.recorded() as recording:
            for part in (one.asked, one.holder, one.asked.retriever):
                part.callback_manager = recording.manager
            yield Seen(None, recording)


def ledger_of(where: str) -> Any:
    """A ledger of the host."""
    return (langchain_selfroute if is_langchain(where) else llamaindex_selfroute).SelfRouteLedger()


@contextmanager
def listening(ledger: Any, one: Pipeline) -> Iterator[None]:
    """Have a ledger listen to what a pipeline is asked."""
    root = get_dispatcher()
    before = root.event_handlers
    one.config["callbacks"] = [ledger]
    root.event_handlers = before if is_langchain(one.where) else [*before, ledger]
    try:
        yield
    finally:
        root.event_handlers = before


async def until(happened: Callable[[], Any]) -> None:
    """Give the loop its turns until something has happened."""
    for _ in range(400):
        await asyncio.sleep(0.002)
        if happened():
            return
