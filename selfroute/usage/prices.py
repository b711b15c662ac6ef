"""Price the calls of models with the price lists of the package genai-prices (the extra `prices`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from selfroute.effects import Route
from selfroute.errors import ConfigurationError
from selfroute.usage.addresses import host_of, is_local
from selfroute.usage.counts import FREE, Cost, StepUsage

_MISSING = Cost(None, 'prices need the package genai-prices: pip install "selfroute[prices]"')
_NAMELESS = Cost(None, "the model does not report its name: pass priced_as='provider:name'")
_ADVICE = "priced_as='provider:name' says what to price it as"
UNKNOWN = "unknown"  # the name of a model that does not report its name
_HOUR = 3_600.0  # seconds
_STANDARD = frozenset(["", "auto", "default", "standard"])  # names of the standard tier


@dataclass(frozen=True, slots=True)
class PricedModel:
    """The name by which a model is found in the price lists.

    Attributes:
        name: The name of the model, such as "gpt-4o-mini"; None if it is not known.
        provider: The provider, such as "openai"; None if it is not known.
        url: The address at which the model is called, as `address_of` returns it; None if it is not known. Whoever
            answers there charges for the model, if anybody does, under any name of the client and the model.
        fallbacks: The models that may reply in its place.
        tier: The provider's tier that the reply was served in, such as "flex"; None for the standard one.
    """

    name: str | None = None
    provider: str | None = None
    url: str | None = None
    fallbacks: tuple[PricedModel, ...] = field(default=(), compare=False)
    tier: str | None = field(default=None, compare=False)

    @property
    def title(self) -> str:
        """The model as people call it, such as "openai:gpt-4o-mini"; "unknown" if it does not report its name."""
        return ":".join(filter(None, (self.provider, self.name))) if self.name else UNKNOWN

    @classmethod
    def from_reported(cls, name: Any, provider: Any, url: Any = None) -> PricedModel:
        """Return the model that these values, as its client reports them, describe; ignore what is not text."""
        stated, by, at = (value if isinstance(value, str) and value else None for value in (name, provider, url))
        return cls(stated, by, at)

    def served(self, tier: Any) -> PricedModel:
        """Return the same model in the tier that a reply states."""
        return replace(self, tier=tier) if isinstance(tier, str) and tier.lower() not in _STANDARD else self

    def replied(self, answered: PricedModel) -> PricedModel:
        """Return the model that replied, as the reply states it: this one, a dated version of it, or a fallback."""
        models, name, said = (self, *self.fallbacks), answered.name, answered.provider
        if name is None:
            return self if self.provider or not said else PricedModel(self.name, said, self.url)
        named = [model for model in models if model.name and name.startswith(model.name)]
        known = max(named, key=lambda model: len(model.name or ""), default=None)
        if known:  # a client that builds on another client may report the other's provider
            return PricedModel(name, known.provider or said, known.url)
        known = next((model for model in models if said in {None, model.provider}), None)
        return PricedModel(name, known.provider if known else said, (known or self).url)

    @classmethod
    def parse(cls, field: str, text: str) -> PricedModel:
        """Return the model that the option `field` names as `provider:name`.

        Raises:
            ConfigurationError: The value is not of that form.
        """
        provider, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not provider or not name:
            msg = f"{field} must be 'provider:name', such as 'openai:gpt-4o-mini'; it is {text!r}"
            raise ConfigurationError(msg)
        return cls(name, provider)


def is_one_model(models: Mapping[Route, Any]) -> bool:
    """Return whether one model performs all steps: the same object, since two that are equal may be paid apart."""
    return models["rag"] is models["long_context"]


_NO_MODEL = (None, PricedModel())


class ModelNames:
    """The names of the steps' models, each looked up only once while the step keeps its model."""

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
        The cost. It is unknown, with the reason, if the model is not in the price lists or is called at an address that
        is no provider's, and if the lists are not installed or fail in any way.
    """
    if counts.repeated:
        return FREE
    prices = load_price_lists()
    if isinstance(prices, Cost):
        return prices
    provider = _provider_of(model, int(time.monotonic() // _HOUR))
    if isinstance(provider, Cost):
        return provider
    try:
        return Cost(_dollars(prices, counts, model, provider))
    except Exception as error:  # noqa: BLE001 - a fault of the price lists must not cost the answer
        return _fault(error)


def _dollars(prices: Any, counts: StepUsage, model: PricedModel, provider: dict[str, str]) -> Decimal:
    def price(**usage: int) -> Any:
        if model.tier:
            with suppress(Exception):  # older versions know no tiers
                context = {"service_tier": model.tier}
                return prices.calc_price(prices.Usage(**usage), _listed_name(model), **provider, price_context=context)
        return prices.calc_price(prices.Usage(**usage), _listed_name(model), **provider)

    cached = min(counts.cached_tokens, counts.input_tokens)  # genai-prices refuses counts that contradict each other
    written = min(counts.cache_write_tokens, counts.input_tokens - cached)
    for_an_hour = min(counts.cache_write_1h_tokens, written)
    usage = {
        "input_tokens": counts.input_tokens,
        "output_tokens": counts.output_tokens,
        "cache_read_tokens": cached,
        "cache_write_tokens": written,
    }
    if not for_an_hour:
        return _as_decimal(price(**usage).total_price)
    with suppress(Exception):  # not every version knows them
        priced = price(**usage, cache_write_1h_tokens=for_an_hour)
        if priced.model_price.cache_write_1h_mtok is not None:
            return _as_decimal(priced.total_price)
    # Without a rate of their own, tokens that are kept for an hour cost twice as much as others.
    usage["cache_write_tokens"] -= for_an_hour
    plain = _as_decimal(price(input_tokens=counts.input_tokens).total_price) * for_an_hour / counts.input_tokens
    return _as_decimal(price(**usage).total_price) + plain


def _as_decimal(price: Any) -> Decimal:
    amount = price if isinstance(price, Decimal) else Decimal(str(price))
    if not amount.is_finite() or amount < 0:
        raise ValueError(price)
    return amount


def _fault(error: Exception) -> Cost:
    return Cost(None, f"the installed genai-prices fails ({type(error).__name__}): install another version of it")


def _listed_name(model: PricedModel) -> str:
    return (model.name or "").removeprefix("models/")  # Google's clients report names with this prefix


@lru_cache(256)
def _provider_of(model: PricedModel, hour: int) -> dict[str, str] | Cost:  # noqa: ARG001 - part of the cache key
    """Return the argument that names the provider to genai-prices: the address, or without one the client's name.

    The price lists may be updated while the process runs, so `hour` makes the cache look again every hour.
    """
    if not model.name:
        return _NAMELESS
    if model.url and is_local(model.url):
        reason = f"{model.name!r} is called at {host_of(model.url)}, a local address, where no provider's price holds"
        return Cost(None, f"{reason}; {_ADVICE}")
    prices: Any = load_price_lists()
    known = {"provider_api_url": model.url} if model.url else {"provider_id": model.provider} if model.provider else {}
    try:
        if known:
            prices.calc_price(prices.Usage(input_tokens=1, output_tokens=1), _listed_name(model), **known)
            return known
    except LookupError:
        pass
    except Exception as error:  # noqa: BLE001
        return _fault(error)
    where = f" at {host_of(model.url)}" if model.url else ""
    return Cost(None, f"genai-prices knows no price of {model.name!r}{where}; {_ADVICE}")


@cache
def load_price_lists() -> ModuleType | Cost:
    """Return the package genai-prices; if it is not installed or cannot be imported, a cost that says so.

    Loading takes half a second, so chains and engines call this when they are constructed, not at the first question.
    """
    try:
        import genai_prices  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return _MISSING if error.name == "genai_prices" else _fault(error)
    except Exception as error:  # noqa: BLE001 - what is optional must not keep a chain from being built
        return _fault(error)
    with suppress(Exception):  # the first price loads the lists; what is wrong with them is said where they are used
        genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai")
    return genai_prices
