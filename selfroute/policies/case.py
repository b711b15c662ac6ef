"""A policy's input, the `Case`, and its answer, the `Ruling`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from selfroute.errors import ConfigurationError

Step = Literal["sections", "long_context"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The answer of a policy: may this step be paid for? Truthy if it may.

    Attributes:
        go: Whether to go on.
        by: The name of the policy.
        reason: Why, in words for a log.
    """

    go: bool
    by: str = ""
    reason: str = ""

    def __bool__(self) -> bool:
        """Return whether to go on."""
        return self.go

    def as_dict(self) -> dict[str, bool | str]:
        """Return the ruling as plain JSON."""
        return {"go": self.go, "by": self.by, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of what a step takes.

    Attributes:
        tokens: The tokens of its prompt and its reply.
        cost: Their price in dollars; None if it is not known.
        cost_unknown: Why the price is not known; empty if it is.
    """

    tokens: int
    cost: Decimal | None = None
    cost_unknown: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """A question whose draft declined or is in doubt, before anything more is paid for it.

    Attributes:
        question: The question.
        inputs: All inputs of the call.
        decision: Why the draft did not settle the question: `declined`, `signal`, `evidence`, as in the result.
        draft: The part of the draft that was read.
        passages: The retrieved passages.
        usage: What the question has used so far, as in the result.
        step: The step that is about to run: `"sections"` or `"long_context"`.
        estimated: Returns the estimate of that step; None if the documents must be read first.
        read: Reads the whole documents; called at most once.
        aread: Does so asynchronously, if the question is answered asynchronously.
        loop: The event loop that `aread` runs in.
        held: What each policy has reserved for the step.
    """

    question: str
    inputs: Mapping[str, Any]
    decision: Mapping[str, Any]
    draft: str
    passages: Sequence[Any]
    usage: Mapping[str, Any]
    step: Step
    estimated: Callable[[], Estimate | None] = field(repr=False)
    read: Callable[[], Sequence[Any]] | None = field(default=None, repr=False)
    aread: Callable[[], Awaitable[Sequence[Any]]] | None = field(default=None, repr=False)
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    held: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def tokens(self) -> int:
        """The estimated tokens of the step, prompt and reply; reads the documents if their length is not known."""
        return self.estimate().tokens

    @property
    def cost(self) -> Decimal | None:
        """The estimated price of the step in dollars, None if it is not known; may read documents, like `tokens`."""
        return self.estimate().cost

    def estimate(self) -> Estimate:
        """Return the estimate of the step; read the documents if their length is not known."""
        estimate = self.estimated()
        if estimate is None:
            self.documents()
            estimate = self.estimated()
        return estimate or Estimate(0, None, "the length of the documents is not known")

    async def aestimate(self) -> Estimate:
        """The async twin of `estimate`."""
        if self.estimated() is None:
            await self.adocuments()
        return self.estimate()

    def documents(self) -> Sequence[Any]:
        """Return the whole documents, which the step uses again.

        Raises:
            ConfigurationError: An async policy calls this instead of awaiting `adocuments`.
        """
        if self.read is not None:
            return self.read()
        if self.aread is None or self.loop is None:
            return ()
        if _running() is self.loop:
            msg = "an async policy must `await case.adocuments()` before it asks for documents, tokens or cost"
            raise ConfigurationError(msg)
        return asyncio.run_coroutine_threadsafe(_awaited(self.aread()), self.loop).result()

    async def adocuments(self) -> Sequence[Any]:
        """The async twin of `documents`."""
        return self.documents() if self.aread is None else await self.aread()


async def _awaited(documents: Awaitable[Sequence[Any]]) -> Sequence[Any]:
    return await documents


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
