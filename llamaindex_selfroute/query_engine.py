"""The `SelfRouteQueryEngine`: a `RetrieverQueryEngine` around the synthesizer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters
from typing_extensions import Self, Unpack, override

from llamaindex_selfroute import internals
from llamaindex_selfroute.arguments import (
    SynthesizerFields,
    check_alone,
    check_callbacks,
    check_fields,
    check_filters,
    check_index,
    check_postprocessors,
    check_retriever,
)
from llamaindex_selfroute.asked import AskedEngine, asked_in, carrying
from llamaindex_selfroute.convert import Source, bundle_of
from llamaindex_selfroute.engine_methods import EngineMethods
from llamaindex_selfroute.host import LlamaIndexHost, QueryCall
from llamaindex_selfroute.stored.limits import takes_filters, watched
from llamaindex_selfroute.stored.reading import StoredDocuments, documents_behind
from llamaindex_selfroute.synthesizer import SelfRouteSynthesizer, limited
from selfroute.arguments import Expected
from selfroute.calls.plan import reach_of
from selfroute.calls.settings import DEFAULTS
from selfroute.copies import NamesUncopied
from selfroute.errors import ConfigurationError

_SYNTHESIZER = Expected(
    "a SelfRouteSynthesizer",
    "pass SelfRouteSynthesizer(documents=..., llm=...), or leave it out and pass documents= and llm= instead",
    lambda value: isinstance(value, SelfRouteSynthesizer),
)


class SelfRouteQueryEngine(NamesUncopied, EngineMethods):
    """Answer from the retrieved nodes; read more only when the model declines or is not sure.

    A `RetrieverQueryEngine` with a `SelfRouteSynthesizer`, which describes the steps, the response and the options.
    Usually one sets none: `SelfRouteQueryEngine.from_index(index, llm=llm)`.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteQueryEngine

        minutes = Document(text="Ms Okafor chaired the meeting. ...")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        engine = SelfRouteQueryEngine(
            retriever=index.as_retriever(similarity_top_k=5), documents=[minutes], llm=MockLLM(max_tokens=3)
        )
        response = engine.query("Who chaired the meeting?")
        assert response.metadata["route"] == "rag"
        ```
    """

    def __init__(  # noqa: PLR0913 - LlamaIndex's arguments, documents and llm
        self,
        retriever: BaseRetriever,
        response_synthesizer: SelfRouteSynthesizer | None = None,
        *,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        documents: Source | None = None,
        llm: LLM | None = None,
        **fields: Unpack[SynthesizerFields],
    ) -> None:
        """Build an engine from its parts.

        Args:
            retriever: Retrieves the nodes of the first step.
            response_synthesizer: A synthesizer that holds the documents, the models and all other fields. Pass either
                this or the arguments below. It is not copied, so attributes that you set on it later apply here, too.
            node_postprocessors: Applied to the retrieved nodes.
            callback_manager: The callback manager of the engine. Unless a synthesizer is passed, both models get it.
            documents: Where the whole documents come from, as in `SelfRouteSynthesizer`. It may be left out if the
                retriever is an index's own, or LlamaIndex's wrapper around such: then it is `StoredDocuments(index)`.
            llm: The model; `Settings.llm` if None.
            **fields: Other fields of `SelfRouteSynthesizer`, such as `long_context_llm`, `rag_prompt` and `streaming`,
                and the options of routing, such as `sections` and `citations`.

        Raises:
            ConfigurationError: The parts cannot work together (a `ValueError`).
        """
        check_retriever(retriever)
        if callback_manager is not None:
            check_callbacks(callback_manager)
        if node_postprocessors is not None:
            check_postprocessors(node_postprocessors)
        check_fields(fields)
        if response_synthesizer is None:
            documents = documents_behind(retriever) if documents is None else documents
            synthesizer = SelfRouteSynthesizer(
                documents=documents, llm=llm, callback_manager=callback_manager, **fields
            )
        else:
            synthesizer = response_synthesizer
            _SYNTHESIZER.check("response_synthesizer", synthesizer)
            check_alone(synthesizer, {"documents": documents, "llm": llm, **fields})
        super().__init__(retriever, synthesizer, node_postprocessors, callback_manager)

    @classmethod
    @override
    def from_args(  # type: ignore[override]
        cls,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        response_synthesizer: SelfRouteSynthesizer | None = None,
        *,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        documents: Source | None = None,
        **fields: Unpack[SynthesizerFields],
    ) -> Self:
        """Build an engine from its parts, as the constructor does."""
        return cls(
            retriever,
            response_synthesizer,
            node_postprocessors=node_postprocessors,
            callback_manager=callback_manager,
            documents=documents,
            llm=llm,
            **fields,
        )

    @classmethod
    def from_index(  # noqa: PLR0913 - the arguments of the contract
        cls,
        index: BaseIndex[Any],
        *,
        similarity_top_k: int = 5,
        reach: int | None = None,
        filters: MetadataFilters | None = None,
        source_key: str | None = None,
        order_key: str | None = None,
        documents: Source | None = None,
        llm: LLM | None = None,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        **fields: Unpack[SynthesizerFields],
    ) -> Self:
        """Build an engine on an index, instead of `index.as_query_engine()`.

        Args:
            index: The index.
            similarity_top_k: The number of nodes that the draft reads.
            reach: The number of nodes to retrieve. All of them say which documents may hold the answer. None means 20
                with `sections`, else `similarity_top_k`.
            filters: Limits both the retriever and the documents.
            source_key: The key of the metadata that names a node's document, as in `StoredDocuments`.
            order_key: The key of the metadata that numbers its nodes, as in `StoredDocuments`.
            documents: Where the whole documents come from. If None, `StoredDocuments(index)` reads those behind the
                retrieved nodes from the index.
            llm: The model; `Settings.llm` if None.
            node_postprocessors: As in the constructor.
            callback_manager: As in the constructor.
            **fields: Other fields, as in the constructor.

        Raises:
            ConfigurationError: The index's vector store cannot list its nodes, so you must pass `documents`. Or you
                passed filters, and the index's retriever ignores filters; or keys and `documents`.
        """
        check_index(index)
        check_filters(filters)
        check_fields(fields)
        if documents is None:
            documents = StoredDocuments(index, filters=filters, source_key=source_key, order_key=order_key)
        elif source_key or order_key:
            msg = "source_key and order_key are of StoredDocuments: pass them there, or leave documents out"
            raise ConfigurationError(msg)
        found = reach_of(
            similarity_top_k, reach, sections=fields.get("sections", DEFAULTS.sections), name="similarity_top_k"
        )
        if found != similarity_top_k:
            fields.setdefault("draft_passages", similarity_top_k)
        retriever = index.as_retriever(similarity_top_k=found, **({} if filters is None else {"filters": filters}))
        if filters and filters.filters and not takes_filters(retriever):
            msg = f"{type(retriever).__name__} ignores filters; use a retriever that applies them"
            raise ConfigurationError(msg)
        return cls(
            retriever,
            node_postprocessors=node_postprocessors,
            callback_manager=callback_manager,
            documents=documents,
            llm=llm,
            **fields,
        )

    @override
    def with_retriever(self, retriever: BaseRetriever) -> Self:
        """Return the same engine over another retriever."""
        check_retriever(retriever)
        engine = copy(self)  # not `type(self)(...)`: the constructor of a subclass may take other parts
        engine._retriever = retriever  # noqa: SLF001
        return engine

    @override
    def _call(self, question: str | QueryBundle) -> QueryCall:
        """Return a call that no synthesizer has begun, so it retrieves the nodes itself."""
        query = bundle_of(question)
        asked = self._asked()
        parts = self._synthesizer._parts(asked.documents)  # noqa: SLF001
        return QueryCall(LlamaIndexHost(parts, carrying(query, asked), finder=self))

    @override
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        return super().synthesize(self._carrying(query_bundle), nodes, additional_source_nodes)

    @override
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        return await super().asynthesize(self._carrying(query_bundle), nodes, additional_source_nodes)

    @override
    @internals.without_span
    def query(self, str_or_query_bundle: str | QueryBundle) -> RESPONSE_TYPE:
        bundle_of(str_or_query_bundle)  # before LlamaIndex's event, which takes no half characters
        return super().query(str_or_query_bundle)

    @override
    @internals.without_span
    async def aquery(self, str_or_query_bundle: str | QueryBundle) -> RESPONSE_TYPE:
        bundle_of(str_or_query_bundle)
        return await super().aquery(str_or_query_bundle)

    @override
    @internals.without_span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        bundle_of(query_bundle)  # before the retriever is asked; some of LlamaIndex's engines begin here
        return super()._query(carrying(query_bundle, self._asked()))

    @override
    @internals.without_span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        bundle_of(query_bundle)
        return await super()._aquery(carrying(query_bundle, self._asked()))

    @override
    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return super(SelfRouteQueryEngine, self._as_asked(query_bundle)).retrieve(query_bundle)

    @override
    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await super(SelfRouteQueryEngine, self._as_asked(query_bundle)).aretrieve(query_bundle)

    def _as_asked(self, query_bundle: QueryBundle) -> Self:
        """Return this engine as it was when it was asked a question; as it is now where it was not."""
        asked = asked_in(query_bundle)
        return cast("Self", asked.as_asked) if asked and asked.engine is self else self

    def _carrying(self, query_bundle: QueryBundle) -> QueryBundle:
        """Return a query bundle that carries this engine as it was asked; as it is now where it was not."""
        asked = asked_in(query_bundle)
        return query_bundle if asked and asked.engine is self else carrying(query_bundle, self._asked())

    def _asked(self) -> AskedEngine:
        """Return this engine as it is now, with its documents limited to what its retriever may see.

        A subclass that selects nodes itself may hide some, so then the synthesizer does not know the retriever.
        """
        synthesizer, postprocessors = internals.parts_of(self)
        own = internals.selects_nodes_as(type(self), SelfRouteQueryEngine)
        retriever = internals.fixed(self.retriever) if own else None
        documents, as_asked = limited(synthesizer.documents, retriever, postprocessors), self
        if retriever is not None:
            as_asked = internals.with_parts(self, retriever, watched(postprocessors, documents))
        return AskedEngine(self, as_asked, synthesizer, documents)

    @property
    def _synthesizer(self) -> SelfRouteSynthesizer:
        return cast("SelfRouteSynthesizer", internals.parts_of(self)[0])
