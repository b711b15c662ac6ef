"""The extractive reader and the recording as chat models of LangChain, and the embeddings for the demo."""
# ruff: noqa: ARG002 - the signatures are LangChain's

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field
from typing_extensions import override

from selfroute.errors import ConfigurationError
from selfroute_workbench.demo import recorded
from selfroute_workbench.demo.reader import NAME, StandInReply, reply
from selfroute_workbench.demo.weights import MISSING, weights


def load_embeddings(name: str | None = None) -> Embeddings:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It cannot be loaded.
    """
    with weights(name) as path:
        try:
            from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415 - it takes seconds
        except ImportError as error:
            raise ConfigurationError(MISSING) from error
        return HuggingFaceEmbeddings(model_name=path, encode_kwargs={"normalize_embeddings": True})


class _StandIn(BaseChatModel):
    """A model that needs no key."""

    _name: ClassVar[str]

    @abstractmethod
    def _reply(self, prompt: str) -> StandInReply: ...

    @property
    @override
    def _llm_type(self) -> str:
        return self._name

    @property
    @override
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self._name}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._answer(messages)
        message = AIMessage(reply.text, usage_metadata=_usage(reply), response_metadata={"model_name": self._name})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._answer(messages)
        for word in reply.words:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(content="", usage_metadata=_usage(reply), response_metadata={"model_name": self._name})
        last.chunk_position = "last"
        yield ChatGenerationChunk(message=last)

    def _answer(self, messages: list[BaseMessage]) -> StandInReply:
        return self._reply("\n\n".join(str(message.text) for message in messages))


class ExtractiveReader(_StandIn):
    r"""The extractive reader as a chat model. It is no language model: see `demo.reader.reply`.

    Example:
        >>> reader = ExtractiveReader()
        >>> reader.invoke("The pier was closed in May.\n\nQuestion: When was the pier closed?\nAnswer:").text
        'The pier was closed in May.'
    """

    _name = NAME

    @override
    def _reply(self, prompt: str) -> StandInReply:
        return reply(prompt)


class RecordedModel(_StandIn):
    r"""The recorded replies of a language model to the demo's prompts, as a chat model.

    It answers the questions that come with selfroute, by the default options, by `selfroute.PAPER`, and from 5 or 20
    passages alone; as a judge it repeats the recorded grades. See `recording/README.md`.

    Example:
        >>> from selfroute.prompts import RAG
        >>> question = "What price per tonne did the Saltmarket Harbour Trust agree to charge for ice from 1 July 2023?"
        >>> prompt = RAG.format(context="...", question=question, refusal="unanswerable")
        >>> RecordedModel().invoke(prompt).text
        '£104 a tonne'
    """

    _name = recorded.NAME
    model_name: str = recorded.NAME
    differing: set[str] = Field(default_factory=set, exclude=True, repr=False)

    @override
    def _reply(self, prompt: str) -> StandInReply:
        return recorded.load_recording().reply(prompt, self.differing)


def _usage(reply: StandInReply) -> UsageMetadata | None:
    if reply.input_tokens is None:
        return None
    given, written = reply.input_tokens, reply.output_tokens
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
