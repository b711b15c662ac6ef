"""Perform the flow's effects for one query, with LlamaIndex's models and events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from typing_extensions import override

from llamaindex_selfroute import convert, documents, host, models, structured
from llamaindex_selfroute.convert import Prompt
from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteQueryEvent, has_listener, send
from llamaindex_selfroute.hangup import hang_up
from llamaindex_selfroute.models import ResponseTally
from llamaindex_selfroute.parts import Parts
from selfroute.flow import Decided, Generate, ReadDocuments, Retrieve, Route
from selfroute.hangup import LoopTurned, ahang_up
from selfroute.performing import BaseSteps
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel

dispatcher = get_dispatcher(__name__)


class Steps(BaseSteps[NodeWithScore]):
    """Performs the effects of one query, for both drivers.

    The nodes have been retrieved before a synthesizer is called, so `Retrieve` simply returns them.
    """

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
        super().__init__(parts.settings, estimate=parts.estimate, record=record, retrieves=False)
        self.parts, self.query, self.words = parts, query, words
        self.passages: list[NodeWithScore] = list(nodes)
        self.streaming = parts.streaming
        self._span = active_span_id.get()

    @property
    @override
    def question(self) -> str:
        return self.query.query_str

    @override
    def _text_of(self, document: NodeWithScore | BaseNode) -> str:
        if isinstance(document, documents.WholeDocument | BaseNode):
            return (document if isinstance(document, BaseNode) else document.node).get_content()
        return convert.retrieved_text(document.node)

    @override
    def _trimmed(self, document: NodeWithScore, text: str) -> NodeWithScore:
        return documents.trimmed(document, text)

    @property
    @override
    def _one_model(self) -> bool:
        return self.parts.one_model

    @override
    def _window(self) -> int | None:
        window = self.parts.models["long_context"].metadata.context_window
        # A model that does not know its window has LlamaIndex's default, or -1.
        return None if window == DEFAULT_CONTEXT_WINDOW or window <= 0 else window

    @override
    def _source(self) -> Any:
        return self.parts.documents

    @override
    def _model_name(self, step: Route) -> PricedModel:
        return self.parts.names.of(step, self.parts.models[step])

    @override
    def _log_missing_usage(self, step: Route) -> None:
        if self.streaming and not self.settings.structured:
            models.log_missing_usage(self.parts.models[step])

    def _record(self, entry: Entry) -> None:
        send(dispatcher, SelfRouteQueryEvent, entry=entry, span_id=self._span)

    def retrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:  # noqa: ARG002
        """Return the nodes that were retrieved already."""
        return self.passages

    async def aretrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""
        return self.retrieve(effect)

    def decided(self, effect: Decided) -> None:
        """Send the `SelfRouteDecisionEvent`."""
        if self.streaming:  # an answer that comes at once leaves no time to count
            self._count_early(effect, self.passages)
        decision = effect.decision.as_dict()
        send(dispatcher, SelfRouteDecisionEvent, route=effect.route, decision=decision, span_id=self._span)

    async def adecided(self, effect: Decided) -> None:
        """Do as `decided` does, asynchronously."""
        self.decided(effect)

    def read_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """Read the documents and fit them to the window."""
        if effect.too_long is None:
            self.read = documents.read(self.parts.documents, self.passages, self.query)
        return self._fit(effect)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """Do as `read_documents` does, asynchronously."""
        if effect.too_long is None:
            self.read = await documents.aread(self.parts.documents, self.passages, self.query)
            if self._fits():
                return self._fit(effect)
        # Counting and trimming a long text may block the event loop.
        return await documents.in_thread(self._fit, effect)

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        """Call the step's model; closing the generator stops the model, as far as its package allows."""
        llm, prompt, tally = self._prompt(effect)
        with self._counted(effect.step, tally, partial(convert.text_of, prompt)):
            if self.settings.structured:
                yield structured.text_of(llm, structured.ask(llm, prompt), tally, refusal=self.refusal)
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

    async def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `generate` does, asynchronously; closing the generator stops the model."""
        llm, prompt, tally = self._prompt(effect)
        with self._counted(effect.step, tally, partial(convert.text_of, prompt)):
            if self.settings.structured:
                yield structured.text_of(llm, await structured.aask(llm, prompt), tally, refusal=self.refusal)
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
        llm, whole = self.parts.models[step], step == "long_context"
        context = convert.context_of(effect.context, self.parts.document_prompt, whole=whole)
        words = {**self.words, "context_str": context, "query_str": self.question, "refusal": self.refusal}
        prompt = host.formatted(llm, self.parts.prompts[step], words)
        schema = structured.schema_length() if self.settings.structured else 0
        self._note_prompt(lambda: len(convert.text_of(prompt)) + schema, context=len(context))
        return llm, prompt, ResponseTally(whole=self.settings.structured or not self.streaming)
