"""Performs the flow's effects for one query, with LlamaIndex's models and events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_selfroute import convert, documents, models, structured
from llamaindex_selfroute.convert import Prompt
from llamaindex_selfroute.events import SelfRouteDecisionEvent, SelfRouteQueryEvent, is_heard, send
from llamaindex_selfroute.models import Tally
from llamaindex_selfroute.stored.reading import ScopedDocuments
from selfroute.documents.overflow import is_too_long, read_less
from selfroute.documents.sizes import Lengths
from selfroute.drivers import Flow
from selfroute.flow import Answer, Decided, Generate, ReadDocuments, Retrieve, Route, self_route
from selfroute.hangup import LoopTurned, ahang_up, hang_up
from selfroute.usage.account import Account
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel
from selfroute.usage.savings import PromptSize, Window

if TYPE_CHECKING:
    from llamaindex_selfroute.synthesizer import SelfRouteSynthesizer

dispatcher = get_dispatcher(__name__)


class Steps:
    """Performs the effects of one query, for both loops.

    Retrieval has been done when a synthesizer is called: `Retrieve` is answered with the nodes it was given.
    """

    def __init__(
        self,
        synthesizer: SelfRouteSynthesizer,
        query: QueryBundle,
        *,
        nodes: Sequence[NodeWithScore],
        words: Mapping[str, Any],
    ) -> None:
        """Start.

        Args:
            synthesizer: Whose models, prompts and documents are used.
            query: The query.
            nodes: What was retrieved, best first.
            words: More variables for the prompts.
        """
        self.synthesizer, self.query, self.nodes, self.words = synthesizer, query, list(nodes), words
        self.refusal = synthesizer.refusal
        self.streaming = synthesizer.streaming  # now: chat engines switch it back before a stream is read
        self.structured = synthesizer.answerability == "structured"
        self.span = active_span_id.get()
        self.read: Sequence[NodeWithScore] = ()  # whole documents, before they were fitted
        self.context: Sequence[NodeWithScore] = ()
        self.asked = PromptSize(0, 0)  # the last prompt
        self.answered_by = PricedModel()  # the last model
        self.account = Account(self._booked if is_heard(dispatcher) else None, retrieves=False)

    def flow(self) -> Flow:
        """A fresh flow for the query."""
        return self_route(self.query.query_str, refusal=self.refusal)

    def is_too_long(self, error: Exception) -> bool:
        """Whether the model refused its prompt as too long."""
        return is_too_long(error)

    def complete_usage(self, answer: Answer) -> None:
        """Complete the usage with what the long context alone would have taken."""
        synthesizer, account = self.synthesizer, self.account
        if not synthesizer.measure_savings:
            return
        lengths, model = self._lengths(), self._model("long_context")
        baseline, asked = synthesizer.baseline, self.asked
        if answer.route == "rag":
            window = Window(synthesizer.document_budget(), roughly=synthesizer.token_counter is None)
            shared = synthesizer.model_of("rag")[0] is synthesizer.model_of("long_context")[0]
            priced = self.answered_by if shared else model
            baseline.answered(account, lengths, asked=asked, window=window, model=model, priced=priced)
        else:
            whole = len(self.read) == len(self.context) and not any(map(documents.is_trimmed, self.context))
            sizes = lengths() if lengths and whole else None
            account.usage = baseline.read(account.usage, sizes, asked=asked, model=model)

    def _lengths(self) -> Lengths | None:
        try:
            source = self.synthesizer.source
            if isinstance(source, ScopedDocuments):
                return source.lengths(self.nodes)
            return None if callable(source) else documents.lengths(source)
        except Exception:  # noqa: BLE001 - what keeps them from being read is no concern of an answer from the passages
            return None

    def _booked(self, entry: Entry) -> None:
        send(dispatcher, SelfRouteQueryEvent, entry=entry, span_id=self.span)

    def retrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:  # noqa: ARG002
        """Return the nodes."""
        return self.nodes

    async def aretrieve(self, effect: Retrieve) -> Sequence[NodeWithScore]:
        """As `retrieve`."""
        return self.retrieve(effect)

    def decided(self, effect: Decided) -> None:
        """Send the `SelfRouteDecisionEvent`."""
        if effect.route == "rag" and self.streaming and self.synthesizer.measure_savings:
            self._lengths()  # so that they are counted while the answer is poured
        decision = effect.decision.as_dict()
        send(dispatcher, SelfRouteDecisionEvent, route=effect.route, decision=decision, span_id=self.span)

    async def adecided(self, effect: Decided) -> None:
        """As `decided`."""
        self.decided(effect)

    def read_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """Read the documents and fit them to the window."""
        if effect.too_long is None:
            self.read = documents.read(self.synthesizer.source, self.nodes, self.query)
        return self._fit(effect)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        """As `read_documents`."""
        if effect.too_long is None:
            self.read = await documents.aread(self.synthesizer.source, self.nodes, self.query)
            if self._fits():
                return self._fit(effect)
        # Counting and trimming a long text may take a while: off the event loop.
        return await documents.in_thread(self._fit, effect)

    def _fits(self) -> bool:
        """Whether the documents fit as they are, as far as that can be told in no time."""
        synthesizer = self.synthesizer
        budget = synthesizer.document_budget()
        if budget is None:
            return True
        return not synthesizer.token_counter and sum(len(item.node.get_content()) for item in self.read) < 4 * budget

    def _fit(self, effect: ReadDocuments) -> Sequence[NodeWithScore]:
        count = self.synthesizer.count_tokens
        if effect.too_long is None:
            budget = self.synthesizer.document_budget()
        else:
            sent = sum(count(item.node.get_content()) for item in self.context)
            budget = read_less(effect.too_long, sent=sent)
        self.context = documents.fitted(self.read, retrieved=self.nodes, budget=budget, count=count)
        return self.context

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        """Ask the step's model; closing this hangs up, as far as its package allows."""
        llm, prompt, tally = self._prompt(effect)
        try:
            if self.structured:
                yield structured.text_of(llm, structured.ask(llm, prompt), tally, refusal=self.refusal)
            elif self.streaming:
                chunks = models.ask_stream(llm, prompt)
                try:
                    for chunk in chunks:
                        yield tally.add_piece(chunk)
                except GeneratorExit:
                    hang_up(chunks)
                    raise
                tally.whole = True
            else:
                yield tally.add(models.ask(llm, prompt))
        finally:
            self._book(effect, tally, prompt)

    async def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        """As `generate`; closing this stops the model."""
        llm, prompt, tally = self._prompt(effect)
        try:
            if self.structured:
                yield structured.text_of(llm, await structured.aask(llm, prompt), tally, refusal=self.refusal)
            elif self.streaming:
                waiting = LoopTurned()
                chunks = await models.aask_stream(llm, prompt)
                try:
                    async for chunk in chunks:
                        yield tally.add_piece(chunk)
                except GeneratorExit:
                    await ahang_up(chunks, waited=waiting.done, most=100)  # LlamaIndex closes no request
                    raise
                tally.whole = True
            else:
                yield tally.add(await models.aask(llm, prompt))
        except asyncio.CancelledError:
            tally.left = True
            raise
        finally:
            self._book(effect, tally, prompt)

    def _prompt(self, effect: Generate) -> tuple[LLM, Prompt, Tally]:
        self.context, synthesizer = effect.context, self.synthesizer
        llm, template = synthesizer.model_of(effect.step)
        whole = effect.step == "long_context"
        context = convert.context_of(effect.context, synthesizer.document_prompt, whole=whole)
        words = {**self.words, "context_str": context, "query_str": self.query.query_str, "refusal": self.refusal}
        prompt = convert.formatted(llm, template, words)
        if synthesizer.measure_savings:
            schema = structured.schema_length() if self.structured else 0
            self.asked = PromptSize(len(convert.text_of(prompt)) + schema, len(context))
        return llm, prompt, Tally(whole=self.structured or not self.streaming)

    def _book(self, effect: Generate, tally: Tally, prompt: Prompt) -> None:
        counts = tally.usage(prompt, count=self.synthesizer.count_tokens)
        if counts is None:
            return
        self.answered_by = self._model(effect.step, tally)
        self.account.add_call(effect.step, counts, self.answered_by)
        if counts.estimated and tally.whole and self.streaming:
            models.say_why_estimated(self.synthesizer.model_of(effect.step)[0])

    def _model(self, step: Route, tally: Tally | None = None) -> PricedModel:
        """What the model of a step, or the one that answered, is called where it is paid for."""
        said, (llm, _) = self.synthesizer.priced_model_of(step), self.synthesizer.model_of(step)
        if said:
            return said
        name = self.synthesizer.names.of(step, llm)
        return tally.model(name) if tally else name
