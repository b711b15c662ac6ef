"""The chat engine of an engine: history, a question that can be understood alone, and a route."""

from __future__ import annotations

from contextlib import aclosing, closing
from typing import Any

import pytest
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.prompts import PromptTemplate

from hosts_documents import ITS_OWN, MINE, OTHER, shared
from hosts_documents import QUESTION as WHAT_IS_LIFTED
from langchain_stores import text_of
from llamaindex_agents_parts import (
    ANSWERS,
    CHATS,
    LONG,
    READ,
    ROUTES,
    a_memory,
    engine_of,
    retriever_of,
    say,
    says,
    texts_of,
)
from llamaindex_parts import KEYS, QUESTION, CallbackRecorder, ScriptedLLM, an_engine, model_of, recorded
from llamaindex_selfroute import SelfRouteQueryEngine
from scenarios import FOUND
from selfroute.errors import ConfigurationError, InputError, UnknownOptionError

CONDENSED, AND_MAY = "Who chaired the meeting of May?", "And in May?"
STREAMED = ("stream_chat", "astream_chat")
every_way = pytest.mark.parametrize("way", CHATS)


def a_chat(engine: SelfRouteQueryEngine, *condensed: str, **options: Any) -> BaseChatEngine:
    return engine.as_chat_engine(llm=says(*condensed or (CONDENSED,)), **options)


def said(chat: BaseChatEngine) -> list[str | None]:
    return [message.content for message in chat.chat_history]


async def begun(chat: BaseChatEngine, message: str, way: str) -> Any:
    """A reply of which the first piece was read, and then the reader left."""
    if way == "stream_chat":
        reply = chat.stream_chat(message)
        with closing(reply.response_gen) as pieces:
            next(pieces)
        return reply
    reply = await chat.astream_chat(message)
    async with aclosing(reply.async_response_gen()) as awaited:
        await anext(awaited)
    return reply


@every_way
@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("mode", ["query", "stream"])
async def test_chat_routes_each_message_as_a_question_of_its_own(kind: str, way: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    chat = a_chat(engine)
    for message, asked in ((QUESTION, QUESTION), (AND_MAY, CONDENSED)):
        pieces, reply = await say(chat, message, way)
        assert ("".join(pieces), str(reply)) == (ANSWERS[kind], ANSWERS[kind])
        assert isinstance(reply, StreamingAgentChatResponse if way in STREAMED else AgentChatResponse)
        assert (set(reply.metadata), reply.metadata["route"], reply.metadata["answerable"]) == (
            KEYS,
            ROUTES[kind],
            True,
        )
        assert texts_of(reply) == READ[kind]
        assert [source.raw_input for source in reply.sources] == [{"query": asked}]
    assert [query.query_str for query in retriever_of(engine).queries] == [QUESTION, CONDENSED]
    assert said(chat) == [QUESTION, ANSWERS[kind], AND_MAY, ANSWERS[kind]]
    assert engine._response_synthesizer._streaming is (mode == "stream")  # as it was built
    chat.reset()
    assert chat.chat_history == []


@every_way
async def test_chat_history_holds_no_refusal(way: str) -> None:
    engine = an_engine(("unanswerable",), ("unanswerable",), not_found="Not in the minutes.")
    rewording = ScriptedLLM(draft=(CONDENSED,))
    chat = engine.as_chat_engine(llm=rewording)
    for message in (QUESTION, AND_MAY):
        pieces, reply = await say(chat, message, way)
        assert ("".join(pieces), reply.metadata["answerable"]) == ("Not in the minutes.", False)
    assert said(chat) == [QUESTION, AND_MAY]
    (call,) = rewording.calls
    assert f"user: {QUESTION}" in call.prompt
    assert "unanswerable" not in call.prompt


@every_way
@pytest.mark.parametrize("step", ["condense", "rag", "long_context"])
async def test_chat_history_stays_as_it_was_after_an_error(step: str, way: str) -> None:
    before = [ChatMessage("Who was there?"), ChatMessage("Mr Lin.", role=MessageRole.ASSISTANT)]
    broken = {step: [ConnectionError("the line went dead")]}
    engine = an_engine(failures=broken)
    rewording = ScriptedLLM(draft=(CONDENSED,), failures={"rag": broken.get("condense", [])})
    chat = engine.as_chat_engine(llm=rewording, chat_history=before)
    with pytest.raises(ConnectionError, match="went dead"):
        await say(chat, AND_MAY, way)
    assert chat.chat_history == before
    with pytest.raises(InputError):
        await say(chat, " ", way)
    assert len(rewording.calls) == 1
    assert "".join((await say(chat, AND_MAY, way))[0]) == FOUND


@every_way
async def test_chat_leaves_a_given_history_alone(way: str) -> None:
    before = (ChatMessage("Who was there?"), ChatMessage("Mr Lin.", role=MessageRole.ASSISTANT))
    for given in (before, list(before)):
        chat = a_chat(engine_of("answered"))
        await say(chat, AND_MAY, way, given)
        assert (tuple(given), len(chat.chat_history)) == (before, 4)


@every_way
async def test_chat_keeps_the_wall_of_the_engine(way: str) -> None:
    home = shared("llamaindex memory")
    pipeline = home.alone(home.search(ITS_OWN))
    _, reply = await say(pipeline.of(False).as_chat_engine(), WHAT_IS_LIFTED, way)
    assert texts_of(reply) == (text_of(MINE),)
    assert OTHER not in pipeline.prompts


@pytest.mark.parametrize("way", STREAMED)
@pytest.mark.parametrize("step", ["draft", "final"])
async def test_chat_that_is_left_stops_the_model_and_keeps_its_history(step: str, way: str) -> None:
    engine = an_engine(**{step: LONG * 20}, usage=True, clings=True)
    chat = a_chat(engine)
    reply = await begun(chat, QUESTION, way)
    assert (model_of(engine).calls[-1].ended, model_of(engine).calls[-1].emitted < 20) == ("closed", True)
    assert (set(reply.metadata), reply.metadata["usage"]["estimated"]) == (KEYS, True)
    assert chat.chat_history == []


@every_way
async def test_chats_of_one_engine_are_apart(way: str) -> None:
    engine = engine_of("answered")
    first, second = a_chat(engine), a_chat(engine, memory=a_memory())
    await say(first, QUESTION, way)
    await say(second, AND_MAY, way)
    assert (said(first)[0], said(second)[0]) == (QUESTION, AND_MAY)
    engine._response_synthesizer.not_found = "Nothing."  # a change of the engine reaches its chats
    engine._response_synthesizer.llm = ScriptedLLM(draft=("unanswerable",), final=("unanswerable",))
    assert "".join((await say(first, QUESTION, way))[0]) == "Nothing."


@every_way
async def test_chat_rewords_only_where_it_has_to(way: str) -> None:
    own = PromptTemplate("{question} after {chat_history}")
    for asked, condensed, options in (
        (CONDENSED, (CONDENSED,), {"condense_prompt": own}),
        (CONDENSED, (f" {CONDENSED}\n",), {"condense_prompt": own.template, "chat_mode": "best"}),
        (AND_MAY, (" ",), {}),  # nothing was written
        (CONDENSED, (f"<think>Of what?</think>{CONDENSED}",), {}),
        (AND_MAY, (CONDENSED,), {"skip_condense": True}),
        (AND_MAY, (CONDENSED,), {"chat_mode": "context"}),
    ):
        engine = engine_of("answered")
        chat = a_chat(engine, *condensed, **options)
        await say(chat, QUESTION, way)
        await say(chat, AND_MAY, way)
        assert [query.query_str for query in retriever_of(engine).queries] == [QUESTION, asked]


async def test_chat_history_of_a_call_replaces_the_memory() -> None:
    engine, given = engine_of("answered"), [ChatMessage("Who was there?")]
    chat = a_chat(engine)
    chat.chat(QUESTION)
    await chat.achat(AND_MAY, given)
    assert said(chat) == ["Who was there?", AND_MAY, ANSWERS["answered"]]
    chat.chat(AND_MAY, [])
    assert [query.query_str for query in retriever_of(engine).queries] == [QUESTION, CONDENSED, AND_MAY]


@every_way
async def test_chat_is_traced_as_the_host_s_own(way: str) -> None:
    with recorded() as heard:
        engine = an_engine(("Tea ", "was served."), callback_manager=heard.manager)
        await say(a_chat(engine), QUESTION, way)
    assert f"SelfRouteChatEngine.{way}" in heard.spans.roots
    assert (f"SelfRouteChatEngine.{way}", f"SelfRouteQueryEngine.{'a' * (way[0] == 'a')}query") in heard.spans.edges
    assert isinstance(heard.callbacks, CallbackRecorder)
    assert heard.callbacks.traces[0] == ("start", "chat")
    assert heard.callbacks.open == []


REFUSED: dict[str, tuple[type[Exception], str]] = {
    "system_prompt": (UnknownOptionError, "instructions="),
    "context_prompt": (UnknownOptionError, "rag_prompt="),
    "node_postprocessors": (UnknownOptionError, "SelfRouteQueryEngine(retriever, ...)"),
    "token_limit": (UnknownOptionError, "memory=ChatMemoryBuffer.from_defaults(token_limit=...)"),
    "streaming": (UnknownOptionError, "stream_chat() or astream_chat()"),
    "similarity_top_k": (UnknownOptionError, "similarity_top_k= of from_index"),
    "verbose": (UnknownOptionError, "leave it out"),
    "citations": (UnknownOptionError, "pass it to SelfRouteQueryEngine"),
    "memry": (UnknownOptionError, "did you mean 'memory'"),
    "chat_mode": (ConfigurationError, "; to chat with an agent, give the agent engine.tools()"),
    "llm": (ConfigurationError, "must be a LlamaIndex LLM"),
    "memory": (ConfigurationError, "must be a memory"),
    "condense_prompt": (ConfigurationError, "{chat_history} and {question}"),
}


@pytest.mark.parametrize("option", REFUSED)
def test_chat_refuses_an_option_with_advice(option: str) -> None:
    kind, advice = REFUSED[option]
    with pytest.raises(kind) as refused:
        engine_of("answered").as_chat_engine(**{option: "react"})
    assert advice in str(refused.value)
