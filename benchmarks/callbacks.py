"""Measure how long one callback of the event loop holds up the others: `python benchmarks/callbacks.py`.

A declined question about a document of 112 kB is answered through `ChatOpenAI`, by a model on loopback: first from the
passages, then from its sections, then from all of it. `bare` sends the same prompts by the client alone. Printed is the
CPU time of the longest callback, in milliseconds: of the first question, where the client itself sets things up, and of
later ones. Exit code 1 if one of ours takes more than 5 ms and more than the client's own.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import ChatOpenAI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from langchain_selfroute import SelfRouteChain
from loopback import LoopbackServer, Reply, Request
from measuring import Target, at_most, target_table

MOST = 5.0  # milliseconds
TEXT = " ".join(f"Sentence {n} tells of the harbour of Tarn in the year {n}." for n in range(2_000))[:112_000]
QUESTION = "What happened to the harbour in 77?"
OPTIONS: dict[str, dict[str, Any]] = {
    "text": {},
    "graded, sections, citations": {"answerability": "graded", "sections": 4_000, "citations": True},
}


def answer(request: Request) -> Reply:
    """Answer from whole documents alone; where two numbers are asked for, with two numbers first."""
    numbers = "80 20\n" if "two numbers" in request.prompt else ""
    return Reply(
        "The harbour of Tarn burnt down. " * 8 if len(request.prompt) > len(TEXT) else f"{numbers}unanswerable"
    )


class Watch:
    """Times each callback of the event loop."""

    def __init__(self) -> None:
        self.longest, run = 0.0, asyncio.events.Handle._run  # noqa: SLF001 - there is no public place to look from

        def timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.longest = max(self.longest, 1e3 * (time.thread_time() - began))

        asyncio.events.Handle._run = timed  # type: ignore[method-assign,assignment] # noqa: SLF001

    async def over(self, ask: Callable[[], Awaitable[object]], times: int) -> float:
        """Ask so often, and return how long the longest callback took."""
        await asyncio.sleep(0)  # not that of whoever asks
        self.longest = 0.0
        for _ in range(times):
            await asyncio.create_task(ask())  # type: ignore[arg-type]
        return self.longest

    async def least(self, ask: Callable[[], Awaitable[object]]) -> float:
        """Do so three times, ten questions each, and return the least: what else the machine does only adds to it."""
        return min([await self.over(ask, 10) for _ in range(3)])


def make_chain(server: LoopbackServer, store: Chroma, **options: Any) -> SelfRouteChain:
    """Make a chain with a client of its own."""
    llm = ChatOpenAI(model="gpt-4o-mini", api_key="k", base_url=server.openai_url, stream_usage=True)
    return SelfRouteChain.from_vectorstore(store, llm, **options)


async def measure(server: LoopbackServer, store: Chroma) -> list[Target]:
    """Print the figures, and return the targets."""
    watch, targets = Watch(), []
    print(f"{'CPU ms of the longest callback':<34}{'first':>8}{'later':>8}")
    for name, options in OPTIONS.items():
        server.book.clear()
        chain, client = (make_chain(server, store, **options) for _ in range(2))
        await chain.ainvoke(QUESTION)
        prompts = [entry.request.prompt for entry in server.book]

        async def bare(llm: Any = client.llm, prompts: list[str] = prompts) -> None:
            for prompt in prompts:
                async for _ in llm.astream(prompt):
                    pass

        fresh = make_chain(server, store, **options)
        fresh.warm_up()

        async def ours(chain: SelfRouteChain = fresh) -> None:
            async for _ in chain.astream(QUESTION):
                pass

        gc.collect()
        gc.freeze()
        taken = {
            way: (await watch.over(ask, 1), await watch.least(ask)) for way, ask in (("bare", bare), ("ours", ours))
        }
        for way, (first, later) in taken.items():
            print(f"{name + ', ' + way:<34}{first:>8.1f}{later:>8.1f}")
        for at, when in enumerate(("first", "later")):
            targets.append(
                at_most(f"{name}, {when}: the longest, in ms", taken["ours"][at], max(MOST, taken["bare"][at]))
            )
    return targets


def main() -> int:
    """Run the command."""
    chunks = [
        Document(TEXT[at : at + 1_000], metadata={"source": "tarn", "start_index": at})
        for at in range(0, len(TEXT), 1_000)
    ]
    store = Chroma("tarn", DeterministicFakeEmbedding(size=32))
    store.add_documents(chunks)
    with LoopbackServer(answer) as server:
        targets = asyncio.run(measure(server, store))
    print("\n".join(target_table(targets)))
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
