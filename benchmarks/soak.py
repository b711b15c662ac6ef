"""Ask a thousand questions at once, round after round, while much goes wrong, and check that nothing is left behind.

    python benchmarks/soak.py [--framework langchain|llamaindex|both] [--streams 1000] [--rounds 4] [--seed 0]

All streams of a round start at once: nine of ten in tasks of one event loop, the rest in threads, over ChatOpenAI or
OpenAILike with their defaults. The server is a separate process on loopback. Its replies are answers, declines and
second declines. They start late, arrive in pieces with pauses between, fail with 429 and 500, and end in an error event
or a dropped connection, before the headers or in the middle. Readers close their stream, or are cancelled, before
anything has arrived or after some pieces. Every query is about one of twenty folders in a store, and may read no other.

The script checks that

* every query ends in time, and in its own answer, in an error from the client package, or because its reader left;
* a query shows nothing but the beginning of its own answer;
* each query's account agrees with the server's book (if a reader leaves before anything has arrived, nobody knows
  whether the request was sent), and the ledger's sums are those of the accounts;
* the server holds no request, and no task, thread or object of a query is left;
* connections and memory do not grow after the first two rounds;
* no connection is open once the clients are closed.

Nothing leaves the machine. The script needs the same packages as the tests. Exit code 1 if any check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from llama_index.core.instrumentation import get_dispatcher

import loopback
from loopback import LoopbackServer
from traffic import Bills, Chains, Desk, Dice, Engines, Query, Seen, ask_all, broken_laws, left_over

KINDS = {"langchain": Chains, "llamaindex": Engines}
DEADLINE = 300.0  # seconds after which a query counts as hanging
SLOW = 1.5  # the longest delay of a slow start, in seconds
WARM_UP = 2  # rounds after which nothing may grow
# The largest growth allowed in 1,000 queries; kept connections and malloc's reserves come and go.
MOST = {"files": 40, "threads": 0, "tasks": 0, "objects": 1_000, "blocks": 3_000, "rss_kb": 10_000}


def serve(pipe: Connection) -> None:
    """Run the provider: take plans, and send back the bills of the last plan once all its requests have ended."""
    raise_limit()
    loopback.A_MINUTE = DEADLINE  # how long a reply is held back: a busy event loop may be late by more than a minute
    loopback.POLL = 0.1  # there are a thousand connections to poll
    with LoopbackServer(lambda _: "", keep_alive=True) as server:
        pipe.send(server.openai_url)
        desk = Desk(server, [])
        while (message := pipe.recv()) is not None:
            if isinstance(message, list):
                server.book.clear()
                desk = Desk(server, message)
                pipe.send(None)
                continue
            try:
                server.settle(message)
                pipe.send((dict(desk.bills), None))
            except TimeoutError as error:
                pipe.send((dict(desk.bills), str(error)))


class Server:
    """The provider's process."""

    def __init__(self) -> None:
        """Start it."""
        processes = multiprocessing.get_context("spawn")
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        self.openai_url: str = self._pipe.recv()

    def expect(self, plan: Sequence[Query]) -> None:
        """Send it the queries of a round, with what to do at each."""
        self._pipe.send(list(plan))
        self._pipe.recv()

    def bills(self, *, within: float) -> tuple[Bills, str | None]:
        """Return its book, and an error message if it still holds a request."""
        self._pipe.send(within)
        bills, held = self._pipe.recv()
        return bills, held

    def stop(self) -> None:
        """Stop it."""
        self._pipe.send(None)
        self._process.join()


async def at_any_moment(query: Query) -> None:
    """Wait until a reader leaves before anything has arrived."""
    await asyncio.sleep(Random(query.number).uniform(0, 2 * SLOW))  # noqa: S311


def raise_limit() -> None:
    """Raise the limit on open files as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 65_536
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass(frozen=True)
class State:
    """The resources that the process holds at one moment."""

    files: int
    threads: int
    tasks: int
    objects: int
    blocks: int
    rss_kb: int

    @classmethod
    def now(cls) -> State:
        """Measure them, after a full garbage collection."""
        gc.collect()
        gc.collect()
        process = psutil.Process()
        tasks, objects, rss = len(asyncio.all_tasks()), len(gc.get_objects()), process.memory_info().rss // 1024
        blocks = sys.getallocatedblocks()
        return cls(process.num_fds(), threading.active_count(), tasks, objects, blocks, rss)


@dataclass
class Collections:
    """The garbage collections during a round: those that `selfroute` asked for, and all others."""

    seconds: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count the collections inside the `with` block."""
        begun = 0.0

        def watch(phase: str, about: dict[str, int]) -> None:
            nonlocal begun
            if phase == "start":
                begun = time.perf_counter()
                return
            asked = sys._getframe(1).f_code.co_filename.endswith("hangup.py")  # noqa: SLF001
            kind = f"{'asked for' if asked else 'automatic'}, generation {about['generation']}"
            self.seconds[kind] += time.perf_counter() - begun
            self.times[kind] += 1

        gc.callbacks.append(watch)
        try:
            yield
        finally:
            gc.callbacks.remove(watch)

    def __str__(self) -> str:
        return "; ".join(f"{kind}: {n} in {self.seconds[kind]:.2f} s" for kind, n in sorted(self.times.items()))


def percentiles(seen: Sequence[Seen]) -> str:
    """Format how long readers waited for their first text."""
    times = [one.first for one in seen if one.first is not None]
    cuts = quantiles(times, n=20, method="inclusive")
    return f"first text {cuts[9]:.2f} s in the median, {cuts[18]:.2f} s at the 95th percentile"


async def lag(worst: list[float]) -> None:
    """Record how late the event loop is."""
    while True:
        at = time.perf_counter()
        await asyncio.sleep(0.05)
        worst.append(time.perf_counter() - at - 0.05)


async def one_round(crowd: Chains | Engines, plan: Sequence[Query], server: Server) -> list[str]:
    """Ask all queries at once, print a summary, and return the problems."""
    server.expect(plan)
    crowd.entries.clear()
    crowd.ledger.reset()
    collections, late, started, worked = Collections(), [0.0], time.perf_counter(), time.process_time()
    watching = asyncio.create_task(lag(late))
    with collections.watched():
        seen = await ask_all(crowd, plan, deadline=DEADLINE)
    taken, worked = time.perf_counter() - started, time.process_time() - worked
    watching.cancel()
    found = [] if all(one.end for one in seen) else ["not all queries ended"]
    bills, held = await asyncio.to_thread(server.bills, within=1)
    if held:
        gc.collect()
        bills, still = await asyncio.to_thread(server.bills, within=30)
        found.append(f"requests {held}; {f'{still} still' if still else 'none'} after a full collection")
    found += broken_laws(crowd, seen, bills, at_any_moment=True)
    ends = Counter(
        f"{one.end}{'' if one.query.answerable or one.end != 'answered' else ', twice declined'}" for one in seen
    )
    rate = f"{len(plan) / taken:.0f} a second, {worked:.1f} s of CPU"
    print(f"  {len(plan)} queries in {taken:.1f} s, {rate}; {percentiles(seen)}")
    print("  " + ", ".join(f"{count} {end}" for end, count in sorted(ends.items(), key=str)), end="; ")
    print(f"{sum(map(len, bills.values()))} requests; the event loop was late by {max(late):.2f} s at most")
    print(f"  collections {collections}")
    return found


async def soak(kind: str, server: Server, *, streams: int, rounds: int, seed: int) -> list[str]:
    """Run all rounds with one framework, and return the problems."""
    print(f"\n{kind}: {rounds} rounds of {streams} streams")
    before = State.now()
    crowd = KINDS[kind](server, at_any_moment)
    get_dispatcher().event_handlers.extend(getattr(crowd, "handlers", ()))
    dice = Dice(KINDS[kind], seed=seed, slow=SLOW)
    states, found = [State.now()], []
    for number in range(rounds):
        print(f" round {number + 1}")
        plan = [dice.query(number * streams + place) for place in range(streams)]
        found += await one_round(crowd, plan, server)
        crowd.entries.clear()
        crowd.ledger.reset()
        del plan
        await asyncio.sleep(0.1)
        if left := left_over():
            found.append(f"left over from the queries of round {number + 1}: {dict(left)}")
        states.append(State.now())
        print(f"  {states[-1]}")
    await crowd.close()
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0.1)
    get_dispatcher().event_handlers.clear()
    after = State.now()
    print(f" before {states[0]}\n closed {after}")
    if after.files > before.files:
        found.append(f"{after.files - before.files} files or connections are still open after the clients were closed")
    if (states[-1].tasks, after.threads) != (before.tasks, before.threads):
        found.append(f"{states[-1].tasks - before.tasks} tasks and {after.threads - before.threads} threads are left")
    return found + _growth(states[WARM_UP:], streams)


def _growth(states: Sequence[State], streams: int) -> list[str]:
    if len(states) < 2:
        return []
    first, last, queries = states[0], states[-1], (len(states) - 1) * streams
    print(f" growth for 1,000 queries after {WARM_UP} rounds:", end="")
    found = []
    for name, most in MOST.items():
        grown = getattr(last, name) - getattr(first, name)
        print(f" {name} {grown * 1_000 / queries:+.0f}", end="")
        if grown > most * max(2, queries / 1_000):  # fewer than 2,000 queries show little
            found.append(f"{name} grew by {grown} in {queries} queries")
    print()
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=[*KINDS, "both"], default="both")
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=4, help="growth is judged from the third round on")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    raise_limit()
    server, found = Server(), []
    for kind in KINDS if arguments.framework == "both" else [arguments.framework]:
        options: Any = {"streams": arguments.streams, "rounds": arguments.rounds, "seed": arguments.seed}
        found += asyncio.run(soak(kind, server, **options))
    server.stop()
    print("\n".join(["", *found[:40], f"{len(found)} problems." if found else "All checks passed."]))
    sys.stdout.flush()
    if any("ended" in line for line in found):
        os._exit(1)  # a query that hangs in a thread would keep the process alive
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
