"""Ask a policy whether a step may be paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, cast

from selfroute.arguments import check_takes
from selfroute.effects import Route
from selfroute.errors import ConfigurationError, ReplyError
from selfroute.policies.case import Case, Ruling
from selfroute.usage import prices
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.prices import PricedModel

Escalation = Callable[[Case], "bool | Ruling | Awaitable[bool | Ruling]"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a step took.

    Attributes:
        tokens: Its tokens, read and written.
        cost: Their price in dollars; None if it is not known.
    """

    tokens: int = 0
    cost: Decimal | None = Decimal(0)

    def __sub__(self, before: Spent) -> Spent:
        cost = None if self.cost is None or before.cost is None else self.cost - before.cost
        return Spent(self.tokens - before.tokens, cost)


NOTHING = Spent()
_SOME = StepUsage(1, 1)


class Policy:
    """The base class of the built-in policies; any callable that takes a `Case` is a policy, too.

    Attributes:
        name: Its name in rulings and ledgers.
        needs_price: Whether it can only decide if the model's price is known.
        counts_draft: Whether it includes the draft's tokens and cost.
    """

    name = "policy"
    needs_price = False
    counts_draft = False

    def __call__(self, case: Case) -> Ruling:
        """Return whether the step may be paid for."""
        raise NotImplementedError

    async def acall(self, case: Case) -> Ruling:
        """The async twin of `__call__`."""
        return self(case)

    def settle(self, case: Case, spent: Spent) -> None:
        """Note what an approved step took. Called once, when the step has ended in any way."""

    def __repr__(self) -> str:
        """Return its name."""
        return f"<{self.name}>"


class Never(Policy):
    """Never read the documents: RAG with an honest decline.

    Example:
        >>> from selfroute.policies import Never
        >>> Never().name
        'never'
    """

    name = "never"

    def __call__(self, case: Case) -> Ruling:  # noqa: ARG002
        """Say no."""
        return Ruling(go=False, by=self.name, reason="the documents are never read")


def ask(policy: Escalation, case: Case) -> Ruling:
    """Return what a policy says.

    Raises:
        ConfigurationError: The policy is async.
        ReplyError: It returned something other than a bool or a `Ruling`.
    """
    ruling = policy(case)
    if isawaitable(ruling):
        if iscoroutine(ruling):
            ruling.close()
        msg = f"the policy {name_of(policy)!r} is async: use ainvoke, astream or aquery, or make it a plain function"
        raise ConfigurationError(msg)
    return _ruling(ruling, policy)


async def aask(policy: Escalation, case: Case) -> Ruling:
    """The async twin of `ask`; a plain function runs in a thread, because it may block."""
    ruling: Any
    if isinstance(policy, Policy):
        ruling = await policy.acall(case)
    elif iscoroutinefunction(policy) or iscoroutinefunction(getattr(policy, "__call__", None)):  # noqa: B004
        ruling = await cast("Any", policy)(case)
    else:
        loop = asyncio.get_running_loop()
        ruling = await loop.run_in_executor(_threads(), copy_context().run, policy, case)
        if isawaitable(ruling):
            ruling = await ruling
    return _ruling(ruling, policy)


def settle(policy: Escalation | None, case: Case, spent: Spent) -> None:
    """Report what an approved step took to its policy, and to the policies that the user's own function asked."""
    if isinstance(policy, Policy):
        policy.settle(case, spent)
    for one in tuple(case.held):
        one.settle(case, spent)


@contextmanager
def releasing(case: Case) -> Iterator[None]:
    """Give back what was reserved if the policy asked in this context fails or is cancelled."""
    try:
        yield
    except BaseException:
        release(case)
        raise


def release(case: Case) -> None:
    """Give back what was reserved for a step that is not taken."""
    settle(None, case, NOTHING)


def policy_of(value: Any) -> Escalation | None:
    """Check the option `escalation` and return it.

    Raises:
        ConfigurationError: It is not callable, or takes something else than a case.
    """
    if value is None or (callable(value) and not isinstance(value, type)):
        if value is not None and not isinstance(value, Policy):
            check_takes("escalation", value, "case")
        return cast("Escalation | None", value)
    msg = f"escalation must be a policy, or a callable that takes a Case and returns a bool or a Ruling, not {value!r}"
    raise ConfigurationError(msg)


def name_of(policy: Any) -> str:
    """Return a policy's name in rulings."""
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or type(policy).__name__
    return name if isinstance(name, str) and name != "<lambda>" else "escalation"


def _ruling(value: Any, policy: Any) -> Ruling:
    if isinstance(value, Ruling):
        return value if value.by else Ruling(value.go, name_of(policy), value.reason)
    if isinstance(value, bool):
        return Ruling(value, name_of(policy))
    if type(value).__name__ in ("bool", "bool_") and type(value).__module__ == "numpy":
        return Ruling(bool(value), name_of(policy))
    msg = f"the policy {name_of(policy)!r} must return True, False or a Ruling; it returned {type(value).__name__}"
    raise ReplyError(msg)


def check_prices(policy: Any, priced_as: Callable[[Route], PricedModel], *, shared: bool, sections: bool) -> None:
    """Check that the models may have a price, if the policy needs one.

    A model that does not report its name may still report it in its reply, so it is not refused.

    Args:
        policy: The policy.
        priced_as: Returns the model whose price counts for a step.
        shared: Whether one model performs all steps.
        sections: Whether sections are read.

    Raises:
        ConfigurationError: A model reports its name and has no price, or there are no price lists.
    """
    if not getattr(policy, "needs_price", False):
        return
    if isinstance(lists := prices.load_price_lists(), Cost):
        msg = f"a limit in dollars needs prices: {lists.unknown}; or limit the tokens, as in Budget(tokens=...)"
        raise ConfigurationError(msg)
    steps: list[tuple[Route, str]] = [("long_context", "llm" if shared else "long_context_llm")]
    if sections or getattr(policy, "counts_draft", False):
        steps.append(("rag", "llm"))
    for step, field in steps:
        model = priced_as(step)
        costs = [prices.cost_of(one, _SOME) for one in (model, *model.fallbacks) if one.name]
        if len(costs) == 1 + len(model.fallbacks) and all(cost.dollars is None for cost in costs):
            option = "'provider:name'" if field == "llm" else "{'long_context_llm': 'provider:name'}"
            reason = str(costs[0].unknown).partition(";")[0]
            msg = (
                f"a limit in dollars needs the price of {field}, but {reason}. Limit the tokens instead, as in "
                f"Budget(tokens=...), or set priced_as={option} to a model with a price"
            )
            raise ConfigurationError(msg)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads for plain functions: their own, since they may wait for documents read in the loop's."""
    return ThreadPoolExecutor(32, thread_name_prefix="selfroute-policy")
