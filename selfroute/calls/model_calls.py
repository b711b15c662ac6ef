"""Ask the models of one question, and hang up on them; questions on one document share the provider's prompt cache."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Hashable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from selfroute.calls.caching import ProviderCache, cache_of
from selfroute.calls.flights import Flights
from selfroute.hangup import LoopTurned, ahang_up, hang_up

if TYPE_CHECKING:
    from selfroute.calls.costs import Costs
    from selfroute.calls.host import Host, Prompt
    from selfroute.calls.plan import Plan
    from selfroute.calls.sending import Sending
    from selfroute.effects import Generate, Route
    from selfroute.usage.account import Tally

Document = TypeVar("Document")
FLIGHTS = Flights()
"""The questions of this process, whichever chain or engine asks them: what they share is the provider's cache."""


def replied(
    host: Host[Any], step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
) -> Generator[str, None, None]:
    """Ask a step's model and yield its reply in pieces; closing the generator stops the model."""
    reply = host.ask(step, prompt, tally, cache)
    if isinstance(reply, str):
        yield reply
        return
    tally.whole = False
    try:
        for piece in reply:
            yield tally.add_piece(piece)
    except GeneratorExit:
        hang_up(reply)
        raise
    finally:
        if hasattr(reply, "close"):
            reply.close()


async def areplied(
    host: Host[Any], step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
) -> AsyncGenerator[str, None]:
    """The async twin of `replied`."""
    waiting = LoopTurned()
    reply: Any = await host.aask(step, prompt, tally, cache)
    if isinstance(reply, str):
        yield reply
        return
    tally.whole = False
    try:
        async for piece in reply:
            yield tally.add_piece(piece)
    except GeneratorExit:
        leaving, reply = reply, None  # `ahang_up` closes it, even if this task is cancelled
        await ahang_up(leaving, waited=waiting.done, most=host.most_late)
        raise
    finally:
        if hasattr(reply, "aclose"):
            await reply.aclose()


class ModelCalls(Generic[Document]):
    """Asks the models of one question."""

    def __init__(self, host: Host[Document], plan: Plan, sending: Sending[Document], costs: Costs[Document]) -> None:
        """Start with no model asked.

        Args:
            host: Asks a model.
            plan: The options of the chain or engine.
            sending: Fills in the prompts.
            costs: Counts the calls.
        """
        self._host, self._plan, self._sending, self._costs = host, plan, sending, costs

    def ask(self, effect: Generate) -> Generator[str, None, None]:
        """Yield a reply in pieces; the model is asked for the first one. Closing the generator stops the model."""
        cache = self._cache(effect.step)
        shared = self._shared(effect, cache)
        pieces = self._ask(effect, cache)
        return pieces if shared is None else FLIGHTS.in_turn(*shared, pieces)

    def aask(self, effect: Generate) -> AsyncGenerator[str, None]:
        """The async twin of `ask`."""
        cache = self._cache(effect.step)
        shared = self._shared(effect, cache)
        pieces = self._aask(effect, cache)
        return pieces if shared is None else FLIGHTS.ain_turn(*shared, pieces)

    def _ask(self, effect: Generate, cache: ProviderCache | None) -> Generator[str, None, None]:
        prompt, tally = self._begin(effect)
        with self._costs.counted(effect.step, tally, prompt):
            yield from replied(self._host, effect.step, prompt, tally, cache)

    async def _aask(self, effect: Generate, cache: ProviderCache | None) -> AsyncGenerator[str, None]:
        prompt, tally = self._begin(effect)
        with self._costs.counted(effect.step, tally, prompt):
            async with aclosing(areplied(self._host, effect.step, prompt, tally, cache)) as pieces:
                async for piece in pieces:
                    yield piece

    def _begin(self, effect: Generate) -> tuple[Prompt, Tally]:
        self._sending.note_sent(effect.step, effect.context)
        prompt = self._sending.prompt(effect.step, effect.context)
        return prompt, self._host.tally(whole=self._plan.structured or not self._host.streaming)

    def _cache(self, step: Route) -> ProviderCache | None:
        """Return the cache that a prompt with documents may hit; None without one, or if it cannot be marked."""
        if step != "long_context" or self._plan.prompt_cache == "off":
            return None
        cache = cache_of(self._host.name_of(step), self._plan.prompt_cache)
        return None if cache is None or (cache.ttl and not self._host.takes_marks(step)) else cache

    def _shared(self, effect: Generate, cache: ProviderCache | None) -> tuple[Hashable, float] | None:
        """Return a key for the cached prefix of a prompt, and for how long it is kept; None if none is cached."""
        step, host = effect.step, self._host
        if cache is None:
            return None
        prefix = self._sending.prompt(step, effect.context).prefix(host.question)
        if prefix is None or not cache.keeps(prefix.characters):
            return None
        model = host.name_of(step)
        return (model.name, model.url, host.account(step), prefix.digest()), cache.seconds
