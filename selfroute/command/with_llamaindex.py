"""The command with LlamaIndex."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NoReturn, cast

from chromadb.api import ClientAPI
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.generic_utils import messages_to_history_str
from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.chat_engine.condense_question import DEFAULT_PROMPT, DEFAULT_TEMPLATE
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM, ChatMessage, MessageRole
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.vector_stores.chroma import ChromaVectorStore

from llamaindex_selfroute import SelfRouteLedger, SelfRouteQueryEngine
from selfroute.command.citing import in_files
from selfroute.command.framework import Output, Show, documents_read
from selfroute.command.history import Turn
from selfroute.command.models import no_provider, unusable
from selfroute.command.steering import Steering
from selfroute.command.texts import IndexedPassage, Text
from selfroute.demo.with_llamaindex import ExtractiveReader, RecordedModel, load_embeddings
from selfroute.usage.tokens import count_tokens

__all__ = ["NAME", "extractive_reader", "load_embeddings", "load_model", "open_index", "recorded_model"]

NAME = "LlamaIndex"
_TIMEOUT = 600.0


def load_model(provider: str, model: str, *, base_url: str | None) -> LLM:
    """Make a model of the provider `openai` (or a server with the same protocol) or `google_genai`.

    Raises:
        ConfigurationError: The provider is unknown, or a key is missing.
        ImportError: The provider's package is not installed.
    """
    make = {"google_genai": _google_genai, "openai": _openai}.get(provider)
    if make is None:
        raise no_provider(provider, model, known="google_genai, openai")
    try:
        return make(model, base_url)
    except ModuleNotFoundError as error:
        msg = f"pip install llama-index-llms-{'openai-like' if make is _openai else 'google-genai'}"
        raise ImportError(msg) from error
    except ValueError as error:
        raise unusable(provider, model, error=error) from error


def _openai(model: str, base_url: str | None) -> LLM:
    from llama_index.llms.openai_like import OpenAILike  # noqa: PLC0415 - it may not be installed

    return OpenAILike(
        model=model,
        api_base=base_url,
        api_key=os.environ.get("OPENAI_API_KEY") or ("none" if base_url else _missing("OPENAI_API_KEY")),
        is_chat_model=True,
        timeout=_TIMEOUT,
        max_retries=1,  # its retries and those of openai's client multiply
        additional_kwargs={"stream_options": {"include_usage": True}},
    )


def _google_genai(model: str, base_url: str | None) -> LLM:
    from llama_index.llms.google_genai import GoogleGenAI  # noqa: PLC0415 - it may not be installed

    if not any(map(os.environ.get, ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"))):
        _missing("GOOGLE_API_KEY")
    if not base_url:
        return GoogleGenAI(model)
    from google.genai.types import HttpOptions  # noqa: PLC0415 - it comes with the package above

    return GoogleGenAI(model, http_options=HttpOptions(base_url=base_url))


def _missing(variable: str) -> NoReturn:
    msg = f"{variable} is not set"
    raise ValueError(msg)


def extractive_reader(embeddings: BaseEmbedding) -> ExtractiveReader:
    """Return the model that answers if the user names none."""
    return ExtractiveReader(embed_model=embeddings)


def recorded_model() -> RecordedModel:
    """Return the model that answers the demo's questions from the recording that comes with the package."""
    return RecordedModel()


def open_index(client: ClientAPI, collection: str, embeddings: BaseEmbedding) -> LlamaIndexIndex:
    """Open the index in an existing collection."""
    store = ChromaVectorStore(chroma_collection=client.get_collection(collection, embedding_function=None))
    return LlamaIndexIndex(VectorStoreIndex.from_vector_store(store, embed_model=embeddings))


class LlamaIndexIndex:
    """Passages in LlamaIndex's index over Chroma."""

    def __init__(self, index: VectorStoreIndex) -> None:
        """Take the index."""
        self._index = index

    def add(self, passages: Sequence[IndexedPassage]) -> None:
        """Embed passages and add them."""
        self._index.insert_nodes([_node(passage) for passage in passages])

    @contextmanager
    def open_session(  # noqa: PLR0913 - what a session needs
        self,
        texts: Sequence[Text],
        *,
        llm: LLM,
        long_context_llm: LLM | None,
        k: int,
        priced_as: str | None,
        steering: Steering,
    ) -> Iterator[LlamaIndexSession]:
        """Build the engine; an engine of your own needs no more than this."""
        own = MetadataFilter(key="text_key", operator=FilterOperator.IN, value=[text.key for text in texts])
        engines = [
            SelfRouteQueryEngine.from_index(
                self._index,
                similarity_top_k=k,
                filters=MetadataFilters(filters=[own]),
                llm=llm,
                long_context_llm=long_context_llm,
                streaming=streaming,
                citations=True,
                priced_as=priced_as,
                **steering.options(),
            )
            for streaming in (False, True)
        ]
        ledger, root = SelfRouteLedger(), get_dispatcher()
        root.add_event_handler(ledger)
        try:
            yield LlamaIndexSession(*engines, llm=llm, ledger=ledger, texts=texts, k=k)
        finally:
            root.event_handlers.remove(ledger)


def _node(passage: IndexedPassage) -> TextNode:
    """Make a node whose metadata is hidden from models and embeddings: only the text counts."""
    return TextNode(
        id_=passage.id,
        text=passage.text,
        start_char_idx=passage.start,
        end_char_idx=passage.start + len(passage.text),
        metadata=passage.metadata,
        excluded_llm_metadata_keys=[*passage.metadata],
        excluded_embed_metadata_keys=[*passage.metadata],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=passage.text_key)},
    )


class LlamaIndexSession:
    """Answers questions by an engine."""

    def __init__(  # noqa: PLR0913 - what a session needs
        self,
        engine: SelfRouteQueryEngine,
        streaming: SelfRouteQueryEngine,
        *,
        llm: LLM,
        ledger: SelfRouteLedger,
        texts: Sequence[Text],
        k: int,
    ) -> None:
        """Take the engine twice, for whole and streamed answers, and what both have: k is what the draft reads."""
        self.ledger, self.check = ledger, engine.check
        self._engine, self._streaming, self._llm, self._k = engine, streaming, llm, k
        self._texts = {text.source: text for text in texts}

    def ask(self, question: str) -> Output:
        """Answer a question."""
        response = self._engine.query(question)
        return self._output(question, str(response), response)

    def stream(self, question: str, show: Show, *, turns: Sequence[Turn] = (), alone: str | None = None) -> Output:
        """Answer a question piece by piece; with a history as reworded, like `CondenseQuestionChatEngine`."""
        response = cast("StreamingResponse", self._streaming.query(alone if turns and alone else question))
        route = (response.metadata or {})["route"]
        show(route, "")
        answer = ""
        with closing(response.response_gen) as pieces:  # else the model goes on when one leaves
            for piece in pieces:
                answer += piece
                show(route, piece)
        return self._output(question, answer, response)

    def reword(self, question: str, turns: Sequence[Turn]) -> tuple[str, int]:
        """Have the model word a question so that it can be understood without what was said before.

        This is what `CondenseQuestionChatEngine` does before it asks its engine. Its own stream runs in a thread, and
        goes on when one leaves it.
        """
        said = [
            ChatMessage(role=role, content=text)
            for turn in turns
            for role, text in ((MessageRole.USER, turn.question), (MessageRole.ASSISTANT, turn.answer))
        ]
        history = messages_to_history_str(said)
        alone = self._llm.predict(DEFAULT_PROMPT, question=question, chat_history=history).strip()
        return alone or question, sum(map(count_tokens, (DEFAULT_TEMPLATE, history, question, alone)))

    def _output(self, question: str, answer: str, response: RESPONSE_TYPE) -> Output:
        found = response.metadata or {}
        context = [(item.node.get_content(), item.node.metadata) for item in response.source_nodes]
        return Output(
            question=question,
            answer=answer,
            route=found["route"],
            answerable=found["answerable"],
            decision=found["decision"],
            usage=found["usage"],
            retrieved=found["retrieved"][: self._k],
            read=documents_read(found["route"], context, self._texts),
            citations=in_files(found["citations"], [metadata for _, metadata in context], self._texts),
        )
