"""The extractive reader as a chat model of LangChain, and the embeddings for it."""
# ruff: noqa: ARG002 - the signatures are LangChain's

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr

from selfroute.demo.reader import NAME, REFUSAL, THRESHOLD, Reader, ReaderReply
from selfroute.demo.weights import weights


def load_embeddings(name: str | None = None) -> Embeddings:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It cannot be loaded.
    """
    from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415 - it takes seconds, while the caller shows progress

    with weights(name) as path:
        return HuggingFaceEmbeddings(model_name=path, encode_kwargs={"normalize_embeddings": True})


class ExtractiveReader(BaseChatModel):
    r"""The extractive reader as a chat model. It is not a language model: see `selfroute.demo.reader.Reader`.

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
        return NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": NAME, "threshold": self.threshold, "refusal": self.refusal}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._reply(messages)
        message = AIMessage(reply.text, usage_metadata=_usage(reply), response_metadata={"model_name": NAME})
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
        last = AIMessageChunk(content="", usage_metadata=_usage(reply), response_metadata={"model_name": NAME})
        last.chunk_position = "last"
        yield ChatGenerationChunk(message=last)

    def _reply(self, messages: list[BaseMessage]) -> ReaderReply:
        prompt = "\n\n".join(str(message.text) for message in messages)
        return self._reader.reply(prompt, threshold=self.threshold, refusal=self.refusal)


def _usage(reply: ReaderReply) -> UsageMetadata:
    given, written = reply.input_tokens, reply.output_tokens
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
