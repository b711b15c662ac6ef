"""Measure what SelfRouteQueryEngine adds to a model call, compared with the query engines that people use today.

    python benchmarks/overhead_llamaindex.py [--runs 500] [--json]

All candidates run in one process, interleaved in shuffled blocks, over a model without latency and a retriever in
memory (5 passages of 1.3 kB from a document of 38 kB), without handlers. Times are medians. The results are ratios: to
the model's own call in the same mode (`complete`, `acomplete`, the first text of their streams), and to the floor,
which is a RetrieverQueryEngine that does what the host demands around one call, and no more. The clock of a stream
stops at the first text of the answer; the rest is not measured. RetryQueryEngine judges whole answers, so its first
text comes with the whole answer. The added CPU time is the process's, including garbage collections. Then 200 queries
run at once on a model that takes 50 ms: efficiency is the ideal time divided by the time taken. The script only
measures: the exit code is always 0, and it names the targets that are missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import llama_index.core
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.evaluation import RelevancyEvaluator
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine, RetryQueryEngine, RouterQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, CompactAndRefine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from pydantic import PrivateAttr

from llamaindex_selfroute import SelfRouteQueryEngine
from measuring import Target, Times, ainterleaved, at_least, at_most, interleaved, medians, target_table

QUESTION = "Who was in the chair in January?"
ANSWER = "Mrs Pellowe was in the chair."
REFUSAL = "unanswerable"
CHOICE = '[{"choice": 1, "reason": "The question is about meetings."}]'
NAME = "harbour-minutes.md"
TEXT = (files("selfroute_workbench.demo") / "documents" / NAME).read_text("utf-8")
PASSAGES = [
    NodeWithScore(node=TextNode(text=text, metadata={"file_name": NAME}), score=0.5)
    for text in textwrap.wrap(TEXT, 1300)[:5]
]
WHOLE = Document(text=TEXT, metadata={"file_name": NAME})
USAGE = {"prompt_tokens": 2000, "completion_tokens": 8, "total_tokens": 2008}
PROMPT = PromptTemplate("Passages:\n\n{context_str}\n\nQuestion: {query_str}\nAnswer:")
BLOCK, QUERIES, LATENCY, BATCHES = 10, 200, 0.05, 7

MODEL, FLOOR = "model", "one call, its events"
COMPACT, ROUTER, RETRY = "RetrieverQueryEngine, compact", "RouterQueryEngine", "RetryQueryEngine"
ANSWERED, DECLINED = "SelfRouteQueryEngine, answered", "SelfRouteQueryEngine, declined"
CALLS = {"query": "complete", "aquery": "acomplete", "stream": "stream_complete", "astream": "astream_complete"}
OVER_FLOOR, OVERHEAD, CPU, THROUGHPUT = 1.2, 5.5, 0.3, 5

dispatcher = get_dispatcher(__name__)


class FakeModel(CustomLLM):
    """A model with one reply, whole or cut at spaces, and usage like a provider's; `emitted` counts streamed pieces."""

    reply: str
    latency: float = 0.0
    _emitted: int = PrivateAttr(default=0)

    @property
    def emitted(self) -> int:
        """The number of pieces sent."""
        return self._emitted

    @property
    def metadata(self) -> LLMMetadata:
        """The model's window, large enough for the document."""
        return LLMMetadata(context_window=128_000, num_output=256)

    def _whole(self) -> CompletionResponse:
        return CompletionResponse(text=self.reply, additional_kwargs=USAGE)

    def _pieces(self) -> Iterator[CompletionResponse]:
        text = ""
        for number, word in enumerate(self.reply.split(" ")):
            self._emitted += 1
            delta = f" {word}" if number else word
            text += delta
            yield CompletionResponse(text=text, delta=delta)
        yield CompletionResponse(text=text, delta="", additional_kwargs=USAGE)

    @llm_completion_callback()
    def complete(self, *_: Any, **__: Any) -> CompletionResponse:
        """Reply."""
        return self._whole()

    @llm_completion_callback()
    async def acomplete(self, *_: Any, **__: Any) -> CompletionResponse:
        """Reply after the latency."""
        if self.latency:
            await asyncio.sleep(self.latency)
        return self._whole()

    @llm_completion_callback()
    def stream_complete(self, *_: Any, **__: Any) -> Iterator[CompletionResponse]:
        """Reply in pieces."""
        return self._pieces()

    @llm_completion_callback()
    async def astream_complete(self, *_: Any, **__: Any) -> AsyncIterator[CompletionResponse]:
        """Reply in pieces, as a coroutine."""

        async def pieces() -> AsyncIterator[CompletionResponse]:
            for piece in self._pieces():
                yield piece

        return pieces()


class FakeRetriever(BaseRetriever):
    """A retriever that always returns the same passages."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002
        return PASSAGES


class Floor(BaseSynthesizer):
    """The cost of the host: fill in a prompt and ask the model, with the host's events, and no more."""

    @dispatcher.span
    def synthesize(self, query: QueryBundle, nodes: list[NodeWithScore], *_: Any, **__: Any) -> Any:
        """Answer."""
        dispatcher.event(SynthesizeStartEvent(query=query))
        asked: dict[Any, str] = {EventPayload.QUERY_STR: query.query_str}
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=asked) as event:
            prompt = filled(query.query_str, nodes)
            if self._streaming:
                pieces = self._llm.stream_complete(prompt, formatted=True)
                response: Any = StreamingResponse((piece.delta or "" for piece in pieces), nodes)
            else:
                response = Response(self._llm.complete(prompt, formatted=True).text, nodes)
            event.on_end(payload={EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    @dispatcher.span
    async def asynthesize(self, query: QueryBundle, nodes: list[NodeWithScore], *_: Any, **__: Any) -> Any:
        """Answer, as a coroutine."""
        dispatcher.event(SynthesizeStartEvent(query=query))
        asked: dict[Any, str] = {EventPayload.QUERY_STR: query.query_str}
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=asked) as event:
            prompt = filled(query.query_str, nodes)
            if self._streaming:
                pieces = await self._llm.astream_complete(prompt, formatted=True)
                response: Any = AsyncStreamingResponse((piece.delta or "" async for piece in pieces), nodes)
            else:
                response = Response((await self._llm.acomplete(prompt, formatted=True)).text, nodes)
            event.on_end(payload={EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None: ...

    def get_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> str:
        """Raise: nothing calls this."""
        raise NotImplementedError

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> str:
        """Raise: nothing calls this."""
        raise NotImplementedError


def filled(question: str, nodes: Sequence[NodeWithScore]) -> str:
    """Fill in the prompt."""
    context = "\n\n".join(item.node.get_content(metadata_mode=MetadataMode.LLM) for item in nodes)
    return PROMPT.format(context_str=context, query_str=question)


@dataclass(frozen=True)
class Candidate:
    """Something to measure, in all modes, with the number of model calls that it makes in sequence."""

    query: Callable[[], Any]
    aquery: Callable[[], Awaitable[Any]]
    stream: Callable[[], Iterator[str]]
    astream: Callable[[], AsyncGenerator[str, None]]
    calls: int = 1


def bare(model: FakeModel) -> Candidate:
    """Ask the model itself."""
    prompt = filled(QUESTION, PASSAGES)

    async def astream() -> AsyncGenerator[str, None]:
        async for piece in await model.astream_complete(prompt):
            yield piece.delta or ""

    return Candidate(
        query=lambda: model.complete(prompt),
        aquery=lambda: model.acomplete(prompt),
        stream=lambda: (piece.delta or "" for piece in model.stream_complete(prompt)),
        astream=astream,
    )


def engine(build: Callable[..., BaseQueryEngine], *, calls: int = 1) -> Candidate:
    """Ask an engine; `build` is called with `streaming` on and off."""
    at_once, streaming = build(streaming=False), build(streaming=True)

    def stream() -> Iterator[str]:
        response: Any = streaming.query(QUESTION)
        return response.response_gen if isinstance(response, StreamingResponse) else iter([str(response)])

    async def astream() -> AsyncGenerator[str, None]:
        response = await streaming.aquery(QUESTION)
        if isinstance(response, AsyncStreamingResponse):
            async for text in response.async_response_gen():
                yield text
        else:
            yield str(response)

    return Candidate(lambda: at_once.query(QUESTION), lambda: at_once.aquery(QUESTION), stream, astream, calls)


def candidates(latency: float = 0.0) -> dict[str, Candidate]:
    """Build the candidates, over models with this latency in seconds."""
    retriever, model = FakeRetriever(), FakeModel(reply=ANSWER, latency=latency)
    declining = FakeModel(reply=REFUSAL, latency=latency)
    choosing, judging = FakeModel(reply=CHOICE, latency=latency), FakeModel(reply="YES", latency=latency)

    def floor(*, streaming: bool) -> RetrieverQueryEngine:
        return RetrieverQueryEngine(retriever, Floor(llm=model, streaming=streaming))

    def compact(*, streaming: bool) -> RetrieverQueryEngine:
        return RetrieverQueryEngine(retriever, CompactAndRefine(llm=model, streaming=streaming))

    def router(*, streaming: bool) -> RouterQueryEngine:
        tools = [
            QueryEngineTool.from_defaults(compact(streaming=streaming), name=name, description=f"Knows the {name}.")
            for name in ("meetings", "boats")
        ]
        return RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choosing), tools, llm=model)

    def retry(**_: bool) -> RetryQueryEngine:
        return RetryQueryEngine(compact(streaming=False), RelevancyEvaluator(llm=judging))

    def selfroute(*, streaming: bool, draft: LLM = model) -> SelfRouteQueryEngine:
        return SelfRouteQueryEngine(
            retriever, documents=[WHOLE], llm=draft, long_context_llm=model, streaming=streaming
        )

    return {
        MODEL: bare(model),
        FLOOR: engine(floor),
        COMPACT: engine(compact),
        ROUTER: engine(router, calls=2),
        RETRY: engine(retry, calls=2),
        ANSWERED: engine(selfroute),
        DECLINED: engine(partial(selfroute, draft=declining), calls=2),
    }


Clock = Callable[[], int]


def whole(candidate: Candidate, clock: Clock = time.perf_counter_ns) -> int:
    """Time `query` in ns."""
    started = clock()
    candidate.query()
    return clock() - started


async def awhole(candidate: Candidate, clock: Clock = time.perf_counter_ns) -> int:
    """Time `aquery` in ns."""
    started = clock()
    await candidate.aquery()
    return clock() - started


def first_text(candidate: Candidate) -> int:
    """Time a stream until the first text in ns, then read the rest."""
    taken, started = 0, time.perf_counter_ns()
    for text in candidate.stream():
        if text and not taken:
            taken = time.perf_counter_ns() - started
    if not taken:
        msg = "a stream without text"
        raise RuntimeError(msg)
    return taken


async def afirst_text(candidate: Candidate) -> int:
    """Time an async stream until the first text in ns, then read the rest."""
    taken, started = 0, time.perf_counter_ns()
    async for text in candidate.astream():
        if text and not taken:
            taken = time.perf_counter_ns() - started
    if not taken:
        msg = "a stream without text"
        raise RuntimeError(msg)
    return taken


def latencies(known: dict[str, Candidate], runs: int) -> Times:
    """Measure the sync modes."""
    return medians(interleaved(known, {"query": whole, "stream": first_text}, runs=runs, block=BLOCK))


async def alatencies(known: dict[str, Candidate], runs: int) -> Times:
    """Measure the async modes."""
    return medians(await ainterleaved(known, {"aquery": awhole, "astream": afirst_text}, runs=runs, block=BLOCK))


def added_cpu(known: dict[str, Candidate], runs: int) -> Times:
    """Measure the CPU time of a query beyond that of the model's call, in milliseconds."""
    clock = time.process_time_ns
    sync = interleaved(known, {"query": lambda candidate: whole(candidate, clock)}, runs=runs, block=BLOCK)
    awaited = asyncio.run(
        ainterleaved(known, {"aquery": lambda candidate: awhole(candidate, clock)}, runs=runs, block=BLOCK)
    )
    taken = {key: in_blocks(times) / 1e6 for key, times in {**sync, **awaited}.items()}
    return {
        mode: {name: taken[mode, name] - taken[mode, MODEL] for name in known if name != MODEL}
        for mode in ("query", "aquery")
    }


def in_blocks(times: Sequence[int]) -> float:
    """Return the median of the blocks' means: means include garbage collections, the median drops busy moments."""
    return statistics.median(statistics.fmean(times[start : start + BLOCK]) for start in range(0, len(times), BLOCK))


async def concurrent(batches: int) -> dict[str, float]:
    """Measure how long `QUERIES` at once take, in seconds (medians)."""
    known = {name: each for name, each in candidates(LATENCY).items() if name not in (ROUTER, RETRY)}
    times: dict[str, list[float]] = {name: [] for name in known}
    order, names = random.Random(0), list(times)  # noqa: S311
    for _ in range(batches):
        order.shuffle(names)
        for name in names:
            started = time.perf_counter()
            await asyncio.gather(*(known[name].aquery() for _ in range(QUERIES)))
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(taken) for name, taken in times.items()}


def efficiency(taken: dict[str, float]) -> dict[str, float]:
    """Return the ideal time divided by the time taken, in percent."""
    known = candidates()
    return {name: 100 * known[name].calls * LATENCY / seconds for name, seconds in taken.items()}


def held_back() -> int:
    """Count the pieces of an answer that must arrive before its first text is shown."""
    model = FakeModel(reply=ANSWER)
    asked = SelfRouteQueryEngine(FakeRetriever(), documents=[WHOLE], llm=model, streaming=True)
    asked.query(QUESTION)
    return model.emitted


def targets(times: Times, cpu: Times, taken: dict[str, float]) -> list[Target]:
    """Compare all figures that have a target with it."""
    found = []
    for mode in ("query", "aquery"):
        row = times[mode]
        found.append(at_most(f"{mode}, answered: times the floor", row[ANSWERED] / row[FLOOR], OVER_FLOOR))
        found.append(at_most(f"{mode}, answered: times model.{CALLS[mode]}", row[ANSWERED] / row[MODEL], OVERHEAD))
    for mode, row in cpu.items():
        found.append(at_most(f"{mode}, answered: added CPU in ms", row[ANSWERED], CPU))
    title = f"{QUERIES} at once, answered: times compact's throughput (at least)"
    found.append(at_least(title, taken[COMPACT] / taken[ANSWERED], THROUGHPUT))
    return found


def latency_table(times: Times, cpu: Times) -> list[str]:
    """Format the latencies as a table."""
    lines = []
    for mode, row in times.items():
        title = f"first text of {mode}" if mode.endswith("stream") else mode
        call = f"x model.{CALLS[mode]}"
        head = f"{title:<34}{'us':>8}{call:>26}{'x floor':>10}"
        lines += ["", head + (f"{'added CPU, ms':>16}" if mode in cpu else "")]
        for name, taken in row.items():
            line = f"  {name:<32}{taken:>8.0f}{taken / row[MODEL]:>26.2f}{taken / row[FLOOR]:>10.2f}"
            lines.append(line + (f"{cpu[mode][name]:>16.3f}" if name in cpu.get(mode, {}) else ""))
    return lines


def concurrent_table(taken: dict[str, float]) -> list[str]:
    """Format the concurrent queries as a table."""
    title, ideal = f"{QUERIES} at once, {LATENCY * 1e3:.0f} ms", efficiency(taken)
    lines = ["", f"{title:<34}{'ms':>8}{'ideal time / time':>26}{'x compact':>10}"]
    for name, seconds in taken.items():
        lines.append(f"  {name:<32}{seconds * 1e3:>8.0f}{ideal[name]:>25.0f}%{taken[COMPACT] / seconds:>10.1f}")
    return lines


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="runs of each candidate in each mode")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches of each candidate")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    known = candidates()
    times = {**latencies(known, options.runs), **asyncio.run(alatencies(known, options.runs))}
    cpu, taken, held = added_cpu(known, options.runs), asyncio.run(concurrent(options.batches)), held_back()
    found = targets(times, cpu, taken)
    versions = {"python": platform.python_version(), "llama-index-core": llama_index.core.__version__}
    about = {**versions, "runs": options.runs}
    if options.json:
        result = {
            "about": about,
            "microseconds": times,
            "added_cpu_ms": cpu,
            "concurrent_seconds": taken,
            "efficiency": efficiency(taken),
            "held": held,
        }
        print(json.dumps({**result, "targets": [asdict(target) for target in found]}, indent=2))
        return 0
    print(", ".join(f"{key} {value}" for key, value in about.items()) + f", {os.cpu_count()} cores")
    print("\n".join([*latency_table(times, cpu), *concurrent_table(taken), *target_table(found)]))
    print(f"The first text of {ANSWERED!r} came with its word number {held}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
