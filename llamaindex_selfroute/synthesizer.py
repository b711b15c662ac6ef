"""The `SelfRouteSynthesizer`: its configuration and its entry points."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from copy import copy
from typing import Any

from llama_index.core import Settings as HostSettings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from typing_extensions import Unpack, override

from llamaindex_selfroute import responses
from llamaindex_selfroute.arguments import PROMPTS, CheckedFields, check_fields
from llamaindex_selfroute.asked import asked_in
from llamaindex_selfroute.convert import Source, bundle_of
from llamaindex_selfroute.events import send
from llamaindex_selfroute.host import LlamaIndexHost, QueryCall, SynthesizerParts
from llamaindex_selfroute.models import clients
from llamaindex_selfroute.prompts.defaults import DEFAULTS as DEFAULT_PROMPTS
from llamaindex_selfroute.prompts.filling import check_numbers
from llamaindex_selfroute.stored.limits import filtered
from llamaindex_selfroute.stored.reading import StoredDocuments
from selfroute.calls.configured import Configured
from selfroute.calls.memory import Memory
from selfroute.calls.settings import DEFAULTS, Options, Settings
from selfroute.copies import NamesUncopied
from selfroute.describing import takes_fields_of
from selfroute.errors import ConfigurationError
from selfroute.usage import prices
from selfroute.usage.prices import is_one_model

dispatcher = get_dispatcher(__name__)


class SelfRouteSynthesizer(NamesUncopied, Configured, CheckedFields, BaseSynthesizer):
    """Answer from the retrieved nodes; read more only when the model declines or is not sure.

    A response synthesizer. In the first step the model answers from the nodes, and says how sure it is. If it declines
    or is not sure, it is asked again with the sections of the documents that matter to the question, and then with the
    best two documents whole: section 4.2 of Li et al. (2024), with sections in between. `selfroute.PAPER` holds the
    options of the paper's own rule.

    The `metadata` of a response has these keys:

    * `route`: `"rag"`, `"sections"` or `"long_context"`.
    * `answerable`: False if every step declined.
    * `finish_reason`: the provider's word for how the shown reply ended, or None.
    * `decision`: `declined`, `signal`, `evidence` and `ruling`; after a graded draft also `prospect` and `confidence`.
    * `usage`: tokens, costs and savings.
    * `retrieved`: the ids of the retrieved nodes.
    * `citations`, with `citations=True`.

    Its `source_nodes` are what the model answered from: the nodes, sections, or whole documents.

    In a sync stream, route and sources are known when the response is returned; in an async stream, with its first
    text. At the end of a stream, `usage`, `finish_reason` and `citations` are known, and also `answerable` if whole
    documents were read.

    Closing a stream (`response.response_gen`, or `async_response_gen()`) stops the model. A first reply is also stopped
    as soon as it declines. Both work for OpenAI-like models and Gemini, sync and async.

    A blank query raises `InputError`, and no model is asked.

    The arguments of the constructor are also attributes. If you change one, the next query uses the new value.

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

    _defaults = DEFAULT_PROMPTS
    _check_numbers = staticmethod(check_numbers)

    @takes_fields_of(Settings)
    def __init__(  # noqa: PLR0913 - all fields
        self,
        *,
        documents: Source | None = None,
        llm: LLM | None = None,
        long_context_llm: LLM | None = None,
        rag_prompt: BasePromptTemplate | None = None,
        long_context_prompt: BasePromptTemplate | None = None,
        document_prompt: BasePromptTemplate | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Build a synthesizer from its parts; the options after the first two are those that people set.

        Args:
            documents: Where the whole documents come from: `StoredDocuments`, which reads those behind the nodes from
                the index; a list, which is read in order; or a callable, sync or async, that takes
                `(nodes, query_bundle)` and returns the documents, best first.
            llm: The model, for chat or completion; `Settings.llm` if None.
            **options: The fields of `selfroute.calls.settings.Settings`.
            long_context_llm: The model of the last step; `llm` if None.
            rag_prompt: The prompt of the first step, with the variables `context_str` and `query_str`, and optionally
                `refusal`.
            long_context_prompt: The prompt of the last step, with the same variables.
            document_prompt: Formats each node and document in the context, with the variables `content`,
                `metadata_str` and the keys of its metadata. If None, a node has its own format for models; if there
                are several documents, each is preceded by its number and its id.
            streaming: Whether to answer in pieces.
            callback_manager: The callback manager; both models get it, too.

        Raises:
            ConfigurationError: The parts cannot work together (a `ValueError`).
        """
        self.llm, self.long_context_llm = HostSettings.llm if llm is None else llm, long_context_llm
        super().__init__(llm=self.llm, callback_manager=callback_manager, streaming=streaming)
        if callback_manager is not None:
            self.callback_manager = callback_manager
        self.documents = documents  # type: ignore[assignment]
        self.document_prompt = document_prompt
        check_fields(options)
        vars(self).update(vars(DEFAULTS))
        for name, value in options.items():
            setattr(self, name, value)
        self._memory = Memory(clients.name_of)
        prices.load_price_lists()
        self.rag_prompt = rag_prompt or DEFAULT_PROMPTS.first
        self.long_context_prompt = long_context_prompt or DEFAULT_PROMPTS.last
        self._check_prompts().check_prices(
            lambda step: clients.name_of(self._models[step]), shared=is_one_model(self._models)
        )

    def _parts(self, documents: Any = None) -> SynthesizerParts:
        """Return the parts that a query works with, as this synthesizer is configured now.

        Args:
            documents: What `limited` returned; None for the documents of a retriever that is not known.
        """
        plan = self._plan()
        return SynthesizerParts(
            models=self._models,
            prompts=self._prompts(plan),
            documents=limited(self.documents, None) if documents is None else documents,
            document_prompt=self.document_prompt,
            streaming=self._streaming,
            plan=plan,
            memory=self._memory,
        )

    @override
    def _get_prompts(self) -> dict[str, Any]:
        of_step = self._prompts(self._plan())
        return {"rag_prompt": of_step["rag"], "long_context_prompt": of_step["long_context"]}

    @override
    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        own = {name: one for name, one in prompts.items() if ":" not in name}  # the others belong to other modules
        unknown = sorted(own.keys() - set(PROMPTS))
        if unknown:
            msg = f"there is no prompt {', '.join(unknown)}; use {', '.join(PROMPTS)}"
            raise ConfigurationError(msg)
        changed = copy(self)
        for name, prompt in own.items():
            setattr(changed, name, prompt)
        changed._check_prompts()  # noqa: SLF001
        for name, prompt in own.items():
            setattr(self, name, prompt)

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
        return self._respond(self._call(query, nodes, response_kwargs), additional_source_nodes or ())

    @override
    @dispatcher.span
    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """The async twin of `synthesize`."""
        return await self._arespond(self._call(query, nodes, response_kwargs), additional_source_nodes or ())

    def _respond(self, call: QueryCall, more: Sequence[NodeWithScore] = ()) -> RESPONSE_TYPE:
        with self._event(call) as event:
            response = responses.streamed(call, more) if call.host.streaming else responses.whole(call, more)
            event.on_end(payload={EventPayload.RESPONSE: response})
        send(dispatcher, SynthesizeEndEvent, query=call.host.query, response=response)
        return response

    async def _arespond(self, call: QueryCall, more: Sequence[NodeWithScore] = ()) -> RESPONSE_TYPE:
        with self._event(call) as event:
            response = responses.astreamed(call, more) if call.host.streaming else await responses.awhole(call, more)
            event.on_end(payload={EventPayload.RESPONSE: response})
        send(dispatcher, SynthesizeEndEvent, query=call.host.query, response=response)
        return response

    def _event(self, call: QueryCall) -> Any:
        send(dispatcher, SynthesizeStartEvent, query=call.host.query)
        return self._callback_manager.event(
            CBEventType.SYNTHESIZE, payload={EventPayload.QUERY_STR: call.host.query.query_str}
        )

    @override
    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> str | Generator[str, None, None]:
        """Answer a query from texts; return the answer, or a generator of its pieces if `streaming` is set."""
        call = self._call(query_str, _nodes(text_chunks), response_kwargs)
        return responses.streamed(call, ()).response_gen if call.host.streaming else str(responses.whole(call, ()))

    @override
    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> str | AsyncGenerator[str, None]:
        """The async twin of `get_response`."""
        call = self._call(query_str, _nodes(text_chunks), response_kwargs)
        return (
            responses.astreamed(call, ()).response_gen if call.host.streaming else str(await responses.awhole(call, ()))
        )

    def _call(self, query: str | QueryBundle, nodes: Sequence[NodeWithScore], words: Mapping[str, Any]) -> QueryCall:
        bundle = bundle_of(query)
        asked = asked_in(bundle)
        documents = asked.documents if asked and asked.synthesizer is self else None
        return QueryCall(LlamaIndexHost(self._parts(documents), bundle, nodes=nodes, words=words))


def limited(
    documents: Any, retriever: BaseRetriever | None, postprocessors: Sequence[BaseNodePostprocessor] = ()
) -> Any:
    """Return the documents of a synthesizer, limited to what a retriever may see.

    Args:
        documents: The documents.
        retriever: The retriever, which nobody changes; None if the nodes are not selected by a retriever alone.
        postprocessors: Applied to the retrieved nodes.
    """
    if isinstance(documents, StoredDocuments):
        return documents.limited_to(retriever, postprocessors, is_copy=True)
    return filtered(documents, retriever)


def _nodes(texts: Sequence[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text)) for text in texts]
