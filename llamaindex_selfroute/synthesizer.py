"""`SelfRouteSynthesizer`: its configuration and its entry points."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from copy import copy
from typing import Any, TypedDict

from llama_index.core import Settings as HostSettings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from typing_extensions import Self, override

from llamaindex_selfroute import models, responses
from llamaindex_selfroute.convert import checked_model, checked_prompt
from llamaindex_selfroute.documents import Source, checked_documents
from llamaindex_selfroute.events import send
from llamaindex_selfroute.parts import Parts
from llamaindex_selfroute.steps import Steps
from llamaindex_selfroute.stored.reading import StoredDocuments
from selfroute import prompts
from selfroute.answerability.structured import Answerability
from selfroute.errors import ConfigurationError
from selfroute.settings import SETTINGS, MeasureSavings, Settings, checked
from selfroute.usage import prices
from selfroute.usage.prices import ModelNames
from selfroute.usage.savings import LongContextEstimate

dispatcher = get_dispatcher(__name__)


class SynthesizerFields(TypedDict, total=False):
    """More keyword arguments of `SelfRouteSynthesizer`; see there."""

    long_context_llm: LLM | None
    rag_prompt: BasePromptTemplate | None
    long_context_prompt: BasePromptTemplate | None
    document_prompt: BasePromptTemplate | None
    refusal: str
    answerability: Answerability
    max_context_tokens: int | None
    token_counter: Callable[[str], int] | None
    measure_savings: MeasureSavings
    priced_as: str | None
    long_context_priced_as: str | None
    streaming: bool


def _prompt(template: str) -> PromptTemplate:
    return PromptTemplate(template.replace("{context}", "{context_str}").replace("{question}", "{query_str}"))


class SelfRouteSynthesizer(BaseSynthesizer):
    """Answer from the retrieved nodes; read whole documents only when the model declines.

    A response synthesizer that follows section 4.2 of Li et al. (2024): the model answers from the nodes or writes
    the refusal word; only then is it given the documents, whole and in one call.

    A response's `metadata` holds `route` (`"rag"` or `"long_context"`), `answerable` (False if every step declined),
    `decision` (`declined`, `signal`, `evidence`), `usage` (tokens of both steps) and `retrieved` (ids of the retrieved
    nodes), its `source_nodes` what the answer was read from. A sync stream knows route and sources when it is
    returned, an awaited one with its first text; `usage` is complete at the end of a stream.

    A reader who closes a stream (`response.response_gen`, or `async_response_gen()`) stops the model, and so does a
    draft that goes on after it declined: awaited or not, for OpenAI-like models and Gemini.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteSynthesizer

        minutes = Document(text="Ms Okafor chaired the meeting. ...")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        llm = MockLLM(max_tokens=3)
        synthesizer = SelfRouteSynthesizer(documents=[minutes], llm=llm)
        engine = index.as_query_engine(response_synthesizer=synthesizer, llm=llm)
        assert engine.query("Who chaired the meeting?").metadata["route"] == "rag"
        ```
    """

    def __init__(  # noqa: PLR0913 - the fields of the contract
        self,
        *,
        documents: Source | None = None,
        llm: LLM | None = None,
        long_context_llm: LLM | None = None,
        rag_prompt: BasePromptTemplate | None = None,
        long_context_prompt: BasePromptTemplate | None = None,
        document_prompt: BasePromptTemplate | None = None,
        refusal: str = "unanswerable",
        answerability: Answerability = "text",
        max_context_tokens: int | None = None,
        token_counter: Callable[[str], int] | None = None,
        measure_savings: MeasureSavings = True,
        priced_as: str | None = None,
        long_context_priced_as: str | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Configure.

        Args:
            documents: The whole documents: `StoredDocuments`, which finds those that were hit in the index; a list,
                read in order; or a callable, sync or async, that is given `(nodes, query_bundle)` and returns them,
                best first.
            llm: The model, chat or completion; `Settings.llm` if None.
            long_context_llm: The model of the second step; `llm` if None.
            rag_prompt: Prompt of the first step, over `context_str`, `query_str` and optionally `refusal`.
            long_context_prompt: Prompt of the second step, likewise.
            document_prompt: Formats each node and document in the context, over `content`, `metadata_str` and the
                keys of its metadata. None: as the node itself shows to a model, and where several documents are read,
                above each its number and its id.
            refusal: The word by which the model declines.
            answerability: How the model tells whether it can answer: `"text"`, it writes the answer or the refusal, as
                in the paper; or `"structured"`, it fills `answerable` and `answer` in, through its own format of
                replies or as a call of a function; a model that has neither is given the schema in words. Structured
                replies do not stream: each step's comes in one piece.
            max_context_tokens: Bounds the text of the documents in the second step. None: what the model's
                `metadata.context_window` says that it takes, less some room for prompt and answer; no bound where
                that is LlamaIndex's default.
            token_counter: Counts the tokens of a text; a quarter of its characters if None.
            measure_savings: Whether `usage` tells what always reading the documents would have taken. A stored document
                that was not read yet is counted in the background for it, once.
            priced_as: `provider:name` of the model, for the prices, where it can not be found from the model itself.
            long_context_priced_as: The same for `long_context_llm`.
            streaming: Whether to answer in pieces; a structured reply is one.
            callback_manager: Set on both models too.

        Raises:
            ConfigurationError: The parts can not work together (a `ValueError`).
        """
        llm = llm or HostSettings.llm
        self._long_context_llm = long_context_llm or llm
        checked_model("llm", llm)
        checked_model("long_context_llm", self._long_context_llm)
        super().__init__(llm=llm, callback_manager=callback_manager, streaming=streaming)
        if callback_manager:
            self._long_context_llm.callback_manager = callback_manager
        self.documents = checked_documents(documents)
        self._source: Source | None = None  # the documents, as one retriever may see them
        self.document_prompt = document_prompt and checked_prompt(
            "document_prompt", document_prompt, variables={"content"}
        )
        self.refusal = checked("refusal", refusal)
        self.answerability: Answerability = checked("answerability", answerability)
        self.max_context_tokens: int | None = checked("max_context_tokens", max_context_tokens)
        self.token_counter: Callable[[str], int] | None = checked("token_counter", token_counter)
        self.measure_savings: MeasureSavings = checked("measure_savings", measure_savings)
        self.priced_as: str | None = checked("priced_as", priced_as)
        self.long_context_priced_as: str | None = checked("long_context_priced_as", long_context_priced_as)
        self.estimate, self.names = LongContextEstimate(), ModelNames(models.name_of)
        prices.load_price_lists()
        self._prompts: dict[str, BasePromptTemplate] = {
            "rag_prompt": checked_prompt("rag_prompt", rag_prompt or _prompt(prompts.RAG)),
            "long_context_prompt": checked_prompt(
                "long_context_prompt", long_context_prompt or _prompt(prompts.LONG_CONTEXT)
            ),
        }

    def behind(self, retriever: BaseRetriever | None, postprocessors: Sequence[BaseNodePostprocessor] = ()) -> Self:
        """The same for an engine with this retriever, whose filters hold for `StoredDocuments`, too.

        Args:
            retriever: The retriever; None if something else chooses the nodes as well.
            postprocessors: What its nodes go through.
        """
        documents = self.documents
        # A subclass that is called in a way of its own may hide documents.
        if not isinstance(documents, StoredDocuments) or type(documents).__call__ is not StoredDocuments.__call__:
            return self
        synthesizer = copy(self)
        synthesizer._source = documents.behind(retriever, postprocessors) if retriever else None  # noqa: SLF001
        return synthesizer

    @property
    def llm(self) -> LLM:
        """The model of the first step."""
        return self._llm

    @property
    def callback_manager(self) -> CallbackManager:
        """The callback manager; setting it sets it on both models."""
        return self._callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        self._callback_manager = callback_manager
        self._llm.callback_manager = callback_manager
        self._long_context_llm.callback_manager = callback_manager

    def _parts(self) -> Parts:
        return Parts(
            models={"rag": self._llm, "long_context": self._long_context_llm},
            prompts={
                "rag": self._prompts["rag_prompt"],
                "long_context": self._prompts["long_context_prompt"],
            },
            documents=self.documents if self._source is None else self._source,
            document_prompt=self.document_prompt,
            streaming=self._streaming,
            settings=Settings(**{name: getattr(self, name) for name in SETTINGS}),
            names=self.names,
            estimate=self.estimate,
        )

    @override
    def _get_prompts(self) -> dict[str, Any]:
        return dict(self._prompts)

    @override
    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        own = {name: prompt for name, prompt in prompts.items() if ":" not in name}  # the others are modules'
        unknown = sorted(own.keys() - self._prompts.keys())
        if unknown:
            msg = f"there is no prompt {', '.join(unknown)}; the prompts are {', '.join(self._prompts)}"
            raise ConfigurationError(msg)
        self._prompts.update({name: checked_prompt(name, prompt) for name, prompt in own.items()})

    @override
    @dispatcher.span
    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """Answer a query from nodes; `response_kwargs` are variables of the prompts."""
        send(dispatcher, SynthesizeStartEvent, query=query)
        steps, more = self._steps(query, nodes, response_kwargs), additional_source_nodes or ()
        with self._callback_manager.event(
            CBEventType.SYNTHESIZE, payload={EventPayload.QUERY_STR: steps.query.query_str}
        ) as event:
            response = responses.streamed(steps, more) if steps.streaming else responses.whole(steps, more)
            event.on_end(payload={EventPayload.RESPONSE: response})
        send(dispatcher, SynthesizeEndEvent, query=steps.query, response=response)
        return response

    @override
    @dispatcher.span
    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """As `synthesize`."""
        send(dispatcher, SynthesizeStartEvent, query=query)
        steps, more = self._steps(query, nodes, response_kwargs), additional_source_nodes or ()
        with self._callback_manager.event(
            CBEventType.SYNTHESIZE, payload={EventPayload.QUERY_STR: steps.query.query_str}
        ) as event:
            response = responses.astreamed(steps, more) if steps.streaming else await responses.awhole(steps, more)
            event.on_end(payload={EventPayload.RESPONSE: response})
        send(dispatcher, SynthesizeEndEvent, query=steps.query, response=response)
        return response

    @override
    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> str | Generator[str, None, None]:
        """Answer a query from bare texts: the text, or a generator of it."""
        steps = self._steps(query_str, _nodes(text_chunks), response_kwargs)
        return responses.streamed(steps, ()).response_gen if steps.streaming else str(responses.whole(steps, ()))

    @override
    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> str | AsyncGenerator[str, None]:
        """As `get_response`."""
        steps = self._steps(query_str, _nodes(text_chunks), response_kwargs)
        return (
            responses.astreamed(steps, ()).response_gen if steps.streaming else str(await responses.awhole(steps, ()))
        )

    def _steps(self, query: str | QueryBundle, nodes: Sequence[NodeWithScore], words: dict[str, Any]) -> Steps:
        bundle = QueryBundle(query) if isinstance(query, str) else query
        return Steps(self._parts(), bundle, nodes=nodes, words=words)


def _nodes(texts: Sequence[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text)) for text in texts]
