"""Ask the models of one question: each reply is counted, and waits for an earlier one where that makes it cheaper."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Hashable
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, TypeVar

from selfroute.caching import ProviderCache, cache_of
from selfroute.calls.flights import Flights

if TYPE_CHECKING:
    from selfroute.calls.costs import Costs
    from selfroute.calls.fitting import Fitting
    from selfroute.calls.host import Host, Prompt
    from selfroute.calls.settings import Settings
    from selfroute.flow import Generate, Route
    from selfroute.usage.account import Tally

Document = TypeVar("Document")
FLIGHTS = Flights()
"""The questions of this process, whichever chain or engine asks them: what they share is the provider's cache."""


class ModelCalls(Generic[Document]):
    """Asks the models of one question."""

    def __init__(
        self,
        host: Host[Document],
        settings: Settings,
        *,
        fitting: Fitting[Document],
        costs: Costs[Document],
        draft: str | None = None,
    ) -> None:
        """Start with no model asked.

        Args:
            host: Asks a model.
            settings: The options of the chain or engine.
            fitting: Fills in the prompts.
            costs: Counts the calls.
            draft: The reply of the first step, if an earlier call has asked for it.
        """
        self._host, self._settings, self._fitting, self._costs = host, settings, fitting, costs
        self._draft = draft

    def ask(self, effect: Generate) -> Generator[str, None, None]:
        """Yield a reply in pieces; the model is asked for the first one. Closing the generator stops the model."""
        if self._draft is not None and effect.step == "rag":
            return _in_one(self._draft)
        cache = self._cache(effect.step)
        shared = self._shared(effect, cache)
        pieces = self._ask(effect, cache)
        return pieces if shared is None else FLIGHTS.in_turn(*shared, pieces)

    def aask(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `ask` does, asynchronously."""
        if self._draft is not None and effect.step == "rag":
            return _ain_one(self._draft)
        cache = self._cache(effect.step)
        shared = self._shared(effect, cache)
        pieces = self._aask(effect, cache)
        return pieces if shared is None else FLIGHTS.ain_turn(*shared, pieces)

    def _ask(self, effect: Generate, cache: ProviderCache | None) -> Generator[str, None, None]:
        prompt, tally = self._begin(effect)
        with self._costs.counted(effect.step, tally, prompt):
            yield from self._host.ask(effect.step, prompt, tally, cache)

    async def _aask(self, effect: Generate, cache: ProviderCache | None) -> AsyncGenerator[str, None]:
        prompt, tally = self._begin(effect)
        with self._costs.counted(effect.step, tally, prompt):
            async with aclosing(self._host.aask(effect.step, prompt, tally, cache)) as pieces:
                async for piece in pieces:
                    yield piece

    def _begin(self, effect: Generate) -> tuple[Prompt, Tally]:
        self._fitting.context = effect.context
        prompt = self._fitting.prompt(effect.step, effect.context)
        return prompt, self._host.tally(whole=self._settings.structured or not self._host.streaming)

    def _cache(self, step: Route) -> ProviderCache | None:
        """Return the cache that the prompts of a step may hit; None without a cache, or if they cannot be marked."""
        if self._settings.prompt_cache == "off":
            return None
        cache = cache_of(self._host.name_of(step), self._settings.prompt_cache)
        return None if cache is None or (cache.mark and not self._host.takes_marks(step, cache.mark)) else cache

    def _shared(self, effect: Generate, cache: ProviderCache | None) -> tuple[Hashable, float] | None:
        """Return a key for the cached prefix of a prompt, and for how long it is kept; None if none is cached."""
        step, host = effect.step, self._host
        if cache is None or step != "long_context":
            return None
        prefix = self._fitting.prompt(step, effect.context).prefix(host.question)
        if prefix is None or not cache.keeps(prefix.characters):
            return None
        model = host.name_of(step)
        return (model.name, model.url, host.account(step), prefix.digest()), cache.seconds


def _in_one(text: str) -> Generator[str, None, None]:
    """Yield a reply that is known as one piece."""
    yield text


async def _ain_one(text: str) -> AsyncGenerator[str, None]:
    """Do as `_in_one` does, asynchronously."""
    yield text
