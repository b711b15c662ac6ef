"""What one user can make another pay is bounded, whatever a crowd asks and however its questions end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core.schema import Document as LlamaDocument
from llama_index.llms.openai_like import OpenAILike

from budget_parts import (
    WHOLE,
    Chains,
    Engines,
    Finding,
    LlamaTeller,
    Noting,
    Teller,
    a_chain,
    an_engine,
    tokens_of,
)
from policies_parts import case_of
from selfroute.errors import ConfigurationError, InputError
from selfroute.policies import Budget, Case, Never
from selfroute.policies.case import Estimate
from selfroute.policies.policy import Escalation, Spent, ask, settle

AT_ONCE = 16
FULL = pytest.mark.matrix


def ask_all(crowd: Chains | Engines, number: int) -> None:
    """Ask half of the questions from threads, and half from tasks, side by side."""

    async def tasks() -> None:
        turns, loop = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop()

        async def task(item: int) -> None:
            async with turns:
                await crowd.aask(item)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            threads = [loop.run_in_executor(pool, crowd.ask, item) for item in range(number // 2)]
            await asyncio.gather(*map(task, range(number // 2, number)), *threads)

    asyncio.run(tasks())


@pytest.mark.parametrize("limit", ["tokens", "usd"])
@pytest.mark.parametrize(
    ("crowd", "number"),
    [
        (Chains, 200),
        (Engines, 104),
        pytest.param(Chains, 3_000, marks=FULL),
        pytest.param(Engines, 1_500, marks=FULL),
    ],
)
def test_a_crowd_never_passes_a_budget_by_more_than_one_estimate_was_off(
    crowd: type[Chains | Engines], number: int, limit: str
) -> None:
    most: dict[str, Any] = {"tokens": number * 120} if limit == "tokens" else {"usd": Decimal(number) / 50_000}
    budget, noting = Budget(per="day", **most), Noting()
    ask_all(crowd(escalation=budget & noting), number)
    (tokens, dollars), (off, dollars_off) = noting.bill(), noting.most_off()
    assert len(noting.told) == len(noting.estimates), "nothing leaks"
    assert budget.spent["tokens"] == tokens
    assert Decimal(budget.spent["usd"]) == dollars
    if limit == "tokens":
        assert 0.9 * most["tokens"] <= tokens <= most["tokens"] + off
    else:
        assert 0.9 * float(most["usd"]) <= dollars <= most["usd"] + dollars_off


ASKS: dict[str, Callable[..., Any]] = {
    "invoke": lambda question, **fields: a_chain(**fields).invoke(question),
    "ainvoke": lambda question, **fields: asyncio.run(a_chain(**fields).ainvoke(question)),
    "stream": lambda question, **fields: _sum(a_chain(**fields).stream(question)),
    "astream": lambda question, **fields: asyncio.run(_asum(a_chain(**fields).astream(question))),
    "query": lambda question, **fields: an_engine(**fields).query(question).metadata,
    "aquery": lambda question, **fields: asyncio.run(an_engine(**fields).aquery(question)).metadata,
    "streamed query": lambda question, **fields: _read(an_engine(streaming=True, **fields).query(question)),
    "streamed aquery": lambda question, **fields: asyncio.run(_aread(an_engine(streaming=True, **fields), question)),
}
ENGINES = [name for name in ASKS if "query" in name]
READS, DECLINES, THINKS = "Who built item 2?", "Who built item 1?", "Who built item 403?"  # 403 tokens of thoughts


def _sum(chunks: Any) -> Any:
    whole = next(chunks)
    for chunk in chunks:
        whole += chunk
    return whole


async def _asum(chunks: Any) -> Any:
    whole = await anext(chunks)
    async for chunk in chunks:
        whole += chunk
    return whole


def _read(response: Any) -> Any:
    assert "".join(response.response_gen)
    return response.metadata


async def _aread(engine: Any, question: str) -> Any:
    response = await engine.aquery(question)
    assert [text async for text in response.async_response_gen()]
    return response.metadata


def documents_of(mode: str, *texts: str) -> Any:
    """Documents of the framework of a mode."""
    return [LlamaDocument(text=text) if mode in ENGINES else Document(text) for text in texts]


def taken(result: Any, step: str = "long_context") -> int:
    """The tokens that a step took."""
    usage = result["usage"][step]
    return int(usage["input_tokens"] + usage["output_tokens"]) if usage else 0


@pytest.mark.parametrize("mode", ASKS)
@pytest.mark.parametrize(
    ("policy_of", "reads"),
    [
        (lambda budget: lambda case: budget(case).go, True),
        (lambda budget: lambda case: budget(case).go and case.question == "", False),
        (lambda budget: budget & Never(), False),
        (lambda budget: budget & (Never() | budget), True),
    ],
    ids=["within a function", "in vain", "and never", "asked twice"],
)
def test_a_budget_is_told_what_its_step_took_wherever_it_stands(
    policy_of: Callable[[Budget], Escalation], reads: bool, mode: str
) -> None:
    budget = Budget(tokens=1000, per="day")
    result = ASKS[mode](READS, escalation=policy_of(budget))
    assert (taken(result) > 0) is reads
    assert budget.spent["tokens"] == taken(result)


@pytest.mark.parametrize("mode", ASKS)
def test_a_flood_of_unanswerable_questions_ends_at_the_budget_and_reads_nothing_after_it(mode: str) -> None:
    budget, read = Budget(tokens=1000, per="day"), 0

    def documents(*_: Any) -> Any:
        nonlocal read
        read += 1
        return documents_of(mode, WHOLE)

    results = [ASKS[mode](DECLINES, escalation=budget, documents=documents) for _ in range(12)]
    assert budget.spent["tokens"] == sum(map(taken, results)) <= 1000
    assert not any(result["answerable"] for result in results)
    spent, before = Budget(tokens=1000, per="day", spent={"tokens": 1000}), read
    ASKS[mode](DECLINES, escalation=spent, documents=documents)
    assert before == read


@pytest.mark.parametrize("mode", ASKS)
def test_five_long_documents_behind_the_passages_count_as_five(mode: str) -> None:
    five, rulings = documents_of(mode, *[WHOLE + str(number) for number in range(5)]), []
    for limit in (2 * tokens_of(WHOLE), 7 * tokens_of(WHOLE)):
        result = ASKS[mode](READS, escalation=Budget(tokens=limit), documents=five)
        rulings.append(result["decision"]["ruling"]["go"])
    assert rulings == [False, True]


@pytest.mark.parametrize("mode", ASKS)
@pytest.mark.parametrize("question", ["", " ", "\n\t "])
def test_a_blank_question_asks_nobody(question: str, mode: str) -> None:
    asked: list[Any] = []
    finding = Finding() if mode in ENGINES else RunnableLambda(asked.append)
    with pytest.raises(InputError, match="blank"):
        ASKS[mode](question, retriever=finding, start=asked.append, escalation=asked.append)
    assert not asked
    assert mode not in ENGINES or finding.asked == 0


@pytest.mark.parametrize("mode", ASKS)
@pytest.mark.parametrize("limit", [{"tokens": 1}, {"usd": 0, "per": "day"}])
def test_a_draft_that_is_kept_open_while_the_budget_says_no_is_in_the_books(limit: dict[str, Any], mode: str) -> None:
    noting = Noting()
    result = ASKS[mode](READS, escalation=noting & Budget(**limit), answerability="graded")
    assert result["decision"]["signal"] == "doubt"
    assert not result["decision"]["ruling"]["go"]
    assert result["usage"]["rag"]["input_tokens"] > 100
    assert result["usage"]["total_tokens"] == taken(result, "rag")
    assert result["usage"]["cost"]


@pytest.mark.parametrize("mode", ASKS)
def test_a_draft_in_doubt_counts_for_the_budget_of_its_question_before_it_is_closed(mode: str) -> None:
    drafts: list[int] = []

    def noting(case: Case) -> bool:
        drafts.append(case.usage["total_tokens"])
        needs.append(case.tokens)
        return False

    needs: list[int] = []
    ASKS[mode](READS, escalation=noting, answerability="graded")
    for limit, go in ((needs[0] + drafts[0], True), (needs[0] + drafts[0] - 1, False)):
        result = ASKS[mode](READS, escalation=Budget(tokens=limit), answerability="graded")
        assert result["decision"]["ruling"]["go"] is go


@pytest.mark.parametrize("mode", ASKS)
def test_a_policy_that_fails_costs_its_question_and_nothing_of_the_budget(mode: str) -> None:
    budget = Budget(tokens=10_000, per="day")

    def broken(case: Case) -> bool:
        raise LookupError(case.question)

    for policy in (budget & broken, lambda case: budget(case) and broken(case)):
        with pytest.raises(LookupError):
            ASKS[mode](READS, escalation=policy)
    assert budget.spent["tokens"] == 0


def test_a_policy_that_hangs_keeps_nobody_else_waiting_and_gives_back_what_it_held() -> None:
    budget = Budget(tokens=10_000, per="day")

    async def hanging(case: Case) -> bool:
        if case.question == DECLINES:
            await asyncio.sleep(60)
        return True

    async def answered() -> int:
        chain = a_chain(escalation=budget & hanging)
        hung = asyncio.ensure_future(chain.ainvoke(DECLINES))
        others = await asyncio.gather(*[chain.ainvoke(READS) for _ in range(5)])
        hung.cancel()
        await asyncio.wait([hung])
        return sum(map(taken, others))

    assert 0 < asyncio.run(answered()) == budget.spent["tokens"]


def test_documents_that_a_policy_did_not_wait_for_are_read_again() -> None:
    async def impatient(case: Case) -> bool:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(case.adocuments(), 0.001)
        return True

    async def slow(_: Any) -> list[Document]:
        await asyncio.sleep(0.01)
        return [Document(WHOLE)]

    assert ASKS["ainvoke"](READS, escalation=impatient, documents=slow)["route"] == "long_context"


def test_one_surprise_does_not_close_a_budget() -> None:
    budget = Budget(tokens=1000, per="day")
    surprise, other, third = case_of(), case_of(), case_of()
    assert ask(budget, surprise)
    settle(budget, surprise, Spent(500, Decimal(0)))
    assert ask(budget, other), "alone, it may be as far off as one estimate is"
    assert budget.spent["tokens"] == 500 + 5 * 100
    assert not ask(budget, third), "beside one that may take five times its estimate, it may not"
    settle(budget, other, Spent(100, Decimal(0)))
    assert ask(budget, third)


def test_a_first_surprise_raises_what_is_in_flight_already() -> None:
    budget, cases = Budget(tokens=1000, per="day"), [case_of(Estimate(50)) for _ in range(4)]
    assert all(ask(budget, case) for case in cases)
    settle(budget, cases[0], Spent(200, None))
    assert budget.spent["tokens"] == 200 + 3 * 200


def test_what_is_in_flight_counts_until_it_is_over_however_short_the_window() -> None:
    now = 0.0
    budget = Budget(tokens=250, per=timedelta(seconds=10), clock=lambda: now)
    slow = case_of()
    assert ask(budget, slow)
    now = 15.0
    assert budget.spent["tokens"] == 100
    settle(budget, slow, Spent(240, None))
    assert not ask(budget, case_of())


def test_a_stream_that_the_garbage_collector_closes_within_the_lock_is_settled() -> None:
    closing: list[Case] = []

    def clock() -> float:  # is read while the budget is locked
        while closing:
            settle(budget, closing.pop(), Spent(40, None))
        return 0.0

    budget, left = Budget(tokens=1000, per="day", clock=clock), case_of()
    assert ask(budget, left)
    closing.append(left)
    assert ask(budget, case_of())
    assert budget.spent["tokens"] == 140


LOCAL = {
    "LangChain": lambda: ChatOpenAI(model="qwen3", base_url="http://localhost:8000/v1", api_key="k"),
    "LlamaIndex": lambda: OpenAILike(model="qwen3", api_base="http://localhost:8000/v1", api_key="k"),
}
PRICED = {
    "LangChain": lambda: ChatOpenAI(model="gpt-4o-mini", api_key="k"),
    "LlamaIndex": lambda: OpenAILike(model="gpt-4o-mini", api_base="https://api.openai.com/v1", api_key="k"),
}
SILENT = {"LangChain": Teller, "LlamaIndex": LlamaTeller}
BUILD: dict[str, Callable[..., Any]] = {"LangChain": a_chain, "LlamaIndex": an_engine}
DAY = {"usd": 1, "per": "day"}
PRICES: list[tuple[Any, Any, dict[str, Any], dict[str, Any], str]] = [
    (LOCAL, None, DAY, {}, "price of llm"),
    (LOCAL, None, {"tokens": 1}, {}, ""),
    (LOCAL, None, DAY, {"priced_as": "openai:gpt-4o-mini"}, ""),
    (LOCAL, None, DAY, {"priced_as": "openai:qwen3"}, "price of llm"),
    (SILENT, None, DAY, {}, ""),
    (PRICED, None, {"usd": 1}, {}, ""),
    (PRICED, LOCAL, DAY, {}, "price of long_context_llm"),
    (PRICED, LOCAL, DAY, {"long_context_priced_as": "openai:gpt-4o-mini"}, ""),
    (LOCAL, PRICED, DAY, {}, ""),
    (LOCAL, PRICED, {"usd": 1}, {}, "price of llm"),
]


@pytest.mark.parametrize("host", BUILD)
@pytest.mark.parametrize(
    ("llm", "second", "limit", "fields", "refused"), PRICES, ids=[f"case {n}" for n in range(len(PRICES))]
)
def test_a_limit_in_dollars_is_refused_where_a_model_certainly_has_no_price(  # noqa: PLR0913, PLR0917
    host: str, llm: Any, second: Any, limit: dict[str, Any], fields: dict[str, Any], refused: str
) -> None:
    def build() -> None:
        parts = {"llm": llm[host](), "long_context_llm": second and second[host](), "priced_as": None, **fields}
        BUILD[host](escalation=Never() | Budget(**limit), **parts)

    if refused:
        with pytest.raises(ConfigurationError, match=rf"{refused}, but .*Budget\(tokens=\.\.\.\), or set .*priced_as"):
            build()
    else:
        build()


@pytest.mark.parametrize("mode", ASKS)
def test_a_model_whose_price_nobody_knows_gets_a_no_with_that_reason(mode: str) -> None:
    ruling = ASKS[mode](READS, escalation=Budget(usd=1, per="day"), priced_as=None)["decision"]["ruling"]
    assert not ruling["go"]
    assert "the price is not known: the model does not report its name" in ruling["reason"]


@pytest.mark.parametrize("mode", ASKS)
@pytest.mark.parametrize("question", [READS, THINKS])
@pytest.mark.parametrize("answerability", ["text", "graded"])
@pytest.mark.parametrize("kind", ["list", "callable"])
def test_a_step_is_estimated_near_what_it_takes_from_the_first_question_on(
    kind: str, answerability: str, question: str, mode: str
) -> None:
    noting, documents = Noting(), documents_of(mode, WHOLE * 10)
    source = documents if kind == "list" else lambda *_: documents
    result = ASKS[mode](question, escalation=noting, documents=source, answerability=answerability)
    ((estimate, _),) = noting.estimates.values()
    assert estimate == pytest.approx(taken(result), rel=0.15)
