"""What a model's call costs, by the price lists of the package genai-prices (the extra `prices`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, cast

from selfroute.errors import ConfigurationError
from selfroute.flow import Route
from selfroute.usage.counts import Cost, StepUsage

_MISSING = Cost(None, 'prices need the package genai-prices: pip install "selfroute[prices]"')
_HOUR = 3_600.0
_NAMELESS = Cost(None, "the model does not say what it is: say it with priced_as='provider:name'")


@dataclass(frozen=True, slots=True)
class PricedModel:
    """What a model is called where it is paid for.

    Attributes:
        name: Its name, such as "gpt-4o-mini"; None if it has none.
        provider: Whose it is, such as "openai", as far as that is known.
        url: Where it is asked, if not at its provider's usual address: another one may serve, and bill, it there.
    """

    name: str | None = None
    provider: str | None = None
    url: str | None = None

    @classmethod
    def from_reported(cls, name: Any, provider: Any, url: Any = None) -> PricedModel:
        """Take what a model says of itself, as far as it makes sense."""
        kept = (value if isinstance(value, str) and value else None for value in (name, provider, url))
        return cls(*kept)

    @classmethod
    def of(cls, field: str, text: str) -> PricedModel:
        """Read `provider:name`.

        Raises:
            ConfigurationError: It is something else.
        """
        provider, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not provider or not name:
            msg = f"{field} must be 'provider:name', such as 'openai:gpt-4o-mini'; it is {text!r}"
            raise ConfigurationError(msg)
        return cls(name, provider)


def declared_models(
    *, priced_as: str | None, long_context_priced_as: str | None, shared: bool
) -> dict[Route, PricedModel | None]:
    """What the user says that the models of both steps are priced as; None where nothing is said.

    Args:
        priced_as: What is said of the first step's model.
        long_context_priced_as: What is said of the second step's.
        shared: Whether one model performs both.

    Raises:
        ConfigurationError: It is not `provider:name`.
    """
    first = PricedModel.of("priced_as", priced_as) if priced_as else None
    second = PricedModel.of("long_context_priced_as", long_context_priced_as) if long_context_priced_as else None
    return {"rag": first, "long_context": second or (first if shared else None)}


_NOBODY = (None, PricedModel())


class ModelNames:
    """What the models of both steps say that they are called; each is asked once."""

    def __init__(self, ask: Callable[[Any], PricedModel]) -> None:
        self._ask = ask
        self._known: dict[Route, tuple[Any, PricedModel]] = {}

    def of(self, step: Route, model: Any) -> PricedModel:
        """What the model of a step is called."""
        known, name = self._known.get(step, _NOBODY)
        if known is not model:
            name = self._ask(model)
            self._known[step] = model, name
        return name


def cost_of(model: PricedModel, counts: StepUsage) -> Cost:
    """Price one call, at today's prices; a long prompt or a cached one may have a rate of its own.

    Returns:
        Its cost; unknown, with the reason, if the model is not in the price lists or these are not installed.
    """
    prices = price_lists()
    if prices is None:
        return _MISSING
    if not model.name:
        return _NAMELESS
    where = _listed(model, int(time.monotonic() // _HOUR))
    if isinstance(where, Cost):
        return where
    cached = min(counts.cached_tokens, counts.input_tokens)  # a wrong report is no reason to fail
    usage = prices.Usage(
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=min(counts.cache_write_tokens, counts.input_tokens - cached),
    )
    try:
        return Cost(prices.calc_price(usage, _name(model), **where).total_price)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the lists, the answer is there
        return Cost(None, f"genai-prices can not price this: {type(error).__name__}")


def _name(model: PricedModel) -> str:
    return (model.name or "").removeprefix("models/")  # as Google's clients have it


@lru_cache(256)
def _listed(model: PricedModel, hour: int) -> dict[str, str] | Cost:  # noqa: ARG001 - lists are updated: look again
    """How to find a model in the price lists: by its address, if that is a provider's, else by whose client it is."""
    prices: Any = price_lists()
    for where in ({"provider_api_url": model.url}, {"provider_id": model.provider}):
        if all(where.values()):
            try:
                prices.calc_price(prices.Usage(input_tokens=1, output_tokens=1), _name(model), **where)
            except Exception:  # noqa: BLE001, S112 - mostly a LookupError
                continue
            return cast("dict[str, str]", where)
    reason = f"genai-prices knows no price of {model.name!r}; priced_as='provider:name' says which of its models it is"
    return Cost(None, reason)


@cache
def price_lists() -> ModuleType | None:
    """Load the package, if it is installed: it takes half a second, which no first question should wait for."""
    try:
        import genai_prices  # noqa: PLC0415
    except ImportError:
        return None
    with suppress(LookupError):  # its lists come with the first price
        genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai")
    return genai_prices
