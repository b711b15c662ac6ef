"""What LlamaIndex does for one query: its events, prompts, models and nodes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from typing_extensions import Self, override

from llamaindex_selfroute import convert, internals
from llamaindex_selfroute.asked import asked_in, carrying
from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteQueryEvent, has_listener, send
from llamaindex_selfroute.models import clients, structured
from llamaindex_selfroute.models.clients import package_of
from llamaindex_selfroute.models.tally import ResponseTally
from llamaindex_selfroute.prompts.filling import FilledPrompt, context_of
from llamaindex_selfroute.stored.limits import FilteredSource
from llamaindex_selfroute.stored.links import Link
from llamaindex_selfroute.stored.naming import placed
from selfroute.calls.caching import ProviderCache
from selfroute.calls.call import Call
from selfroute.calls.host import Host, Parts, Place, Prompt
from selfroute.documents.chunks import headings_of
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.effects import Decided, Route
from selfroute.prompts import sendable
from selfroute.usage.account import Tally
from selfroute.usage.addresses import account_of
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel

dispatcher = get_dispatcher(__name__)


class Finder(Protocol):
    """What finds the nodes for a query, such as an engine or a retriever."""

    def retrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """Return the nodes, best first."""

    async def aretrieve(self, query: QueryBundle, /) -> list[NodeWithScore]:
        """The async twin of `retrieve`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SynthesizerParts(Parts[LLM, BasePromptTemplate]):
    """The parts of a synthesizer.

    Attributes:
        streaming: Whether to answer in pieces. Chat engines change the synthesizer's own before a stream is read.
    """

    streaming: bool


class LlamaIndexHost(Host[NodeWithScore]):
    """What LlamaIndex does for one query. A synthesizer is given nodes; else the `finder` retrieves them.

    Attributes:
        parts: The models, prompts, documents and options.
        query: The query.
        words: Other variables of the prompts.
        nodes: The retrieved nodes, best first; empty where there is a `finder`.
        finder: Retrieves the nodes, where none were given.
    """

    tally = ResponseTally
    most_late = 100  # LlamaIndex does not close requests

    def __init__(
        self,
        parts: SynthesizerParts,
        query: QueryBundle,
        *,
        nodes: Sequence[NodeWithScore] = (),
        words: Mapping[str, Any] | None = None,
        finder: Finder | None = None,
    ) -> None:
        """Prepare to answer a query."""
        self.parts, self.query, self.words = parts, query, words or {}
        self.plan, self.question = parts.plan, query.query_str
        self.streaming, self.one_model, self.source = parts.streaming, parts.one_model, parts.documents
        self.nodes, self.finder = list(nodes), finder
        self._span = active_span_id.get()

    @property
    def inputs(self) -> Mapping[str, Any]:  # type: ignore[override]
        """What else the query was given, for policies."""
        return {**self.words, "query_bundle": self.query}

    def record(self, entry: Entry) -> None:
        """Send the usage of the query."""
        send(dispatcher, SelfRouteQueryEvent, entry=entry, span_id=self._span)

    @override
    def choose(self, start: Any) -> Any:
        return convert.call(start, self.query)

    @override
    async def achoose(self, start: Any) -> Any:
        return await convert.acall(start, self.query)

    @override
    def retrieve(self) -> Sequence[NodeWithScore]:
        return self.finder.retrieve(self.query) if self.finder else self.nodes

    @override
    async def aretrieve(self) -> Sequence[NodeWithScore]:
        return await self.finder.aretrieve(self.query) if self.finder else self.nodes

    @override
    def read(self, passages: Sequence[NodeWithScore]) -> Sequence[NodeWithScore]:
        source = self.source
        if isinstance(source, FilteredSource):
            return source.visible(convert.read(source.read, passages, self.query), passages)
        return convert.read(source, passages, self.query)

    @override
    async def aread(self, passages: Sequence[NodeWithScore]) -> Sequence[NodeWithScore]:
        source = self.source
        if isinstance(source, FilteredSource):
            return source.visible(await convert.aread(source.read, passages, self.query), passages)
        return await convert.aread(source, passages, self.query)

    @override
    def prompt(self, step: Route, context: Sequence[NodeWithScore]) -> FilledPrompt:
        text = context_of(context, self.parts.document_prompt, whole=step != "rag")
        words = {
            **self.words,
            **self.plan.words,
            "context_str": sendable(text),
            "query_str": self.question,
        }
        value = internals.formatted(self.parts.models[step], self.parts.prompts[step], words)
        return FilledPrompt(value, text)

    @override
    def ask(self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None) -> str | Iterator[Any]:
        llm, value = self.parts.models[step], prompt.sent(self.question, cache)
        counts = cast("ResponseTally", tally)
        if form := self.plan.form_of(step):
            reply = structured.ask(llm, value, form)
            return structured.text_of(llm, reply, counts, refusal=self.plan.refusal, form=form)
        return clients.ask_stream(llm, value) if self.streaming else counts.add(clients.ask(llm, value))

    @override
    async def aask(
        self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
    ) -> str | AsyncIterator[Any]:
        llm, value = self.parts.models[step], prompt.sent(self.question, cache)
        counts = cast("ResponseTally", tally)
        if form := self.plan.form_of(step):
            reply = await structured.aask(llm, value, form)
            return structured.text_of(llm, reply, counts, refusal=self.plan.refusal, form=form)
        return await clients.aask_stream(llm, value) if self.streaming else counts.add(await clients.aask(llm, value))

    @override
    def announce(self, decided: Decided) -> None:
        """Send the `SelfRouteDecisionEvent`."""
        if has_listener(dispatcher):
            decision = decided.decision.as_dict()
            send(dispatcher, SelfRouteDecisionEvent, route=decided.route, decision=decision, span_id=self._span)

    @override
    def text_of(self, document: NodeWithScore | BaseNode) -> str:
        return (document.node if isinstance(document, NodeWithScore) else document).get_content()

    @override
    def retrieved_text(self, passage: NodeWithScore) -> str:
        return convert.retrieved_text(passage.node)

    @override
    def with_text(self, document: NodeWithScore, text: str, /, **label: Any) -> NodeWithScore:
        return convert.trimmed(document, text, **label)

    @override
    def source_of(self, document: NodeWithScore) -> str:
        node = document.node
        name = (
            self.source.reader.store.name(document) if isinstance(self.source, BaseStoredDocuments) else node.ref_doc_id
        )
        return str(name or node.node_id)

    @override
    def asking(self, question: str) -> Self:
        other = super().asking(question)
        asked, bundle = asked_in(self.query), QueryBundle(question)
        other.query = carrying(bundle, asked) if asked else bundle
        return other

    @override
    def headings_of(self, passage: NodeWithScore) -> Sequence[str]:
        hidden, about = passage.node.excluded_llm_metadata_keys, passage.node.metadata
        return headings_of({key: about[key] for key in hidden if key in about})  # LlamaIndex's prompts show the others

    @override
    def place_of(self, passage: NodeWithScore) -> Place:
        return Place(Link.of(passage.node).start, placed(passage.node))

    @override
    def window(self, step: Route) -> int | None:
        return clients.window_of(self.parts.models[step])

    @override
    def name_of(self, step: Route) -> PricedModel:
        return self.parts.memory.names.of(step, self.parts.models[step])

    @override
    def account(self, step: Route) -> Hashable:
        return account_of(self.parts.models[step])

    @override
    def takes_marks(self, step: Route) -> bool:
        """Return whether the model knows `CachePoint`, which most packages refuse, and the user marks nothing."""
        llm = self.parts.models[step]
        known = hasattr(sys.modules.get("llama_index.llms.anthropic.utils"), "CachePoint")  # the first versions do not
        return known and package_of(llm) == "anthropic" and getattr(llm, "cache_idx", None) is None

    @override
    def log_missing_usage(self, step: Route) -> None:
        if self.streaming and not self.plan.structured:
            clients.log_missing_usage(self.parts.models[step], self.parts.memory.said)


class QueryCall(Call[NodeWithScore]):
    """The call that answers a query."""

    host: LlamaIndexHost

    def __init__(self, asked: LlamaIndexHost) -> None:
        """Prepare to answer a query."""
        record = asked.record if has_listener(dispatcher) else None
        super().__init__(asked, asked.plan, memory=asked.parts.memory, record=record)
        self.reading.passages = asked.nodes  # the metadata of a stream list them from the beginning
