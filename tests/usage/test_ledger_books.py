"""Mixed queries to servers that book every token they bill: each shows its own answer, and the ledger is the book's."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from langchain_core.caches import InMemoryCache
from langchain_openai import ChatOpenAI
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]

import loopback
from langchain_parts import MODES, a_chain, ask
from langchain_selfroute import SelfRouteLedger
from loopback import LoopbackServer
from scenarios import QUESTION, WHOLE
from traffic import STEPS, Chains, Desk, Dice, Engines, Query, ask_all, broken_laws, left_over

pytestmark = pytest.mark.usefixtures("frozen")


class Round:
    """A round of queries, each with an end of its own, and what is left when it is over."""

    def __init__(self, kind: type[Chains | Engines], many: int) -> None:
        self.kind, handlers = kind, get_dispatcher().event_handlers
        before, threads = list(handlers), set(threading.enumerate())
        dice = Dice(kind, seed=7)
        self.plan = [dice.query(number) for number in range(many)]
        with LoopbackServer(lambda _: "") as server:
            desk = Desk(server, self.plan)
            crowd = kind(server, desk.holds)
            handlers.extend(getattr(crowd, "handlers", ()))
            asyncio.run(self._ask(crowd))
            handlers[:] = before
            gc.collect()  # LlamaIndex leaves a sync stream that was closed to the garbage collector
            server.settle(timeout=30)
        self.threads, self.bills = set(threading.enumerate()) - threads, desk.bills
        self.broken = broken_laws(crowd, self.seen, desk.bills)
        self.money = crowd.ledger.to_dict()["money"]
        self.costs = {number: [entry.usage.cost for entry in some] for number, some in crowd.entries.items()}
        crowd.entries.clear()
        crowd.ledger.reset()
        self.left_over = left_over()

    async def _ask(self, crowd: Chains | Engines) -> None:
        self.seen = await ask_all(crowd, self.plan, deadline=60)
        for _ in range(100):  # what is dropped is closed in tasks of its own
            if len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)
        self.tasks = {str(task) for task in asyncio.all_tasks() - {asyncio.current_task()}}
        await crowd.close()


ROUNDS = [(Chains, 90), (Engines, 90), pytest.param((Chains, 260), marks=pytest.mark.matrix)]
ROUNDS += [pytest.param((Engines, 260), marks=pytest.mark.matrix)]


@pytest.fixture(scope="module", params=ROUNDS, ids=["LangChain", "LlamaIndex", "LangChain, many", "LlamaIndex, many"])
def over(request: pytest.FixtureRequest) -> Round:
    return Round(*request.param)


def test_ledger_is_the_providers_book(over: Round) -> None:
    """Each query shows its own answer, or a beginning of it, and nothing of it is left when it is over."""
    assert (over.broken, over.left_over, over.tasks, over.threads) == ([], {}, set(), set())


def test_ledger_hears_of_every_kind_of_end(over: Round) -> None:
    answered = {(one.query.route, one.query.answerable) for one in over.seen if one.end == "answered"}
    assert answered == {("rag", True), ("long_context", True), ("long_context", False)}
    left = {(one.query.cancels, bool(one.text)) for one in over.seen if one.end == "left"}
    assert left == {(True, False), (True, True), (False, True)}
    assert len({one.error for one in over.seen if one.end == "failed"}) > 3
    assert {one.query.mode for one in over.seen} == set(over.kind.modes)
    assert {one.query.again for one in over.seen} == {None, *over.kind.again(streams=False)}


PROVIDERS = {"gpt-4o-mini": "openai", "gemini-2.5-flash": "google"}


def price(bill: loopback.Entry) -> Decimal:
    """What a request costs by the price list."""
    usage = genai_prices.Usage(
        input_tokens=bill.input_tokens, output_tokens=bill.output_tokens, cache_read_tokens=bill.cached_tokens
    )
    model = bill.request.model
    return genai_prices.calc_price(usage, model, provider_id=PROVIDERS[model]).total_price


def test_ledger_cost_is_that_of_the_providers_book(over: Round) -> None:
    known: Sequence[Query] = [query for query in over.plan if query.trouble == "none"]
    for query in known:
        book = [bill for step in STEPS for bill in over.bills.get((query.number, step), [])]
        assert sum(cost.dollars or 0 for cost in over.costs[query.number]) == sum(map(price, book)), query
    assert any(bill.cached_tokens for some in over.bills.values() for bill in some)
    assert over.money["unpriced"] == {}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: "") as started:
        yield started
    gc.collect()


@pytest.mark.parametrize("draft", ["Mr Lin.", "unanswerable"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streams", [True, False], ids=["streams", "never streams"])
async def test_ledger_cost_of_cached_replies(server: LoopbackServer, mode: str, draft: str, streams: bool) -> None:
    server.answer = lambda request: "Ms Okafor." if WHOLE in request.prompt else draft
    llm = ChatOpenAI(
        model="gpt-4o-mini",
        api_key="k",
        base_url=server.openai_url,
        cache=InMemoryCache(),
        stream_usage=True,
        disable_streaming=not streams,
    )
    chain, ledger = a_chain(llm=llm, priced_as="openai:gpt-4o-mini"), SelfRouteLedger()
    results: Any = [await ask(chain, QUESTION, mode, {"callbacks": [ledger]}) for _ in range(3)]
    steps = 2 if draft == "unanswerable" else 1
    money, first = ledger.to_dict()["money"], results[0]["usage"]
    assert Decimal(money["cost"]) == sum(price(entry) for entry in server.book)
    assert Decimal(first["cost"]) == sum(price(entry) for entry in server.book[:steps])
    repeats = len(server.book) == steps
    assert repeats or (streams and "stream" in mode)  # LangChain's caches do not serve streams
    for usage in (result["usage"] for result in results[1:]):
        assert (usage["total_tokens"], usage["estimated"]) == (first["total_tokens"], False)
        if repeats:
            used = [usage[step] for step in STEPS if usage[step]]
            assert (Decimal(usage["cost"]), Decimal(usage["cost_long_context_only"])) == (0, 0)
            assert [step["cached_tokens"] for step in used] == [step["input_tokens"] for step in used]
