"""The demo with LlamaIndex."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from chromadb.api import ClientAPI
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM, CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import (
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import PrivateAttr
from typing_extensions import override

from llamaindex_selfroute import SelfRouteLedger, SelfRouteQueryEngine
from selfroute.command.framework import Output, Read, Show
from selfroute.command.models import no_provider, unusable, weights
from selfroute.command.texts import Passage, Text
from selfroute.demo.reader import NAME as READER
from selfroute.demo.reader import REFUSAL, THRESHOLD, Reader, Reply

NAME = "LlamaIndex"
_BATCH = 64
_TIMEOUT = 600.0


def load_embeddings(name: str | None = None) -> BaseEmbedding:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It can not be loaded.
    """
    from huggingface_hub.constants import HF_HUB_CACHE  # noqa: PLC0415 - they take seconds, which the caller shows
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding  # noqa: PLC0415 - likewise

    with weights(name) as path:
        # The length that the model itself says, and the cache that everybody else has.
        return HuggingFaceEmbedding(path, max_length=None, cache_folder=HF_HUB_CACHE, embed_batch_size=_BATCH)


def load_model(provider: str, model: str, *, base_url: str | None) -> LLM:
    """Make a model of one of the providers `openai` (or a server that speaks its protocol) and `google_genai`.

    Raises:
        ConfigurationError: The provider is another one, or a key is missing.
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
        max_retries=1,  # its own and those of openai's client multiply
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


class ExtractiveReader(CustomLLM):
    r"""The extractive reader as a completion model. It is no language model: see `selfroute.demo.reader.Reader`.

    Example:
        >>> from llama_index.core import MockEmbedding
        >>> reader = ExtractiveReader(embed_model=MockEmbedding(embed_dim=8), threshold=-1)
        >>> reader.complete("The pier was closed in May.\n\nQuestion: When was it closed?\nAnswer:").text
        'The pier was closed in May.'

    Attributes:
        embed_model: Embeds the sentences and the question.
        threshold: The cosine below which the reader declines.
        refusal: What it writes to decline.
    """

    embed_model: BaseEmbedding
    threshold: float = THRESHOLD
    refusal: str = REFUSAL

    _reader: Reader = PrivateAttr()

    @override
    def model_post_init(self, context: Any, /) -> None:
        """Set up the cache of sentence embeddings."""
        super().model_post_init(context)
        self._reader = Reader(self.embed_model.get_text_embedding_batch)

    @property
    @override
    def metadata(self) -> LLMMetadata:
        """What it says of itself."""
        return LLMMetadata(model_name=READER)

    @override
    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer a prompt."""
        reply = self._reply(prompt)
        return CompletionResponse(text=reply.text, additional_kwargs=_usage(reply))

    @override
    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Answer a prompt word by word."""
        reply = self._reply(prompt)

        def pieces() -> CompletionResponseGen:
            text = ""
            for word in reply.words:
                text += word
                yield CompletionResponse(text=text, delta=word)
            yield CompletionResponse(text=text, delta="", additional_kwargs=_usage(reply))

        return pieces()

    def _reply(self, prompt: str) -> Reply:
        return self._reader.reply(prompt, threshold=self.threshold, refusal=self.refusal)


def _usage(reply: Reply) -> dict[str, int]:
    given, written = reply.input_tokens, reply.output_tokens
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}


def extractive_reader(embeddings: BaseEmbedding) -> ExtractiveReader:
    """Return the reader that answers where no model was asked for."""
    return ExtractiveReader(embed_model=embeddings)


def open_index(client: ClientAPI, collection: str, embeddings: BaseEmbedding) -> LlamaIndexIndex:
    """Open the index in a collection that is there."""
    store = ChromaVectorStore(chroma_collection=client.get_collection(collection, embedding_function=None))
    return LlamaIndexIndex(VectorStoreIndex.from_vector_store(store, embed_model=embeddings))


class LlamaIndexIndex:
    """Passages in LlamaIndex's index over Chroma."""

    def __init__(self, index: VectorStoreIndex) -> None:
        """Take the index that holds them."""
        self._index = index

    def add(self, passages: Sequence[Passage]) -> None:
        """Embed passages and add them."""
        self._index.insert_nodes([_node(passage) for passage in passages])

    @contextmanager
    def pipeline(
        self, texts: Sequence[Text], *, llm: LLM, long_context_llm: LLM | None, k: int
    ) -> Iterator[LlamaIndexPipeline]:
        """Put the engine together: this is all that a pipeline of your own needs."""
        own = MetadataFilter(key="text_key", operator=FilterOperator.IN, value=[text.key for text in texts])
        engines = [
            SelfRouteQueryEngine.from_index(
                self._index,
                similarity_top_k=k,
                filters=MetadataFilters(filters=[own]),
                llm=llm,
                long_context_llm=long_context_llm,
                streaming=streaming,
            )
            for streaming in (False, True)
        ]
        ledger, root = SelfRouteLedger(), get_dispatcher()
        root.add_event_handler(ledger)
        try:
            yield LlamaIndexPipeline(*engines, ledger=ledger)
        finally:
            root.event_handlers.remove(ledger)


def _node(passage: Passage) -> TextNode:
    """A node whose metadata neither models nor embeddings see: the text is all that counts."""
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


class LlamaIndexPipeline:
    """Asks an engine."""

    def __init__(
        self, engine: SelfRouteQueryEngine, streaming: SelfRouteQueryEngine, *, ledger: SelfRouteLedger
    ) -> None:
        """Take the engine twice: it answers at once, or in pieces; and the ledger that hears of both."""
        self.ledger = ledger
        self._engine, self._streaming = engine, streaming

    def ask(self, question: str) -> Output:
        """Answer a question."""
        response = self._engine.query(question)
        return _output(question, str(response), response)

    def stream(self, question: str, show: Show) -> Output:
        """Answer a question in pieces."""
        response = cast("StreamingResponse", self._streaming.query(question))
        route = (response.metadata or {})["route"]
        show(route, "")
        answer = ""
        for piece in response.response_gen:
            answer += piece
            show(route, piece)
        return _output(question, answer, response)


def _output(question: str, answer: str, response: RESPONSE_TYPE) -> Output:
    told = response.metadata or {}
    read = response.source_nodes if told["route"] == "long_context" else []
    return Output(
        question=question,
        answer=answer,
        route=told["route"],
        answerable=told["answerable"],
        decision=told["decision"],
        usage=told["usage"],
        retrieved=told["retrieved"],
        read=[Read.of(item.node.metadata) for item in read],
    )
