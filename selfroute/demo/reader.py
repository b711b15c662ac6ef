"""The extractive reader: stands in for a language model where there is no key. It is none."""
# ruff: noqa: ARG002 - the signatures are LangChain's

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr

from selfroute.demo.sentences import SentencePicker, take_apart
from selfroute.usage import count_tokens

_NAME = "extractive-reader"


class ExtractiveReader(BaseChatModel):
    r"""Answers with the sentence of the prompt that is nearest to its question. It is no language model.

    It understands nothing: it embeds the question and every sentence of the context, returns the nearest
    sentence, and writes the refusal word if even that one is further away than `threshold`. It is good
    for trying the routing without a key, not for judging answers.

    The default threshold was chosen by looking at the 30 questions that come with the package, with
    all-MiniLM-L6-v2 and five passages: at 0.57 it answers 14 of them from the passages and 2 from the whole
    documents and declines 14, among these all 6 that the documents do not answer; from 0.55 down it
    answers some of those 6. It says nothing about other texts or other embeddings.

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
    threshold: float = 0.57
    refusal: str = "unanswerable"

    model_config = ConfigDict(arbitrary_types_allowed=True)
    _picker: SentencePicker = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Set up the cache of sentence embeddings."""
        super().model_post_init(context)
        self._picker = SentencePicker(self.embeddings.embed_documents)

    @property
    def _llm_type(self) -> str:
        return _NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": _NAME, "threshold": self.threshold, "refusal": self.refusal}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = _text_of(messages)
        reply = self._reply(prompt)
        message = AIMessage(
            content=reply, usage_metadata=_usage(prompt, reply), response_metadata={"model_name": _NAME}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        prompt = _text_of(messages)
        reply = self._reply(prompt)
        for word in re.findall(r"\s*\S+", reply):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(content="", usage_metadata=_usage(prompt, reply), response_metadata={"model_name": _NAME})
        last.chunk_position = "last"
        yield ChatGenerationChunk(message=last)

    def _reply(self, prompt: str) -> str:
        question, context = take_apart(prompt, refusal=self.refusal)
        pick = self._picker.pick(question, context)
        return pick.text if pick and pick.cosine >= self.threshold else self.refusal


def _text_of(messages: list[BaseMessage]) -> str:
    return "\n\n".join(str(message.text) for message in messages)


def _usage(prompt: str, reply: str) -> UsageMetadata:
    """Count a quarter of the characters: there is no tokenizer."""
    given, written = count_tokens(prompt), count_tokens(reply)
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
