"""Price the calls of models with the price lists of the package genai-prices (the extra `prices`)."""

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
_NAMELESS = Cost(None, "the model does not say what it is: pass priced_as='provider:name'")
_HOUR = 3_600.0  # seconds


@dataclass(frozen=True, slots=True)
class PricedModel:
    """The name by which a model is found in the price lists.

    Attributes:
        name: The name of the model, such as "gpt-4o-mini"; None if it is not known.
        provider: The provider, such as "openai"; None if it is not known.
        url: The address at which the model is called, if it is not the provider's usual one: there another provider may
            serve the model and charge for it.
    """

    name: str | None = None
    provider: str | None = None
    url: str | None = None

    @classmethod
    def from_reported(cls, name: Any, provider: Any, url: Any = None) -> PricedModel:
        """Return the model that these values, as its client reports them, describe; ignore what is not text."""
        usable = (value if isinstance(value, str) and value else None for value in (name, provider, url))
        return cls(*usable)

    @classmethod
    def parse(cls, field: str, text: str) -> PricedModel:
        """Return the model that an option names as `provider:name`.

        Args:
            field: The name of the option, for the error message.
            text: Its value.

        Raises:
            ConfigurationError: The value is not of that form.
        """
        provider, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not provider or not name:
            msg = f"{field} must be 'provider:name', such as 'openai:gpt-4o-mini'; it is {text!r}"
            raise ConfigurationError(msg)
        return cls(name, provider)


def declared_models(
    *, priced_as: str | None, long_context_priced_as: str | None, shared: bool
) -> dict[Route, PricedModel | None]:
    """Return the model that the user declared for pricing each step; None for a step without one.

    Args:
        priced_as: The option for the first step's model, as `provider:name`.
        long_context_priced_as: The option for the second step's model.
        shared: Whether one model performs both steps; then the first option applies to both.

    Raises:
        ConfigurationError: An option is not of that form.
    """
    first = PricedModel.parse("priced_as", priced_as) if priced_as else None
    second = PricedModel.parse("long_context_priced_as", long_context_priced_as) if long_context_priced_as else None
    return {"rag": first, "long_context": second or (first if shared else None)}


_NO_MODEL = (None, PricedModel())


class ModelNames:
    """The names of both steps' models, each looked up only once while the step keeps its model."""

    def __init__(self, look_up: Callable[[Any], PricedModel]) -> None:
        """Take the function that returns the name of a framework's model."""
        self._look_up = look_up
        self._known: dict[Route, tuple[Any, PricedModel]] = {}

    def of(self, step: Route, model: Any) -> PricedModel:
        """Return the name of a step's model."""
        known, name = self._known.get(step, _NO_MODEL)
        if known is not model:
            name = self._look_up(model)
            self._known[step] = model, name
        return name


def cost_of(model: PricedModel, counts: StepUsage) -> Cost:
    """Return the cost of one call at today's prices, with the special rates for long or cached prompts.

    Returns:
        The cost. It is unknown, with the reason, if the model is not in the price lists or they are not installed.
    """
    prices = load_price_lists()
    if prices is None:
        return _MISSING
    if not model.name:
        return _NAMELESS
    provider = _provider_of(model, int(time.monotonic() // _HOUR))
    if isinstance(provider, Cost):
        return provider
    cached = min(counts.cached_tokens, counts.input_tokens)  # genai-prices refuses counts that contradict each other
    usage = prices.Usage(
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=min(counts.cache_write_tokens, counts.input_tokens - cached),
    )
    try:
        return Cost(prices.calc_price(usage, _listed_name(model), **provider).total_price)
    except Exception as error:  # noqa: BLE001 - a fault of the price lists must not cost the answer
        return Cost(None, f"genai-prices cannot price this: {type(error).__name__}")


def _listed_name(model: PricedModel) -> str:
    return (model.name or "").removeprefix("models/")  # Google's clients report names with this prefix


@lru_cache(256)
def _provider_of(model: PricedModel, hour: int) -> dict[str, str] | Cost:  # noqa: ARG001 - part of the cache key
    """Return the argument that names the provider to genai-prices: the address if it knows it, else the client's name.

    The price lists may be updated while the process runs, so `hour` makes the cache look again every hour.
    """
    prices: Any = load_price_lists()
    for provider in ({"provider_api_url": model.url}, {"provider_id": model.provider}):
        if all(provider.values()):
            try:
                prices.calc_price(prices.Usage(input_tokens=1, output_tokens=1), _listed_name(model), **provider)
            except Exception:  # noqa: BLE001, S112 - mostly a LookupError
                continue
            return cast("dict[str, str]", provider)
    reason = f"genai-prices knows no price of {model.name!r}; priced_as='provider:name' says which of its models it is"
    return Cost(None, reason)


@cache
def load_price_lists() -> ModuleType | None:
    """Return the package genai-prices, or None if it is not installed.

    Loading takes half a second, so chains and engines call this when they are constructed, not at the first question.
    """
    try:
        import genai_prices  # noqa: PLC0415
    except ImportError:
        return None
    with suppress(LookupError):  # the first price loads the lists
        genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai")
    return genai_prices
