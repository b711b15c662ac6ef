"""Mixed traffic: a plan of queries of every kind and end, the server that they go to, and readers of both frameworks.

Every query is about a folder of its own in a real store, so that whatever is mixed up is noticed.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from random import Random
from typing import Any

import aiohttp
import httpx
import openai
from google.genai import errors as google
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import LangChainException
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.core import VectorStoreIndex
from llama_index.core.bridge.pydantic import Field
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike

import langchain_selfroute
import llamaindex_selfroute
import loopback
from hosts_wires import failing
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_selfroute.events import SelfRouteQueryEvent
from loopback import LoopbackServer, Reply, Request
from selfroute.effects import Route
from selfroute.policies import Budget
from selfroute.usage import StepUsage
from selfroute.usage.counts import FREE, NOTHING
from selfroute.usage.entry import Entry, Outcome
from selfroute.usage.ledger import Ledger

Models = tuple[str, str | None]  # the clients of both steps; None: the first one's model
Bills = dict[tuple[int, Route], list[loopback.Entry]]

MOST_AFTER = 3  # pieces that a server makes and a reader who leaves does not read
STEPS: tuple[Route, Route] = ("rag", "long_context")
FOLDERS = 20
PAPERS = [[f"Folder {folder} holds paper {paper} of 50." for paper in range(50)] for folder in range(FOLDERS)]
CHUNKS = [[" ".join(papers[at : at + 10]) for at in range(0, 50, 10)] for papers in PAPERS]
REFUSAL = "unanswerable"
IN_WORDS = "I cannot answer this question based on the given context."
LIMIT = 250  # words of a prompt, of a model that finds one too long
OLD = version("openai").startswith("1.")  # whose awaited streams pass over an event that is an error
OTHER = {"openai": "gemini", "gemini": "openai", None: None}
MINI = "openai:gpt-4o-mini"
PRICED_AS = {"openai": MINI, "completions": MINI, "gemini": "google:gemini-2.5-flash", None: None}  # at these addresses
FAILURES = (openai.OpenAIError, google.APIError, LangChainException, httpx.TransportError, aiohttp.ClientError)
OF_A_QUESTION = {
    "Account",
    "Call",
    "Costs",
    "Decided",
    "Entry",
    "Fitting",
    "Gate",
    "Reading",
    "Reply",
    "Tally",
    "Usage",
}


def priced_as(models: Models) -> dict[str, str] | None:
    """Return the option for models that are called at these addresses."""
    named = zip(("llm", "long_context_llm"), models, strict=True)
    return {step: name for step, client in named if (name := PRICED_AS[client])} or None


def count(text: str) -> int:
    """Count as the servers do."""
    return len(text.split())


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is asked, what the models do with it, and what must come of it.

    Attributes:
        number: Which one it is; the question names it.
        trouble: What happens in one of the steps.
        step: That step.
        models: Who is asked.
        mode: The method of the chain; of an engine those that stand for it.
        replies: What each step's model does, request by request, the last one again and again; a number is the status
            of an error.
        again: Who asks again after an error.
        leaves_after: How many pieces are shown to the reader, who leaves then; 0: before the reply has come.
        cancels: Whether the reader is cancelled, in place of closing the stream.
        structured: Whether the models fill `answerable` and `answer` in.
        outcomes: How it ends, each time that the chain or the engine is asked.
        route: The route, None if it ends before that is known.
        answerable: Whether some step answers.
    """

    number: int
    trouble: str
    step: Route
    models: Models
    mode: str
    replies: dict[Route, tuple[Reply | int, ...]]
    again: str | None
    leaves_after: int | None
    cancels: bool
    structured: bool
    outcomes: tuple[Outcome, ...]
    route: Route | None
    answerable: bool

    @property
    def question(self) -> str:
        """What is asked."""
        return f"What became of item {self.number}?"

    @property
    def awaits(self) -> bool:
        """Whether it is asked in a task."""
        return self.mode.startswith("a")


class Dice:
    """Draws queries."""

    def __init__(self, kind: type[Chains | Engines], seed: int) -> None:
        self._kind, self._random = kind, Random(f"{kind.__name__} {seed}")  # noqa: S311

    def query(self, number: int) -> Query:
        """Draw a query."""
        random = self._random
        mode, models, step = random.choice(self._kind.modes), random.choice(self._kind.models), random.choice(STEPS)
        client = models[1] or models[0] if step == "long_context" else models[0]
        streams, awaits = "stream" in mode, mode.startswith("a")
        trouble = random.choice([*["none"] * 4, *self._troubles(step, client, mode=mode)])
        declines = step == "long_context" or trouble == "rambles" or random.random() < 0.5
        answers = random.random() < 0.8
        usual = {
            "rag": self._decline() if declines else self._answer(number),
            "long_context": self._answer(number) if answers else self._decline(),
        }
        cut_short = {"cached_tokens": 7, "thinking_tokens": 5} if client == "gemini" else {}  # else told at the end
        leaves_after = random.randint(0 if awaits else 1, 6) if streams else 0
        again = random.choice(self._kind.again(streams=streams)) if trouble == "fails once" else None
        strange: dict[str, tuple[Reply | int, ...]] = {
            "none": (usual[step],),
            "unreported": (replace(usual[step], usage=False, cached_tokens=0, thinking_tokens=0),),
            "fails": (random.choice([429, 500]),),
            "fails once": (random.choice([429, 500]), usual[step]),
            "too long": (400, usual[step]),
            "too long twice": (400, random.choice([400, 429, 500])),
            "breaks off": (self._broken(number, client, streams=streams, awaits=awaits, **cut_short),),
            "leaves": (self._held(f"Yes, {number} is{' so' * 30}", leaves_after, **cut_short),),
            "rambles": (self._held(f"unanswerable because of{' this' * 30}", 3, **cut_short),),
        }
        may_fill_in = trouble in {"none", "fails", "fails once"} and again in {None, "client", "chain"}
        failed = trouble in {"fails", "too long twice", "breaks off"}
        last: Outcome = "failed" if failed else "left" if trouble == "leaves" else "answered"
        unknown = step == "rag" and (failed or (trouble == "leaves" and not leaves_after))
        return Query(
            number=number,
            trouble=trouble,
            step=step,
            models=models,
            mode=mode,
            replies={name: strange[trouble] if name == step else (usual[name],) for name in STEPS},
            again=again,
            leaves_after=leaves_after if trouble == "leaves" else None,
            cancels=awaits and (not leaves_after or random.random() < 0.5),
            structured=may_fill_in and random.random() < 0.3,
            outcomes=("failed", last) if again in {"chain", "other chain"} else (last,),
            route=None if unknown else "long_context" if declines and (step, trouble) != ("rag", "leaves") else "rag",
            answerable=answers or not declines,
        )

    @staticmethod
    def _troubles(step: Route, client: str, *, mode: str) -> Iterator[str]:
        streams = "stream" in mode
        yield from ("unreported", "fails", "fails once", "fails once")
        if step == "long_context":
            yield from ("too long", "too long twice")
        if streams:
            yield from ("breaks off", "leaves", "leaves")
            if step == "rag":
                yield "rambles"  # a last reply is shown, however long it is
        elif mode in {"ainvoke", "aquery"}:
            yield "leaves"
        if not streams and client != "gemini":  # google-genai asks again itself, up to ten seconds later
            yield "breaks off"

    def _answer(self, number: int) -> Reply:
        return self._told(f"Yes, {number} was put off{' and off' * self._random.randrange(20)}.")

    def _decline(self) -> Reply:
        return self._told(self._random.choice(["unanswerable", "Unanswerable.", IN_WORDS, ""]))

    def _told(self, text: str) -> Reply:
        cached, thoughts = (self._random.choice([0, self._random.randrange(40)]) for _ in range(2))
        return Reply(text, cached_tokens=cached, thinking_tokens=thoughts)

    def _broken(self, number: int, client: str, *, streams: bool, awaits: bool, **counts: int) -> Reply:
        after, text = self._random.randint(1, 6), f"Yes, {number} was put off and off and off."
        # aiohttp, by which Google's clients await, may lose what came just before a drop.
        lossy, event = awaits and client == "gemini", self._random.random() < 0.5
        usual = {
            "error_after"
            if streams and (lossy or (event and not (OLD and client == "openai")))
            else "drop_after": after
        }
        return Reply(text, **usual, **counts)

    def _held(self, text: str, needed: int, **counts: int) -> Reply:
        return Reply(text, hold_after=needed and needed + self._random.randint(0, MOST_AFTER), **counts)


class Desk:
    """Does what is planned, and keeps the bills by query and step."""

    def __init__(self, server: LoopbackServer, plan: Sequence[Query]) -> None:
        self.plan = {query.number: query for query in plan}
        self.bills: Bills = defaultdict(list)
        self._server, server.answer = server, self._answer

    def _answer(self, request: Request) -> Reply:
        number = int(re.findall(r"item (\d+)", request.prompt)[-1])
        folders = set(re.findall(r"Folder (\d+)", request.prompt))
        if folders != {str(number % FOLDERS)}:
            message = f"item {number} was looked for in the folders {folders}"
            raise LookupError(message)
        step: Route = "long_context" if "Read the following text" in request.prompt else "rag"
        bills, replies = self.bills[number, step], self.plan[number].replies[step]
        reply = replies[min(len(bills), len(replies) - 1)]
        bills.append(self._server.book[-1])
        if isinstance(reply, int):
            return error(request, reply)
        return filled_in(request, reply) if self.plan[number].structured else reply

    async def holds(self, query: Query) -> None:
        """Wait until a step's model has come to where it sends nothing any more."""
        while not any(self._holds(query, step) for step in STEPS):  # noqa: ASYNC110
            await asyncio.sleep(0.005)  # the server is in another thread

    def _holds(self, query: Query, step: Route) -> bool:
        (*_, reply), bills = query.replies[step], self.bills.get((query.number, step), ())
        most = reply.hold_after if isinstance(reply, Reply) else None
        return most is not None and any(bill.input_tokens and bill.sent == most for bill in bills)


def filled_in(request: Request, reply: Reply) -> Reply:
    answers = reply.text.startswith("Yes,")
    form = loopback.report(request, answerable=answers, answer=reply.text if answers else "")
    return replace(form, cached_tokens=reply.cached_tokens, thinking_tokens=reply.thinking_tokens)


def error(request: Request, status: int) -> Reply:
    gemini = request.protocol == "gemini"
    if status == 400:
        return (loopback.gemini_too_long if gemini else loopback.too_long_typed)(LIMIT, count(request.prompt))
    return failing("gemini" if gemini else "openai", status)


@dataclass
class Seen:
    """What the reader of a query saw.

    Attributes:
        query: The query.
        text: All pieces that were shown.
        end: How it ended; None if it did not.
        error: The type of what was raised; itself it would keep what it came through.
    """

    query: Query
    text: str = ""
    end: Outcome | None = None
    error: type[Exception] | None = None

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


class Kept(langchain_selfroute.SelfRouteLedger):
    """Keeps the entries of one query."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)


ASKED: ContextVar[int] = ContextVar("ASKED")  # the number of the query


class KeptEvents(BaseEventHandler):
    """Keeps the entries of all queries."""

    entries: dict[int, Any] = Field(default_factory=dict)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        if isinstance(event, SelfRouteQueryEvent):
            self.entries.setdefault(ASKED.get(), []).append(event.entry)


class _Crowd:
    """Readers of one framework."""

    modes: Sequence[str]
    models: Sequence[Models]
    ledger: Ledger
    entries: dict[int, list[Entry]]

    def __init__(self, patience: Callable[[Query], Awaitable[object]]) -> None:
        """Start; `patience` waits until a reader leaves before anything has come."""
        self._patience, self.budget = patience, Budget(tokens=10**9, per="day")

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        """Who may ask again after an error."""
        return ("client",)

    def open(self, query: Query) -> Iterator[str]:
        """Ask, and read."""
        raise NotImplementedError

    def aopen(self, query: Query) -> AsyncIterator[str]:
        """As `open`."""
        raise NotImplementedError

    def ask(self, query: Query) -> Seen:
        """Read one reply, in a thread."""
        seen = Seen(query)
        try:
            with closing(self.open(query)) as texts:  # type: ignore[type-var]
                for shown, text in enumerate(texts, 1):
                    seen.text += text
                    if shown == query.leaves_after:
                        seen.end = "left"
                        break
            seen.end = seen.end or "answered"
        except Exception as error:  # noqa: BLE001 - it is looked at later
            seen.end, seen.error = "failed", type(error)
        return seen

    async def aask(self, query: Query) -> Seen:
        """Read one reply; who is cancelled is so while the next piece is awaited, or before any came."""
        seen = Seen(query)
        reading = asyncio.create_task(self._read(seen))
        leaving = asyncio.create_task(self._leave(query, reading)) if query.leaves_after == 0 else None
        try:
            await reading
        except asyncio.CancelledError:
            if not reading.cancelled():
                raise
            seen.end = "left"
        except Exception as error:  # noqa: BLE001
            seen.end, seen.error = "failed", type(error)
        if leaving:
            leaving.cancel()
        return seen

    async def _leave(self, query: Query, reading: asyncio.Task[None]) -> None:
        """Cancel a reader, again and again: before Python 3.12 `asyncio.wait_for` of a client may pass over it."""
        await self._patience(query)
        while not reading.done():
            reading.cancel()
            await asyncio.sleep(1)

    async def _read(self, seen: Seen) -> None:
        query, task = seen.query, asyncio.current_task()
        async with aclosing(self.aopen(query)) as texts:  # type: ignore[type-var]
            shown = 0
            async for text in texts:
                shown += 1
                seen.text += text
                if shown == query.leaves_after:
                    if not query.cancels:
                        seen.end = "left"
                        return
                    assert task
                    task.cancel()
        seen.end = "answered"


def vector(text: str) -> list[float]:
    """Embed by the folder that a text or a question is about."""
    asked, told = re.search(r"item (\d+)", text), re.search(r"Folder (\d+)", text)
    folder = int(asked[1]) % FOLDERS if asked else int(told[1]) if told else FOLDERS
    dice = Random(folder)  # noqa: S311
    return [dice.gauss(0, 1) for _ in range(16)]


def placed() -> Iterator[tuple[str, str, int]]:
    """Yield the folder of each chunk, its text, and where it begins."""
    for folder, chunks in enumerate(CHUNKS):
        for at, text in enumerate(chunks):
            yield f"folder {folder}", text, sum(len(chunk) + 1 for chunk in chunks[:at])


class _Folders(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(vector, texts))

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class _FoldersOfNodes(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)


class Chains(_Crowd):
    """Readers of LangChain's."""

    modes = ("invoke", "ainvoke", "stream", "astream")
    # Errors of the old client of Gemini end in errors of its own.
    models: tuple[Models, ...] = (
        *(("openai", None), ("openai", "openai")),
        *(() if OLD else (("gemini", None), ("openai", "gemini"), ("gemini", "openai"))),
    )

    def __init__(self, server: Any, patience: Callable[[Query], Awaitable[object]]) -> None:
        super().__init__(patience)
        self.ledger, self.entries = langchain_selfroute.SelfRouteLedger(), {}
        self._server, self._made = server, list[Any]()
        self._model, self._chain = cache(self._make_model), cache(self._make_chain)
        self._store = InMemoryVectorStore(_Folders())
        self._store.add_documents(
            [Document(text, metadata={"source": source, "start_index": at}) for source, text, at in placed()]
        )

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        return ("client", "other model", "other chain", *(() if streams else ("model", "chain")))

    def _make_model(self, client: str, retries: int) -> Any:
        if client == "gemini":
            named: Any = {"base_url": self._server.gemini_url, "google_api_key": "k", "model": "gemini-2.5-flash"}
            return ChatGoogleGenerativeAI(max_retries=retries + 1, **named)
        named = {"base_url": self._server.openai_url, "api_key": "k", "model": "gpt-4o-mini", "timeout": 300}
        self._made.append(ChatOpenAI(max_retries=retries, stream_usage=True, **named))
        return self._made[-1]

    def _make_chain(self, models: Models, again: str | None, structured: bool) -> Runnable[Any, Any]:
        def ready(client: str | None) -> Any:
            if client is None:
                return None
            llm = self._model(client, int(again == "client"))
            if again == "model":
                return llm.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
            return llm.with_fallbacks([self._model(OTHER[client], 0)]) if again == "other model" else llm

        def over(first: str | None, second: str | None) -> Runnable[Any, Any]:
            return SelfRouteChain.from_vectorstore(
                self._store,
                ready(first),
                k=2,
                long_context_llm=ready(second),
                answerability="structured" if structured else "text",
                sections=None,
                draft_passages=1,
                priced_as=priced_as((first, second)),
                escalation=self.budget,
            )

        chain = over(*models)
        if again == "chain":
            return chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        return chain.with_fallbacks([over(*(OTHER[client] for client in models))]) if again == "other chain" else chain

    def _asked(self, query: Query) -> tuple[Any, Any]:
        kept = Kept()
        self.entries[query.number] = kept.entries
        return self._chain(query.models, query.again, query.structured), {"callbacks": [self.ledger, kept]}

    def open(self, query: Query) -> Iterator[str]:
        chain, config = self._asked(query)
        if query.mode == "invoke":
            yield chain.invoke(query.question, config)["answer"]
            return
        with closing(chain.stream(query.question, config)) as chunks:
            for chunk in chunks:
                if chunk.get("answer"):
                    yield chunk["answer"]

    async def aopen(self, query: Query) -> AsyncIterator[str]:
        chain, config = self._asked(query)
        if query.mode == "ainvoke":
            yield (await chain.ainvoke(query.question, config))["answer"]
            return
        async with aclosing(chain.astream(query.question, config)) as chunks:
            async for chunk in chunks:
                if chunk.get("answer"):
                    yield chunk["answer"]

    async def close(self) -> None:
        """Close the connections of OpenAI's models."""
        for model in self._made:
            model.root_client.close()
            await model.root_async_client.close()


class Engines(_Crowd):
    """Readers of LlamaIndex's."""

    modes = ("query", "aquery", "stream", "astream")
    models = (*Chains.models, ("completions", None), ("completions", "gemini"))

    def __init__(self, server: Any, patience: Callable[[Query], Awaitable[object]]) -> None:
        super().__init__(patience)
        self.ledger, kept = llamaindex_selfroute.SelfRouteLedger(), KeptEvents()
        self.entries, self.handlers = kept.entries, [self.ledger, kept]
        self._server, self._made = server, list[Any]()
        self._model, self._engine = cache(self._make_model), cache(self._make_engine)
        nodes = []
        for source, text, at in placed():
            of = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
            nodes.append(TextNode(text=text, start_char_idx=at, end_char_idx=at + len(text), relationships=of))
        self._index = VectorStoreIndex(nodes, embed_model=_FoldersOfNodes())

    def _make_model(self, client: str, retries: int) -> LLM:
        if client == "gemini":
            again = {"attempts": retries + 1, "initial_delay": 0.01, "jitter": 0.01}
            address: Any = {"base_url": self._server.gemini_url, "retry_options": again}
            options: Any = {"max_tokens": 256, "context_window": 1_000_000, "max_retries": 0}
            return GoogleGenAI(model="gemini-2.5-flash", api_key="k", http_options=address, **options)
        named: Any = {"api_base": self._server.openai_url, "api_key": "k", "model": "gpt-4o-mini", "timeout": 300}
        options = {"is_chat_model": client == "openai", "context_window": 100_000, "max_retries": retries}
        counts = {"stream_options": {"include_usage": True}}
        self._made.append(OpenAILike(additional_kwargs=counts, **named, **options))
        return self._made[-1]

    def _make_engine(self, models: Models, again: str | None, structured: bool, streaming: bool) -> Any:
        llm, second = (client and self._model(client, int(again == "client")) for client in models)
        return SelfRouteQueryEngine.from_index(
            self._index,
            similarity_top_k=2,
            llm=llm,
            long_context_llm=second,
            answerability="structured" if structured else "text",
            sections=None,
            draft_passages=1,
            streaming=streaming,
            priced_as=priced_as(models),
            escalation=self.budget,
        )

    def _asked(self, query: Query) -> Any:
        ASKED.set(query.number)
        return self._engine(query.models, query.again, query.structured, "stream" in query.mode)

    def open(self, query: Query) -> Iterator[str]:
        response = self._asked(query).query(query.question)
        if query.mode == "query":
            yield str(response)
            return
        with closing(response.response_gen) as texts:
            yield from texts

    async def aopen(self, query: Query) -> AsyncIterator[str]:
        response = await self._asked(query).aquery(query.question)
        if query.mode == "aquery":
            yield str(response)
            return
        async with aclosing(response.async_response_gen()) as texts:
            async for text in texts:
                yield text

    async def close(self) -> None:
        """Close the connections of OpenAI's models."""
        for model in self._made:
            model._get_client().close()
            await model._get_aclient().close()


async def ask_all(crowd: Chains | Engines, plan: Sequence[Query], *, deadline: float) -> list[Seen]:
    """Ask all queries, in eight threads and tasks at a time; what does not end in time has no end."""
    loop = asyncio.get_running_loop()
    pool, turns = ThreadPoolExecutor(8), asyncio.Semaphore(8)

    async def aask(query: Query) -> Seen:
        async with turns:
            return await crowd.aask(query)

    asked: dict[asyncio.Future[Seen], Query] = {
        asyncio.ensure_future(aask(query)) if query.awaits else loop.run_in_executor(pool, crowd.ask, query): query
        for query in plan
    }
    done, hanging = await asyncio.wait(asked, timeout=deadline)
    for one in hanging:
        one.cancel()
    pool.shutdown(wait=not hanging, cancel_futures=True)
    return [one.result() if one in done else Seen(query) for one, query in asked.items()]


def counted(entries: Iterable[Entry], step: Route) -> StepUsage:
    """What entries count for a step."""
    return sum((getattr(entry.usage, step) or NOTHING for entry in entries), start=NOTHING)


def told(bill: loopback.Entry) -> bool:
    """Whether any of the reply was sent. If not, and nobody left, who asked had an error and thinks it free."""
    return bill.done or (bill.request.stream and bill.sent > 0)


def billed(bills: Iterable[loopback.Entry]) -> StepUsage:
    """What is known of the provider's bill."""
    each = (
        StepUsage(bill.input_tokens, bill.output_tokens, bill.cached_tokens, cost=FREE)
        if told(bill)
        else StepUsage(bill.input_tokens, 0, cost=FREE)
        for bill in bills
        if told(bill) or bill.left
    )
    return sum(each, start=NOTHING)


def near(estimated: int, booked: int) -> bool:
    """Return whether an estimate of tokens is as near to the words that a server books as estimates are."""
    return booked * 0.7 <= estimated <= booked * 2


def account_is_wrong(query: Query, entries: Sequence[Entry], bills: Mapping[tuple[int, Route], Any]) -> str | None:
    """Compare what one query counts with its bills; say what is wrong, if anything is."""
    if Counter(entry.outcome for entry in entries) != Counter(query.outcomes):
        return f"it was booked as {[entry.outcome for entry in entries]}"
    if query.route not in {None, entries[-1].route}:
        return f"it was booked on the route {entries[-1].route}"
    if entries[-1].outcome == "answered" and entries[-1].answerable is not query.answerable:
        return f"it was booked as answerable: {entries[-1].answerable}"
    for step in STEPS:
        some = bills.get((query.number, step), [])
        counts, bill = counted(entries, step), billed(some)
        whole = all(one.done for one in some if told(one) or one.left)
        unread = bill.output_tokens - counts.output_tokens  # what a reader who left did not read was made all the same
        reported = query.trouble != "unreported" or step != query.step
        agree = counts.cached_tokens == bill.cached_tokens and counts.estimated is not (whole and reported)
        if counts.estimated:
            agree = agree and near(counts.input_tokens, bill.input_tokens)
            agree = agree and counts.output_tokens <= 2 * bill.output_tokens + MOST_AFTER
        else:
            agree = agree and (counts.input_tokens, unread) == (bill.input_tokens, 0)
        if not agree:
            return f"it counts for {step} {counts}, the provider {bill}"
    return None


def broken_laws(crowd: Chains | Engines, seen: Sequence[Seen], bills: Bills) -> list[str]:
    """Say which query broke which law; a ledger has the sums of what was noted of all queries."""
    found = []
    for one in seen:
        query = one.query
        entries = crowd.entries.get(query.number, [])
        wrong = one.wrong() or account_is_wrong(query, entries, bills)
        if wrong:
            kind = f"{query.trouble} in {query.step}, {query.mode}, reader leaves after {query.leaves_after}"
            found.append(f"{query.question} {wrong} ({kind})")
    again = Ledger()
    for entry in (entry for some in crowd.entries.values() for entry in some):
        again.add(entry)
    told = sum(counted(some, "long_context").total_tokens for some in crowd.entries.values())
    if crowd.budget.spent["tokens"] != told or not told:
        found.append(f"the budget counts {crowd.budget.spent}, and the entries {told}")
    if crowd.ledger.to_dict() != again.to_dict():
        found.append(f"the ledger has {crowd.ledger.to_dict()}, and what was noted adds up to {again.to_dict()}")
    return found


def left_over() -> Counter[str]:
    """Count what is there of questions that are over: nothing, unless somebody still refers to it."""
    gc.collect()
    ours = ("selfroute.", "langchain_selfroute.", "llamaindex_selfroute.")
    kinds = (type(thing) for thing in gc.get_objects())
    return Counter(
        kind.__name__ for kind in kinds if str(kind.__module__).startswith(ours) and kind.__name__ in OF_A_QUESTION
    )
