"""Single flight: who waits for whom, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Any
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute.calls.flights import Flights

SECONDS = 300.0
PIECES = ["", "Ms ", "Okafor"]


class BrokenError(Exception):
    """A model failed."""


@dataclass
class Provider:
    """Notes when replies are asked for, and when their first pieces come.

    Attributes:
        until_first: Seconds until the first piece of a reply.
    """

    until_first: float = 0.03
    asked: list[float] = field(default_factory=list)
    began: list[float] = field(default_factory=list)

    def reply(self) -> Generator[str, None, None]:
        self.asked.append(time.monotonic())
        time.sleep(self.until_first)
        for piece in PIECES:
            self.began.append(time.monotonic())
            yield piece

    async def areply(self, *, fails: bool = False) -> AsyncGenerator[str, None]:
        self.asked.append(time.monotonic())
        await asyncio.sleep(self.until_first)
        if fails:
            raise BrokenError
        for piece in PIECES:
            self.began.append(time.monotonic())
            yield piece

    def asked_before_the_first_piece(self) -> int:
        return sum(asked < min(self.began) for asked in self.asked)


async def one(flights: Flights, provider: Provider, key: str = "key", **how: Any) -> str:
    return "".join([piece async for piece in flights.ain_turn(key, SECONDS, provider.areply(**how))])


async def in_tasks(flights: Flights, provider: Provider, number: int, **how: Any) -> list[str]:
    return await asyncio.gather(*(one(flights, provider, **how) for _ in range(number)))


def test_flights_task_waits_for_thread() -> None:
    flights, provider = Flights(), Provider(until_first=0.1)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(lambda: list(flights.in_turn("key", SECONDS, provider.reply())))
        while not provider.asked:
            time.sleep(0.001)
        asyncio.run(one(flights, provider))
        first.result()
    assert provider.asked_before_the_first_piece() == 1


async def test_flights_blocking_call_does_not_wait_for_its_own_loop() -> None:
    flights, provider = Flights(), Provider(until_first=0.1)
    first = asyncio.create_task(one(flights, provider))
    await asyncio.sleep(0.05)
    started = time.monotonic()
    assert "".join(flights.in_turn("key", SECONDS, Provider(until_first=0).reply())) == "Ms Okafor"
    assert time.monotonic() - started < 1  # and not the time-out
    assert await first == "Ms Okafor"


def test_flights_wait_is_limited() -> None:
    assert Flights()._longest == 5
    flights, slow, fast = Flights(longest=0.1), Provider(until_first=0.4), Provider(until_first=0)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(lambda: list(flights.in_turn("key", SECONDS, slow.reply())))
        while not slow.asked:
            time.sleep(0.001)
        assert "".join(flights.in_turn("key", SECONDS, fast.reply())) == "Ms Okafor"
        assert not first.done()
        assert asyncio.run(one(flights, fast)) == "Ms Okafor"


def test_flights_nobody_waits_while_the_cache_is_warm() -> None:
    now = [0.0]
    flights, provider = Flights(clock=lambda: now[0]), Provider(until_first=0)
    for wait, leads in ((0, True), (1, False), (299, False), (299, False), (301, True)):
        now[0] += wait
        flight, first = flights._join("key")
        assert first is leads
        flights._arrived(flight, SECONDS)
    assert not provider.asked
    reply = flights.in_turn("other", SECONDS, provider.reply())
    assert next(reply) == ""  # an empty piece says, too, that the prompt was read
    assert "".join(flights.in_turn("other", SECONDS, provider.reply())) == "".join(reply) == "Ms Okafor"


def test_flights_are_bounded() -> None:
    flights, loops = Flights(), []

    async def ask() -> None:
        loops.append(ref(asyncio.get_running_loop()))
        await in_tasks(flights, Provider(), 4)

    asyncio.run(ask())
    gc.collect()
    assert [loop() for loop in loops] == [None]
    for number in range(20_000):
        flights._join(number)
    assert list(flights._flights) == list(range(10_000, 20_000))  # the latest


@examples(60)
@given(st.integers(0, 2**32), st.integers(2, 12))
def test_flights_serve_everybody_whoever_fails_or_leaves(seed: int, number: int) -> None:
    random, flights, ended = Random(seed), Flights(), list[Any]()  # noqa: S311

    async def question() -> None:
        key, kept, leaves = random.choice("xy"), random.choice([0.0, 0.004, 300.0]), random.random() < 0.3
        reply = Provider(random.random() / 100).areply(fails=random.random() < 0.3)
        async with aclosing(flights.ain_turn(key, kept, reply)) as pieces:
            async for _ in pieces:
                if leaves:
                    break

    async def in_loop() -> None:
        tasks = [asyncio.create_task(question()) for _ in range(number)]
        for task in tasks:
            if random.random() < 0.3:
                asyncio.get_running_loop().call_later(random.random() / 50, task.cancel)
        ended.extend(map(type, await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 4)))

    threads = [threading.Thread(target=lambda: asyncio.run(in_loop())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(ended) == 2 * number
    assert set(ended) <= {type(None), BrokenError, asyncio.CancelledError}
