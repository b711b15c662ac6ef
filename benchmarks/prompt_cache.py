"""Measure what prompt caches save: today's prompts and marked ones, orders, and single flight.

    python benchmarks/prompt_cache.py [RECORDED] [--questions 300] [--at-once 16]

The chain, the clients (langchain-openai, langchain-anthropic) and their protocols are real. The provider is
`cache_emulator.py`, on loopback: it caches as OpenAI and Anthropic say that they do, and answers with the replies that
gpt-4o-mini and claude-3-5-haiku once gave to questions about company filings: RECORDED is the folder of these
recordings, which are not part of this project. Without it, it asks the questions that come with selfroute, about its
documents written out thirty times, and every third draft declines.

Questions come in a random order, grouped by document, or in lanes: each document's one after another. For each model
and order it prints dollars at list prices, the share of the second step's tokens that came from the cache, and the 95th
percentile of the time to the first text, in the provider's seconds: what the client itself takes is multiplied by
`--speed`, and replies are not streamed, but arrive as a whole when they begin. The ideal is what the same calls would
cost if each prefix (a document, or a stretch of one that is too long) were written once, and read every other time.

Targets: by document, at most 3 % above the ideal; and where nothing is cached, no slower than without (at most 5 %).
Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anthropic
import httpx
from genai_prices import Usage, calc_price
from langchain_anthropic import ChatAnthropic
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_openai import ChatOpenAI

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.answerability import declines
from selfroute.caching import prompts
from selfroute.calls.flights import Flights
from selfroute_workbench.demo.corpus import load_documents, load_questions

MODELS = {
    "gpt-4o-mini": ("openai", "gpt-4o-mini", 1_024),
    "gpt-4.1-mini": ("openai", "gpt-4o-mini", 1_024),
    "gpt-5.6-luna": ("openai", "gpt-4o-mini", 1_024),
    "claude-haiku-4-5": ("anthropic", "claude-3-5-haiku-20241022", 4_096),
}
"""The provider of each model, whose recorded replies it gives, and the least tokens that are cached."""
WAYS = ("off", "marked", "marked, single flight")
SLACK, SLOWER = 1.03, 1.05

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question, its document, and the replies of both steps."""

    question: str
    document: str
    rag: str
    long_context: str


def recorded(folder: Path, model: str) -> tuple[dict[str, str], list[Asked]]:
    """Return the recorded documents and questions, with the replies of a model."""

    def lines(path: Path) -> list[Json]:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    replies = {row["id"]: row for row in lines(folder / "replies" / f"{model}.jsonl")}
    asked: dict[str, Asked] = {}  # of a question about several documents, the first
    for row in lines(folder / "questions.jsonl"):
        texts = [replies.get(row["id"], {}).get(step) for step in ("rag", "long_context")]
        if all(texts):
            rag, whole = ("unanswerable" if declines(text) else text for text in texts)
            asked.setdefault(row["question"], Asked(row["question"], row["document"], rag, whole))
    names = dict.fromkeys(one.document for one in asked.values())
    return {name: (folder / "documents" / name).read_text("utf-8") for name in names}, list(asked.values())


def own() -> tuple[dict[str, str], list[Asked]]:
    """Return the questions that come with selfroute, with replies that decline in turn."""
    documents = {name: text * 30 for name, text in load_documents().items()}
    names = list(documents)
    asked = []
    for copy in range(4):
        for number, one in enumerate(load_questions()):
            question = f"{one.question} ({copy})"
            rag = "unanswerable" if number % 3 == 0 else "It says so."
            asked.append(Asked(question, names[number % len(names)], rag, "It says so."))
    return documents, asked


@contextmanager
def emulator(asked: Sequence[Asked], speed: float) -> Iterator[int]:
    """Run the emulator in a process of its own; yield its port."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "traffic.json")
        path.write_text(json.dumps([vars(one) for one in asked]), "utf-8")
        command = [sys.executable, str(Path(__file__).with_name("cache_emulator.py")), str(path), "--speed", str(speed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield int(process.stdout.readline() if process.stdout else 0)
            finally:
                process.kill()


class Redirected(httpx.AsyncHTTPTransport):
    """Takes what is meant for a provider to the emulator: marks are sent to the provider's own address only."""

    def __init__(self, port: int) -> None:
        super().__init__(limits=httpx.Limits(max_connections=None))
        self.port = port

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self.port)
        return await super().handle_async_request(request)


def model_for(name: str, port: int, *, elsewhere: bool = False) -> BaseChatModel:
    """Return a client that believes that it calls its provider; or, `elsewhere`, a server without a cache."""
    client = httpx.AsyncClient(transport=Redirected(port), timeout=300)
    if MODELS[name][0] == "openai":
        at = {"base_url": f"http://127.0.0.1:{port}/uncached/v1"} if elsewhere else {}
        return ChatOpenAI(model=name, api_key="none", http_async_client=client, max_retries=0, **at)
    llm = ChatAnthropic(model=name, api_key="none", max_tokens=1_000, max_retries=0)
    vars(llm)["_async_client"] = anthropic.AsyncAnthropic(api_key="none", http_client=client, max_retries=0)
    return llm


def in_order(asked: Sequence[Asked], order: str) -> list[list[Asked]]:
    """Return lanes: the questions of a lane are asked in turn."""
    shuffled = random.Random(1).sample(list(asked), len(asked))  # noqa: S311
    if order == "random":
        return [[one] for one in shuffled]
    lanes = defaultdict(list)
    for one in shuffled:
        lanes[one.document].append(one)
    return [*lanes.values()] if order == "lanes" else [[one] for lane in lanes.values() for one in lane]


def passages(question: str, text: str) -> list[Document]:
    """Return five passages, which differ by question: drafts are not to profit from a cache that real ones miss."""
    starts = random.Random(question).choices(range(max(len(text) - 1_800, 1)), k=5)  # noqa: S311
    return [Document(text[at : at + 1_800]) for at in starts]


async def ask_all(
    llm: BaseChatModel, documents: Mapping[str, str], lanes: Sequence[Sequence[Asked]], *, wish: str, at_once: int
) -> Json:
    """Ask all questions, and return the ledger's figures and the time that it took."""
    ledger, gate = SelfRouteLedger(), asyncio.Semaphore(at_once)
    chains = {
        name: SelfRouteChain(
            retriever=RunnableLambda(lambda inputs, text=text: passages(inputs["input"], text)),
            llm=llm,
            documents=[Document(text)],
            prompt_cache=wish,
        )
        for name, text in documents.items()
    }

    async def ask(lane: Sequence[Asked]) -> None:
        async with gate:
            for one in lane:
                await chains[one.document].ainvoke(one.question, RunnableConfig(callbacks=[ledger]))

    started = time.perf_counter()
    await asyncio.gather(*map(ask, lanes))
    return {**ledger.to_dict(), "took": time.perf_counter() - started}


def dollars(name: str, calls: Sequence[Json]) -> float:
    """Return what calls cost at list prices."""
    total = 0.0
    for call in calls:
        usage = Usage(
            input_tokens=call["input"],
            output_tokens=call["output"],
            cache_read_tokens=call["read"],
            cache_write_tokens=call["written"],
        )
        total += float(calc_price(usage, name, provider_id=MODELS[name][0]).total_price)
    return total


def ideal(name: str, calls: Sequence[Json], lengths: Mapping[str, int]) -> list[Json]:
    """Return the same calls, as if each document had been written by the first that reads it."""
    marked = name in ("gpt-5.6-luna", "claude-haiku-4-5")
    seen, found = set(), []
    for call in calls:
        taken = {**call, "read": 0, "written": 0}
        prefix = lengths.get(call["document"], 0)
        if call["step"] == "long_context" and prefix >= MODELS[name][2]:
            if call["document"] in seen:
                taken["read"] = prefix if marked else prefix // 128 * 128
            elif marked:
                taken["written"] = prefix
            seen.add(call["document"])
        found.append(taken)
    return found


def bill_of(port: int) -> list[Json]:
    """Return what the emulator's calls took since it was asked last; it forgets them, and what it has cached."""
    bill: list[Json] = httpx.get(f"http://127.0.0.1:{port}/bill").json()
    return bill


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Measures what prompt caches save.")
    parser.add_argument("recorded", type=Path, nargs="?", help="the folder of the recordings")
    parser.add_argument("--questions", type=int, default=300, help="how many to ask, at most")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--speed", type=float, default=10, help="how much faster than real the provider is")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    missed = []
    elsewhere = next((name for name in options.models if MODELS[name][0] == "openai"), None)
    if elsewhere is None:
        print("Without a model of OpenAI it is not measured whether anybody waits where nothing is cached.")
    print(f"{'model':18}{'order':10}{'prompts':24}{'dollars':>9}{'ideal':>9}{'hit rate':>10}{'p95 s':>8}")
    for name in options.models:
        documents, asked = recorded(options.recorded, MODELS[name][1]) if options.recorded else own()
        asked = random.Random(2).sample(asked, min(options.questions, len(asked)))  # noqa: S311
        with emulator(asked, options.speed) as port:
            for order in ("random", "grouped", "lanes"):
                for way in WAYS:
                    row = measure(name, port, documents, in_order(asked, order), way, options)
                    print(
                        f"{name:18}{order:10}{way:24}{row['dollars']:9.4f}{row['ideal']:9.4f}{row['hits']:10.2f}{row['p95']:8.2f}",
                        flush=True,
                    )
                    if order != "random" and way == WAYS[-1] and row["dollars"] > SLACK * row["ideal"]:
                        missed.append(f"{name}, {order}: {row['dollars'] / row['ideal']:.3f} of the ideal")
            if name == elsewhere:
                lanes = in_order(asked, "grouped")
                rows = [
                    measure(name, port, documents, lanes, way, options, elsewhere=True)
                    for _ in range(3)
                    for way in WAYS
                ]
                took = {way: min(row["took"] for row in rows[at :: len(WAYS)]) for at, way in enumerate(WAYS)}
                ratio = took[WAYS[-1]] / took["off"]
                print(f"{name:18}{'no cache':10}time with waiting allowed to time without: {ratio:.3f}")
                if ratio > SLOWER:
                    missed.append(f"without a cache it takes {ratio:.3f} of the time")
    print("\n".join(f"missed: {one}" for one in missed) or "All targets are met.")
    sys.exit(bool(missed))


def measure(  # noqa: PLR0913, PLR0917 - what is measured, and how
    name: str,
    port: int,
    documents: Mapping[str, str],
    lanes: Sequence[Sequence[Asked]],
    way: str,
    options: Any,
    *,
    elsewhere: bool = False,
) -> Json:
    """Ask all questions in one way."""
    bill_of(port)
    llm = model_for(name, port, elsewhere=elsewhere)  # a client belongs to one event loop
    prompts.FLIGHTS = Flights() if way == WAYS[-1] else Flights(longest=0)
    wish = "off" if way == "off" else "5m" if MODELS[name][0] == "anthropic" else "auto"
    figures = asyncio.run(ask_all(llm, documents, lanes, wish=wish, at_once=options.at_once))
    calls = bill_of(port)
    whole = [call for call in calls if call["step"] == "long_context"]
    lengths = {call["document"]: 0 for call in whole}
    for call in whole:
        lengths[call["document"]] = max(lengths[call["document"]], call["prefix"])
    spent = dollars(name, calls)
    ledger = figures["money"]["cost"]
    if not elsewhere and (ledger is None or abs(float(ledger) - spent) > 0.001 * spent):
        sys.exit(f"{name}: the ledger says {ledger}, the provider {spent}")
    return {
        "dollars": spent,
        "ideal": dollars(name, ideal(name, calls, lengths)),
        "hits": sum(call["read"] for call in whole) / max(sum(call["input"] for call in whole), 1),
        "p95": figures["seconds"]["long_context"]["first_text"]["p95"] * options.speed if whole else 0.0,
        "took": figures["took"],
    }


if __name__ == "__main__":
    main()
