"""What one question does about its provider's prompt cache, in every framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Hashable
from typing import TYPE_CHECKING

from selfroute.caching.flights import Flights
from selfroute.caching.providers import Dialect, ProviderCache, cache_of

if TYPE_CHECKING:
    from selfroute.caching.prefixes import Prefix
    from selfroute.effects import Generate, Route
    from selfroute.settings import Settings
    from selfroute.usage.prices import PricedModel

FLIGHTS = Flights()
"""The questions of this process, whichever chain or engine asks them: what they share is the provider's cache."""


class CachedPrompts(ABC):
    """Knows which cache the prompts of one question may hit, and waits for an earlier question where that helps.

    Attributes:
        settings: The options of the chain or engine.
    """

    settings: Settings

    @abstractmethod
    def _model_name(self, step: Route) -> PricedModel:
        """Return what the model of a step is called, and where."""

    def _prefix(self, effect: Generate) -> Prefix | None:  # noqa: ARG002
        """Return what a prompt shares with those of other questions on its documents; None for nothing, or unknown."""
        return None

    def _takes_marks(self, step: Route, dialect: Dialect) -> bool:  # noqa: ARG002
        """Return whether the client of a step's model passes on marks, and the user sets none."""
        return False

    def _account(self, step: Route) -> Hashable:  # noqa: ARG002
        """Return what tells the accounts apart that call one provider."""
        return None

    def _cache(self, step: Route) -> ProviderCache | None:
        """Return the cache that the prompts of a step may hit; None if there is none, or they cannot be marked."""
        if self.settings.prompt_cache == "off":
            return None
        cache = cache_of(self._model_name(step), self.settings.prompt_cache)
        return None if cache is None or (cache.mark and not self._takes_marks(step, cache.mark)) else cache

    def _reply(self, effect: Generate) -> Generator[str, None, None]:
        """Yield a reply's pieces; the model is asked when the first one is requested. Closing it stops the model."""
        raise NotImplementedError

    def _areply(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `_reply` does, asynchronously."""
        raise NotImplementedError

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        """Ask the step's model, after an earlier question that makes it cheaper; closing the generator stops it."""
        shared = self._shared(effect)
        pieces = self._reply(effect)
        return pieces if shared is None else FLIGHTS.in_turn(*shared, pieces)

    def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `generate` does, asynchronously."""
        shared = self._shared(effect)
        pieces = self._areply(effect)
        return pieces if shared is None else FLIGHTS.ain_turn(*shared, pieces)

    def _shared(self, effect: Generate) -> tuple[Hashable, float] | None:
        """Return what identifies the cached prefix of a prompt, and for how long it is kept; None if none is."""
        step = effect.step
        cache = self._cache(step) if step == "long_context" else None
        prefix = self._prefix(effect) if cache else None
        if cache is None or prefix is None or not cache.keeps(prefix.characters):
            return None
        model = self._model_name(step)
        return (model.name, model.url, self._account(step), prefix.digest()), cache.seconds
