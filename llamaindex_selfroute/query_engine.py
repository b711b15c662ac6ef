"""`SelfRouteQueryEngine`: a `RetrieverQueryEngine` around the synthesizer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import fields as fields_of
from inspect import unwrap
from typing import Any, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.vector_stores import MetadataFilters
from typing_extensions import Self, Unpack, override

from llamaindex_selfroute.documents import Source
from llamaindex_selfroute.stored.filters import takes_filters
from llamaindex_selfroute.stored.reading import StoredDocuments
from llamaindex_selfroute.synthesizer import SelfRouteSynthesizer, SynthesizerFields
from selfroute.errors import ConfigurationError
from selfroute.settings import Settings

_CHOOSING = (
    *("retrieve", "_apply_node_postprocessors", "_query"),
    *("aretrieve", "_async_apply_node_postprocessors", "_aquery"),
)
_DEFAULTS = {field.name: field.default for field in fields_of(Settings)} | {"streaming": False}  # all others are None


class Fields(SynthesizerFields, total=False):
    """More keyword arguments of `SelfRouteQueryEngine`; see there."""

    node_postprocessors: list[BaseNodePostprocessor] | None
    callback_manager: CallbackManager | None


class SelfRouteQueryEngine(RetrieverQueryEngine):
    """Answer from the retrieved nodes; read whole documents only when the model declines.

    A `RetrieverQueryEngine` around a `SelfRouteSynthesizer`, which see for what a response holds and for the fields.

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

    def __init__(  # noqa: PLR0913 - the host's, and the two parts that are always given
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
        """Configure.

        Args:
            retriever: Finds the nodes of the first step.
            response_synthesizer: Holds the documents, the models and all other fields, in place of those below.
            node_postprocessors: Applied to what was retrieved.
            callback_manager: Set on both models too, unless a synthesizer is given.
            documents: As in `SelfRouteSynthesizer`.
            llm: The model; `Settings.llm` if None.
            **fields: More fields of `SelfRouteSynthesizer`: `long_context_llm`, `rag_prompt`, `long_context_prompt`,
                `document_prompt`, `refusal`, `answerability`, `max_context_tokens`, `token_counter`,
                `measure_savings`, `priced_as`, `long_context_priced_as`, `streaming`.

        Raises:
            ConfigurationError: The parts cannot work together (a `ValueError`).
        """
        if response_synthesizer is None:
            synthesizer = SelfRouteSynthesizer(
                documents=documents, llm=llm, callback_manager=callback_manager, **fields
            )
        else:
            synthesizer = response_synthesizer
            _check_alone(synthesizer, {"documents": documents, "llm": llm, **fields})
        synthesizer = self._behind(synthesizer, retriever, node_postprocessors or ())
        super().__init__(retriever, synthesizer, node_postprocessors, callback_manager)

    @classmethod
    @override
    def from_args(  # type: ignore[override]
        cls,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        response_synthesizer: SelfRouteSynthesizer | None = None,
        *,
        documents: Source | None = None,
        **fields: Unpack[Fields],
    ) -> Self:
        """Do as the constructor does."""
        return cls(retriever, response_synthesizer, documents=documents, llm=llm, **fields)

    @classmethod
    def from_index(
        cls,
        index: BaseIndex[Any],
        *,
        similarity_top_k: int = 5,
        filters: MetadataFilters | None = None,
        documents: Source | None = None,
        llm: LLM | None = None,
        **fields: Unpack[Fields],
    ) -> Self:
        """Put an engine on an index, in place of `index.as_query_engine()`.

        Args:
            index: The index.
            similarity_top_k: How many nodes are retrieved.
            filters: What retriever and documents are limited to.
            documents: As in the constructor; `StoredDocuments(index)` if None: those that were hit, out of the index.
            llm: The model; `Settings.llm` if None.
            **fields: As in the constructor.

        Raises:
            ConfigurationError: The index's vector store keeps the text and can not list nodes: give `documents`. Or
                its retriever does not mind filters, and there are some.
        """
        limits: dict[str, Any] = {} if filters is None else {"filters": filters}
        retriever = index.as_retriever(similarity_top_k=similarity_top_k, **limits)
        if filters and filters.filters and not takes_filters(retriever):
            msg = f"{type(retriever).__name__} ignores filters; use a retriever that applies them"
            raise ConfigurationError(msg)
        stored = StoredDocuments(index, filters=filters) if documents is None else documents
        return cls(retriever, documents=stored, llm=llm, **fields)

    @override
    def with_retriever(self, retriever: BaseRetriever) -> Self:
        """Return the same engine over another retriever."""
        engine = copy(self)  # not a call of the class: a subclass may be made of other parts
        engine._retriever = retriever  # noqa: SLF001
        synthesizer = cast("SelfRouteSynthesizer", self._response_synthesizer)
        engine._response_synthesizer = self._behind(synthesizer, retriever, self._node_postprocessors)  # noqa: SLF001
        return engine

    def _behind(
        self,
        synthesizer: SelfRouteSynthesizer,
        retriever: BaseRetriever,
        postprocessors: Sequence[BaseNodePostprocessor],
    ) -> SelfRouteSynthesizer:
        # A subclass that chooses nodes in a way of its own may hide some.
        own, host = ([unwrap(getattr(kind, name)) for name in _CHOOSING] for kind in (type(self), RetrieverQueryEngine))
        return synthesizer.behind(retriever if own == host else None, postprocessors)

    @override
    def _get_prompts(self) -> dict[str, Any]:
        return self._response_synthesizer._get_prompts()  # noqa: SLF001 - the host's way

    @override
    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        self._response_synthesizer._update_prompts(prompts_dict)  # noqa: SLF001


def _check_alone(synthesizer: Any, fields: dict[str, Any]) -> None:
    """Check that a synthesizer is one of ours, and is not given fields beside it that it holds itself."""
    if not isinstance(synthesizer, SelfRouteSynthesizer):
        msg = f"response_synthesizer must be a SelfRouteSynthesizer, not {type(synthesizer).__name__}"
        raise ConfigurationError(msg)
    if fields["llm"] is synthesizer.llm:
        del fields["llm"]  # the host's own engines are given it as well
    twice = [name for name, value in fields.items() if value != _DEFAULTS.get(name)]
    if twice:
        msg = f"pass {', '.join(twice)} to the response_synthesizer, which holds these fields"
        raise ConfigurationError(msg)
