"""Perform the flow's effects for one call of a chain, as LangChain runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from typing_extensions import override

from langchain_selfroute import documents
from langchain_selfroute.call import Call
from langchain_selfroute.calling import acall, call
from langchain_selfroute.models import MessageTally, text_of_prompt
from selfroute.drivers import Flow
from selfroute.effects import Decided, Generate, ReadDocuments, Retrieve
from selfroute.hangup import LoopTurned, ahang_up

EVENT = "selfroute_decision"


class Steps(Call[CallbackManagerForChainRun]):
    """Performs the effects for `invoke` and `stream`."""

    def flow(self) -> Flow:
        """Check the inputs and return a fresh flow; called within the chain's run, which records their errors."""
        start = self.begin()
        if not isinstance(start, str):
            start = call(start, self.inputs, self._child("start"), name="start")
        return self.flow_from(start)

    def retrieve(self, _: Retrieve) -> Sequence[Document]:
        """Call the retriever, in a child run."""
        return self._fit(self._retrieved(self.retriever.invoke(*self._retrieving())))

    @override
    def _reply(self, effect: Generate) -> Generator[str, None, None]:
        """Call the step's model; closing the generator stops the model."""
        model, prompt, config, options = self._prompt(effect)
        tally = MessageTally(whole=not self.streaming)
        with self._counted(effect.step, tally, lambda: text_of_prompt(prompt)):
            if self.streaming:
                messages = model.stream(prompt, config, **options)
                try:
                    for message in messages:
                        yield tally.add(message)
                finally:
                    if hasattr(messages, "close"):
                        messages.close()  # hangs up
            else:
                yield self._tallied(effect.step, model.invoke(prompt, config, **options), tally)

    def read_documents(self, effect: ReadDocuments) -> Sequence[Document]:
        """Read the documents and fit them to the window, in a run that records no text; or fit the passages."""
        effect = self._named(effect)
        if effect.step == "rag":
            return self._fit(effect)
        run = self.manager.get_child().on_chain_start(None, self._reading(effect), name="read_documents")
        try:
            if effect.anew:
                self.reading = {**self.config, "callbacks": run.get_child()}
                self._read_once()
            context = self._fit(effect)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(self._summary(context))
        return context

    @override
    def _documents(self) -> Sequence[Document]:
        return documents.read(self._source(), self._given(), self._reading_config())

    @override
    def _announce(self, decided: Decided) -> None:
        """Send the custom event `selfroute_decision`."""
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            dispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})


class AsyncSteps(Call[AsyncCallbackManagerForChainRun]):
    """Performs the effects for `ainvoke` and `astream`."""

    async def flow(self) -> Flow:
        """Do as `Steps.flow` does, asynchronously."""
        start = self.begin()
        if not isinstance(start, str):
            start = await acall(start, self.inputs, self._child("start"))
        return self.flow_from(start)

    async def aretrieve(self, _: Retrieve) -> Sequence[Document]:
        """Do as `Steps.retrieve` does, asynchronously."""
        return await self._afit(self._retrieved(await self.retriever.ainvoke(*self._retrieving())))

    @override
    async def _areply(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `Steps.generate` does, asynchronously."""
        model, prompt, config, options = await self._aprompt(effect)
        tally = MessageTally(whole=not self.streaming)
        with self._counted(effect.step, tally, lambda: text_of_prompt(prompt)):
            if self.streaming:
                messages: Any = model.astream(prompt, config, **options)
                waiting = LoopTurned()
                try:
                    async for message in messages:
                        yield tally.add(message)
                except GeneratorExit:
                    leaving, messages = messages, None  # `ahang_up` closes it, even if this task is cancelled
                    await ahang_up(leaving, waited=waiting.done)
                    raise
                finally:
                    if hasattr(messages, "aclose"):
                        await messages.aclose()
            else:
                yield self._tallied(effect.step, await model.ainvoke(prompt, config, **options), tally)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[Document]:
        """Do as `Steps.read_documents` does, asynchronously."""
        effect = self._named(effect)
        if effect.step == "rag":
            return await self._afit(effect)
        run = await self.manager.get_child().on_chain_start(None, self._reading(effect), name="read_documents")
        try:
            if effect.anew:
                self.reading = {**self.config, "callbacks": run.get_child()}
                await self._aread_once()
            context = await self._afit(effect)
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(self._summary(context))
        return context

    async def _afit(self, effect: ReadDocuments) -> Sequence[Document]:
        if self._fits(effect):
            return self._fit(effect, fits=True)
        # Counting and trimming a long text may block the event loop.
        return await run_in_executor(None, partial(self._fit, effect, fits=False))

    @override
    async def _adocuments(self) -> Sequence[Document]:
        return await documents.aread(self._source(), self._given(), self._reading_config())

    @override
    async def _aannounce(self, decided: Decided) -> None:
        """Do as `Steps._announce` does, asynchronously."""
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            await adispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})
