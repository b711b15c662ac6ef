"""The `SelfRouteChain`: its configuration and its entry points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks.manager import CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self, Unpack, override

from langchain_selfroute import arguments, prompting, runs, structured
from langchain_selfroute.bound import ChainMethods
from langchain_selfroute.convert import Source
from langchain_selfroute.host import ChainParts, LangChainHost, Manager, source_key_of
from langchain_selfroute.models import certain_name_of, name_of
from langchain_selfroute.runs import ChainCall, Running, awhole, entry_recorder, recorded_findings, whole
from langchain_selfroute.schema import (
    ChainFields,
    SelfRouteInput,
    SelfRouteOutput,
    Uncited,
    graph_of,
    tool_fields,
)
from langchain_selfroute.stored.reading import StoredDocuments, documents_behind
from langchain_selfroute.stored.stores import Fetch
from selfroute import prompts
from selfroute.calls.call import Call
from selfroute.calls.memory import Memory
from selfroute.calls.plan import Plan, reach_of
from selfroute.calls.settings import DEFAULTS, Settings
from selfroute.copies import uncopied
from selfroute.describing import lists_fields
from selfroute.effects import Route
from selfroute.usage import prices
from selfroute.usage.prices import is_one_model

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool  # takes long to import

    from selfroute.checking import Findings

_NO_OPTIONS: Mapping[str, Any] = {}


@lru_cache(maxsize=64)
def _prompt(template: str, instructions: str | None = None) -> ChatPromptTemplate:
    template = template.replace("{question}", "{input}")
    if instructions is None:
        return ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", template)])
    prompt = ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", prompts.INSTRUCTIONS + template)])
    return prompt.partial(instructions=instructions)


_DEFAULTS = _prompt(prompts.RAG), _prompt(prompts.LONG_CONTEXT)


def _is_own(prompt: Any, default: Any) -> bool:
    return bool(getattr(prompt, "messages", None) != default.messages)  # copies of templates differ


def _copied(prompt: ChatPromptTemplate) -> ChatPromptTemplate:
    """Copy what a user may change in place; a deep copy of two prompts takes longer than two questions."""
    history, human = prompt.messages
    own = human.model_copy(update={"prompt": human.prompt.model_copy()})  # type: ignore[union-attr]
    return prompt.model_copy(update={"messages": [history.model_copy(), own]})


@lists_fields("retriever", "llm", "documents", name="The name of its runs, in traces.")
class SelfRouteChain(ChainMethods, Settings, RunnableSerializable[str | Mapping[str, Any], SelfRouteOutput]):
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
    `vectorstore.as_retriever()`: then it is `StoredDocuments(vectorstore)`."""

    long_context_llm: Runnable[Any, Any] | None = None
    """The model of the last step; `llm` if None."""

    rag_prompt: Runnable[Any, Any] = Field(default_factory=partial(_copied, _DEFAULTS[0]))
    """The prompt of the first step, with the variables `context` and `input`, and optionally `chat_history` and
    `refusal`: a template, a configurable one, or a runnable that takes them and returns a prompt."""

    long_context_prompt: Runnable[Any, Any] = Field(default_factory=partial(_copied, _DEFAULTS[1]))
    """The prompt of the last step, with the same variables."""

    document_prompt: BasePromptTemplate | None = None  # type: ignore[type-arg]
    """Formats each passage and document in the context. If None, the context is their text; if there are several
    documents, each is preceded by its number and its `title` or source."""

    model_config = Settings.model_config  # LangChain's would ignore unknown options

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
    def _check_together(self) -> Self:
        plan, models = self._plan(), self._models  # which checks the options together, too
        if plan.answerability == "graded" and not self._has_default_rag_prompt:
            prompting.check_numbers("rag_prompt", self.rag_prompt)
        self._prompts(plan)
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

    @property
    @override
    def InputType(self) -> Any:
        # Only the dict: `as_tool` accepts no schema of a union.
        return SelfRouteInput

    @property
    @override
    def OutputType(self) -> Any:
        return SelfRouteOutput if self.citations else Uncited

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        models, supplied = (self.llm, self.long_context_llm), (self.documents, self.start)
        parts = (self.retriever, *models, *supplied, self.rag_prompt, self.long_context_prompt)
        return get_unique_config_specs(
            spec for part in parts if isinstance(part, Runnable) for spec in part.config_specs
        )

    @override
    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        start, end = self.get_input_schema(config), self.get_output_schema(config)
        source = self.documents if isinstance(self.documents, Runnable) else self.retriever
        ladder = self._plan().ladder("long_context" if self.start == "long_context" else "rag")
        steps: dict[str, Runnable[Any, Any]] = {"retrieve": self.retriever}
        for step in ladder:
            if step != "rag":
                steps.setdefault("read_documents", source)
            steps[step] = self._models[step]
        return graph_of(steps, start=start, end=end, chooses=self.start not in ("rag", "long_context"))

    @override
    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool that gives an agent `answer`, `route`, `answerable` and `sources`, the names of what was read.

        With `citations=True` it also gives the citations. The artifact of its message has all keys of the result, but
        not the text of whole documents.
        """
        from langchain_core.tools import convert_runnable_to_tool  # noqa: PLC0415 - it takes long

        tool = convert_runnable_to_tool(self, args_schema, name=name, description=description, arg_types=arg_types)
        return tool.model_copy(update=tool_fields(self, source_key_of(self.documents)))

    @override
    def get_prompts(self, config: RunnableConfig | None = None) -> list[BasePromptTemplate[Any]]:
        of_step = self._prompts(self._plan())
        own = (self.rag_prompt, self.long_context_prompt)
        shown = [one if one in own else _copied(one) for one in (of_step["rag"], of_step["long_context"])]  # type: ignore[arg-type]
        return [found for prompt in shown for found in prompt.get_prompts(config)]

    @cached_property
    def _memory(self) -> Memory:
        """What this chain keeps from one call to the next. The constructor makes it, so shallow copies share it."""
        return Memory(name_of)

    @property
    def _models(self) -> dict[Route, Runnable[Any, Any]]:
        return {"rag": self.llm, "sections": self.llm, "long_context": self.long_context_llm or self.llm}

    def _plan(self) -> Plan:
        return self._memory.plan(vars(self), self._asks_for_numbers)

    @property
    def _has_default_rag_prompt(self) -> bool:
        return not _is_own(self.rag_prompt, _DEFAULTS[0])

    def _asks_for_numbers(self) -> bool:
        return not _is_own(self.rag_prompt, _DEFAULTS[0]) or prompting.check_numbers("rag_prompt", self.rag_prompt)

    def _prompts(self, plan: Plan) -> dict[Route, Runnable[Any, Any]]:
        return plan.prompts((self.rag_prompt, self.long_context_prompt), _DEFAULTS, is_own=_is_own, default=_prompt)

    def _parts(self) -> ChainParts:
        """Return the parts that a call works with, as the chain is configured now."""
        plan = self._plan()
        return ChainParts(
            retriever=self.retriever,
            models=self._models,
            prompts=self._prompts(plan),
            documents=self.documents,
            document_prompt=self.document_prompt,
            settings=plan,
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
        return Call(host, parts.settings, memory=parts.memory, record=entry_recorder(manager.handlers))

    @override
    def invoke(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfRouteOutput:
        """Answer a question; `kwargs` are passed to the models of both steps."""
        with Running(self.get_name(), input, config) as run:
            call = self._call(input, run.manager, run.config, kwargs)
            return cast("SelfRouteOutput", run.end(run.perform(whole, call)))

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
        """Answer a question in chunks that add up to the output of `invoke`; closing the stream stops the model.

        With `answerability="structured"` the answer comes in one piece.
        """
        make = partial(self._call, input, config=config, kwargs=kwargs, streaming=True)
        return runs.stream(self, input, config, make, kwargs)

    @override
    def astream(
        self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfRouteOutput]:
        """The async twin of `stream`."""
        make = partial(self._call, input, config=config, kwargs=kwargs, streaming=True)
        return runs.astream(self, input, config, make, kwargs)

    @override
    def warm_up(self, config: RunnableConfig | None = None) -> None:
        """Do once what would otherwise hold up the first question, for a tenth of a second; `check` does so, too.

        A service calls this when it starts. Nothing is retrieved, and no model is asked.
        """
        get_callback_manager_for_config(ensure_config())  # LangChain loads its tracers
        manager = CallbackManagerForChainRun.get_noop_manager()
        self._call(prompts.CHECK_QUESTION, manager, config).warm_up()

    @override
    def check(
        self, question: str | Mapping[str, Any] = prompts.CHECK_QUESTION, config: RunnableConfig | None = None
    ) -> Findings:
        """Try the parts of this chain on one question, without asking a model.

        This retrieves for the question, and reads the documents behind the passages, as a call with this config would
        after a decline. So it costs what retrieving costs: an embedding, and whatever your own retriever asks a model.

        Args:
            question: The question, or all inputs; by default one that may find anything.
            config: The config, as for `invoke`.

        Returns:
            A finding for each of `source`, `wall`, `document`, `window`, `prices` and `prompt`, which says what to do.
            Print them. Anything that fails on the way is a finding, too.

        Raises:
            InputError: The question is blank.
        """
        from selfroute import checking  # noqa: PLC0415 - only where it is used

        with Running("check", question, config) as run:
            call = self._call(question, run.manager, run.config)
            return run.end(run.perform(checking.check, call), recorded_findings)

    @override
    async def acheck(
        self, question: str | Mapping[str, Any] = prompts.CHECK_QUESTION, config: RunnableConfig | None = None
    ) -> Findings:
        """The async twin of `check`."""
        from selfroute import checking  # noqa: PLC0415

        async with Running("check", question, config) as run:
            call = self._call(question, run.manager, run.config)
            return await run.aend(await run.aperform(checking.acheck(call)), recorded_findings)
