"""The chat engine of a query engine: a message is reworded with the history, and then routed as a question."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from llama_index.core.base.llms.generic_utils import messages_to_history_str
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import trace_method
from llama_index.core.chat_engine.condense_question import DEFAULT_PROMPT
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import LLM, ChatMessage, ChatResponse
from llama_index.core.memory import BaseMemory
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import ToolOutput
from typing_extensions import override

from llamaindex_selfroute import internals
from llamaindex_selfroute.prompts.filling import checked_prompt
from selfroute.answerability.spoken import said_in
from selfroute.calls.host import check_question

_VARIABLES = frozenset({"chat_history", "question"})


@dataclass
class StreamedReply(StreamingAgentChatResponse):
    """A reply that comes in pieces. Closing `response_gen` or `async_response_gen()` stops the model.

    Attributes:
        metadata: The metadata of the engine's response, which are complete when the reply has been read.
    """

    metadata: dict[str, Any] | None = None

    @property
    @override
    def response_gen(self) -> Generator[str, None, None]:
        with closing(self.chat_stream) if self.chat_stream else nullcontext():
            yield from super().response_gen

    @override
    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        stream = aclosing(self.achat_stream) if self.achat_stream else nullcontext()
        async with stream, aclosing(super().async_response_gen()) as pieces:
            async for piece in pieces:
                yield piece


class SelfRouteChatEngine(BaseChatEngine):
    """Chat about the documents of an engine; `SelfRouteQueryEngine.as_chat_engine` makes one for a conversation.

    A message is written into the history with its answer when the answer has been read to its end: without the answer
    if the question was not answered, and not at all after an error or if the reader left.
    """

    def __init__(
        self,
        engine: RetrieverQueryEngine,
        *,
        llm: LLM,
        memory: BaseMemory,
        condense_prompt: str | BasePromptTemplate | None = None,
        skip_condense: bool = False,
    ) -> None:
        """Build a chat engine; `as_chat_engine` describes the arguments.

        Raises:
            ConfigurationError: The prompt lacks a variable.
        """
        prompt = PromptTemplate(condense_prompt) if isinstance(condense_prompt, str) else condense_prompt
        self._condense_prompt = checked_prompt("condense_prompt", prompt or DEFAULT_PROMPT, variables=_VARIABLES)
        self._engine, self._llm, self._memory, self._skip_condense = engine, llm, memory, skip_condense
        self.callback_manager = engine.callback_manager

    @override
    @trace_method("chat")
    def chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """Answer a message; a `chat_history` replaces the memory."""
        question = self._condensed(message, chat_history)
        response = cast("Response", internals.with_streaming(self._engine, False).query(question))
        self._memory.put_messages(_turn(message, str(response), response))
        return AgentChatResponse(str(response), **_of(question, response))

    @override
    @trace_method("chat")
    async def achat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """The async twin of `chat`."""
        question = await self._acondensed(message, chat_history)
        response = cast("Response", await internals.with_streaming(self._engine, False).aquery(question))
        await self._memory.aput_messages(_turn(message, str(response), response))
        return AgentChatResponse(str(response), **_of(question, response))

    @override
    @trace_method("chat")
    def stream_chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> StreamedReply:
        """Answer a message in pieces; its sources and metadata are known when this returns."""
        question = self._condensed(message, chat_history)
        response = cast("StreamingResponse", internals.with_streaming(self._engine, True).query(question))

        def replies() -> Generator[ChatResponse, None, None]:
            text = ""
            with closing(response.response_gen) as pieces:
                for piece in pieces:
                    text += piece
                    yield ChatResponse(message=_said(text), delta=piece)
            self._memory.put_messages(_turn(message, text, response))

        return StreamedReply(chat_stream=replies(), is_writing_to_memory=False, **_of(question, response))

    @override
    @trace_method("chat")
    async def astream_chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> StreamedReply:
        """The async twin of `stream_chat`; sources and metadata are filled in with the first piece."""
        question = await self._acondensed(message, chat_history)
        response = cast("AsyncStreamingResponse", await internals.with_streaming(self._engine, True).aquery(question))

        async def replies() -> AsyncGenerator[ChatResponse, None]:
            text = ""
            async with aclosing(response.async_response_gen()) as pieces:
                async for piece in pieces:
                    text += piece
                    yield ChatResponse(message=_said(text), delta=piece)
            await self._memory.aput_messages(_turn(message, text, response))

        return StreamedReply(achat_stream=replies(), is_writing_to_memory=False, **_of(question, response))

    @override
    def reset(self) -> None:
        self._memory.reset()

    @property
    @override
    def chat_history(self) -> list[ChatMessage]:
        return list(self._memory.get_all())

    def _condensed(self, message: str, chat_history: list[ChatMessage] | None) -> str:
        """Return the question that a message asks, which can be understood without the history."""
        check_question(message)
        if chat_history is not None:
            self._memory.set(list(chat_history))
        words = self._words(message, self._memory.get(input=message))
        return _asked(self._llm.predict(self._condense_prompt, **words), message) if words else message

    async def _acondensed(self, message: str, chat_history: list[ChatMessage] | None) -> str:
        """The async twin of `_condensed`."""
        check_question(message)
        if chat_history is not None:
            await self._memory.aset(list(chat_history))
        words = self._words(message, await self._memory.aget(input=message))
        return _asked(await self._llm.apredict(self._condense_prompt, **words), message) if words else message

    def _words(self, message: str, history: list[ChatMessage]) -> Mapping[str, str] | None:
        """Return the variables of the prompt that rewords a message; None for a message that is asked as it is."""
        if self._skip_condense or not history:
            return None
        return {"question": message, "chat_history": messages_to_history_str(history)}


def _asked(reply: str, message: str) -> str:
    """Return what a model reworded a message as; the message if that is nothing."""
    return said_in(reply).strip() or message


def _said(text: str) -> ChatMessage:
    return ChatMessage(text, role=MessageRole.ASSISTANT)


def _turn(message: str, text: str, response: RESPONSE_TYPE) -> list[ChatMessage]:
    """Return what the history keeps: a refusal would mislead the model that rewords the next message."""
    asked, answered = ChatMessage(message), (response.metadata or {}).get("answerable")
    return [asked, _said(text)] if answered else [asked]


def _of(question: str, response: RESPONSE_TYPE) -> dict[str, Any]:
    """Return what a reply has besides its text. Lists and metadata are the response's own, since streams fill them."""
    text = response.response if isinstance(response, Response) else None
    source = ToolOutput("query_engine", text, raw_input={"query": question}, raw_output=response)
    return {"sources": [source], "source_nodes": response.source_nodes, "metadata": response.metadata}
