"""Measure what Self-Route costs in a service under load, and how long its readers wait for the first text.

    python benchmarks/service.py [--at-once 64 256 1000] [--rounds 3] [--only answered|declined] [--no-freeze]

Three processes on this machine: a model that starts to stream after two seconds (25 words, one in 20 ms), a service
(uvicorn, its answers streamed), and readers who all ask in one moment. The service holds 5,040 chunks of 90 documents,
56 kB each, in Chroma, and asks the model through `ChatOpenAI`. Its ways to answer:

* `bare`: retrieve, and stream the model's reply; declined: stream it to its end, read the document by one `get` of the
  store, ask again;
* `selfroute`: `SelfRouteChain.astream`;
* `lcel`: retriever, prompt, model and parser in one chain; it never asks twice.

All ways run in turn in each round; figures are medians over the rounds. CPU is that of the service's process, in
milliseconds a question; `above` is what it takes above `bare`, and `GC` what garbage collections take of it. Readers
measure how many seconds they wait for the first text: in the median (`first`), and at the 95th percentile. Self-Route
shows the first text of these answers with their third word, once they cannot be a refusal any more. With more questions
than documents, declined ones also wait for each other, up to two seconds, so that the provider's prompt cache is warm
(`prompt_cache="auto"`): that is a part of their wait at 256 and at 1,000.

What the figures mean depends on the machine. The service uses one processor; the model and the readers need another
one. All questions come at once, so each wait contains the CPU of the questions before it: at 256, one more millisecond
a question is a quarter of a second for the last reader. With other programs running, CPU and ratios within one run can
be used, seconds cannot.

The service calls `gc.freeze()` once it is ready, as docs/serving.md advises. With `--no-freeze`, each full collection
looks through some 350,000 objects of imported packages, and holds up all readers for some tenths of a second.

Exit code 1 if a target is missed or an answer is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from measuring import Target, at_most, target_table

DOCUMENTS, CHUNKS, LENGTH = 90, 56, 1_000  # documents, chunks of each, characters of a chunk
PASSAGES = 5
ANSWER = " ".join(f"word{n}" for n in range(24)) + " end."
REFUSAL = "unanswerable"
WAYS = {"answered": ("bare", "selfroute", "lcel"), "declined": ("bare", "selfroute")}
PROMPT = "Answer from these passages, or write unanswerable.\n\n{context}\n\nQuestion: {input}"

Way = Callable[[str], AsyncIterator[str]]


# The model


def model(pipe: Connection) -> None:
    """Run the model: it declines where a question asks for it, unless the prompt has a whole document."""
    import loopback  # noqa: PLC0415 - only in this process

    loopback.POLL = 1.0  # a thousand connections are polled

    def answer(request: loopback.Request) -> loopback.Reply:
        declines = "declined" in request.prompt and len(request.prompt) < CHUNKS * LENGTH
        return loopback.Reply(REFUSAL if declines else ANSWER, first_delay=2.0, delay=0.02)

    with loopback.LoopbackServer(answer, keep_alive=True) as server:
        pipe.send(server.openai_url)
        pipe.recv()


# The service


def service(pipe: Connection, model_url: str, *, freeze: bool) -> None:
    """Serve the ways to answer at `/way?question`, and what this process has spent so far at `/spent`."""
    import uvicorn  # noqa: PLC0415 - only in this process

    ways, collecting = make_ways(model_url), 0.0
    if freeze:
        gc.collect()
        gc.freeze()

    def watch(phase: str, _about: dict[str, int]) -> None:
        nonlocal collecting
        collecting += time.thread_time() if phase == "stop" else -time.thread_time()

    async def spent(_question: str) -> AsyncIterator[str]:
        yield json.dumps([time.process_time(), collecting])

    async def collect(_question: str) -> AsyncIterator[str]:
        yield str(gc.collect())

    gc.callbacks.append(watch)
    ways |= {"spent": spent, "collect": collect}

    async def app(scope: Mapping[str, Any], _receive: Any, send: Any) -> None:
        way = ways[scope["path"].strip("/")]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        async with aclosing(way(scope["query_string"].decode().replace("+", " "))) as texts:  # type: ignore[type-var]
            async for text in texts:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    listener = socket.create_server(("127.0.0.1", 0), backlog=2_048)
    pipe.send(listener.getsockname()[1])
    uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False)).run([listener])


def make_ways(model_url: str) -> dict[str, Way]:
    """Make what answers questions."""
    from langchain_core.output_parsers import StrOutputParser  # noqa: PLC0415
    from langchain_core.prompts import ChatPromptTemplate  # noqa: PLC0415
    from langchain_core.runnables import RunnablePassthrough  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    from langchain_selfroute import SelfRouteChain  # noqa: PLC0415

    vectorstore = make_store()
    retriever = vectorstore.as_retriever(search_kwargs={"k": PASSAGES})
    llm = ChatOpenAI(base_url=model_url, api_key="k", model="gpt-4o-mini", stream_usage=True, timeout=300)
    chain = SelfRouteChain(retriever=retriever, llm=llm)
    chain.warm_up()

    async def selfroute(question: str) -> AsyncIterator[str]:
        stream: Any = chain.astream(question)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if text := chunk.get("answer"):
                    yield text

    context = retriever | (lambda passages: "\n\n".join(passage.page_content for passage in passages))
    together = {"context": context, "input": RunnablePassthrough()}
    lcel = together | ChatPromptTemplate.from_template(PROMPT) | llm | StrOutputParser()

    return {"bare": make_bare(vectorstore, retriever, llm), "selfroute": selfroute, "lcel": lcel.astream}


def make_bare(vectorstore: Any, retriever: Any, llm: Any) -> Way:
    """Make what answers without any chain."""

    async def asked(question: str, texts: Sequence[str]) -> AsyncIterator[str]:
        prompt = PROMPT.format(context="\n\n".join(texts), input=question)
        async for message in llm.astream(prompt):
            if message.text:
                yield message.text

    async def bare(question: str) -> AsyncIterator[str]:
        passages = await retriever.ainvoke(question)
        drafted = asked(question, [passage.page_content for passage in passages])
        if "declined" in question:
            async for _ in drafted:
                pass
            where = {"source": passages[0].metadata["source"]}
            document = await asyncio.to_thread(vectorstore.get, where=where, include=["documents"])
            drafted = asked(question, document["documents"])
        async for text in drafted:
            yield text

    return bare


def make_store() -> Any:
    """Index the documents; a text is embedded by its first word, the number of its document."""
    from langchain_chroma import Chroma  # noqa: PLC0415
    from langchain_core.documents import Document  # noqa: PLC0415
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415

    class ByNumber(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            dice = Random(text.partition(" ")[0])  # noqa: S311
            return [dice.gauss(0, 1) for _ in range(64)]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list(map(self.embed_query, texts))

    chunks = [
        Document(f"{number} part {part} ".ljust(LENGTH, "x"), metadata={"source": number, "start_index": part * LENGTH})
        for number in range(DOCUMENTS)
        for part in range(CHUNKS)
    ]
    store = Chroma(embedding_function=ByNumber())
    for at in range(0, len(chunks), 1_000):
        store.add_documents(chunks[at : at + 1_000])
    return store


# The readers


@dataclass(frozen=True)
class Round:
    """What one way took when all asked at once.

    Attributes:
        cpu: The service's CPU time a question, in seconds.
        collecting: How much of it garbage collections took.
        firsts: How long each reader waited for the first text.
        seconds: How long the round took.
        right: Whether all answers were right.
    """

    cpu: float
    collecting: float
    firsts: list[float]
    seconds: float
    right: bool

    @property
    def p95(self) -> float:
        """The 95th percentile of the wait."""
        return statistics.quantiles(self.firsts, n=20, method="inclusive")[18]


async def ask(port: int, target: str) -> tuple[float, str]:
    """Return the seconds up to the first text, and all text."""
    asked = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /{target} HTTP/1.1\r\nHost: service\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    first, texts = 0.0, []
    while size := int(await reader.readline(), 16):
        first = first or time.perf_counter() - asked
        texts.append((await reader.readexactly(size + 2))[:-2].decode())
    writer.close()
    return first, "".join(texts)


async def one_round(port: int, way: str, end: str, at_once: int) -> Round:
    """Have all readers ask at once."""
    await ask(port, "collect?")
    before = json.loads((await ask(port, "spent?"))[1])
    began = time.perf_counter()
    found = await asyncio.gather(
        *(ask(port, f"{way}?{number % DOCUMENTS}+who+spoke,+{end}") for number in range(at_once))
    )
    seconds = time.perf_counter() - began
    after = json.loads((await ask(port, "spent?"))[1])
    cpu, collecting = ((now - then) / at_once for now, then in zip(after, before, strict=True))
    right = all(text == ANSWER for _, text in found)
    return Round(cpu, collecting, [first for first, _ in found], seconds, right)


async def measure(port: int, end: str, at_once: int, rounds: int) -> dict[str, list[Round]]:
    """Measure all ways in turn."""
    found: dict[str, list[Round]] = {way: [] for way in WAYS[end]}
    for way in found:
        await one_round(port, way, end, 2)
    for _ in range(rounds):
        for way, of_way in found.items():
            of_way.append(await one_round(port, way, end, at_once))
    return found


def summary(found: Mapping[str, Sequence[Round]], end: str, at_once: int) -> list[Target]:
    """Print the figures, and return the targets."""
    cpu = {way: 1e3 * statistics.median(each.cpu for each in rounds) for way, rounds in found.items()}
    p95 = {way: statistics.median(each.p95 for each in rounds) for way, rounds in found.items()}
    for way, rounds in found.items():
        collecting = 1e3 * statistics.median(each.collecting for each in rounds)
        median = statistics.median(statistics.median(each.firsts) for each in rounds)
        rate = at_once / statistics.median(each.seconds for each in rounds)
        wrong = "" if all(each.right for each in rounds) else "  WRONG ANSWERS"
        figures = [cpu[way], cpu[way] - cpu["bare"], collecting]
        cells = [f"{figure:>9.1f}" for figure in figures] + [f"{median:>9.2f}", f"{p95[way]:>9.2f}", f"{rate:>9.1f}"]
        print(f"{end:<10}{at_once:>7}  {way:<10}", *cells, wrong, sep="", flush=True)
    case = f"{end}, {at_once} at once"
    targets = [
        at_most(f"{case}: CPU ms a question above bare", cpu["selfroute"] - cpu["bare"], 2),
        at_most(f"{case}: 95 % of first texts, over bare", p95["selfroute"] / p95["bare"], 1.1),
    ]
    if "lcel" in found:
        targets.append(at_most(f"{case}: CPU over that of LCEL", cpu["selfroute"] / cpu["lcel"], 0.9))
    if not all(each.right for rounds in found.values() for each in rounds):
        targets.append(at_most(f"{case}: wrong answers", 1, 0))
    return targets


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, nargs="+", default=[64, 256, 1_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=WAYS, help="only questions with this end")
    parser.add_argument("--no-freeze", action="store_true", help="have collections look through all objects")
    args = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    pipes, started = [], []

    def start(run: Callable[..., None], *given: Any, **options: Any) -> Any:
        """Start a process, and return what it sends once it is ready."""
        pipe, theirs = processes.Pipe()
        process = processes.Process(target=run, args=(theirs, *given), kwargs=options, daemon=True)
        process.start()
        pipes.append(pipe)
        started.append(process)
        return pipe.recv()

    port = start(service, start(model), freeze=not args.no_freeze)
    targets = []
    names = [f"{name:>9}" for name in ("CPU ms", "above", "GC", "first", "95 %", "a second")]
    print(f"{'end':<10}{'at once':>7}  {'way':<10}", *names, sep="")
    for end in [args.only] if args.only else WAYS:
        for at_once in args.at_once:
            targets += summary(asyncio.run(measure(port, end, at_once, args.rounds)), end, at_once)
    for process in started:
        process.terminate()
    print("\n".join(target_table(targets)))
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
