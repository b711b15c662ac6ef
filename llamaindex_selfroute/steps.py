"""Perform the flow's effects for one query, with LlamaIndex's models and events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from typing_extensions import override

from llamaindex_selfroute import caching, convert, documents, host, models, structured
from llamaindex_selfroute.convert import Prompt
from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteQueryEvent, has_listener, send
from llamaindex_selfroute.hangup import hang_up
from llamaindex_selfroute.models import ResponseTally
from llamaindex_selfroute.parts import Finder, Parts
from llamaindex_selfroute.stored.nodes import Link
from selfroute.caching.prefixes import Prefix
from selfroute.caching.providers import Dialect
from selfroute.documents.chunks import Place
from selfroute.documents.stored import ScopedDocuments
from selfroute.drivers import Flow
from selfroute.effects import Decided, Generate, ReadDocuments, Retrieve, Route
from selfroute.errors import ConfigurationError
from selfroute.hangup import LoopTurned, ahang_up
from selfroute.performing import BaseSteps
from selfroute.usage.addresses import account_of
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel

dispatcher = get_dispatcher(__name__)


class Steps(BaseSteps[NodeWithScore]):
    """Performs the effects of one query, for both drivers.

    The nodes have been retrieved before a synthesizer is called, so `Retrieve` simply returns them.

    Attributes:
        finder: Retrieves the nodes, where those at hand cannot be used.
    """

    finder: Finder | None = None

    def __init__(
        self, parts: Parts, query: QueryBundle, *, nodes: Sequence[NodeWithScore], words: Mapping[str, Any]
    ) -> None:
        """Prepare to answer a query.

        Args:
            parts: The models, prompts, documents and options.
            query: The query.
            nodes: The retrieved nodes, best first.
            words: Other variables of the prompts.
        """
        record = self._record if has_listener(dispatcher) else None
        super().__init__(parts.settings, memory=parts.memory, record=record, retrieves=False)
        self.parts, self.query, self.words = parts, query, words
        self.passages: list[NodeWithScore] = list(nodes)
        self.streaming = parts.streaming
        self._span = active_span_id.get()

    @property
    @override
    def question(self) -> str:
        return self.query.query_str

    @property
    @override
    def _inputs(self) -> Mapping[str, Any]:
        return {**self.words, "input": self.question, "query_bundle": self.query}

    @override
    def _place_of(self, passage: NodeWithScore) -> Place:
        return Place(passage.node.ref_doc_id, Link.of(passage.node).start, passage.node.metadata)

    @override
    def _source_name(self, document: NodeWithScore) -> str:
        return document.node.ref_doc_id or document.node.node_id

    @override
    def _text_of(self, document: NodeWithScore | BaseNode) -> str:
        return (document.node if isinstance(document, NodeWithScore) else document).get_content()

    @override
    def _retrieved_text(self, passage: NodeWithScore) -> str:
        return convert.retrieved_text(passage.node)

    @override
    def _trimmed(self, document: NodeWithScore, text: str, /, **label: Any) -> NodeWithScore:
        return documents.trimmed(document, text, **label)

    @property
    @override
    def _one_model(self) -> bool:
        return self.parts.one_model

    @override
    def _window(self, step: Route) -> int | None:
        return models.window_of(self.parts.models[step])

    @override
    def _text_with(self, step: Route, context: Sequence[NodeWithScore]) -> str:
        return convert.text_of(self._latest(step, context, lambda: self._fill_in(step, context))[0])

    @override
    def _source(self) -> Any:
        return self.parts.documents

    @override
    def _model_name(self, step: Route) -> PricedModel:
        return self._memory.names.of(step, self.parts.models[step])

    @override
    def _prefix(self, effect: Generate) -> Prefix | None:
        prompt, text = self._latest(effect.step, effect.context, lambda: self._fill_in(effect.step, effect.context))
        return caching.prefix_of(prompt, context=text, question=self.question)

    @override
    def _takes_marks(self, step: Route, dialect: Dialect) -> bool:
        return caching.takes_marks(self.parts.models[step], dialect)

    @override
    def _account(self, step: Route) -> Hashable:
        return account_of(self.parts.models[step])

    @override
    def _log_missing_usage(self, step: Route) -> None:
        if self.streaming and not self.settings.structured:
            models.log_missing_usage(self.parts.models[step], self._memory.said)

    def _record(self, entry: Entry) -> None:
        send(dispatcher, SelfRouteQueryEvent, entry=entry, span_id=self._span)

    def check_row(self) -> None:
        """Check that the query can be kept in a row, before anything is paid for.

        Raises:
            InputError: It cannot.
        """
        self._inputs_as_json()

    @override
    def _inputs_as_json(self) -> dict[str, Any]:
        return convert.query_as_json(self.query, self.words)

    @override
    def _document_as_json(self, document: NodeWithScore) -> dict[str, Any]:
        return convert.node_as_json(document)

    def flow(self) -> Flow:
        """Return a fresh flow for the query."""
        start = self.start
        return self.flow_from(documents.call(start, self.query) if callable(start) else start)

    async def aflow(self) -> Flow:
        """Do as `flow` does, asynchronously."""
        start = self.start
        return self.flow_from(await documents.acall(start, self.query) if callable(start) else start)

    def retrieve(self, _: Retrieve) -> Sequence[NodeWithScore]:
        """Return the nodes that fit the window: those that were retrieved before, unless there is a finder."""
        finder = self._finder()
        return self._fit(self._found_passages(finder.retrieve(self.query) if finder else self.passages))

    async def aretrieve(self, _: Retrieve) -> Sequence[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""
        finder = self._finder()
        found = await finder.aretrieve(self.query) if finder else self.passages
        return await self._afit(self._found_passages(found))

    def _finder(self) -> Finder | None:
        if self._first and self.finder is None:
            msg = (
                "only the nodes say what StoredDocuments may read, those of a row are not believed, and a synthesizer "
                "cannot retrieve them again: call second_step of the engine, or pass StoredDocuments(filters=...), "
                "MetadataFilters(filters=[]) if nothing is hidden"
            )
            raise ConfigurationError(msg)
        return self.finder

    @override
    def _documents(self) -> Sequence[NodeWithScore]:
        return documents.read(self.parts.documents, self.passages, self.query)

    @override
    async def _adocuments(self) -> Sequence[NodeWithScore]:
        return await documents.aread(self.parts.documents, self.passages, self.query)

    @override
    def _announce(self, decided: Decided) -> None:
        """Send the `SelfRouteDecisionEvent`."""
        decision = decided.decision.as_dict()
        send(dispatcher, SelfRouteDecisionEvent, route=decided.route, decision=decision, span_id=self._span)

    def read_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """Read the documents and fit them to the window; or fit the passages."""
        if effect.anew:
            self._read_once()
        return self._fit(effect)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """Do as `read_documents` does, asynchronously."""
        if effect.anew:
            await self._aread_once()
        return await self._afit(effect)

    async def _afit(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        if self._fits(effect):
            return self._fit(effect, fits=True)
        # Counting and trimming a long text may block the event loop.
        return await documents.in_thread(partial(self._fit, effect, fits=False))

    @override
    def _reply(self, effect: Generate) -> Generator[str, None, None]:
        """Call the step's model; closing the generator stops the model, as far as its package allows."""
        llm, prompt, tally = self._prompt(effect)
        with self._counted(effect.step, tally, partial(convert.text_of, prompt)):
            prompt = self._marked(effect, prompt)
            if self.settings.structured:
                form = self.settings.form_of(effect.step)
                reply = structured.ask(llm, prompt, form)
                yield structured.text_of(llm, reply, tally, refusal=self.refusal, form=form)
            elif self.streaming:
                chunks = models.ask_stream(llm, prompt)
                try:
                    for chunk in chunks:
                        yield tally.add_piece(chunk)
                except GeneratorExit:
                    hang_up(chunks)
                    raise
            else:
                yield tally.add(models.ask(llm, prompt))

    @override
    async def _areply(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `generate` does, asynchronously; closing the generator stops the model."""
        llm, prompt, tally = self._prompt(effect)
        with self._counted(effect.step, tally, partial(convert.text_of, prompt)):
            prompt = self._marked(effect, prompt)
            if self.settings.structured:
                form = self.settings.form_of(effect.step)
                reply = await structured.aask(llm, prompt, form)
                yield structured.text_of(llm, reply, tally, refusal=self.refusal, form=form)
            elif self.streaming:
                waiting = LoopTurned()
                chunks = await models.aask_stream(llm, prompt)
                try:
                    async for chunk in chunks:
                        yield tally.add_piece(chunk)
                except GeneratorExit:
                    await ahang_up(chunks, waited=waiting.done, most=100)  # LlamaIndex does not close requests
                    raise
            else:
                yield tally.add(await models.aask(llm, prompt))

    def _prompt(self, effect: Generate) -> tuple[LLM, Prompt, ResponseTally]:
        self.context, step = effect.context, effect.step
        prompt, text = self._latest(step, effect.context, lambda: self._fill_in(step, effect.context))
        schema = structured.length_of(self.settings.form_of(step)) if self.settings.structured else 0
        self._note_prompt(lambda: len(convert.text_of(prompt)) + schema, context=len(text))
        return self.parts.models[step], prompt, ResponseTally(whole=self.settings.structured or not self.streaming)

    def _marked(self, effect: Generate, prompt: Prompt) -> Prompt:
        """Return a prompt as it is sent, so that the provider's prompt cache is hit."""
        cache = self._cache(effect.step) if effect.step == "long_context" else None
        prefix = self._prefix(effect) if cache and cache.mark else None
        return caching.marked(prompt, prefix, cache) if cache and prefix else prompt

    def _fill_in(self, step: Route, context: Sequence[NodeWithScore]) -> tuple[Prompt, str]:
        """Return a step's prompt with a context, and the text of the context."""
        context = self._as_sent(step, context, stored=isinstance(self.parts.documents, ScopedDocuments))
        text = convert.context_of(context, self.parts.document_prompt, whole=step != "rag")
        words = {**self.words, "context_str": text, "query_str": self.question, "refusal": self.refusal}
        return host.formatted(self.parts.models[step], self.parts.prompts[step], words), text
