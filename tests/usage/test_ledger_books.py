"""The ledger against the provider's book: a thousand mixed queries to servers that book every token they bill."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from ledger_traffic import (
    MANY,
    MOST_AFTER,
    STEPS,
    Bills,
    Chains,
    Dice,
    Engines,
    Host,
    Provider,
    Query,
    ask_all,
    billed,
    counted,
    told,
)
from loopback import LoopbackServer
from scenarios import QUESTION, WHOLE
from selfroute.effects import Route
from selfroute.usage import NOTHING, StepUsage

pytestmark = pytest.mark.usefixtures("one_certificate", "frozen")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: "") as started:
        yield started
    gc.collect()


@pytest.fixture
def listening() -> Iterator[Callable[[Host], None]]:
    """Let the handlers of a host hear LlamaIndex's events."""
    handlers = get_dispatcher().event_handlers
    before = list(handlers)
    yield lambda host: handlers.extend(getattr(host, "handlers", ()))
    handlers[:] = before


def asked(
    server: LoopbackServer, plan: Sequence[Query], kind: Any, listening: Callable[[Host], None]
) -> tuple[Any, Bills]:
    """Ask all queries; return the host, and what the provider billed."""
    provider = Provider(server, plan)
    host = kind(server, provider)
    listening(host)
    asyncio.run(ask_all(host, plan))
    gc.collect()  # LlamaIndex leaves a sync stream that was closed to the garbage collector
    server.settle(timeout=30)
    return host, provider.bills


def agree(counts: StepUsage, bills: Sequence[loopback.Entry], *, reported: bool) -> None:
    """Compare what one query counts for one step with its bills."""
    bill, whole = billed(bills), all(one.done for one in bills if told(one) or one.left)
    assert counts.estimated is not (whole and reported)
    assert (counts.input_tokens, counts.cached_tokens) == (bill.input_tokens, bill.cached_tokens)
    # What a reader who left did not read was made all the same.
    assert 0 <= bill.output_tokens - counts.output_tokens <= (0 if whole else MOST_AFTER)


HOSTS = pytest.mark.parametrize("kind", [Chains, Engines], ids=["LangChain", "LlamaIndex"])


@HOSTS
@pytest.mark.parametrize("many", [100, pytest.param(MANY, marks=pytest.mark.matrix)])
def test_the_ledger_agrees_with_the_providers_book_to_the_token(
    server: LoopbackServer, listening: Callable[[Host], None], kind: type[Host], many: int
) -> None:
    dice = Dice(kind)
    plan = [dice.query(number) for number in range(many)]
    host, bills = asked(server, plan, kind, listening)
    counts: dict[tuple[int, Route], StepUsage] = {}
    for query in plan:
        entries = host.entries[query.number]
        assert Counter(entry.outcome for entry in entries) == Counter(query.outcomes), query
        assert query.route in {None, entries[-1].route}, query
        for step in STEPS:
            at = query.number, step
            counts[at] = counted(entries, step)
            agree(counts[at], bills.get(at, []), reported=query.trouble != "unreported" or step != query.step)
    figures = host.ledger.to_dict()
    for step in STEPS:
        all_of = [counts[at] for at in counts if at[1] == step]
        total = sum(all_of, start=NOTHING)
        estimated = sum(some.total_tokens for some in all_of if some.estimated)
        tokens = {**total.as_dict(), "estimated_tokens": estimated, "total_tokens": total.total_tokens}
        assert figures["tokens"][step] == tokens
        book = billed(bill for (_, of), some in bills.items() if of == step for bill in some)
        assert (tokens["input_tokens"], tokens["cached_tokens"]) == (book.input_tokens, book.cached_tokens)
    good = [query for query in plan if not query.fails]
    assert (figures["queries"], figures["failed"]) == (len(good), sum(q.outcomes.count("failed") for q in plan))
    assert figures["routes"] == {route: sum(query.route == route for query in good) for route in figures["routes"]}
    assert figures["left"] == sum("left" in query.outcomes for query in good)
    assert figures["unanswerable"] == sum("left" not in q.outcomes and not q.answerable for q in good)


PROVIDERS = {"gpt-4o-mini": "openai", "gemini-2.5-flash": "google"}


def price(bill: loopback.Entry) -> Decimal:
    """What a request costs by the price list."""
    usage = genai_prices.Usage(
        input_tokens=bill.input_tokens, output_tokens=bill.output_tokens, cache_read_tokens=bill.cached_tokens
    )
    model = bill.request.model
    return genai_prices.calc_price(usage, model, provider_id=PROVIDERS[model]).total_price


@HOSTS
def test_the_ledgers_money_is_the_price_of_the_providers_book(
    server: LoopbackServer, listening: Callable[[Host], None], kind: type[Host]
) -> None:
    dice = Dice(kind)
    plan = [query for query in map(dice.query, range(100)) if query.trouble == "none"]
    host, bills = asked(server, plan, kind, listening)
    book = [bill for some in bills.values() for bill in some]
    money = host.ledger.to_dict()["money"]
    assert {bill.request.model for bill in book} == (PROVIDERS.keys() if len(kind.models) > 2 else {"gpt-4o-mini"})
    assert any(bill.cached_tokens for bill in book)
    assert money["unpriced"] == {}
    assert Decimal(money["cost"]) == sum(map(price, book))


@pytest.mark.parametrize("draft", ["Mr Lin.", "unanswerable"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streams", [True, False], ids=["streams", "never streams"])
async def test_what_langchain_repeats_from_its_cache_is_on_no_bill(
    server: LoopbackServer, mode: str, draft: str, streams: bool
) -> None:
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
    results = [await ask(chain, QUESTION, mode, {"callbacks": [ledger]}) for _ in range(3)]
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
