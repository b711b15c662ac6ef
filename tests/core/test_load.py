"""Faults one by one, over a single connection: what keeps it keeps the next request waiting."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, suppress
from itertools import islice
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from langchain_parts import a_chain
from llamaindex_parts import an_engine
from loopback import RATE_LIMITED, SERVER_ERROR, LoopbackServer, Reply, Request
from scenarios import QUESTION
from traffic import FAILURES

pytestmark = pytest.mark.usefixtures("frozen")

RAMBLES = Reply(f"unanswerable because of{' this' * 30}", hold_after=4)
HELD = Reply("Yes, Ms Okafor chaired it and went on and on.", hold_after=4)


class Pool:
    """A chain and an engine whose models have one connection."""

    def __init__(self, server: LoopbackServer) -> None:
        limits: Any = {"limits": httpx.Limits(max_connections=1), "timeout": 20, "trust_env": False}
        self.sync, self.awaiting = httpx.Client(**limits), httpx.AsyncClient(**limits)
        options: Any = {"model": "m", "api_key": "k", "max_retries": 0, "http_client": self.sync}
        url, awaiting = server.openai_url, self.awaiting
        chat = ChatOpenAI(base_url=url, stream_usage=True, http_async_client=awaiting, **options)
        like = OpenAILike(api_base=url, is_chat_model=True, async_http_client=awaiting, **options)
        self._chain, self._engine = a_chain(llm=chat), an_engine(llm=like, streaming=True)

    async def langchain(self) -> AsyncIterator[str]:
        async with aclosing(self._chain.astream(QUESTION)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                if chunk.get("answer"):
                    yield chunk["answer"]

    async def llamaindex(self) -> AsyncIterator[str]:
        response: Any = await self._engine.aquery(QUESTION)
        async with aclosing(response.async_response_gen()) as texts:
            async for text in texts:
                yield text

    async def read(self, framework: str, most: int | None = None, *, cancelled: bool = False) -> str:
        """Read a stream to its end, or some pieces of it."""
        read, task = [], asyncio.current_task()
        async with aclosing(getattr(self, framework)()) as texts:
            async for text in texts:
                read.append(text)
                if len(read) == most:
                    if not cancelled:
                        break
                    assert task
                    task.cancel()
        return "".join(read)

    def read_sync(self, framework: str, most: int | None = None) -> str:
        """As `read`."""
        if framework == "langchain":
            with closing(self._chain.stream(QUESTION)) as chunks:  # type: ignore[type-var]
                return "".join(islice((chunk["answer"] for chunk in chunks if chunk.get("answer")), most))
        with closing(self._engine.query(QUESTION).response_gen) as texts:  # type: ignore[union-attr]
            return "".join(islice(texts, most))


FRAMEWORKS = pytest.mark.parametrize("framework", ["langchain", "llamaindex"])


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: "", keep_alive=True) as started:
        yield started
    gc.collect()


@pytest.fixture
def pool(server: LoopbackServer) -> Iterator[Pool]:
    made = Pool(server)
    yield made
    made.sync.close()


def in_turn(*replies: Reply | str) -> Callable[[Request], Reply | str]:
    waiting = iter(replies)
    return lambda _: next(waiting)


@FRAMEWORKS
async def test_one_connection_is_enough_although_drafts_ramble_and_readers_leave(
    server: LoopbackServer, pool: Pool, framework: str
) -> None:
    server.answer = in_turn(RAMBLES, "Ms Okafor.", HELD, RAMBLES, HELD, HELD, RAMBLES, HELD, "Mr Lin.")
    async with pool.awaiting:
        assert await pool.read(framework) == "Ms Okafor."
        assert await pool.read(framework, 1) == "Yes,"
        assert await pool.read(framework, 2) == "Yes, Ms"
        for _ in range(2):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(pool.read(framework, 1, cancelled=True))
        assert await pool.read(framework) == "Mr Lin."
    server.settle()
    assert [entry.left for entry in server.book] == [True, False, *[True] * 6, False]


@FRAMEWORKS
def test_in_sync_one_connection_is_enough_although_drafts_ramble_and_readers_leave(
    server: LoopbackServer, pool: Pool, framework: str
) -> None:
    server.answer = in_turn(RAMBLES, "Ms Okafor.", HELD, RAMBLES, HELD, "Mr Lin.")
    shown = [pool.read_sync(framework, most) for most in (None, 1, 2, None)]
    assert shown == ["Ms Okafor.", "Yes,", "Yes, Ms", "Mr Lin."]
    server.settle()
    assert [entry.left for entry in server.book] == [True, False, True, True, True, False]


@FRAMEWORKS
async def test_one_connection_outlives_every_fault_of_the_server(
    server: LoopbackServer, pool: Pool, framework: str
) -> None:
    faults = [RATE_LIMITED, SERVER_ERROR, Reply(hangs_up=True), Reply("Ms Okafor.", drop_after=0)]
    faults += [Reply("Ms Okafor.", drop_after=1), Reply("Ms Okafor.", error_after=1)]
    each = [reply for fault in faults for reply in (fault, "unanswerable", fault)]
    server.answer = in_turn(*each, "Mr Lin.")
    async with pool.awaiting:
        for _ in range(2 * len(faults)):
            with pytest.raises(FAILURES):
                await pool.read(framework)
        assert await pool.read(framework) == "Mr Lin."


@FRAMEWORKS
async def test_a_reader_who_is_cancelled_while_leaving_is_cancelled_and_the_model_stops(
    server: LoopbackServer, pool: Pool, framework: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = lambda _: HELD
    async with pool.awaiting:
        for turns in range(12):
            leaving = asyncio.Event()

            async def leave() -> None:
                async with aclosing(getattr(pool, framework)()) as texts:
                    await anext(texts)
                    leaving.set()  # noqa: B023 - it is awaited within the loop

            reader = asyncio.create_task(leave())
            await leaving.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader
        await asyncio.to_thread(server.settle)
    assert {entry.left for entry in server.book} == {True}
    assert not caplog.records


@FRAMEWORKS
def test_a_sync_stream_stops_the_model_however_old_it_is(server: LoopbackServer, pool: Pool, framework: str) -> None:
    server.answer = lambda _: HELD
    streams = {"langchain": lambda: pool._chain.stream(QUESTION), "llamaindex": lambda: pool._engine.query(QUESTION)}
    opened: Any = streams[framework]()
    texts = getattr(opened, "response_gen", opened)
    next(texts)
    gc.collect()  # what a collection has passed over is old
    gc.disable()
    try:
        texts.close()
        server.settle()
    finally:
        gc.enable()
    assert server.book[0].left
