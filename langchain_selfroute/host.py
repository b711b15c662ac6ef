"""What LangChain does for one call of a chain: it runs its retriever, prompts, models and documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias, cast

import pydantic
from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import Self, override

from langchain_selfroute import convert, models, prompting, structured
from langchain_selfroute.bound import unnamed
from langchain_selfroute.convert import (
    acall,
    call,
    inputs_of,
    inputs_of_reading,
    is_too_long,
    outputs_of_reading,
)
from langchain_selfroute.models import TooLongHeard, has_fallbacks
from langchain_selfroute.prompting import FilledPrompt, context_of
from langchain_selfroute.stored.kinds import filter_test
from langchain_selfroute.stored.reading import FoundHeard, StoredDocuments
from langchain_selfroute.stored.searches import fixed
from langchain_selfroute.tally import MessageTally
from selfroute.answerability.structured import length_of
from selfroute.caching import ProviderCache
from selfroute.calls.host import Host, Parts, Place, Prompt
from selfroute.documents.access import StoredChunk, visible
from selfroute.documents.chunks import headings_of, without_keys
from selfroute.effects import Decided, ReadDocuments, Route
from selfroute.prompts import sendable
from selfroute.stores.listing import Test
from selfroute.usage.account import Tally
from selfroute.usage.addresses import account_of
from selfroute.usage.prices import PricedModel

EVENT = "selfroute_decision"
Manager: TypeAlias = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun
_Asked: TypeAlias = "tuple[Runnable[Any, Any], PromptValue, RunnableConfig, dict[str, Any]]"
"""The model, its prompt, its config and its options."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChainParts(Parts[Runnable[Any, Any], Runnable[Any, Any]]):
    """The parts of a chain.

    Attributes:
        retriever: Finds the passages.
    """

    retriever: Runnable[Any, Any]


class LangChainHost(Host[Document]):
    """What LangChain does for one call of a chain."""

    tally = MessageTally

    def __init__(  # noqa: PLR0913
        self,
        parts: ChainParts,
        given: Any,
        *,
        manager: Manager,
        config: RunnableConfig | None,
        kwargs: Mapping[str, Any],
        streaming: bool,
    ) -> None:
        """Check the inputs, and keep the retriever as it is configured now.

        Args:
            parts: The parts of the chain.
            given: The input of the call.
            manager: Manages the callbacks of the chain's run.
            config: The config of the call.
            kwargs: Options that are passed to the models.
            streaming: Whether the answer comes in pieces.

        Raises:
            InputError: The input is no question, or a conversation in it is no list of messages.
        """
        self.parts, self.settings, self.kwargs = parts, parts.settings, dict(kwargs)
        self.streaming = streaming and not parts.settings.structured
        self.manager: Any = manager
        self.config = unnamed(config) if config else RunnableConfig()
        self.inputs = inputs_of(given)
        self.caller = _caller_in(self.config)
        self.question = self.inputs["input"]
        if len(self.inputs) > 1:
            prompting.check_messages(parts.prompts.values(), self.inputs)
        self.one_model = parts.one_model
        self.retriever = parts.retriever
        self._source: Any = parts.documents  # or the error that forbids reading them
        self._found: FoundHeard | None = None  # within a retriever that we do not know
        self._heard = TooLongHeard()  # within the latest call of a model
        self._test: Test | None = None  # of the retriever's filter, for what a callable returns
        self._run: Any = None  # manages the run which reads documents
        self._fix_retriever()

    def _fix_retriever(self) -> None:
        """Retrieve and read as the retriever is configured now, even if it is changed later."""
        source = self.parts.documents
        if isinstance(source, list):
            return
        try:
            self.retriever = fixed(self.parts.retriever, self.config)
            if isinstance(source, StoredDocuments):
                self._source = source.limited_to(self.retriever, self.config)
            else:
                self._test = filter_test(self.retriever, self.config)
        except Exception as error:  # noqa: BLE001 - an answer from passages needs no documents
            self._source = error

    @property
    def source(self) -> Any:
        """The documents; raises the error that forbids reading them."""
        if isinstance(self._source, Exception):
            raise self._source
        return self._source

    def _child(self, name: str, tag: str | None = None) -> RunnableConfig:
        """Return the config of a child run; LangChain merges it with the context's, so it holds only differences."""
        manager = self.manager.get_child()
        if tag:
            manager.add_tags([tag])  # inherited: the model may be within a retry or a fallback
        return {**self.config, "callbacks": manager, "run_name": name}

    @override
    def choose(self, start: Any) -> Any:
        return call(start, dict(self.inputs), self._child("start"), name="start")

    @override
    async def achoose(self, start: Any) -> Any:
        return await acall(start, dict(self.inputs), self._child("start"))

    @override
    def retrieve(self) -> Sequence[Document]:
        return self._kept(self.retriever.invoke(*self._retrieving()))

    @override
    async def aretrieve(self) -> Sequence[Document]:
        return self._kept(await self.retriever.ainvoke(*self._retrieving()))

    def _retrieving(self) -> tuple[Any, RunnableConfig]:
        """Return the input and the config of the retriever.

        Its config has a listener to what is found, if the retriever may drop some of it for any reason.
        """
        config = self._child("retrieve")
        if isinstance(self._source, StoredDocuments) and self._source.view.doubted:
            self._found = FoundHeard(self._source)
            cast("BaseCallbackManager", config["callbacks"]).add_handler(self._found)
        return (self.question if _takes_string(self.retriever) else dict(self.inputs)), config

    def _kept(self, found: Any) -> Sequence[Document]:
        """Return the passages, and note which of those found were dropped."""
        passages = convert.retrieved_of(found)
        if self._found:
            self._found.dropped.note_left(passages)
        return passages

    @override
    def read(self, passages: Sequence[Document]) -> Sequence[Document]:
        source = self.source
        if isinstance(source, list):
            return source
        return self._visible(call(source, *self._reading(passages), name="documents"), passages)

    @override
    async def aread(self, passages: Sequence[Document]) -> Sequence[Document]:
        source = self.source
        if isinstance(source, list):
            return source
        return self._visible(await acall(source, *self._reading(passages)), passages)

    def _visible(self, found: Any, passages: Sequence[Document]) -> Sequence[Document]:
        """Return the documents that the retriever's filter lets through; passages say what these leave out."""
        documents = convert.documents_of(found, "documents")
        if self._test is None:
            return documents
        return visible(
            documents,
            passages,
            partial(_meets, self._test),
            source_of=self.source_of,
            metadata_of=attrgetter("metadata"),
            source_key=source_key_of(self.parts.documents),
        )

    def _reading(self, passages: Sequence[Document]) -> tuple[dict[str, Any], RunnableConfig]:
        """Return the input and the config of `documents`; a policy may read them before their step."""
        run = self._run
        config = {**self.config, "callbacks": run.get_child()} if run else self._child("read_documents")
        return {**self.inputs, "retrieved": list(passages)}, config

    @contextmanager
    @override
    def reading(self, effect: ReadDocuments) -> Iterator[list[Document]]:
        """Read within a run that records no text."""
        run = self.manager.get_child().on_chain_start(
            None, inputs_of_reading(self.question, effect), name="read_documents"
        )
        self._run, read = run, list[Document]()
        try:
            yield read
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(outputs_of_reading(read, self.source_of))

    @asynccontextmanager
    @override
    async def areading(self, effect: ReadDocuments) -> AsyncIterator[list[Document]]:
        run = await self.manager.get_child().on_chain_start(
            None, inputs_of_reading(self.question, effect), name="read_documents"
        )
        self._run, read = run, list[Document]()
        try:
            yield read
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(outputs_of_reading(read, self.source_of))

    @override
    def prompt(self, step: Route, context: Sequence[Document]) -> FilledPrompt:
        text = context_of(context, self.parts.document_prompt, whole=step != "rag", name_of=self.source_of)
        words = {**self.inputs, **self.settings.words, "context": sendable(text)}
        schema = length_of(self.settings.form_of(step), pydantic) if self.settings.structured else 0
        return FilledPrompt(prompting.filled_in(self.parts.prompts[step], words, self.config), words, schema=schema)

    @override
    def ask(self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None) -> str | Iterator[Any]:
        filled, self._heard = cast("FilledPrompt", prompt), TooLongHeard()
        if filled.value is None:
            filled.value = prompting.formatted(*self._formatting(step, filled))
        model, value, config, options = self._asked(step, filled, cache)
        if self._streams(model, config, options, awaited=False):
            return model.stream(value, config, **options)
        return self._text_of_reply(step, model.invoke(value, config, **options), cast("MessageTally", tally))

    @override
    async def aask(
        self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
    ) -> str | AsyncIterator[Any]:
        filled, self._heard = cast("FilledPrompt", prompt), TooLongHeard()
        if filled.value is None:
            filled.value = await prompting.aformatted(*self._formatting(step, filled))
        model, value, config, options = self._asked(step, filled, cache)
        if self._streams(model, config, options, awaited=True):
            return model.astream(value, config, **options)
        return self._text_of_reply(step, await model.ainvoke(value, config, **options), cast("MessageTally", tally))

    def _formatting(self, step: Route, prompt: FilledPrompt) -> tuple[Runnable[Any, Any], Any, RunnableConfig]:
        return self.parts.prompts[step], prompt.words, self._child(f"{step}_prompt")

    def _asked(self, step: Route, prompt: FilledPrompt, cache: ProviderCache | None) -> _Asked:
        own = model = self.parts.models[step]
        if self.settings.structured:
            model = structured.asking("llm", model, self.config, form=self.settings.form_of(step))
        config = self._child(step, f"selfroute:{step}")
        if has_fallbacks(own, self.config):
            cast("BaseCallbackManager", config["callbacks"]).add_handler(self._heard)
        prefix = prompt.prefix(self.question) if cache and cache.ttl else None
        value = prompt.value if cache is None or prefix is None else prompting.marked(prompt.value, prefix, cache)
        return model, value, config, self.kwargs

    def _streams(
        self, model: Runnable[Any, Any], config: RunnableConfig, options: Mapping[str, Any], *, awaited: bool
    ) -> bool:
        """Return whether to read a stream, which can be hung up on, also where the answer is wanted whole."""
        if self.streaming or self.settings.structured:
            return self.streaming
        return models.streams_whole(model, config, options, awaited=awaited)

    def _text_of_reply(self, step: Route, reply: Any, tally: MessageTally) -> str:
        if self.settings.structured:
            form = self.settings.form_of(step)
            return structured.text_of(reply, tally, refusal=self.settings.refusal, form=form)
        return tally.add(reply)

    @override
    def announce(self, decided: Decided) -> None:
        """Send the custom event `selfroute_decision`."""
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            dispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})

    @override
    async def aannounce(self, decided: Decided) -> None:
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            await adispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})

    @override
    def text_of(self, document: Document) -> str:
        return document.page_content

    @override
    def with_text(self, document: Document, text: str, /, **label: Any) -> Document:
        return convert.labelled(document, text, **label)

    @override
    def source_of(self, document: Document) -> Any:
        return document.metadata.get(source_key_of(self.parts.documents))

    @override
    def asking(self, question: str) -> Self:
        other = super().asking(question)
        other.inputs = {**self.inputs, "input": question}
        return other

    @override
    def headings_of(self, passage: Document) -> Sequence[str]:
        shown = self.parts.document_prompt.input_variables if self.parts.document_prompt else ()
        return headings_of(without_keys(passage.metadata, {*shown}) if shown else passage.metadata)

    @override
    def place_of(self, passage: Document) -> Place:
        return Place(passage.metadata.get("start_index"), passage.metadata)

    @override
    def window(self, step: Route) -> int | None:
        return models.window_of(self.parts.models[step], self.config)

    @override
    def name_of(self, step: Route) -> PricedModel:
        model = self.parts.models[step]
        if self.kwargs or self.config.get("configurable"):  # these may select another model for each call
            return models.name_of(model, self.config, self.kwargs)
        return self.parts.memory.names.of(step, model)

    @override
    def account(self, step: Route) -> Hashable:
        inside, _ = models.inside_of(self.parts.models[step], self.config)
        return account_of(inside)

    @override
    def takes_marks(self, step: Route) -> bool:
        return prompting.takes_marks(self.parts.models[step], self.config, self.kwargs)

    @override
    def too_long(self, error: Exception) -> Exception | None:
        return error if is_too_long(error) else self._heard.error

    @override
    def log_missing_usage(self, step: Route) -> None:
        models.log_missing_usage(self.parts.models[step], self.config, self.parts.memory.said)


def source_key_of(documents: Any) -> str:
    """Return the key of the metadata that names a document."""
    return documents.source_key if isinstance(documents, StoredDocuments) else "source"


def _caller_in(config: RunnableConfig) -> Hashable:
    """Return what differs between users and conversations: the plain values of what is configured, and its objects."""
    configurable = config.get("configurable")
    if not configurable:
        return None
    return frozenset(
        (key, value if isinstance(value, str | int | float | None) else id(value))
        for key, value in configurable.items()
        if not key.startswith(("__", "checkpoint"))  # LangGraph's own differ between its nodes
    )


def _meets(test: Test, document: Document, metadata: Mapping[str, Any]) -> bool:
    return test(StoredChunk(document.id or "", document.page_content, metadata))


def _takes_string(retriever: Runnable[Any, Any]) -> bool:
    """Return whether a retriever takes the question as a string; other runnables get all inputs."""
    if isinstance(retriever, BaseRetriever):
        return True
    try:
        return retriever.InputType in (str, "str")  # a name, if annotations are postponed
    except (TypeError, AttributeError):  # the runnable does not declare its input
        return False
