"""Many streams at once while much goes wrong: what is drawn, who reads it, and the laws of how it ends.

Everything of `ledger_traffic`, and: slow starts, slow pieces, connections that end before any header, readers who leave
at any moment; and every query is about a folder of its own in a real store, so that whatever is mixed up is noticed.
"""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.openai_like import OpenAILike

import langchain_selfroute
import llamaindex_selfroute
from langchain_selfroute import SelfRouteChain
from ledger_traffic import (
    ASKED,
    FAILURES,
    IN_WORDS,
    MOST_AFTER,
    STEPS,
    Bills,
    Dice,
    Kept,
    KeptEvents,
    Provider,
    Query,
    billed,
    count,
    counted,
    told,
)
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import Reply, Request
from selfroute.effects import Route
from selfroute.usage import NOTHING
from selfroute.usage.entry import Entry, Outcome

FOLDERS = 20
PARTS = [[f"Folder {folder} holds paper {paper} of 50." for paper in range(50)] for folder in range(FOLDERS)]
CHUNKS = [[" ".join(papers[at : at + 10]) for at in range(0, 50, 10)] for papers in PARTS]
REFUSAL = "unanswerable"
OF_A_QUESTION = {"Account", "AsyncSteps", "Call", "Decided", "Entry", "Gate", "Reply", "Steps", "Tally", "Usage"}


def vector(text: str) -> list[float]:
    """Embed by the folder that a text or a question is about."""
    asked, told = re.search(r"item (\d+)", text), re.search(r"Folder (\d+)", text)
    folder = int(asked[1]) % FOLDERS if asked else int(told[1]) if told else FOLDERS
    dice = Random(folder)  # noqa: S311
    return [dice.gauss(0, 1) for _ in range(16)]


class Draws(Dice):
    """Draws queries that stream, with slow starts, slow pieces and broken connections."""

    def __init__(self, kind: type[Chains | Engines], *, seed: int, slow: float) -> None:
        """Start.

        Args:
            kind: Who asks.
            seed: Of all that is drawn.
            slow: Seconds that a slow start takes at most; a piece takes a fiftieth.
        """
        self._kind, self._slow, self._random = kind, slow, Random(f"{kind.__name__} {seed}")  # noqa: S311

    def query(self, number: int) -> Query:
        query = super().query(number)
        slowed = {step: tuple(map(self._slowed, replies)) for step, replies in query.replies.items()}
        return replace(query, replies=slowed)

    def _slowed(self, reply: Reply | int) -> Reply | int:
        if isinstance(reply, int):
            return reply
        delay, first = (self._random.choice([0, self._random.uniform(0, self._slow)]) for _ in range(2))
        return replace(reply, delay=delay / 50, first_delay=first)

    def _broken(self, number: int, client: str, *, streams: bool, awaits: bool, **counts: int) -> Reply:
        broken = super()._broken(number, client, streams=streams, awaits=awaits, **counts)
        early = [replace(broken, hangs_up=True), Reply(broken.text, drop_after=0)]
        return self._random.choice([broken, broken, *early])


class Desk(Provider):
    """As `Provider`; it refuses to read another folder than that of the question."""

    def _answer(self, request: Request) -> Reply:
        number = int(re.findall(r"item (\d+)", request.prompt)[-1])
        folders = set(re.findall(r"Folder (\d+)", request.prompt))
        if folders != {str(number % FOLDERS)}:
            message = f"item {number} was looked for in the folders {folders}"
            raise LookupError(message)
        return super()._answer(request)


@dataclass
class Seen:
    """What the reader of a query saw.

    Attributes:
        query: The query.
        text: All pieces that were shown.
        end: How it ended; None if it did not.
        error: The type of what was raised; itself it would keep what it came through.
        first: Seconds to the first text.
    """

    query: Query
    text: str = ""
    end: Outcome | None = None
    error: type[Exception] | None = None
    first: float | None = None

    def wrong(self) -> str | None:
        """Say what is wrong with it, if anything is."""
        query, expected = self.query, self.query.outcomes[-1]
        reply = query.replies[query.route or query.step][-1]
        said = "".join(reply.cut()) if isinstance(reply, Reply) else ""
        shown = said.startswith("Yes,") or (said == IN_WORDS and not query.structured)
        whole = said if shown else REFUSAL
        if self.end is None:
            return "it never ended"
        if self.end != expected:
            return f"it was {self.end} and not {expected}, with {self.error}"
        if self.error and not issubclass(self.error, FAILURES):
            return f"it raised {self.error}, which the client does not raise"
        if not (self.text == whole if self.end == "answered" else whole.startswith(self.text)):
            return f"it showed {self.text!r} and not {whole!r}"
        return None


class _Crowd:
    """Readers of one framework."""

    modes = (*["astream"] * 9, "stream")
    models = (("openai", None), ("openai", "openai"))
    entries: dict[int, list[Entry]]

    def __init__(self, *, patience: float) -> None:
        """Start.

        Args:
            patience: For how many seconds those readers wait at most who leave before anything has come.
        """
        self._patience = patience

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        return ("client",)

    def open(self, query: Query) -> Iterator[str]:
        """Ask, and read."""
        raise NotImplementedError

    def aopen(self, query: Query) -> AsyncIterator[str]:
        """As `open`."""
        raise NotImplementedError

    def ask(self, query: Query) -> Seen:
        """Read one stream, in a thread."""
        seen, started = Seen(query), time.perf_counter()
        try:
            with closing(self.open(query)) as texts:  # type: ignore[type-var]
                for shown, text in enumerate(texts, 1):
                    seen.first = seen.first or time.perf_counter() - started
                    seen.text += text
                    if shown == query.leaves_after:
                        seen.end = "left"
                        break
            seen.end = seen.end or "answered"
        except Exception as error:  # noqa: BLE001 - it is looked at later
            seen.end, seen.error = "failed", type(error)
        return seen

    async def aask(self, query: Query) -> Seen:
        """Read one stream; who is cancelled is so while the next piece is awaited, or before any came."""
        seen = Seen(query)
        reading = asyncio.create_task(self._read(seen))
        if query.leaves_after == 0:
            patience = Random(query.number).uniform(0, self._patience)  # noqa: S311
            asyncio.get_running_loop().call_later(patience, _leave, reading)
        try:
            await reading
        except asyncio.CancelledError:
            if not reading.cancelled():
                raise
            seen.end = "left"
        except Exception as error:  # noqa: BLE001
            seen.end, seen.error = "failed", type(error)
        return seen

    async def _read(self, seen: Seen) -> None:
        query, started, task = seen.query, time.perf_counter(), asyncio.current_task()
        async with aclosing(self.aopen(query)) as texts:  # type: ignore[type-var]
            shown = 0
            async for text in texts:
                shown += 1
                seen.first = seen.first or time.perf_counter() - started
                seen.text += text
                if shown == query.leaves_after:
                    if not query.cancels:
                        seen.end = "left"
                        return
                    assert task
                    task.cancel()
        seen.end = "answered"


def _leave(reading: asyncio.Task[None]) -> None:
    """Cancel a reader, again and again: before Python 3.12 `asyncio.wait_for`, where clients wait, may pass over it."""
    if not reading.done():
        reading.cancel()
        asyncio.get_running_loop().call_later(1, _leave, reading)


class Chains(_Crowd):
    """Readers of LangChain's."""

    def __init__(self, url: str, *, patience: float) -> None:
        super().__init__(patience=patience)
        self.ledger, self.entries = langchain_selfroute.SelfRouteLedger(), {}
        self._models = [
            ChatOpenAI(
                base_url=url, api_key="k", model="gpt-4o-mini", max_retries=retries, stream_usage=True, timeout=300
            )
            for retries in (0, 1)
        ]
        store = InMemoryVectorStore(_Folders())
        for folder, chunks in enumerate(CHUNKS):
            starts = [sum(len(chunk) + 1 for chunk in chunks[:at]) for at in range(len(chunks))]
            about = [{"source": f"folder {folder}", "start_index": start} for start in starts]
            store.add_documents([Document(text, metadata=of) for text, of in zip(chunks, about, strict=True)])
        self._chains = {
            (retries, two, structured): SelfRouteChain.from_vectorstore(
                store,
                self._models[retries],
                k=2,
                long_context_llm=self._models[retries] if two else None,
                token_counter=count,
                answerability="structured" if structured else "text",
            )
            for retries in (0, 1)
            for two in (False, True)
            for structured in (False, True)
        }

    def _asked(self, query: Query) -> tuple[Any, Any]:
        kept = Kept()
        self.entries[query.number] = kept.entries
        chain = self._chains[int(query.again == "client"), query.models[1] is not None, query.structured]
        return chain, {"callbacks": [self.ledger, kept]}

    def open(self, query: Query) -> Iterator[str]:
        chain, config = self._asked(query)
        with closing(chain.stream(query.question, config)) as chunks:
            for chunk in chunks:
                if chunk.get("answer"):
                    yield chunk["answer"]

    async def aopen(self, query: Query) -> AsyncIterator[str]:
        chain, config = self._asked(query)
        async with aclosing(chain.astream(query.question, config)) as chunks:
            async for chunk in chunks:
                if chunk.get("answer"):
                    yield chunk["answer"]

    async def close(self) -> None:
        """Close the connections of all models."""
        for model in self._models:
            model.root_client.close()
            await model.root_async_client.close()


class _Folders(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(vector, texts))

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class Engines(_Crowd):
    """Readers of LlamaIndex's."""

    def __init__(self, url: str, *, patience: float) -> None:
        super().__init__(patience=patience)
        self.ledger, kept = llamaindex_selfroute.SelfRouteLedger(), KeptEvents()
        self.entries, self.handlers = kept.entries, [self.ledger, kept]
        self._models = [
            OpenAILike(
                model="gpt-4o-mini",
                api_base=url,
                api_key="k",
                is_chat_model=True,
                max_retries=retries,
                timeout=300,
                context_window=100_000,
                additional_kwargs={"stream_options": {"include_usage": True}},
            )
            for retries in (0, 1)
        ]
        nodes = [node for folder, chunks in enumerate(CHUNKS) for node in _nodes(folder, chunks)]
        index = VectorStoreIndex(nodes, embed_model=_FoldersOfNodes())
        self._engines = {
            (retries, two, structured): SelfRouteQueryEngine.from_index(
                index,
                similarity_top_k=2,
                llm=self._models[retries],
                long_context_llm=self._models[retries] if two else None,
                token_counter=count,
                answerability="structured" if structured else "text",
                streaming=True,
            )
            for retries in (0, 1)
            for two in (False, True)
            for structured in (False, True)
        }

    def _asked(self, query: Query) -> Any:
        ASKED.set(query.number)
        return self._engines[int(query.again == "client"), query.models[1] is not None, query.structured]

    def open(self, query: Query) -> Iterator[str]:
        with closing(self._asked(query).query(query.question).response_gen) as texts:
            yield from texts

    async def aopen(self, query: Query) -> AsyncIterator[str]:
        response = await self._asked(query).aquery(query.question)
        async with aclosing(response.async_response_gen()) as texts:
            async for text in texts:
                yield text

    async def close(self) -> None:
        """Close the connections of all models."""
        for model in self._models:
            model._get_client().close()
            await model._get_aclient().close()


def _nodes(folder: int, chunks: Sequence[str]) -> Iterator[TextNode]:
    start = 0
    for chunk in chunks:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"folder {folder}")}
        yield TextNode(text=chunk, start_char_idx=start, end_char_idx=start + len(chunk), relationships=source)
        start += len(chunk) + 1


class _FoldersOfNodes(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)


async def ask_all(crowd: Chains | Engines, plan: Sequence[Query], *, deadline: float) -> list[Seen]:
    """Ask all queries at once, each in a task or a thread of its own; what does not end in time has no end."""
    loop = asyncio.get_running_loop()
    threads = [query for query in plan if query.mode == "stream"]
    pool = ThreadPoolExecutor(len(threads) or 1)
    asked: dict[asyncio.Future[Seen], Query] = {
        loop.run_in_executor(pool, crowd.ask, query)
        if query.mode == "stream"
        else asyncio.ensure_future(crowd.aask(query)): query
        for query in plan
    }
    done, hanging = await asyncio.wait(asked, timeout=deadline)
    for one in hanging:
        one.cancel()
    pool.shutdown(wait=not hanging, cancel_futures=True)
    return [one.result() if one in done else Seen(query) for one, query in asked.items()]


def account_is_wrong(query: Query, entries: Sequence[Entry], bills: Mapping[tuple[int, Route], Any]) -> str | None:
    """Compare what one query counts with its bills; say what is wrong, if anything is."""
    if not entries and query.leaves_after == 0:
        return None  # cancelled before anything was done
    if Counter(entry.outcome for entry in entries) != Counter(query.outcomes):
        return f"it was booked as {[entry.outcome for entry in entries]}"
    for step in STEPS:
        some = bills.get((query.number, step), [])
        counts, bill = counted(entries, step), billed(some)
        whole = all(one.done for one in some if told(one) or one.left)
        unread = bill.output_tokens - counts.output_tokens
        if query.leaves_after == 0:  # at any moment: before or after the request was sent, or its answer
            most = max((len(reply.cut()) + reply.thinking_tokens for reply in query.replies[step]), default=0)  # type: ignore[union-attr]
            agree = bill.input_tokens in {0, counts.input_tokens} and 0 <= unread <= most
        else:
            agree = (counts.input_tokens, counts.cached_tokens) == (bill.input_tokens, bill.cached_tokens)
            agree = agree and 0 <= unread <= (0 if whole else MOST_AFTER)
        if not agree:
            return f"it counts for {step} {counts.as_dict()}, the provider {bill.as_dict()}"
    return None


def broken_laws(crowd: Chains | Engines, seen: Sequence[Seen], bills: Bills) -> list[str]:
    """Say which query broke which law."""
    found = []
    for one in seen:
        query = one.query
        wrong = one.wrong() or account_is_wrong(query, crowd.entries.get(query.number, []), bills)
        if wrong:
            kind = f"{query.trouble} in {query.step}, {query.mode}, reader leaves after {query.leaves_after}"
            found.append(f"{query.question} {wrong} ({kind})")
    return found


def sums(crowd: Chains | Engines, seen: Sequence[Seen], bills: Bills) -> dict[str, tuple[int, int]]:
    """Return figures of the ledger, each beside the book's; of those who left at any moment, nothing."""
    at_any_moment = {one.query.number for one in seen if one.query.leaves_after == 0}
    begun = [one for one in seen if crowd.entries.get(one.query.number) or one.query.leaves_after != 0]
    figures = crowd.ledger.to_dict()
    pairs = {"queries": (figures["queries"] + figures["failed"], len(begun))}
    for step in STEPS:
        book = billed(
            [
                bill
                for (number, of), some in bills.items()
                if of == step and number not in at_any_moment
                for bill in some
            ]
        )
        left_out = sum((counted(crowd.entries.get(number, []), step) for number in at_any_moment), start=NOTHING)
        for name in ("input_tokens", "output_tokens"):
            ours = figures["tokens"][step][name] - getattr(left_out, name)
            pairs[f"{step} {name}"] = (ours, getattr(book, name))
    return pairs


def left_over() -> Counter[str]:
    """Count what is there of questions that are over: nothing, unless somebody still refers to it."""
    gc.collect()
    ours = ("selfroute.", "langchain_selfroute.", "llamaindex_selfroute.")
    kinds = (type(thing) for thing in gc.get_objects())
    return Counter(
        kind.__name__ for kind in kinds if str(kind.__module__).startswith(ours) and kind.__name__ in OF_A_QUESTION
    )
