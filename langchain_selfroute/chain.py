"""The `SelfRouteChain`: its configuration and its entry points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, cast

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import ensure_config
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self, Unpack, override

from langchain_selfroute import arguments, runs
from langchain_selfroute.bound import ChainMethods
from langchain_selfroute.convert import Source
from langchain_selfroute.host import LangChainHost
from langchain_selfroute.models import structured
from langchain_selfroute.models.clients import certain_name_of, name_of
from langchain_selfroute.prompts import filling
from langchain_selfroute.prompts.defaults import DEFAULTS as DEFAULT_PROMPTS
from langchain_selfroute.prompts.defaults import copied
from langchain_selfroute.retrieving import ChainParts, Manager
from langchain_selfroute.running import Running
from langchain_selfroute.runs import ChainCall, awhole, entry_recorder, whole
from langchain_selfroute.schema import ChainFields, SelfRouteOutput
from langchain_selfroute.shape import ChainShape
from langchain_selfroute.stored.reading import StoredDocuments, documents_behind
from langchain_selfroute.stored.stores import Fetch
from selfroute.calls.call import Call
from selfroute.calls.configured import Configured, DefaultPrompts
from selfroute.calls.memory import Memory
from selfroute.calls.plan import reach_of
from selfroute.calls.settings import DEFAULTS, Settings
from selfroute.copies import uncopied
from selfroute.describing import lists_fields
from selfroute.usage import prices
from selfroute.usage.prices import is_one_model

_NO_OPTIONS: Mapping[str, Any] = {}


@lists_fields("retriever", "llm", "documents", name="The name of its runs, in traces.")
class SelfRouteChain(
    Configured, ChainMethods, ChainShape, Settings, RunnableSerializable[str | Mapping[str, Any], SelfRouteOutput]
):
    r"""Answer from the retrieved passages; read more only when the model declines or is not sure.

    A drop-in replacement for `create_retrieval_chain`. In the first step the model answers from the passages, and says
    how sure it is. If it declines or is not sure, it is asked again with the sections of the documents that matter to
    the question, and then with the best two documents whole: section 4.2 of Li et al. (2024), with sections in between.
    `selfroute.PAPER` holds the options of the paper's own rule. `SelfRouteOutput` describes what a call returns.

    You set `retriever`, `llm` and, unless the retriever says it, `documents`; `from_vectorstore` makes two of them. The
    rest may stay as it is; the options after those are the ones that people set.

    Example:
        ```python
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_selfroute import SelfRouteChain

        chunks = ["Tea was served at nine. ", "Ms Okafor chaired the meeting."]
        about = [{"source": "minutes", "chunk_index": number} for number in range(2)]
        store = InMemoryVectorStore.from_texts(chunks, DeterministicFakeEmbedding(size=8), about)
        llm = FakeListChatModel(responses=["90 0\nunanswerable", "Ms Okafor"])
        chain = SelfRouteChain.from_vectorstore(store, llm, k=1)
        result = chain.invoke("Who chaired the meeting?")
        assert (result["answer"], result["route"]) == ("Ms Okafor", "long_context")
        ```

    Raises:
        ConfigurationError: The parts cannot work together (raised by the constructor; a `ValueError`).
        ValidationError: A field is unknown or of the wrong type (raised by the constructor; pydantic's own).
        InputError: The input of a call is not a question, or is blank. Nothing is retrieved, and no model is asked.
        ReplyError: The retriever, the documents or the model returned something of the wrong type.
        NoReplyError: A step ended without a reply: it was filtered, refused, cut off, or a tool call.
    """

    retriever: Runnable[Any, Any]
    """A retriever, or any runnable that returns documents. It gets the question if its `InputType` is `str`, and
    all inputs otherwise."""

    llm: Runnable[Any, Any]
    """A chat model, or a runnable around one that returns a message or a string. Pass the model itself rather than
    `model | parser`; otherwise closing a sync stream does not stop it."""

    documents: Source = Field(default=None, repr=False, exclude=True)  # type: ignore[assignment] # filled in below
    """Where the whole documents come from: `StoredDocuments`, which reads those behind the passages from the vector
    store; a list, which is read in order; or a runnable or callable (sync or async) that takes `{**inputs,
    "retrieved": [...]}` and returns a list of Documents. It may be left out if the retriever is
    `vectorstore.as_retriever()`, or LangChain's own wrapper around such: then it is `StoredDocuments(vectorstore)`."""

    long_context_llm: Runnable[Any, Any] | None = None
    """The model of the last step; `llm` if None."""

    rag_prompt: Runnable[Any, Any] = Field(default_factory=partial(copied, DEFAULT_PROMPTS.first))
    """The prompt of the first step, with the variables `context` and `input`, and optionally `chat_history` and
    `refusal`: a template, a configurable one, or a runnable that takes them and returns a prompt."""

    long_context_prompt: Runnable[Any, Any] = Field(default_factory=partial(copied, DEFAULT_PROMPTS.last))
    """The prompt of the last step, with the same variables."""

    document_prompt: BasePromptTemplate | None = None  # type: ignore[type-arg]
    """Formats each passage and document in the context. If None, the context is their text; if there are several
    documents, each is preceded by its number and its `title` or source."""

    model_config = Settings.model_config  # LangChain's would ignore unknown options
    _defaults: ClassVar[DefaultPrompts[Any]] = DEFAULT_PROMPTS
    _check_numbers = staticmethod(filling.check_numbers)

    @classmethod
    @override
    def _refuse_missing(cls, name: str) -> None:
        arguments.refuse_missing(name)

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        try:
            return super().__deepcopy__(memo)
        except TypeError as error:
            raise uncopied(self, error) from error

    @model_validator(mode="before")
    @classmethod
    def _fill_in_documents(cls, fields: Any) -> Any:
        given = isinstance(fields, dict) and fields.get("documents") is None
        retriever = fields.get("retriever") if given else None
        return {**fields, "documents": documents_behind(retriever)} if isinstance(retriever, Runnable) else fields

    @field_validator("documents", mode="plain")
    @classmethod
    def _check_documents(cls, value: Any) -> Any:
        return arguments.checked("documents", value)

    @field_validator(*(arguments.PARTS.keys() - {"documents"}), mode="before")
    @classmethod
    def _check_field(cls, value: Any, info: ValidationInfo) -> Any:
        return arguments.checked(str(info.field_name), value)

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        plan, models = self._check_prompts(), self._models
        if isinstance(self.documents, StoredDocuments):
            self.documents.limited_to(self.retriever, {})
        prices.load_price_lists()
        plan.check_prices(lambda step: certain_name_of(models[step]), shared=is_one_model(models))
        if plan.structured:
            structured.asking("llm", self.llm)
            structured.asking("long_context_llm", models["long_context"])
        return self

    @classmethod
    def from_vectorstore(  # noqa: PLR0913 - the arguments of the contract
        cls,
        vectorstore: VectorStore,
        llm: Runnable[Any, Any],
        *,
        k: int = 5,
        reach: int | None = None,
        source_key: str = "source",
        order_key: str | None = None,
        filter: Any = None,  # noqa: A002 - the stores' name for it
        docstore: BaseStore[str, Document] | None = None,
        fetch: Fetch | None = None,
        **fields: Unpack[ChainFields],
    ) -> Self:
        """Build a chain on a vector store: retrieve its chunks, and rebuild whole documents from them when needed.

        Example:
            ```python
            chain = SelfRouteChain.from_vectorstore(vectorstore, ChatOpenAI(model="gpt-5-mini"))
            ```

        Args:
            vectorstore: The store that holds the chunks.
            llm: The model that answers: a chat model, or a runnable around one.
            k: The number of passages that the draft reads.
            reach: The number of passages to retrieve. All of them say which documents may hold the answer. None means
                20 with `sections`, else `k`.
            source_key: The key of the metadata that names a chunk's document.
            order_key: The key of the metadata that numbers its chunks, as in `StoredDocuments`.
            filter: Limits both the retriever and the documents, in the form that the store itself takes.
            docstore: Holds original documents, as in `StoredDocuments`.
            fetch: Lists the chunks of a document, as in `StoredDocuments`.
            **fields: The options of the chain, such as `answerability`, `sections`, `citations`, `escalation`.

        Raises:
            ConfigurationError: The parts cannot work together.
        """
        arguments.check_store(vectorstore, searched=True)
        stored = StoredDocuments(
            vectorstore, source_key=source_key, order_key=order_key, filter=filter, docstore=docstore, fetch=fetch
        )
        found = reach_of(k, reach, sections=fields.get("sections", DEFAULTS.sections))
        retriever = vectorstore.as_retriever(search_kwargs=stored.search_kwargs(found))
        if found != k:
            fields.setdefault("draft_passages", k)
        return cls(retriever=retriever, llm=llm, documents=stored, **fields)

    @cached_property
    def _memory(self) -> Memory:
        """What this chain keeps from one call to the next. The constructor makes it, so shallow copies share it."""
        return Memory(name_of)

    def _parts(self) -> ChainParts:
        """Return the parts that a call works with, as the chain is configured now."""
        plan = self._plan()
        return ChainParts(
            retriever=self.retriever,
            models=self._models,
            prompts=self._prompts(plan),
            documents=self.documents,
            document_prompt=self.document_prompt,
            plan=plan,
            memory=self._memory,
        )

    def _call(
        self,
        given: Any,
        manager: Manager,
        config: RunnableConfig | None,
        kwargs: Mapping[str, Any] = _NO_OPTIONS,
        *,
        streaming: bool = False,
    ) -> ChainCall:
        """Return the call that answers a question, with the chain's configuration at this time.

        Args:
            given: The input.
            manager: Manages the callbacks of its run.
            config: The config of the call.
            kwargs: Passed to the models.
            streaming: Whether the answer comes in pieces.
        """
        parts = self._parts()
        host = LangChainHost(parts, given, manager=manager, config=config, kwargs=kwargs, streaming=streaming)
        return Call(host, parts.plan, memory=parts.memory, record=entry_recorder(manager.handlers))

    @override
    def invoke(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfRouteOutput:
        """Answer a question; `kwargs` are passed to the models of both steps."""
        with Running(self.get_name(), input, config) as run:
            call = self._call(input, run.manager, run.config, kwargs)
            return cast("SelfRouteOutput", run.end(run.perform(lambda: whole(call))))

    @override
    async def ainvoke(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfRouteOutput:
        """The async twin of `invoke`."""
        async with Running(self.get_name(), input, config) as run:
            call = self._call(input, run.manager, run.config, kwargs)
            return cast("SelfRouteOutput", await run.aend(await run.aperform(awhole(call))))

    @override
    def stream(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfRouteOutput]:
        """Answer a question in chunks that add up to the output of `invoke`; closing the stream stops the model."""
        make = partial(self._call, input, config=ensure_config(config), kwargs=kwargs, streaming=True)
        return runs.stream(self, input, config, make, kwargs)

    @override
    def astream(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfRouteOutput]:
        """The async twin of `stream`."""
        make = partial(self._call, input, config=ensure_config(config), kwargs=kwargs, streaming=True)
        return runs.astream(self, input, config, make, kwargs)
