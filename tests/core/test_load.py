"""Faults one by one, over a single connection: what keeps it keeps the next request waiting."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from both_parts import Pipeline
from langchain_parts import a_chain
from llamaindex_parts import an_engine
from loopback import RATE_LIMITED, LoopbackServer, Reply, Request
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
        self._parts = {"langchain": a_chain(llm=chat), "llamaindex": an_engine(llm=like, streaming=True)}

    def asked(self, framework: str, mode: str = "astream") -> Pipeline:
        return Pipeline(f"{framework} {mode}", self._parts[framework])


async def read(one: Pipeline, most: int | None = None, *, cancelled: bool = False) -> str:
    """Read all pieces, or some, and then close the stream or be cancelled."""
    shown: list[str] = []
    async with aclosing(one.pieces()) as texts:  # type: ignore[type-var]
        async for text in texts:
            shown.append(text)
            if len(shown) == most:
                if not cancelled:
                    break
                asyncio.current_task().cancel()  # type: ignore[union-attr]
    return "".join(shown)


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
async def test_one_connection_is_enough(server: LoopbackServer, pool: Pool, framework: str) -> None:
    faults = [RATE_LIMITED, Reply(hangs_up=True), Reply("Ms Okafor.", drop_after=1), Reply("Ms Okafor.", error_after=1)]
    server.answer = in_turn(*faults, RAMBLES, "Ms Okafor.", HELD, RAMBLES, HELD, HELD, RAMBLES, HELD, "Mr Lin.")
    async with pool.awaiting:
        for _ in faults:
            with pytest.raises(FAILURES):
                await read(pool.asked(framework))
        assert await read(pool.asked(framework)) == "Ms Okafor."
        assert await read(pool.asked(framework), 1) == "Yes,"
        assert await read(pool.asked(framework), 2) == "Yes, Ms"
        for _ in range(2):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(read(pool.asked(framework), 1, cancelled=True))
        assert await read(pool.asked(framework)) == "Mr Lin."
    server.settle()
    assert [entry.left for entry in server.book[len(faults) :]] == [True, False, *[True] * 6, False]


@FRAMEWORKS
def test_one_connection_is_enough_in_sync(server: LoopbackServer, pool: Pool, framework: str) -> None:
    server.answer = in_turn(RAMBLES, "Ms Okafor.", HELD, RAMBLES, HELD, "Mr Lin.")
    one = pool.asked(framework, "stream")
    shown = [one.run(read(one, most)) for most in (None, 1, 2, None)]
    assert shown == ["Ms Okafor.", "Yes,", "Yes, Ms", "Mr Lin."]
    server.settle()
    assert [entry.left for entry in server.book] == [True, False, True, True, True, False]


@FRAMEWORKS
async def test_reader_cancelled_while_leaving(
    server: LoopbackServer, pool: Pool, framework: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = lambda _: HELD
    async with pool.awaiting:
        for turns in range(12):
            leaving = asyncio.Event()

            async def leave() -> None:
                async with aclosing(pool.asked(framework).pieces()) as texts:  # type: ignore[type-var]
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
