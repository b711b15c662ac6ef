"""Ask a policy whether a step may be paid for; combine policies with `&` and `|`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, cast

from selfroute.errors import ConfigurationError, ReplyError
from selfroute.policies.case import Case, Ruling

Escalation = Callable[[Case], "bool | Ruling | Awaitable[bool | Ruling]"]
Asking = Generator[Escalation, Ruling, Ruling]


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


class Policy:
    """The base class of the built-in policies; any callable that takes a `Case` is a policy, too.

    Attributes:
        name: Its name in rulings and ledgers.
        needs_price: Whether it can only decide if the model's price is known.
        options: The options of a chain or engine that it sets; None if it sets none.
        counts_draft: Whether it includes the draft's tokens and cost.
    """

    name = "policy"
    needs_price = False
    options: Mapping[str, Any] | None = None
    counts_draft = False

    def __call__(self, case: Case) -> Ruling:
        """Return whether the step may be paid for."""
        raise NotImplementedError

    async def acall(self, case: Case) -> Ruling:
        """Do as `__call__` does, asynchronously."""
        return self(case)

    def settle(self, case: Case, spent: Spent) -> None:
        """Note what an approved step took. Called once, when the step has ended in any way."""

    def check_prompts(self, *prompts: str) -> None:
        """Refuse prompts that it was not made for.

        Args:
            prompts: The draft's prompt and that of the long context, as templates.

        Raises:
            ConfigurationError: It was made for other prompts.
        """

    def __repr__(self) -> str:
        """Return its name."""
        return f"<{self.name}>"

    def parts(self) -> Sequence[Any]:
        """Return this policy, or the policies that it combines."""
        return (self,)

    def __and__(self, other: Escalation) -> Policy:
        """Return a policy that says yes if both do."""
        return _Combined("&", self, other)

    def __rand__(self, other: Escalation) -> Policy:
        """Return a policy that says yes if both do."""
        return _Combined("&", other, self)

    def __or__(self, other: Escalation) -> Policy:
        """Return a policy that says yes if one of them does."""
        return _Combined("|", self, other)

    def __ror__(self, other: Escalation) -> Policy:
        """Return a policy that says yes if one of them does."""
        return _Combined("|", other, self)


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


class _Combined(Policy):
    """Asks its parts in order: `&` until one says no, `|` until one says yes."""

    def __init__(self, operator: str, *parts: Escalation) -> None:
        for part in parts:
            policy_of(part)
        self._operator, self._parts = operator, parts
        self.name = f" {operator} ".join(map(name_of, parts))
        self.needs_price, self.counts_draft = (
            any(getattr(part, name, False) for part in parts) for name in ("needs_price", "counts_draft")
        )
        options_of(self)  # raises an error now, while the policies are being combined

    def __call__(self, case: Case) -> Ruling:
        """Ask the parts in order."""
        asking = self._asking(case)
        part = next(asking)
        try:
            while True:
                part = asking.send(ask(part, case))
        except StopIteration as stop:
            return cast("Ruling", stop.value)
        finally:
            asking.close()

    async def acall(self, case: Case) -> Ruling:
        """Do as `__call__` does, asynchronously."""
        asking = self._asking(case)
        part = next(asking)
        try:
            while True:
                part = asking.send(await aask(part, case))
        except StopIteration as stop:
            return cast("Ruling", stop.value)
        finally:
            asking.close()

    def _asking(self, case: Case) -> Asking:
        """Yield the parts to ask and receive their rulings; settle those that said yes if the whole says no."""
        rulings: list[Ruling] = []
        agreed = False
        try:
            for part in self._parts:
                rulings.append((yield part))
                if rulings[-1].go is (self._operator == "|"):
                    break
            agreed = rulings[-1].go
        finally:
            if not agreed:
                for part, ruling in zip(self._parts, rulings, strict=False):
                    if ruling.go and isinstance(part, Policy):
                        part.settle(case, NOTHING)
        telling = [ruling for ruling in rulings if ruling.go is agreed]
        by = f" {self._operator} ".join(ruling.by for ruling in telling)
        return Ruling(agreed, by, "; ".join(ruling.reason for ruling in telling if ruling.reason))

    def settle(self, case: Case, spent: Spent) -> None:
        """Tell each part what the step took."""
        for part in self._parts:
            if isinstance(part, Policy):
                part.settle(case, spent)

    def check_prompts(self, *prompts: str) -> None:
        """Let each part refuse prompts that it was not made for."""
        for part in self._parts:
            if isinstance(part, Policy):
                part.check_prompts(*prompts)

    def parts(self) -> Sequence[Any]:
        """Return the policies that it combines, at every depth."""
        return [leaf for part in self._parts for leaf in (part.parts() if isinstance(part, Policy) else (part,))]


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
    """Do as `ask` does, asynchronously; a plain function runs in a thread, because it may block."""
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


def settle(policy: Escalation, case: Case, spent: Spent) -> None:
    """Tell a policy what an approved step took; also the policies that the user's own function asked."""
    if isinstance(policy, Policy):
        policy.settle(case, spent)
    _settle_held(case, spent)


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
    _settle_held(case, NOTHING)


def _settle_held(case: Case, spent: Spent) -> None:
    for policy in tuple(case.held):
        policy.settle(case, spent)


def policy_of(value: Any) -> Escalation | None:
    """Check the option `escalation` and return it.

    Raises:
        ConfigurationError: It is not callable.
    """
    if value is None or (callable(value) and not isinstance(value, type)):
        return cast("Escalation | None", value)
    msg = f"escalation must be a policy, or a callable that takes a Case and returns a bool or a Ruling, not {value!r}"
    raise ConfigurationError(msg)


def options_of(policy: Any) -> dict[str, Any]:
    """Return the options of a chain or engine that a policy, or one of those that it combines, sets.

    Raises:
        ConfigurationError: Two of them set different ones.
    """
    parts = policy.parts() if isinstance(policy, Policy) else ()
    setting = [(part, part.options) for part in parts if isinstance(part, Policy) and part.options is not None]
    for other, options in setting[1:]:
        if options != setting[0][1]:
            msg = (
                f"{setting[0][0]!r} and {other!r} set different options: a chain or engine has one set of bounds, so "
                "combine calibrations only if they agree, or use one of them"
            )
            raise ConfigurationError(msg)
    return dict(setting[0][1]) if setting else {}


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


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads for plain functions: their own, since they may wait for documents read in the loop's."""
    return ThreadPoolExecutor(32, thread_name_prefix="selfroute-policy")
