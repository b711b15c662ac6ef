"""Measure what SelfRouteChain adds to a model call, compared with the chains that people use today.

    python benchmarks/overhead_langchain.py [--runs 1000] [--json]

All candidates run in one process, interleaved in shuffled blocks, over a chat model without latency and a retriever
in memory (5 passages of 300 words), without tracing or callbacks. Times are medians. The results are ratios: to
`model.invoke` in the same mode, and for the first text to the first text of `model.stream`. The clock of a stream stops
at the first text of the answer; closing it is not measured. Then 200 questions run at concurrency 50 on a model that
takes 50 ms: efficiency is the ideal time divided by the time taken. The script only measures: the exit code is always
0, and it names the targets that are missed.
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
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import langchain_core
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough, RunnableSerializable
from pydantic import PrivateAttr

from langchain_selfroute import SelfRouteChain
from measuring import Target, Times, ainterleaved, at_most, interleaved, medians, target_table

QUESTION = "Who chaired the meeting?"
ANSWER = "Ms Okafor chaired the whole meeting."
REFUSAL = "unanswerable"
RAMBLING = " because the passages tell of other meetings" * 40
PROSE = "the harbour board met in the long room and took the minutes of the last meeting as read before it rose"
WORDS = PROSE.split(" ")
PASSAGES = [
    Document(" ".join(WORDS[(i + j) % len(WORDS)] for j in range(300)), metadata={"source": "minutes", "number": i})
    for i in range(5)
]
WHOLE = Document("\n\n".join(passage.page_content for passage in PASSAGES * 4), metadata={"source": "minutes"})
USAGE: UsageMetadata = {"input_tokens": 2000, "output_tokens": 8, "total_tokens": 2008}
QUESTIONS, CONCURRENCY, LATENCY, BATCHES = 200, 50, 0.05, 7

MODEL, CLASSIC, LCEL = "model", "create_retrieval_chain", "LCEL RAG chain"
FLOOR = "one run, its children"
ANSWERED, DECLINED = "SelfRouteChain, answered", "SelfRouteChain, declined"
OVERHEAD, FIRST_TEXT, BATCH_GAP, PAID = 2.6, 3.3, 10.0, 3


class FakeModel(BaseChatModel):
    """A model with one reply, whole or cut at spaces, and usage like a provider's; `emitted` counts streamed pieces."""

    reply: str
    latency: float = 0.0
    _emitted: int = PrivateAttr(default=0)

    @property
    def emitted(self) -> int:
        """The number of pieces sent."""
        return self._emitted

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _result(self) -> ChatResult:
        message = AIMessage(self.reply, usage_metadata=USAGE, response_metadata={"model_name": "fake"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        if self.latency:
            time.sleep(self.latency)
        return self._result()

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        if self.latency:
            await asyncio.sleep(self.latency)
        return self._result()

    def _pieces(self) -> Iterator[ChatGenerationChunk]:
        for number, word in enumerate(self.reply.split(" ")):
            self._emitted += 1
            yield ChatGenerationChunk(message=AIMessageChunk(f" {word}" if number else word))
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=USAGE))

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        yield from self._pieces()

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for piece in self._pieces():
            yield piece


class FakeRetriever(BaseRetriever):
    """A retriever that always returns the same passages."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002
        return PASSAGES

    async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002
        return PASSAGES


class Floor(RunnableSerializable[dict[str, str], Any]):
    """The cost of the host: retrieve, fill in the prompt and ask the model, each as a child of one run, no more."""

    retriever: FakeRetriever
    llm: FakeModel
    prompt: ChatPromptTemplate

    def invoke(self, input: dict[str, str], config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Answer."""

        def answer(given: dict[str, str], run_manager: CallbackManagerForChainRun) -> Any:
            context = join(self.retriever.invoke(given["input"], child(run_manager, "retrieve")))
            filled = self.prompt.format_prompt(context=context, **given)
            return self.llm.invoke(filled, child(run_manager, "rag"))

        return self._call_with_config(answer, input, config, **kwargs)

    async def ainvoke(self, input: dict[str, str], config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Answer, as a coroutine."""

        async def answer(given: dict[str, str], run_manager: AsyncCallbackManagerForChainRun) -> Any:
            context = join(await self.retriever.ainvoke(given["input"], child(run_manager, "retrieve")))
            filled = self.prompt.format_prompt(context=context, **given)
            return await self.llm.ainvoke(filled, child(run_manager, "rag"))

        return await self._acall_with_config(answer, input, config, **kwargs)

    def stream(self, input: dict[str, str], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002
        """Answer in pieces."""

        def answer(given: Iterator[dict[str, str]], run_manager: CallbackManagerForChainRun) -> Iterator[Any]:
            asked = next(given)
            context = join(self.retriever.invoke(asked["input"], child(run_manager, "retrieve")))
            yield from self.llm.stream(self.prompt.format_prompt(context=context, **asked), child(run_manager, "rag"))

        yield from self._transform_stream_with_config(iter([input]), answer, config, **kwargs)

    async def astream(
        self,
        input: dict[str, str],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Answer in pieces, as a coroutine."""

        async def once() -> AsyncIterator[dict[str, str]]:
            yield input

        async def answer(
            given: AsyncIterator[dict[str, str]], run_manager: AsyncCallbackManagerForChainRun
        ) -> AsyncIterator[Any]:
            async for asked in given:
                context = join(await self.retriever.ainvoke(asked["input"], child(run_manager, "retrieve")))
                filled = self.prompt.format_prompt(context=context, **asked)
                async for piece in self.llm.astream(filled, child(run_manager, "rag")):
                    yield piece

        async for piece in self._atransform_stream_with_config(once(), answer, config, **kwargs):
            yield piece


def child(manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun, name: str) -> RunnableConfig:
    """Return the config for a child run."""
    return {"callbacks": manager.get_child(name), "run_name": name}


@dataclass(frozen=True)
class Candidate:
    """Something to measure, with its input and the number of model calls that it makes in sequence."""

    runnable: Runnable[Any, Any]
    given: Any
    calls: int = 1


def no_tracing() -> None:
    """Turn LangSmith's tracing off, whatever the environment says."""
    for name in [name for name in os.environ if name.startswith(("LANGSMITH", "LANGCHAIN_"))]:
        del os.environ[name]


def join(passages: list[Document]) -> str:
    """Join the passages' text."""
    return "\n\n".join(passage.page_content for passage in passages)


def candidates(latency: float = 0.0) -> dict[str, Candidate]:
    """Build the candidates, over models with this latency in seconds."""
    retriever, model = FakeRetriever(), FakeModel(reply=ANSWER, latency=latency)
    prompt = ChatPromptTemplate.from_template("Passages:\n\n{context}\n\nQuestion: {input}\nAnswer:")
    classic = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    context = RunnablePassthrough.assign(context=itemgetter("input") | retriever | join)
    lcel = context | prompt | model | StrOutputParser()
    answered = SelfRouteChain(retriever=retriever, llm=model, documents=[WHOLE])
    declining = FakeModel(reply=REFUSAL, latency=latency)
    declined = SelfRouteChain(retriever=retriever, llm=declining, long_context_llm=model, documents=[WHOLE])
    asked = {"input": QUESTION}
    return {
        MODEL: Candidate(model, prompt.format(context=join(PASSAGES), input=QUESTION)),
        CLASSIC: Candidate(classic, asked),
        LCEL: Candidate(lcel, asked),
        FLOOR: Candidate(Floor(retriever=retriever, llm=model, prompt=prompt), asked),
        ANSWERED: Candidate(answered, asked),
        DECLINED: Candidate(declined, asked, calls=2),
    }


def answer_text(chunk: Any) -> str:
    """Return the answer's text in a chunk, which may be a message, a dict or a string."""
    if isinstance(chunk, dict):
        return str(chunk.get("answer") or "")
    return chunk if isinstance(chunk, str) else str(chunk.text)


def invoke(candidate: Candidate) -> int:
    """Time `invoke` in ns."""
    started = time.perf_counter_ns()
    candidate.runnable.invoke(candidate.given)
    return time.perf_counter_ns() - started


async def ainvoke(candidate: Candidate) -> int:
    """Time `ainvoke` in ns."""
    started = time.perf_counter_ns()
    await candidate.runnable.ainvoke(candidate.given)
    return time.perf_counter_ns() - started


def first_text(candidate: Candidate) -> int:
    """Time `stream` until the first text in ns."""
    started = time.perf_counter_ns()
    with closing(candidate.runnable.stream(candidate.given)) as chunks:  # type: ignore[type-var]
        for chunk in chunks:
            if answer_text(chunk):
                return time.perf_counter_ns() - started
    msg = "a stream without text"
    raise RuntimeError(msg)


async def afirst_text(candidate: Candidate) -> int:
    """Time `astream` until the first text in ns."""
    started = time.perf_counter_ns()
    async with aclosing(candidate.runnable.astream(candidate.given)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            if answer_text(chunk):
                return time.perf_counter_ns() - started
    msg = "a stream without text"
    raise RuntimeError(msg)


def latencies(runs: int) -> Times:
    """Measure the sync modes."""
    return medians(interleaved(candidates(), {"invoke": invoke, "stream": first_text}, runs=runs))


async def alatencies(runs: int) -> Times:
    """Measure the async modes."""
    return medians(await ainterleaved(candidates(), {"ainvoke": ainvoke, "astream": afirst_text}, runs=runs))


def efficiencies(batches: int) -> Times:
    """Measure the ideal time of a batch divided by the time taken, in percent (medians)."""
    known = candidates(LATENCY)
    times: dict[tuple[str, str], list[float]] = {(mode, name): [] for mode in ("batch", "abatch") for name in known}
    order, keys = random.Random(0), list(times)  # noqa: S311
    for _ in range(batches):
        order.shuffle(keys)
        for mode, name in keys:
            times[mode, name].append(efficiency(known[name], mode))
    return {
        mode: {name: statistics.median(taken) for (of, name), taken in times.items() if of == mode}
        for mode in ("batch", "abatch")
    }


def efficiency(candidate: Candidate, mode: str) -> float:
    """Run one batch, and return the ideal time divided by the time taken, in percent."""
    given, config = [candidate.given] * QUESTIONS, {"max_concurrency": CONCURRENCY}
    started = time.perf_counter()
    if mode == "batch":
        candidate.runnable.batch(given, config)  # type: ignore[arg-type]
    else:
        asyncio.run(candidate.runnable.abatch(given, config))  # type: ignore[arg-type]
    taken = time.perf_counter() - started
    return 100 * candidate.calls * LATENCY * QUESTIONS / CONCURRENCY / taken


def paid_after_refusal() -> dict[str, int]:
    """Count the tokens that a rambling draft sends after its refusal before it is stopped."""
    drafts = [FakeModel(reply=REFUSAL + RAMBLING) for _ in range(2)]
    final = FakeModel(reply=ANSWER)
    chains = [
        SelfRouteChain(retriever=FakeRetriever(), llm=draft, long_context_llm=final, documents=[WHOLE])
        for draft in drafts
    ]

    async def drain() -> None:
        async for _ in chains[1].astream(QUESTION):
            pass

    for _ in chains[0].stream(QUESTION):
        pass
    asyncio.run(drain())
    return {mode: draft.emitted - 1 for mode, draft in zip(("stream", "astream"), drafts, strict=True)}


def held_back() -> int:
    """Count the pieces of an answer that must arrive before its first text is shown."""
    model = FakeModel(reply=ANSWER)
    first_text(Candidate(SelfRouteChain(retriever=FakeRetriever(), llm=model, documents=[WHOLE]), QUESTION))
    return model.emitted


def targets(times: Times, efficient: Times, paid: dict[str, int]) -> list[Target]:
    """Compare all figures that have a target with it."""
    found = []
    for mode in ("invoke", "ainvoke"):
        ratio = times[mode][ANSWERED] / times[mode][MODEL]
        found.append(at_most(f"{mode}, answered: times model.{mode}", ratio, OVERHEAD))
    for mode in ("stream", "astream"):
        ratio = times[mode][ANSWERED] / times[mode][MODEL]
        found.append(at_most(f"first text of {mode}, answered: times model.{mode}", ratio, FIRST_TEXT))
    for mode, row in efficient.items():
        for name in (ANSWERED, DECLINED):
            title = f"{mode}, {name.partition(', ')[2]}: points below model.{mode}"
            found.append(at_most(title, row[MODEL] - row[name], BATCH_GAP))
    for mode, count in paid.items():
        found.append(at_most(f"{mode}: tokens of a declined draft after the refusal", count, PAID))
    return found


def latency_table(times: Times) -> list[str]:
    """Format the latencies as a table."""
    lines = []
    for mode, row in times.items():
        whole = times["ainvoke" if mode.startswith("a") else "invoke"][MODEL]
        first = "first text of " if mode.endswith("stream") else ""
        other = f"  x model.{'ainvoke' if mode.startswith('a') else 'invoke'}" if first else ""
        lines += ["", f"{first + mode:<28}{'us':>9}{'x model.' + mode:>17}{other}"]
        for name, taken in row.items():
            line = f"  {name:<26}{taken:>9.0f}{taken / row[MODEL]:>17.2f}"
            lines.append(line + (f"{taken / whole:>{len(other)}.2f}" if other else ""))
    return lines


def batch_table(efficient: Times) -> list[str]:
    """Format the efficiencies as a table."""
    title = f"{QUESTIONS} questions at {CONCURRENCY}, {LATENCY * 1e3:.0f} ms"
    lines = ["", f"{title:<30}" + "".join(f"{mode:>10}" for mode in efficient) + "   (ideal time / time)"]
    names = next(iter(efficient.values()))
    return lines + [f"  {name:<28}" + "".join(f"{row[name]:>9.0f}%" for row in efficient.values()) for name in names]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs of each candidate in each mode")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches of each candidate in each mode")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    no_tracing()
    times = {**latencies(options.runs), **asyncio.run(alatencies(options.runs))}
    efficient, paid, held = efficiencies(options.batches), paid_after_refusal(), held_back()
    found = targets(times, efficient, paid)
    about = {"python": platform.python_version(), "langchain-core": langchain_core.__version__, "runs": options.runs}
    if options.json:
        result = {
            "about": about,
            "microseconds": times,
            "efficiency": efficient,
            "paid_after_refusal": paid,
            "held": held,
        }
        print(json.dumps({**result, "targets": [asdict(target) for target in found]}, indent=2))
        return 0
    print(", ".join(f"{key} {value}" for key, value in about.items()) + f", {os.cpu_count()} cores")
    print("\n".join([*latency_table(times), *batch_table(efficient), *target_table(found)]))
    print(f"The first text of {ANSWER!r} came with its word number {held}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
