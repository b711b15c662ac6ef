"""Retrieve for one call of a chain, and read the documents behind the passages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import Self, override

from langchain_selfroute import convert
from langchain_selfroute.convert import acall, call, inputs_of, inputs_of_reading, outputs_of_reading, unnamed
from langchain_selfroute.prompts import filling
from langchain_selfroute.stored.fixing import fixed
from langchain_selfroute.stored.kinds import filter_test
from langchain_selfroute.stored.reading import FoundHeard, StoredDocuments
from selfroute.calls.host import Host, Parts, Place
from selfroute.documents.access import StoredChunk, visible
from selfroute.documents.chunks import headings_of, without_keys
from selfroute.effects import ReadDocuments
from selfroute.stores.listing import Test

Manager: TypeAlias = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChainParts(Parts[Runnable[Any, Any], Runnable[Any, Any]]):
    """The parts of a chain.

    Attributes:
        retriever: Finds the passages.
    """

    retriever: Runnable[Any, Any]


class RetrievingHost(Host[Document]):
    """What LangChain retrieves and reads for one call of a chain."""

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
        self.parts, self.plan, self.kwargs = parts, parts.plan, dict(kwargs)
        self.streaming = streaming and not parts.plan.structured
        self.manager: Any = manager
        self.config = unnamed(config) if config else RunnableConfig()
        self.inputs = inputs_of(given)
        self.caller = _caller_in(self.config)
        self.question = self.inputs["input"]
        if len(self.inputs) > 1:
            filling.check_messages(parts.prompts.values(), self.inputs)
        self.one_model = parts.one_model
        self.retriever = parts.retriever
        self._source: Any = parts.documents  # or the error that forbids reading them
        self._found: FoundHeard | None = None  # within a retriever that we do not know
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
