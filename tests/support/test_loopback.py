"""The loopback servers speak the protocols: the real client packages say so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, closing
from functools import cache, reduce
from operator import add
from typing import Any, cast

import aiohttp
import httpx
import openai
import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

import loopback
from loopback import Entry, LoopbackServer, Reply, Request

PROMPT = "Who chaired the meeting?"
TEXT = "Mr Lin did."
SLOW = Reply(text="word " * 300, delay=0.01)

# What a dropped connection is to the clients, which use httpx or aiohttp.
DROPPED = (openai.APIConnectionError, httpx.TransportError, aiohttp.ClientError)

Ask = Callable[[BaseChatModel], AIMessage]


@pytest.fixture(scope="module")
def running() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: TEXT) as started:
        yield started
        chat_model.cache_clear()


@pytest.fixture
def server(running: LoopbackServer) -> LoopbackServer:
    running.answer = lambda _: TEXT
    running.book.clear()
    running.calls.clear()
    return running


@cache  # clients take their time to start
def chat_model(server: LoopbackServer, client: str, **options: Any) -> BaseChatModel:
    if client == "openai":
        return ChatOpenAI(
            base_url=server.openai_url,
            api_key="k",
            model="openai-loop",
            max_retries=0,
            **{"stream_usage": True, **options},
        )
    return ChatGoogleGenerativeAI(
        base_url=server.gemini_url, google_api_key="k", model="gemini-loop", max_retries=1, **options
    )


def invoke(llm: BaseChatModel) -> AIMessage:
    return llm.invoke(PROMPT)


def added(chunks: Iterable[AIMessageChunk]) -> AIMessage:
    return reduce(add, chunks)


def ainvoke(llm: BaseChatModel) -> AIMessage:
    return asyncio.run(llm.ainvoke(PROMPT))


def stream(llm: BaseChatModel) -> AIMessage:
    return added(llm.stream(PROMPT))


def astream(llm: BaseChatModel) -> AIMessage:
    async def read() -> list[AIMessageChunk]:
        return [chunk async for chunk in llm.astream(PROMPT)]

    return added(asyncio.run(read()))


def opened(llm: BaseChatModel) -> Generator[AIMessageChunk]:
    return cast("Generator[AIMessageChunk]", llm.stream(PROMPT))


def aopened(llm: BaseChatModel) -> AsyncGenerator[AIMessageChunk]:
    return cast("AsyncGenerator[AIMessageChunk]", llm.astream(PROMPT))


def leave_after_three(llm: BaseChatModel) -> None:
    with closing(opened(llm)) as chunks:
        texts = (chunk.text for chunk in chunks if chunk.text)
        assert [next(texts) for _ in range(3)] == ["word", " word", " word"]


def aleave_after_three(llm: BaseChatModel) -> None:
    async def leave() -> None:
        async with aclosing(aopened(llm)) as chunks:
            texts = (chunk.text async for chunk in chunks if chunk.text)
            assert [await anext(texts) for _ in range(3)] == ["word", " word", " word"]
        await asyncio.sleep(0)  # openai's client closes its connection at the next turn of the loop

    asyncio.run(leave())


def only_entry(server: LoopbackServer) -> Entry:
    server.settle()
    (entry,) = server.book
    return entry


both_clients = pytest.mark.parametrize("client", ["openai", "gemini"])
every_mode = pytest.mark.parametrize("ask", [invoke, stream, ainvoke, astream])
streaming = pytest.mark.parametrize("ask", [stream, astream])


REPLIES = {
    "cached": Reply(TEXT, cached_tokens=2),
    "thoughts": Reply(TEXT, thinking_tokens=20),
    "no usage": Reply(TEXT, usage=False),
    "pieces": Reply(pieces=["un", "ans", "", "werable"]),
    "empty": Reply(""),
}


@both_clients
@every_mode
@pytest.mark.parametrize("name", REPLIES)
def test_every_mode_gives_the_text_and_the_usage_that_is_booked(
    server: LoopbackServer, client: str, ask: Ask, name: str
) -> None:
    server.answer = lambda _: REPLIES[name]
    message = ask(chat_model(server, client))
    entry, pieces = only_entry(server), REPLIES[name].cut()
    assert message.text == "".join(pieces)
    assert (entry.request.protocol, entry.request.prompt, entry.done, entry.left) == (client, PROMPT, True, False)
    assert (entry.sent, entry.output_tokens) == (len(pieces), len(pieces) + REPLIES[name].thinking_tokens)
    if (usage := message.usage_metadata) is None:
        assert name == "no usage"
        return
    assert (usage["input_tokens"], usage["output_tokens"]) == (entry.input_tokens, entry.output_tokens)
    assert usage["total_tokens"] == 4 + entry.output_tokens
    assert usage["input_token_details"].get("cache_read", 0) == entry.cached_tokens == REPLIES[name].cached_tokens
    assert usage.get("output_token_details", {}).get("reasoning", 0) == entry.thinking_tokens


def test_an_openai_stream_reports_usage_only_if_asked_to(server: LoopbackServer) -> None:
    llm = chat_model(server, "openai", stream_usage=False)
    assert stream(llm).usage_metadata is None


@pytest.mark.parametrize(
    ("client", "reply", "error"),
    [
        ("openai", loopback.RATE_LIMITED, ModelRateLimitError),
        ("openai", loopback.SERVER_ERROR, ModelAPIError),
        ("openai", loopback.TOO_LONG_TYPED, ContextOverflowError),
        ("openai", loopback.TOO_LONG_IN_WORDS, ModelInvalidRequestError),
        ("gemini", loopback.GEMINI_RATE_LIMITED, ModelRateLimitError),
        ("gemini", loopback.GEMINI_SERVER_ERROR, ModelAPIError),
        ("gemini", loopback.GEMINI_TOO_LONG, ContextOverflowError),
        ("openai", Reply(status=404), ModelError),
        ("gemini", Reply(status=503), ModelError),
    ],
)
@every_mode
def test_error_answers_raise_what_the_clients_make_of_them(
    server: LoopbackServer, client: str, reply: Reply, error: type[Exception], ask: Ask
) -> None:
    server.answer = lambda _: reply
    with pytest.raises(error):
        ask(chat_model(server, client))
    entry = only_entry(server)
    assert (entry.status, entry.done, entry.input_tokens) == (reply.status, True, 0)


@both_clients
@every_mode
@pytest.mark.parametrize("reply", [Reply(TEXT, drop_after=after) for after in (0, 2, 3)] + [Reply(TEXT, hangs_up=True)])
def test_a_dropped_connection_raises(server: LoopbackServer, client: str, ask: Ask, reply: Reply) -> None:
    server.answer = lambda _: reply
    with pytest.raises(DROPPED):
        ask(chat_model(server, client))
    entry = only_entry(server)
    assert (entry.sent, entry.done, entry.left) == (reply.drop_after or 0, False, False)


@both_clients
@streaming
def test_an_error_event_raises_in_mid_stream(server: LoopbackServer, client: str, ask: Ask) -> None:
    error = {"code": 500, "message": "the model is overloaded", "status": "INTERNAL"}
    server.answer = lambda _: Reply(text=TEXT, error_after=2, error=error)
    with pytest.raises((openai.APIError, ModelAPIError), match="the model is overloaded"):
        ask(chat_model(server, client))
    assert only_entry(server).sent == 2


@both_clients
@pytest.mark.parametrize("leave", [leave_after_three, aleave_after_three])
def test_a_client_that_leaves_a_slow_stream_stops_it(
    server: LoopbackServer, client: str, leave: Callable[[BaseChatModel], None]
) -> None:
    server.answer = lambda _: SLOW
    leave(chat_model(server, client))
    entry = only_entry(server)
    assert entry.left
    assert not entry.done
    assert 3 <= entry.sent <= 6
    assert (entry.input_tokens, entry.output_tokens) == (4, entry.sent)


@both_clients
@pytest.mark.parametrize("reply", [Reply(text=TEXT, first_delay=30), Reply(text=TEXT, delay=30)])
def test_a_cancelled_request_is_noticed_at_once(server: LoopbackServer, client: str, reply: Reply) -> None:
    asked = threading.Event()

    def answer(_: Request) -> Reply:
        asked.set()
        return reply

    server.answer = answer

    async def cancel() -> None:
        task = asyncio.create_task(chat_model(server, client).ainvoke(PROMPT))
        await asyncio.to_thread(asked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    entry = only_entry(server)
    assert (entry.left, entry.sent) == (True, 0)


@both_clients
@pytest.mark.parametrize("leave", [leave_after_three, aleave_after_three])
def test_a_reply_is_held_until_the_client_leaves(
    server: LoopbackServer, client: str, leave: Callable[[BaseChatModel], None]
) -> None:
    server.answer = lambda _: Reply(text=SLOW.text, hold_after=3)
    leave(chat_model(server, client))
    entry = only_entry(server)
    assert (entry.left, entry.done, entry.sent) == (True, False, 3)


@both_clients
def test_the_prompt_is_all_text_of_all_messages(server: LoopbackServer, client: str) -> None:
    parts: list[str | dict[Any, Any]] = [{"type": "text", "text": "First."}, {"type": "text", "text": "Second."}]
    messages = [SystemMessage("Be brief."), HumanMessage(parts), AIMessage("Yes?"), HumanMessage(PROMPT)]
    chat_model(server, client).invoke(messages)
    assert only_entry(server).request.prompt == f"Be brief.\nFirst.\nSecond.\nYes?\n{PROMPT}"


@both_clients
def test_the_answer_may_depend_on_the_request(server: LoopbackServer, client: str) -> None:
    def answer(request: Request) -> str:
        assert request.headers["content-type"] == "application/json"
        return f"{request.model} {request.stream} {request.prompt}"

    server.answer = answer
    llm = chat_model(server, client)
    assert invoke(llm).text == f"{client}-loop False {PROMPT}"
    assert stream(llm).text == f"{client}-loop True {PROMPT}"


@both_clients
def test_an_answer_that_raises_is_a_server_error_that_says_so(server: LoopbackServer, client: str) -> None:
    def answer(request: Request) -> str:
        raise KeyError(request.model)

    server.answer = answer
    with pytest.raises(ModelAPIError, match="KeyError"):
        invoke(chat_model(server, client))


@pytest.mark.parametrize("keep_alive", [True, False])
def test_a_connection_is_kept_if_the_server_keeps_connections(*, keep_alive: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
    streams = [False, True, True, False]
    with (
        LoopbackServer(lambda _: TEXT, keep_alive=keep_alive) as server,
        httpx.Client(base_url=server.openai_url) as client,
    ):
        ports = set()
        for streamed in streams:
            with client.stream("POST", "/chat/completions", json={**body, "stream": streamed}) as response:
                ports.add(response.extensions["network_stream"].get_extra_info("client_addr"))
                assert "did." in response.read().decode()
    assert len(ports) == (1 if keep_alive else len(streams))


@pytest.mark.parametrize("asked", [True, False])
def test_completions_are_spoken_too(server: LoopbackServer, *, asked: bool) -> None:
    server.answer = lambda _: Reply(text=TEXT, cached_tokens=2)
    with openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as client:
        whole = client.completions.create(model="m", prompt=PROMPT)
        chunks = list(
            client.completions.create(model="m", prompt=PROMPT, stream=True, stream_options={"include_usage": asked})
        )
    assert whole.choices[0].text == TEXT
    assert [choice.text for chunk in chunks for choice in chunk.choices] == ["Mr", " Lin", " did.", ""]
    for usage in [whole.usage, *([chunks[-1].usage] if asked else [])]:
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        counts = (usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens)
        assert counts == (4, 3, 2)
    assert asked == any(chunk.usage for chunk in chunks)
    server.settle()
    assert [(entry.request.prompt, entry.request.stream, entry.done) for entry in server.book] == [
        (PROMPT, False, True),
        (PROMPT, True, True),
    ]


def test_settling_gives_up_in_time(server: LoopbackServer) -> None:
    server.answer = lambda _: SLOW
    with closing(opened(chat_model(server, "openai"))) as chunks:
        next(chunks)
        with pytest.raises(TimeoutError, match="in progress"):
            server.settle(timeout=0.01)


@both_clients
@streaming
def test_stopping_cuts_streams_off_and_leaves_no_thread(client: str, ask: Ask) -> None:
    before = threading.active_count()
    asked = threading.Event()

    def answer(_: Request) -> Reply:
        asked.set()
        return SLOW

    server = LoopbackServer(answer).start()

    def stop() -> None:
        asked.wait(5)
        time.sleep(0.05)
        server.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    llm = chat_model(server, client)
    with pytest.raises(DROPPED):
        ask(llm)
    stopping.join()
    assert threading.active_count() == before
    entry = only_entry(server)
    assert (entry.left, entry.done) == (False, False)
    with pytest.raises(DROPPED):
        invoke(llm)
    server.stop()
