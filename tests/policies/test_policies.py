"""What policies say, alone and combined, and what a budget holds to."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from selfroute.errors import ConfigurationError, ReplyError
from selfroute.policies import Budget, Case, Never, Ruling
from selfroute.policies.case import Estimate
from selfroute.policies.policy import Escalation, Spent, aask, ask, policy_of, settle


def case_of(estimate: Estimate | None = None, **fields: Any) -> Case:
    """Return a case whose documents are known, unless the fields say otherwise."""
    given: dict[str, Any] = {
        "question": "Who?",
        "inputs": {"input": "Who?", "tier": "gold"},
        "decision": {"declined": True, "signal": "sentinel", "evidence": "unanswerable"},
        "draft": "unanswerable",
        "passages": ["a passage"],
        "usage": {"total_tokens": 10, "cost": "0.01"},
        "step": "long_context",
        "estimated": lambda: estimate or Estimate(100, Decimal("0.1")),
        "read": lambda: ["a document"],
    }
    return Case(**{**given, **fields})


UNKNOWN = Estimate(100, None, "who knows")


async def patient(case: Case) -> bool:
    """Say yes, later."""
    await asyncio.sleep(0)
    return case.inputs["tier"] == "gold"


async def awaiting(case: Case) -> bool:
    """Read the documents as an async policy does."""
    return len(await case.adocuments()) == 1


def gold(case: Case) -> bool:
    """Say yes to some."""
    return bool(case.inputs["tier"] == "gold")


SAYS: dict[str, tuple[Escalation, bool, str]] = {  # the policy, what it says, and who said it
    "a lambda": (lambda case: True, True, "escalation"),
    "a function": (gold, True, "gold"),
    "a ruling": (lambda case: Ruling(True, "my rule", "so"), True, "my rule"),
    "a budget": (Budget(tokens=1000), True, "budget"),
    "both": (lambda case: gold(case) and Budget(tokens=1000)(case), True, "budget"),
    "one of them": (lambda case: Never()(case) or gold(case), True, "escalation"),
    "a lambda that objects": (lambda case: False, False, "escalation"),
    "never": (Never(), False, "never"),
    "a small budget": (Budget(tokens=1), False, "budget"),
    "one of both": (lambda case: gold(case) and Never()(case), False, "never"),
}


@pytest.mark.parametrize(("policy", "go", "by"), SAYS.values(), ids=SAYS)
def test_policy_says_who_said_it(policy: Escalation, go: bool, by: str) -> None:
    for ruling in (ask(policy, case_of()), asyncio.run(aask(policy, case_of()))):
        assert (ruling.go, ruling.by) == (go, by)


@pytest.mark.parametrize("policy", [patient, awaiting])
def test_policy_that_is_awaited(policy: Escalation) -> None:
    async def adocuments() -> Sequence[Any]:
        return ["a document"]

    assert asyncio.run(aask(policy, case_of(read=None, aread=adocuments)))
    with pytest.raises(ConfigurationError, match="ainvoke, astream or aquery"):
        ask(policy, case_of())


def test_policy_may_block_while_the_loop_goes_on() -> None:
    async def answered() -> tuple[bool, int]:
        ticks = 0

        async def adocuments() -> Sequence[Any]:
            await asyncio.sleep(0.01)
            return ["a document", "another"]

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())
        case = case_of(read=None, aread=adocuments, loop=asyncio.get_running_loop())
        ruling = await aask(lambda case: len(case.documents()) == 2, case)
        ticking.cancel()
        return ruling.go, ticks

    go, ticks = asyncio.run(answered())
    assert go
    assert ticks > 10


def test_policy_that_would_block_the_loop() -> None:
    async def blocking(case: Case) -> bool:
        return bool(case.documents())

    async def adocuments() -> Sequence[Any]:
        return []

    async def asked() -> None:
        await aask(blocking, case_of(read=None, aread=adocuments, loop=asyncio.get_running_loop()))

    with pytest.raises(ConfigurationError, match=r"await case\.adocuments"):
        asyncio.run(asked())


def test_policy_that_is_none() -> None:
    for said in ("yes", None, 1, object()):
        with pytest.raises(ReplyError, match="must return True, False or a Ruling"):
            ask(lambda case, said=said: said, case_of())  # type: ignore[misc]
    for value in (Never, "never", 3):
        with pytest.raises(ConfigurationError):
            policy_of(value)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"usd": "much"},
        {"usd": -1},
        {"usd": float("nan")},
        {"tokens": 1.5},
        {"tokens": True},
        {"tokens": 1, "per": "week"},
        {"tokens": 1, "per": timedelta(0)},
        {"tokens": 1, "spent": {"tokens": 1}},
    ],
)
def test_budget_refuses_what_cannot_be_meant(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Budget(**fields)


@pytest.mark.parametrize(
    ("limit", "draft", "estimate", "go"),
    [
        ({"tokens": 110}, {"total_tokens": 10}, Estimate(100), True),
        ({"tokens": 109}, {"total_tokens": 10}, Estimate(100), False),
        ({"usd": "0.11"}, {"cost": "0.01"}, Estimate(1, Decimal("0.1")), True),
        ({"usd": "0.11"}, {"cost": "0.0101"}, Estimate(1, Decimal("0.1")), False),
        ({"usd": 9, "tokens": 5}, {"cost": "0"}, Estimate(6, Decimal("0.1")), False),
        ({"usd": 9}, {"cost": "0"}, UNKNOWN, False),
        ({"usd": 9}, {"cost": None}, Estimate(1, Decimal("0.1")), False),
        ({"tokens": 900}, {"cost": None}, UNKNOWN, True),
    ],
)
def test_budget_of_a_question(limit: dict[str, Any], draft: dict[str, Any], estimate: Estimate, go: bool) -> None:
    ruling = ask(Budget(**limit), case_of(estimate, usage=draft))
    assert ruling.go is go
    assert bool(ruling.reason) is not go


def test_budget_after_its_window_and_a_restart() -> None:
    now = 0.0
    budget = Budget(tokens=250, per=timedelta(seconds=10), clock=lambda: now)
    assert ask(budget, case_of())
    assert ask(budget, case_of())
    restarted = Budget(tokens=250, per=timedelta(seconds=10), clock=lambda: now, spent=budget.spent)
    assert not ask(budget, case_of())
    assert not ask(restarted, case_of())
    now = 10.5
    assert ask(budget, case_of())
    assert ask(restarted, case_of())
    assert budget.spent["tokens"] == restarted.spent["tokens"] == 100


def test_budget_in_dollars_of_a_day() -> None:
    budget, case = Budget(usd="0.15", per="day"), case_of()
    assert ask(budget, case)
    assert case.cost == Decimal("0.1")
    ruling = ask(budget, case_of())
    assert (ruling.go, ruling.reason) == (False, "$0.1000 does not fit in what is left of $0.15")


def test_budget_is_charged_what_a_step_took() -> None:
    budget = Budget(usd=10, tokens=1000, per="hour")
    less, more, left = case_of(), case_of(), case_of()
    for case in (less, more, left):
        assert ask(budget, case)
    settle(budget, less, Spent(50, Decimal("0.05")))
    settle(budget, left, Spent())
    settle(budget, left, Spent(9000, Decimal(9)))  # twice counts once
    settle(budget, more, Spent(120, None))
    assert budget.spent == {"usd": "0.15", "tokens": 170}
    assert ask(budget, case_of())
    assert budget.spent["tokens"] == 170 + 120, "the next one may be as far off"


def test_budget_after_a_surprise() -> None:
    budget, cases = Budget(tokens=1000, per="day"), [case_of(Estimate(50)) for _ in range(4)]
    assert all(ask(budget, case) for case in cases)
    settle(budget, cases[0], Spent(200, None))
    assert budget.spent["tokens"] == 200 + 3 * 200, "it raises what is in flight already"
    budget = Budget(tokens=1000, per="day")
    surprise, other, third = case_of(), case_of(), case_of()
    assert ask(budget, surprise)
    settle(budget, surprise, Spent(500, Decimal(0)))
    assert ask(budget, other), "alone, it may be as far off as one estimate is"
    assert budget.spent["tokens"] == 500 + 5 * 100
    assert not ask(budget, third), "beside one that may take five times its estimate, it may not"
    settle(budget, other, Spent(100, Decimal(0)))
    assert ask(budget, third)


def test_budget_counts_what_is_in_flight() -> None:
    now = 0.0
    budget = Budget(tokens=250, per=timedelta(seconds=10), clock=lambda: now)
    slow = case_of()
    assert ask(budget, slow)
    now = 15.0
    assert budget.spent["tokens"] == 100
    settle(budget, slow, Spent(240, None))
    assert not ask(budget, case_of())


def test_budget_settles_within_its_lock() -> None:
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


def test_budget_copied_and_pickled() -> None:
    budget = Budget(tokens=150, per="day")
    assert ask(copy.deepcopy(budget), case_of())
    assert not ask(budget, case_of())
    with pytest.raises(TypeError, match="in its own process"):
        pickle.dumps(budget)
    assert ask(pickle.loads(pickle.dumps(Budget(tokens=150))), case_of())  # noqa: S301


def test_policy_repr() -> None:
    assert repr(Budget(usd="0.50")) == "<Budget(usd=0.50) per question>"
    assert repr(Budget(usd=0, tokens=9, per="day")) == "<Budget(usd=0, tokens=9) per day>"
    assert repr(Budget(tokens=9, per=timedelta(minutes=5))) == "<Budget(tokens=9) per 0:05:00>"
    assert repr(Never()) == "<never>"
