"""The demo with LangChain."""
# ruff: noqa: ARG002 - the signatures are LangChain's

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from chromadb.api import ClientAPI
from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.command.framework import Output, Read, Show
from selfroute.command.models import no_provider, unusable, weights
from selfroute.command.texts import Passage, Text
from selfroute.demo.reader import NAME as READER
from selfroute.demo.reader import REFUSAL, THRESHOLD, Reader, Reply

NAME = "LangChain"


def load_embeddings(name: str | None = None) -> Embeddings:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It can not be loaded.
    """
    from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415 - it takes seconds, which the caller shows

    with weights(name) as path:
        return HuggingFaceEmbeddings(model_name=path, encode_kwargs={"normalize_embeddings": True})


def load_model(provider: str, model: str, *, base_url: str | None) -> BaseChatModel:
    """Make a chat model of any provider that `langchain.chat_models.init_chat_model` knows.

    Raises:
        ConfigurationError: The provider is unknown, or a key is missing.
        ImportError: The provider's package is not installed.
    """
    fields: dict[str, Any] = {}
    if base_url:
        fields["base_url"] = base_url
    if provider == "openai" and (base_url or any(map(os.environ.get, ("OPENAI_BASE_URL", "OPENAI_API_BASE")))):
        fields["stream_usage"] = True  # off by default with another server
        if base_url and not os.environ.get("OPENAI_API_KEY"):
            fields["api_key"] = "none"
    try:
        made: BaseChatModel = init_chat_model(model, model_provider=provider, **fields)
    except ImportError:
        raise
    except Exception as error:  # each provider's client has errors of its own
        if "Unsupported provider" in str(error):
            raise no_provider(provider, model, known=str(error).rpartition("are: ")[2]) from error
        raise unusable(provider, model, error=error) from error
    return made


class ExtractiveReader(BaseChatModel):
    r"""The extractive reader as a chat model. It is no language model: see `selfroute.demo.reader.Reader`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> reader = ExtractiveReader(embeddings=DeterministicFakeEmbedding(size=8), threshold=-1)
        >>> reader.invoke("The pier was closed in May.\n\nQuestion: When was it closed?\nAnswer:").text
        'The pier was closed in May.'

    Attributes:
        embeddings: Embeds the sentences and the question.
        threshold: The cosine below which the reader declines.
        refusal: What it writes to decline.
    """

    embeddings: Embeddings
    threshold: float = THRESHOLD
    refusal: str = REFUSAL

    model_config = ConfigDict(arbitrary_types_allowed=True)
    _reader: Reader = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Set up the cache of sentence embeddings."""
        super().model_post_init(context)
        self._reader = Reader(self.embeddings.embed_documents)

    @property
    def _llm_type(self) -> str:
        return READER

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": READER, "threshold": self.threshold, "refusal": self.refusal}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._reply(messages)
        message = AIMessage(reply.text, usage_metadata=_usage(reply), response_metadata={"model_name": READER})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for word in reply.words:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(content="", usage_metadata=_usage(reply), response_metadata={"model_name": READER})
        last.chunk_position = "last"
        yield ChatGenerationChunk(message=last)

    def _reply(self, messages: list[BaseMessage]) -> Reply:
        prompt = "\n\n".join(str(message.text) for message in messages)
        return self._reader.reply(prompt, threshold=self.threshold, refusal=self.refusal)


def _usage(reply: Reply) -> UsageMetadata:
    given, written = reply.input_tokens, reply.output_tokens
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}


def extractive_reader(embeddings: Embeddings) -> ExtractiveReader:
    """Return the reader that answers where no model was asked for."""
    return ExtractiveReader(embeddings=embeddings)


def open_index(client: ClientAPI, collection: str, embeddings: Embeddings) -> LangChainIndex:
    """Open the index in a collection that is there."""
    store = Chroma(collection, embeddings, client=client, create_collection_if_not_exists=False)
    return LangChainIndex(store)


class LangChainIndex:
    """Passages in LangChain's Chroma."""

    def __init__(self, store: Chroma) -> None:
        """Take the store that holds them."""
        self._store = store

    def add(self, passages: Sequence[Passage]) -> None:
        """Embed passages and add them."""
        self._store.add_documents(
            [Document(passage.text, metadata=passage.metadata, id=passage.id) for passage in passages]
        )

    @contextmanager
    def pipeline(
        self, texts: Sequence[Text], *, llm: BaseChatModel, long_context_llm: BaseChatModel | None, k: int
    ) -> Iterator[LangChainPipeline]:
        """Put the chain together: this is all that a pipeline of your own needs."""
        own = {"text_key": {"$in": [text.key for text in texts]}}
        chain = SelfRouteChain.from_vectorstore(self._store, llm, k=k, filter=own, long_context_llm=long_context_llm)
        yield LangChainPipeline(chain)


class LangChainPipeline:
    """Asks a chain."""

    def __init__(self, chain: SelfRouteChain) -> None:
        """Take the chain."""
        self.ledger = SelfRouteLedger()
        self._chain = chain.with_config(callbacks=[self.ledger])

    def ask(self, question: str) -> Output:
        """Answer a question."""
        return _output(self._chain.invoke(question))

    def stream(self, question: str, show: Show) -> Output:
        """Answer a question in pieces."""
        output: Any = None
        for chunk in self._chain.stream(question):
            output = chunk if output is None else output + chunk
            show(output["route"], chunk.get("answer", ""))
        return _output(output)


def _output(output: Mapping[str, Any]) -> Output:
    read = output["context"] if output["route"] == "long_context" else []
    return Output(
        question=output["input"],
        answer=output["answer"],
        route=output["route"],
        answerable=output["answerable"],
        decision=output["decision"],
        usage=output["usage"],
        retrieved=[str(passage.id) for passage in output["retrieved"]],
        read=[Read.of(document.metadata) for document in read],
    )
