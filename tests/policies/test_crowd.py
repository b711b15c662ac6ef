"""What one user can make another pay is bounded, whatever a crowd asks and however its questions end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from both_parts import Pipeline, pipeline
from hosts_parts import MODES
from langchain_parts import ScriptedModel, a_chain
from llamaindex_parts import ScriptedLLM, an_engine
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Case, Ruling
from selfroute.policies.policy import Escalation, Policy, Spent

AT_ONCE = 4  # threads, and tasks beside them
FULL = pytest.mark.matrix
WAYS = ("answers", "declines", "reads", "fails", "breaks", "leaves", "cancels")
WHOLE = "The whole report. " + "The harbour board met in the long room and read the minutes before it rose. " * 20
ASKING: ContextVar[Any] = ContextVar("ASKING", default=None)  # the task that asks


def number_in(question: str) -> int:
    return int(re.findall(r"item (\d+)", question)[-1])


def way_of(question: str) -> str:
    return WAYS[number_in(question) % len(WAYS)]


def draft(prompt: str) -> tuple[str, ...]:
    return ("Mr ", "Okafor.") if way_of(prompt) == "answers" else ("unanswerable",)


def final(prompt: str) -> tuple[str, ...]:
    """Reply to a whole document; fail, or cancel who asks, if that is the way of the question."""
    way = way_of(prompt)
    if way == "fails":
        raise ConnectionError
    if way == "cancels" and (task := ASKING.get()):
        task.cancel()
    return ("unanswerable",) if way == "declines" else ("Mr ", "Okafor ", "did ", "it.")


class Breaking:
    """Breaks off after two pieces, if that is the way of the question."""

    def _piece(self, call: Any, pieces: Any) -> Any:
        if (call.step, call.emitted, way_of(call.prompt)) == ("long_context", 2, "breaks"):
            raise ConnectionError
        return super()._piece(call, pieces)  # type: ignore[misc]


class Chat(Breaking, ScriptedModel):
    """LangChain's model."""


class Llm(Breaking, ScriptedLLM):
    """LlamaIndex's model."""


SCRIPT: dict[str, Any] = {"draft": draft, "final": final, "usage": True, "marker": "The whole report."}
PRICED = {"priced_as": "openai:gpt-4o-mini"}


def made(host: str, mode: str, escalation: Escalation) -> Pipeline:
    """A chain or an engine over the whole report."""
    llm = (Chat if host == "langchain" else Llm)(**SCRIPT)
    return pipeline(f"{host} {mode}", llm=llm, documents=[WHOLE], escalation=escalation, **PRICED)


async def ask(one: Pipeline, question: str) -> None:
    """Ask as the way of the question is."""
    with suppress(ConnectionError):
        if not one.streams:
            await one.ask(question)
            return
        async with aclosing(one.pieces(question)) as pieces:  # type: ignore[type-var]
            async for _ in pieces:
                if way_of(question) == "leaves":
                    break


def ask_all(host: str, number: int, escalation: Escalation) -> None:
    """Ask half of the questions from threads, and half from tasks, side by side; every other one as a stream."""
    crowd = {mode: made(host, mode, escalation) for mode in MODES}

    def asked(item: int, modes: tuple[str, str]) -> tuple[Pipeline, str]:
        streams = item // len(WAYS) % 2 == 0 or WAYS[item % len(WAYS)] == "leaves"
        return crowd[modes[streams]], f"Who built item {item}?"

    def thread(item: int) -> None:
        one, question = asked(item, ("whole", "stream"))
        one.run(ask(one, question))

    async def tasks() -> None:
        turns, loop = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop()

        async def task(item: int) -> None:
            ASKING.set(asyncio.current_task())
            with suppress(asyncio.CancelledError):
                async with turns:
                    await ask(*asked(item, ("awhole", "astream")))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            threads = [loop.run_in_executor(pool, thread, item) for item in range(number // 2)]
            await asyncio.gather(*map(task, range(number // 2, number)), *threads)

    asyncio.run(tasks())


class Noting(Policy):
    """Asks a budget, and notes what it granted and was told."""

    name = "noting"

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.estimates: dict[Case, tuple[int, Decimal]] = {}
        self.told: list[tuple[Case, Spent]] = []

    def __call__(self, case: Case) -> Ruling:
        ruling = self.budget(case)
        if ruling:
            self.estimates[case] = case.tokens, case.cost or Decimal(0)
        return ruling

    async def acall(self, case: Case) -> Ruling:
        await case.aestimate()
        return self(case)

    def settle(self, case: Case, spent: Spent) -> None:
        self.told.append((case, spent))


@pytest.mark.parametrize(
    ("host", "number", "limit"),
    [
        ("langchain", 100, "usd"),
        ("llamaindex", 60, "tokens"),
        pytest.param("langchain", 1_000, "tokens", marks=FULL),
        pytest.param("llamaindex", 1_000, "usd", marks=FULL),
    ],
)
def test_budget_of_a_crowd(host: str, number: int, limit: str) -> None:
    most: Any = number * 100 if limit == "tokens" else Decimal(number) / 50_000
    noting = Noting(budget := Budget(per="day", **{limit: most}))
    ask_all(host, number, noting)
    assert len(noting.told) == len(noting.estimates), "nothing leaks"
    tokens, dollars = (sum(each) for each in zip(*((one.tokens, one.cost or 0) for _, one in noting.told), strict=True))
    assert (budget.spent["tokens"], Decimal(budget.spent["usd"])) == (tokens, dollars)
    spent = {"tokens": tokens, "usd": dollars}[limit]
    off = [
        one.tokens - noting.estimates[case][0] if limit == "tokens" else (one.cost or 0) - noting.estimates[case][1]
        for case, one in noting.told
    ]
    assert 0.8 * float(most) <= spent <= most + max(0, *off)


LOCAL = {
    a_chain: lambda: ChatOpenAI(model="qwen3", base_url="http://localhost:8000/v1", api_key="k"),
    an_engine: lambda: OpenAILike(model="qwen3", api_base="http://localhost:8000/v1", api_key="k"),
}
HOSTED = {
    a_chain: lambda: ChatOpenAI(model="gpt-4o-mini", api_key="k"),
    an_engine: lambda: OpenAILike(model="gpt-4o-mini", api_base="https://api.openai.com/v1", api_key="k"),
}
SILENT = {a_chain: lambda: ScriptedModel(label=""), an_engine: lambda: ScriptedLLM(label="")}
DAY = {"usd": 1, "per": "day"}
PRICES: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any], str]] = {
    "local": (LOCAL, None, DAY, {}, "price of llm"),
    "local, in tokens": (LOCAL, None, {"tokens": 1}, {}, ""),
    "local, priced": (LOCAL, None, DAY, {"priced_as": "openai:gpt-4o-mini"}, ""),
    "unknown": (SILENT, None, DAY, {}, ""),
    "hosted": (HOSTED, None, {"usd": 1}, {}, ""),
    "a local second": (HOSTED, LOCAL, DAY, {}, "price of long_context_llm"),
    "a local second, priced": (HOSTED, LOCAL, DAY, {"priced_as": {"long_context_llm": "openai:gpt-4o-mini"}}, ""),
    "a local first, by question": (LOCAL, HOSTED, {"usd": 1}, {}, "price of llm"),
}


@pytest.mark.parametrize("build", [a_chain, an_engine])
@pytest.mark.parametrize("name", PRICES)
def test_budget_in_dollars_needs_a_price(name: str, build: Callable[..., Any]) -> None:
    llm, second, limit, fields, refused = PRICES[name]
    parts = {"llm": llm[build](), "long_context_llm": second and second[build](), **fields}
    if not refused:
        build(escalation=Budget(**limit), **parts)
        return
    with pytest.raises(ConfigurationError, match=rf"{refused}, but .*Budget\(tokens=\.\.\.\), or set .*priced_as"):
        build(escalation=Budget(**limit), **parts)


class Twin(ScriptedLLM):
    """A model that is equal to others of its kind."""

    __hash__ = ScriptedLLM.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)


@pytest.mark.parametrize("build", [a_chain, an_engine])
def test_budget_of_two_equal_models(build: Callable[..., Any]) -> None:
    kind = ScriptedModel if build is a_chain else Twin
    one, other = kind(label="own"), kind(label="own")
    assert one == other
    fields = {"priced_as": "openai:gpt-4o", "escalation": Budget(usd=1)}
    for second in (None, one):
        build(llm=one, long_context_llm=second, **fields)
    with pytest.raises(ConfigurationError, match="price of long_context_llm"):
        build(llm=one, long_context_llm=other, **fields)
