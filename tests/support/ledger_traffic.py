"""Mixed traffic: a plan of queries of every kind and end, the servers that they go to, and both hosts to ask them."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, aclosing, closing, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from itertools import islice
from random import Random
from typing import Any, Protocol

import aiohttp
import httpx
import openai
import pytest
from google.genai import errors as google
from langchain_core.documents import Document
from langchain_core.exceptions import LangChainException
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.core import Document as LlamaDocument
from llama_index.core import QueryBundle
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike

import langchain_selfroute
import llamaindex_selfroute
import loopback
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_selfroute.events import SelfRouteQueryEvent
from loopback import LoopbackServer, Reply, Request
from selfroute.answerability.structured import Answerability
from selfroute.effects import Route
from selfroute.usage import FREE, NOTHING, StepUsage
from selfroute.usage.entry import Entry, Outcome
from selfroute.usage.ledger import Ledger

Models = tuple[str, str | None]  # the clients of both steps; None: the first one's model
Bills = dict[tuple[int, Route], list[loopback.Entry]]

MANY = 520  # queries of each framework
AT_ONCE = 8  # threads, and tasks beside them
MOST_AFTER = 3  # pieces that a server makes and a reader who leaves does not read
STEPS: tuple[Route, Route] = ("rag", "long_context")
PASSAGES = ["The meeting began at nine.", "It ended at noon."]
WHOLE = "A comma, a dot. " * 60 + " ".join(PASSAGES) + " Ms Okafor chaired it." + " They went home." * 60
IN_WORDS = "I cannot answer this question based on the given context."
LIMIT = 250  # words of a prompt, of a model that finds one too long
OLD = version("openai").startswith("1.")  # whose awaited streams pass over an event that is an error
OTHER = {"openai": "gemini", "gemini": "openai", None: None}
MINI = "openai:gpt-4o-mini"
PRICED_AS = {"openai": MINI, "completions": MINI, "gemini": "google:gemini-2.5-flash", None: None}  # at these addresses
FAILURES = (openai.OpenAIError, google.APIError, LangChainException, httpx.TransportError, aiohttp.ClientError)


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
    def answerability(self) -> Answerability:
        """How the models tell whether they can answer."""
        return "structured" if self.structured else "text"

    @property
    def question(self) -> str:
        """What is asked."""
        return f"What became of item {self.number}?"

    @property
    def fails(self) -> bool:
        """Whether it ends in an error."""
        return self.outcomes[-1] == "failed"

    def ending(self) -> AbstractContextManager[Any]:
        """Expect its end."""
        return pytest.raises(FAILURES) if self.fails else nullcontext()


class Dice:
    """Draws queries."""

    def __init__(self, kind: type[Host]) -> None:
        self._kind, self._random = kind, Random(kind.__name__)  # noqa: S311

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
        if streams and (lossy or (event and not (OLD and client == "openai"))):
            return Reply(text, error_after=after, **counts)
        return Reply(text, drop_after=after, **counts)

    def _held(self, text: str, needed: int, **counts: int) -> Reply:
        return Reply(text, hold_after=needed and needed + self._random.randint(0, MOST_AFTER), **counts)


class Provider:
    """Does what is planned, and keeps the bills by query and step."""

    def __init__(self, server: LoopbackServer, plan: Sequence[Query]) -> None:
        self.plan = {query.number: query for query in plan}
        self.bills: Bills = defaultdict(list)
        self._server, server.answer = server, self._answer

    def _answer(self, request: Request) -> Reply:
        number = int(re.findall(r"item (\d+)", request.prompt)[-1])
        step: Route = "long_context" if "Read the following text" in request.prompt else "rag"
        bills, replies = self.bills[number, step], self.plan[number].replies[step]
        reply = replies[min(len(bills), len(replies) - 1)]
        bills.append(self._server.book[-1])
        if isinstance(reply, int):
            return error(request, reply)
        return filled_in(request, reply) if self.plan[number].structured else reply

    async def wait(self, reply: Coroutine[Any, Any, Any], query: Query) -> None:
        """Wait for a reply, unless the reader leaves before any of it has come."""
        task = asyncio.ensure_future(reply)
        if query.leaves_after == 0:
            while not any(self._holds(query, step) for step in STEPS):  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # the server is in another thread
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def _holds(self, query: Query, step: Route) -> bool:
        """Whether a step's model has come to where it sends nothing any more."""
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
    if status == 429:
        return loopback.GEMINI_RATE_LIMITED if gemini else loopback.RATE_LIMITED
    return loopback.GEMINI_SERVER_ERROR if gemini else loopback.SERVER_ERROR


class Host(Protocol):
    """Asks as a program that uses one of the frameworks does."""

    modes: Sequence[str]
    models: Sequence[Models]
    ledger: Ledger
    entries: dict[int, list[Entry]]

    def __init__(self, server: LoopbackServer, provider: Provider) -> None: ...

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        """Who may ask again after an error."""

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask queries, in a thread: one, or a batch."""

    async def aask(self, queries: Sequence[Query]) -> None:
        """The same, in a task."""


class Kept(langchain_selfroute.SelfRouteLedger):
    """Keeps the entries of one query."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)


class Chains:
    """LangChain."""

    modes = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")
    # Errors of the old client of Gemini end in errors of its own.
    models: tuple[Models, ...] = (
        *(("openai", None), ("openai", "openai")),
        *(() if OLD else (("gemini", None), ("openai", "gemini"), ("gemini", "openai"))),
    )

    def __init__(self, server: LoopbackServer, provider: Provider) -> None:
        self.ledger, self.entries = langchain_selfroute.SelfRouteLedger(), {}
        self._provider, model = provider, cache(partial(self._model, server))
        keys = {(query.models, query.again, query.answerability) for query in provider.plan.values()}
        self._chains = {key: self._chain(*key, model) for key in keys}

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        return ("client", "other model", "other chain", *(() if streams else ("model", "chain")))

    @staticmethod
    def _model(server: LoopbackServer, client: str, retries: int) -> Any:
        if client == "openai":
            url = server.openai_url
            return ChatOpenAI(base_url=url, api_key="k", model="gpt-4o-mini", max_retries=retries, stream_usage=True)
        url = server.gemini_url
        attempts = retries + 1
        return ChatGoogleGenerativeAI(base_url=url, google_api_key="k", model="gemini-2.5-flash", max_retries=attempts)

    @staticmethod
    def _chain(
        models: Models, again: str | None, answerability: Answerability, model: Callable[[str, int], Any]
    ) -> Runnable[Any, Any]:
        def ready(client: str | None) -> Any:
            if client is None:
                return None
            llm = model(client, int(again == "client"))
            if again == "model":
                return llm.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
            return llm.with_fallbacks([model(OTHER[client], 0)]) if again == "other model" else llm

        def over(first: str | None, second: str | None) -> Runnable[Any, Any]:
            retriever = RunnableLambda(lambda _: [Document(text) for text in PASSAGES])
            return SelfRouteChain(
                retriever=retriever,
                llm=ready(first),
                long_context_llm=ready(second),
                documents=[Document(WHOLE)],
                answerability=answerability,
                token_counter=count,
                priced_as=PRICED_AS[first],
                long_context_priced_as=PRICED_AS[second],
            )

        chain = over(*models)
        if again == "chain":
            return chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        return chain.with_fallbacks([over(*(OTHER[client] for client in models))]) if again == "other chain" else chain

    def _asked(self, query: Query) -> tuple[Runnable[Any, Any], str, Any]:
        kept = Kept()
        self.entries[query.number] = kept.entries
        chain = self._chains[query.models, query.again, query.answerability]
        return chain, query.question, {"callbacks": [self.ledger, kept]}

    def ask(self, queries: Sequence[Query]) -> None:
        query = queries[0]
        chain, question, config = self._asked(query)
        if query.mode == "batch":
            questions, configs = self._batch(queries)
            self._check(chain.batch(questions, configs, return_exceptions=True), queries)
            return
        with query.ending():
            if query.mode == "invoke":
                chain.invoke(question, config)
                return
            with closing(chain.stream(question, config)) as chunks:  # type: ignore[type-var]
                list(islice((chunk for chunk in chunks if chunk.get("answer")), query.leaves_after))

    async def aask(self, queries: Sequence[Query]) -> None:
        query = queries[0]
        chain, question, config = self._asked(query)
        if query.mode == "abatch":
            questions, configs = self._batch(queries)
            self._check(await chain.abatch(questions, configs, return_exceptions=True), queries)
            return
        with query.ending():
            if query.mode == "ainvoke":
                await self._provider.wait(chain.ainvoke(question, config), query)
            else:
                await self._provider.wait(read(lambda: texts_of(chain.astream(question, config)), query), query)

    def _batch(self, queries: Sequence[Query]) -> tuple[list[str], list[Any]]:
        asked = [self._asked(query) for query in queries]
        return [question for _, question, _ in asked], [config for _, _, config in asked]

    @staticmethod
    def _check(results: Sequence[Any], queries: Sequence[Query]) -> None:
        assert [isinstance(result, FAILURES) for result in results] == [query.fails for query in queries]


async def texts_of(chunks: Any) -> Any:
    async with aclosing(chunks):
        async for chunk in chunks:
            if chunk.get("answer"):
                yield chunk["answer"]


async def read(open_stream: Callable[[], Any], query: Query) -> None:
    """Read a stream, up to its end or as far as the reader does."""
    enough = asyncio.Event()

    async def read_on(most: int | None) -> None:
        shown = 0
        async with aclosing(open_stream()) as texts:
            async for _ in texts:
                shown += 1
                if shown == query.leaves_after:
                    enough.set()
                if shown == most:
                    return

    task = asyncio.create_task(read_on(None if query.cancels else query.leaves_after))
    task.add_done_callback(lambda _: enough.set())
    if query.cancels and query.leaves_after:
        await enough.wait()
        task.cancel()
    with suppress(asyncio.CancelledError):
        await task


ASKED: ContextVar[int] = ContextVar("ASKED")  # the number of the query


class KeptEvents(BaseEventHandler):
    """Keeps the entries of all queries."""

    entries: dict[int, Any] = Field(default_factory=dict)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        if isinstance(event, SelfRouteQueryEvent):
            self.entries.setdefault(ASKED.get(), []).append(event.entry)


class Found(BaseRetriever):
    """Finds the same passages for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        assert query_bundle.query_str
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in PASSAGES]


class Engines:
    """LlamaIndex."""

    modes = ("query", "aquery", "stream", "astream")
    models = (*Chains.models, ("completions", None), ("completions", "gemini"))

    def __init__(self, server: LoopbackServer, provider: Provider) -> None:
        self.ledger, kept = llamaindex_selfroute.SelfRouteLedger(), KeptEvents()
        self.entries, self.handlers = kept.entries, [self.ledger, kept]
        self._provider, model = provider, cache(partial(self._model, server))
        keys = {self._key(query) for query in provider.plan.values()}
        self._engines = {key: self._engine(*key, model) for key in keys}

    @staticmethod
    def again(*, streams: bool) -> Sequence[str]:
        return ("client",)

    @staticmethod
    def _model(server: LoopbackServer, client: str, retries: int) -> LLM:
        if client == "gemini":
            again = {"attempts": retries + 1, "initial_delay": 0.01, "jitter": 0.01}
            address: Any = {"base_url": server.gemini_url, "retry_options": again}
            options: Any = {"max_tokens": 256, "context_window": 1_000_000, "max_retries": 0}
            return GoogleGenAI(model="gemini-2.5-flash", api_key="k", http_options=address, **options)
        options = {
            "additional_kwargs": {"stream_options": {"include_usage": True}},
            "is_chat_model": client == "openai",
        }
        return OpenAILike(model="gpt-4o-mini", api_base=server.openai_url, api_key="k", max_retries=retries, **options)

    @staticmethod
    def _key(query: Query) -> tuple[Models, str | None, Answerability, bool]:
        return query.models, query.again, query.answerability, "stream" in query.mode

    @staticmethod
    def _engine(
        models: Models,
        again: str | None,
        answerability: Answerability,
        streaming: bool,
        model: Callable[[str, int], LLM],
    ) -> SelfRouteQueryEngine:
        llm, second = (client and model(client, int(again == "client")) for client in models)
        return SelfRouteQueryEngine(
            Found(),
            documents=[LlamaDocument(text=WHOLE)],
            answerability=answerability,
            llm=llm,
            long_context_llm=second,
            token_counter=count,
            streaming=streaming,
            priced_as=PRICED_AS[models[0]],
            long_context_priced_as=PRICED_AS[models[1]],
        )

    def _asked(self, query: Query) -> Any:
        ASKED.set(query.number)
        return self._engines[self._key(query)]

    def ask(self, queries: Sequence[Query]) -> None:
        (query,) = queries
        engine = self._asked(query)
        with query.ending():
            response = engine.query(query.question)
            if query.mode == "stream":
                with closing(response.response_gen) as texts:
                    list(islice(texts, query.leaves_after))

    async def aask(self, queries: Sequence[Query]) -> None:
        (query,) = queries
        engine = self._asked(query)
        with query.ending():
            if query.mode == "aquery":
                await self._provider.wait(engine.aquery(query.question), query)
            else:
                response = await engine.aquery(query.question)
                await self._provider.wait(read(response.async_response_gen, query), query)


async def ask_all(host: Host, plan: Sequence[Query]) -> None:
    """Ask all queries: threads and tasks, side by side."""
    together: dict[Any, list[Query]] = defaultdict(list)
    for query in plan:
        together[
            (query.mode, query.models, query.again, query.structured) if "batch" in query.mode else query.number
        ].append(query)
    jobs = [some[at : at + 6] for some in together.values() for at in range(0, len(some), 6)]
    loop, turns = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)

    async def aask(job: Sequence[Query]) -> None:
        async with turns:
            await host.aask(job)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        awaited = [asyncio.create_task(aask(job)) for job in jobs if job[0].mode.startswith("a")]
        threads = [loop.run_in_executor(pool, host.ask, job) for job in jobs if not job[0].mode.startswith("a")]
        await asyncio.gather(*awaited, *threads)


def counted(entries: Iterable[Entry], step: Route) -> StepUsage:
    """What entries count for a step."""
    return sum((getattr(entry.usage, step) or NOTHING for entry in entries), start=NOTHING)


def told(bill: loopback.Entry) -> bool:
    """Whether any of the reply was sent. If not, and nobody left, who asked had an error and thinks it free."""
    return bill.done or (bill.request.stream and bill.sent > 0)


def billed(bills: Iterable[loopback.Entry]) -> StepUsage:
    """What the provider billed, as far as anything is known of it."""
    each = (
        StepUsage(bill.input_tokens, bill.output_tokens, bill.cached_tokens, cost=FREE)
        if told(bill)
        else StepUsage(bill.input_tokens, 0, cost=FREE)
        for bill in bills
        if told(bill) or bill.left
    )
    return sum(each, start=NOTHING)
