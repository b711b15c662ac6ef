"""Performs the flow's effects for one call of a chain, as runs of LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import format_document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from langchain_selfroute import documents, models, structured
from langchain_selfroute.convert import inputs_of, is_too_long
from langchain_selfroute.ledger import booking
from langchain_selfroute.models import Tally
from langchain_selfroute.stored import StoredDocuments
from selfroute.account import Account
from selfroute.drivers import Flow
from selfroute.flow import Answer, Decided, Generate, ReadDocuments, Retrieve, Route, self_route
from selfroute.hangup import Waiting, ahang_up
from selfroute.prices import Model
from selfroute.prompts import documents_in
from selfroute.savings import Asked, Lengths, Window
from selfroute.window import read_less

if TYPE_CHECKING:
    from langchain_selfroute.chain import SelfRouteChain

Manager = TypeVar("Manager", CallbackManagerForChainRun, AsyncCallbackManagerForChainRun)
EVENT = "selfroute_decision"


class _Call(Generic[Manager]):
    """One call of a chain: what both ways of performing it share."""

    def __init__(  # noqa: PLR0913
        self,
        chain: SelfRouteChain,
        given: Any,
        *,
        manager: Manager,
        config: RunnableConfig | None,
        kwargs: dict[str, Any],
        streaming: bool,
    ) -> None:
        self.chain, self.kwargs = chain, kwargs
        self.streaming = streaming and chain.answerability == "text"
        self.manager: Manager = manager
        self.config = _for_children(config) if config else RunnableConfig()
        self.given = given
        self.inputs: dict[str, Any] = {}
        self.refusal = chain.refusal
        self.passages: Sequence[Document] = ()
        self.read: Sequence[Document] = ()  # whole documents, before they were fitted
        self.context: Sequence[Document] = ()
        self.asked = Asked(0, 0)  # the last prompt
        self.answered_by = Model()  # the last model
        self.account = Account(booking(manager.handlers))

    def flow(self) -> Flow:
        """Start: look at the inputs (here, within the run, so that it records what is wrong with them)."""
        self.inputs = inputs_of(self.given)
        return self_route(self.inputs["input"], refusal=self.refusal)

    def is_too_long(self, error: Exception) -> bool:
        return is_too_long(error)

    def settle(self, answer: Answer) -> None:
        chain, account = self.chain, self.account
        if not chain.measure_savings:
            return
        lengths, model = self._lengths(), self._model("long_context")
        if answer.route == "rag":
            window = Window(chain.document_budget(), roughly=chain.token_counter is None)
            priced = model if chain.long_context_llm else self.answered_by
            chain.baseline.answered(account, lengths, asked=self.asked, window=window, model=model, priced=priced)
        else:
            trimmed = any(documents.label_of(document).get("trimmed") for document in self.context)
            whole = len(self.read) == len(self.context) and not trimmed
            sizes = lengths() if lengths and whole else None
            account.usage = chain.baseline.read(account.usage, sizes, asked=self.asked, model=model)

    def _begin_counting(self, decided: Decided) -> None:
        stored = isinstance(self.chain.documents, StoredDocuments)
        if stored and decided.route == "rag" and self.streaming and self.chain.measure_savings:
            self._lengths()  # so that they are counted while the answer is poured

    def _lengths(self) -> Lengths | None:
        try:
            return documents.lengths(self._source(), self.passages)
        except Exception:  # noqa: BLE001 - what keeps them from being read is no concern of an answer from the passages
            return None

    def _child(self, name: str, tag: str | None = None) -> RunnableConfig:
        """The config of a child run; what runs it merges it with the context's, so it is given only what differs."""
        manager = self.manager.get_child()
        if tag:
            manager.add_tags([tag])  # inherited: the model may sit inside a retry or a fallback
        return {**self.config, "callbacks": manager, "run_name": name}

    def _query(self, effect: Retrieve) -> Any:
        return effect.question if takes_string(self.chain.retriever) else self.inputs

    def _retrieved(self, found: Any) -> Sequence[Document]:
        self.passages = documents.documents_of(found, "retriever")
        return self.passages

    def _prompt(self, effect: Generate) -> tuple[Runnable[Any, Any], PromptValue, RunnableConfig]:
        self.context, chain = effect.context, self.chain
        if chain.document_prompt is not None:
            context = "\n\n".join([format_document(document, chain.document_prompt) for document in effect.context])
        else:
            texts = [document.page_content for document in effect.context]
            whole = effect.step == "long_context"
            names = [one.metadata.get("title", self._source_of(one)) for one in effect.context] if whole else []
            context = documents_in(texts, names) if whole else "\n\n".join(texts)
        words = {**self.inputs, "context": context, "refusal": self.refusal}
        model = chain.model_of(effect.step)
        template = chain.rag_prompt if effect.step == "rag" else chain.long_context_prompt
        prompt = template.format_prompt(**words)
        if chain.measure_savings:
            self.asked = Asked(models.length_of(prompt), len(context))
        if chain.answerability == "structured":
            model = structured.asking("llm", model)
        return model, prompt, self._child(effect.step, f"selfroute:{effect.step}")

    def _told(self, reply: Any, tally: Tally) -> str:
        if isinstance(reply, structured.Filled):
            return structured.text_of(reply, tally, refusal=self.refusal)
        return tally.add(reply)

    def _source_of(self, document: Document) -> Any:
        key = self.chain.documents.source_key if isinstance(self.chain.documents, StoredDocuments) else "source"
        return document.metadata.get(key)

    def _book(self, step: Route, tally: Tally, prompt: PromptValue) -> None:
        counts = tally.usage(prompt, count=self.chain.count_tokens)
        if counts is None:
            return
        self.answered_by = self._model(step, tally)
        self.account.paid(step, counts, self.answered_by)
        if tally.whole and tally.counts is None:
            models.say_why_estimated(self.chain.model_of(step), self.config)

    def _model(self, step: Route, tally: Tally | None = None) -> Model:
        """What the model of a step, or the one that answered, is called where it is paid for."""
        said, model = self.chain.priced_model_of(step), self.chain.model_of(step)
        if said:
            return said
        if self.kwargs or "configurable" in self.config:  # by which it may be another one for each call
            name = models.name_of(model, self.config, self.kwargs)
        else:
            name = self.chain.names.of(step, model)
        return tally.model(name) if tally else name

    def _reading(self, effect: ReadDocuments) -> dict[str, Any]:
        asked = {"input": self.inputs["input"], "retrieved": len(effect.passages)}
        return asked if effect.too_long is None else {**asked, "too_long": str(effect.too_long)[:500]}

    def _given(self) -> dict[str, Any]:
        return {**self.inputs, "retrieved": list(self.passages)}

    def _source(self) -> documents.Source:
        source = self.chain.documents
        if isinstance(source, StoredDocuments):
            return source.behind(self.chain.retriever, self.config)
        return source

    def _fits(self) -> bool:
        """Whether the documents fit as they are, as far as that can be told in no time."""
        budget = self.chain.document_budget()
        if budget is None:
            return True
        return not self.chain.token_counter and sum(len(document.page_content) for document in self.read) < 4 * budget

    def _fit(self, effect: ReadDocuments) -> list[Document]:
        count = self.chain.count_tokens
        if effect.too_long is None:
            budget = self.chain.document_budget()
        else:
            budget = read_less(effect.too_long, sent=sum(count(document.page_content) for document in self.context))
        return documents.fitted(self.read, retrieved=self.passages, budget=budget, count=count)

    def _summary(self, taken: Sequence[Document]) -> dict[str, Any]:
        """What the run of `read_documents` records: no text."""
        return {
            "documents": [
                {
                    "source": str(self._source_of(document) or ""),
                    "characters": len(document.page_content),
                    **documents.label_of(document),
                }
                for document in taken
            ]
        }

    def head(self, route: Route, text: str) -> dict[str, Any]:
        """The first chunk of a stream: all that is known when the first text comes."""
        return {
            **self.inputs,
            "retrieved": list(self.passages),
            "context": list(self.context),
            "route": route,
            "answer": text,
        }

    def rest(self, answer: Answer) -> dict[str, Any]:
        """The last chunk of a stream."""
        return {
            "answerable": answer.answerable,
            "decision": answer.decision.as_dict(),
            "usage": self.account.usage.as_dict(),
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The output of a call that does not stream: the sum of the chunks."""
        return {**self.head(answer.route, answer.text), **self.rest(answer)}


class Steps(_Call[CallbackManagerForChainRun]):
    """Performs the effects for `invoke` and `stream`."""

    def retrieve(self, effect: Retrieve) -> Sequence[Document]:
        """Ask the retriever, in a run of its own."""
        return self._retrieved(self.chain.retriever.invoke(self._query(effect), self._child("retrieve")))

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        """Ask the step's model; closing this hangs up."""
        model, prompt, config = self._prompt(effect)
        tally = Tally(whole=not self.streaming)
        messages: Any = None
        try:
            if self.streaming:
                messages = model.stream(prompt, config, **self.kwargs)
                for message in messages:
                    yield tally.add(message)
                tally.whole = True
            else:
                yield self._told(model.invoke(prompt, config, **self.kwargs), tally)
        finally:
            if hasattr(messages, "close"):
                messages.close()  # hangs up
            self._book(effect.step, tally, prompt)

    def read_documents(self, effect: ReadDocuments) -> Sequence[Document]:
        """Read the documents and fit them to the window, in a run that records no text."""
        run = self.manager.get_child().on_chain_start(None, self._reading(effect), name="read_documents")
        try:
            if effect.too_long is None:
                config: RunnableConfig = {**self.config, "callbacks": run.get_child()}
                self.read = documents.read(self._source(), self._given(), config)
            self.context = taken = self._fit(effect)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(self._summary(taken))
        return taken

    def decided(self, effect: Decided) -> None:
        """Send the custom event `selfroute_decision`."""
        self._begin_counting(effect)
        if self.manager.handlers:
            data = {"route": effect.route, "decision": effect.decision.as_dict()}
            dispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})


class AsyncSteps(_Call[AsyncCallbackManagerForChainRun]):
    """Performs the effects for `ainvoke` and `astream`."""

    async def aretrieve(self, effect: Retrieve) -> Sequence[Document]:
        """As `Steps.retrieve`."""
        return self._retrieved(await self.chain.retriever.ainvoke(self._query(effect), self._child("retrieve")))

    async def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        """As `Steps.generate`."""
        model, prompt, config = self._prompt(effect)
        tally = Tally(whole=not self.streaming)
        messages: Any = None
        try:
            if self.streaming:
                messages, waiting = model.astream(prompt, config, **self.kwargs), Waiting()
                try:
                    async for message in messages:
                        yield tally.add(message)
                except GeneratorExit:
                    await ahang_up(messages, waited=waiting.over)
                    raise
                tally.whole = True
            else:
                yield self._told(await model.ainvoke(prompt, config, **self.kwargs), tally)
        except asyncio.CancelledError:
            tally.left = True
            raise
        finally:
            if hasattr(messages, "aclose"):
                await messages.aclose()
            self._book(effect.step, tally, prompt)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[Document]:
        """As `Steps.read_documents`."""
        run = await self.manager.get_child().on_chain_start(None, self._reading(effect), name="read_documents")
        try:
            if effect.too_long is None:
                config: RunnableConfig = {**self.config, "callbacks": run.get_child()}
                self.read = await documents.aread(self._source(), self._given(), config)
            if effect.too_long is None and self._fits():
                self.context = taken = self._fit(effect)
            else:  # counting and trimming a long text may take a while: off the event loop
                self.context = taken = await run_in_executor(None, self._fit, effect)
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(self._summary(taken))
        return taken

    async def adecided(self, effect: Decided) -> None:
        """As `Steps.decided`."""
        self._begin_counting(effect)
        if self.manager.handlers:
            data = {"route": effect.route, "decision": effect.decision.as_dict()}
            await adispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})


def _for_children(config: RunnableConfig) -> RunnableConfig:
    """The config without what the chain's own run took of it."""
    rest = {key: value for key, value in config.items() if key not in ("run_name", "run_id")}
    return cast("RunnableConfig", rest)


def takes_string(retriever: Runnable[Any, Any]) -> bool:
    """Whether a retriever is asked with the bare question; any other runnable gets all inputs."""
    if isinstance(retriever, BaseRetriever):
        return True
    try:
        return retriever.InputType in (str, "str")  # a name where annotations are postponed
    except (TypeError, AttributeError):  # a runnable that can not tell
        return False
