"""Parts that only composition needs: engines to compare, and models that call tools, select and judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import QueryEngineTool

from llamaindex_parts import STREAMS, ListRetriever, ScriptedLLM, an_engine
from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS

TEA = ("Tea ", "was ", "served.")  # stands in a passage, as FOUND stands in a document
LONG = ("Tea was served", *(f", and cup {n}" for n in range(9)), ".")  # an answer that streams
ANSWERS = {"answered": "Tea was served.", "declined": FOUND}
CHATS = ("chat", "achat", "stream_chat", "astream_chat")
ROUTES = {"answered": "rag", "declined": "long_context"}
READ = {"answered": PASSAGE_TEXTS, "declined": DOCUMENT_TEXTS}  # what it was read from


class OneLoopLLM(ScriptedLLM):
    """Breaks off a stream that is read in another event loop than it began in, as a connection does."""

    def _astream(self, asked: Sequence[ChatMessage] | str, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        async def pour() -> AsyncGenerator[Any, None]:
            begun = asyncio.get_running_loop()
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    if asyncio.get_running_loop() is not begun:
                        msg = "the connection is of another loop"
                        raise RuntimeError(msg)
                    yield chunk

        stream = super()._astream(asked, options)
        return pour()


def engine_of(kind: str, mode: str = "query", **fields: Any) -> RetrieverQueryEngine:
    """An engine that answers in the first step, or declines there, by one of `ROUTES`; for one of the modes."""
    draft, final, delay = fields.pop("draft", TEA), fields.pop("final", FINAL), fields.pop("delay", 0.0)
    llm = OneLoopLLM(draft=("unanswerable",) if kind == "declined" else draft, final=final, delay=delay)
    return an_engine(llm=llm, streaming=mode in STREAMS, **fields)


def retriever_of(engine: RetrieverQueryEngine) -> ListRetriever:
    """The retriever, which keeps its queries."""
    assert isinstance(engine.retriever, ListRetriever)
    return engine.retriever


def texts_of(response: Any) -> tuple[str, ...]:
    """The texts of a response's sources."""
    return tuple(item.get_content() for item in response.source_nodes)


def a_tool(engine: RetrieverQueryEngine, name: str = "minutes") -> QueryEngineTool:
    """An engine as a tool."""
    return QueryEngineTool.from_defaults(engine, name=name, description=f"Answers questions on the {name}.")


def _in_turn(replies: Sequence[str]) -> Callable[[str], tuple[str]]:
    left = list(replies)
    return lambda _: (left.pop(0) if len(left) > 1 else left[0],)


def says(*replies: str) -> ScriptedLLM:
    """A model that gives one reply after the other, and the last one again and again."""
    return ScriptedLLM(draft=_in_turn(replies))


def a_judge() -> ScriptedLLM:
    """A model that finds a piece of information supported where its context holds it word for word."""

    def verdict(prompt: str) -> tuple[str]:
        information, context = prompt.rsplit("Information: ", 1)[1].split("\nContext: ", 1)
        return ("YES",) if information in context else ("NO",)

    return ScriptedLLM(draft=verdict, final=verdict)


class ToolCaller(ScriptedLLM, FunctionCallingLLM):
    """Calls the tools that its reply lists, if it is `calling(...)`."""

    @property
    def metadata(self) -> LLMMetadata:
        return super().metadata.model_copy(update={"is_function_calling_model": True})

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        assert user_msg is None  # the host's agents and programs give the history alone
        return {"messages": chat_history, "tools": [tool.metadata.get_name() for tool in tools]}

    def get_tool_calls_from_response(self, response: ChatResponse, *_: Any, **__: Any) -> list[ToolSelection]:
        said = response.message.content or ""
        calls = json.loads(said) if said.startswith("[") else []
        return [
            ToolSelection(tool_id=f"call-{n}", tool_name=name, tool_kwargs=arguments)
            for n, (name, arguments) in enumerate(calls)
        ]


def calling(*calls: tuple[str, dict[str, Any]]) -> str:
    """The reply of a `ToolCaller` that calls tools, each by its name and arguments."""
    return json.dumps(calls)


def calls_tools(*replies: str) -> ToolCaller:
    """As `says`, of a model that can call tools."""
    return ToolCaller(draft=_in_turn(replies))


def a_memory() -> ChatMemoryBuffer:
    """A memory without a data base: the host's default never closes its own."""
    return ChatMemoryBuffer.from_defaults(token_limit=3_000)


async def say(chat: BaseChatEngine, message: str, way: str, history: Any = None) -> tuple[list[str], Any]:
    """The pieces that a chat engine says, and its response."""
    response = getattr(chat, way)(message, history)
    response = await response if way.startswith("a") else response
    if way == "stream_chat":
        return list(response.response_gen), response
    if way == "astream_chat":
        return [piece async for piece in response.async_response_gen()], response
    return [response.response], response
