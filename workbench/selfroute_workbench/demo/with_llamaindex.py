"""The extractive reader and the recording as completion models of LlamaIndex, and the embeddings for the demo."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import Field
from typing_extensions import override

from selfroute_workbench.demo import recorded, vectors
from selfroute_workbench.demo.reader import NAME, StandInReply, reply
from selfroute_workbench.demo.weights import weights

_BATCH = 64


def load_embeddings(name: str | None = None) -> BaseEmbedding:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It cannot be loaded.
    """
    from huggingface_hub.constants import HF_HUB_CACHE  # noqa: PLC0415 - these take seconds, while the caller shows progress
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding  # noqa: PLC0415 - likewise

    with weights(name) as path:
        # The model's own maximum length, and the usual cache folder.
        return HuggingFaceEmbedding(path, max_length=None, cache_folder=HF_HUB_CACHE, embed_batch_size=_BATCH)


class ShippedVectors(BaseEmbedding):
    """The vectors that come with the package, for LlamaIndex: see `selfroute_workbench.demo.vectors.ShippedVectors`."""

    @override
    def _get_query_embedding(self, query: str) -> list[float]:
        return vectors.ShippedVectors().embed_query(query)

    @override
    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    @override
    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)


class _StandIn(CustomLLM):
    """A model that needs no key."""

    _name: ClassVar[str]

    @abstractmethod
    def _reply(self, prompt: str) -> StandInReply: ...

    @property
    @override
    def metadata(self) -> LLMMetadata:
        """The model's name."""
        return LLMMetadata(model_name=self._name)

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


class ExtractiveReader(_StandIn):
    r"""The extractive reader as a completion model. It is no language model: see `demo.reader.reply`.

    Example:
        >>> reader = ExtractiveReader()
        >>> reader.complete("The pier was closed in May.\n\nQuestion: When was the pier closed?\nAnswer:").text
        'The pier was closed in May.'
    """

    _name = NAME

    @override
    def _reply(self, prompt: str) -> StandInReply:
        return reply(prompt)


class RecordedModel(_StandIn):
    r"""The recorded replies of a language model to the demo's prompts, as a completion model.

    It answers the questions that come with selfroute, by the default options, by `selfroute.PAPER`, and from 5 or 20
    passages alone; as a judge it repeats the recorded grades. See `recording/README.md`.

    Example:
        >>> from selfroute.prompts import RAG
        >>> question = "What price per tonne did the Saltmarket Harbour Trust agree to charge for ice from 1 July 2023?"
        >>> prompt = RAG.format(context="...", question=question, refusal="unanswerable")
        >>> RecordedModel().complete(prompt).text
        '£104 a tonne'
    """

    _name = recorded.NAME
    differing: set[str] = Field(default_factory=set, exclude=True, repr=False)

    @override
    def _reply(self, prompt: str) -> StandInReply:
        return recorded.load_recording().reply(prompt, self.differing)


def _usage(reply: StandInReply) -> dict[str, int]:
    if reply.input_tokens is None:
        return {}
    given, written = reply.input_tokens, reply.output_tokens
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
