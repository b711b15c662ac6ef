"""The options that every framework's chain or engine takes, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from selfroute.answerability.structured import Answerability, answerability_of
from selfroute.documents.window import room_in
from selfroute.errors import ConfigurationError
from selfroute.flow import Route
from selfroute.prompts import refusal_of
from selfroute.usage.counts import count_tokens
from selfroute.usage.prices import PricedModel, declared_models

MeasureSavings = bool | Literal["background"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of one chain or engine.

    Attributes:
        refusal: The word by which the model declines.
        answerability: How the model reports whether it can answer: `"text"` or `"structured"`.
        max_context_tokens: Limits the documents' text in the second step; None: what the model's window takes.
        token_counter: Counts the tokens of a text; None: a quarter of its characters.
        measure_savings: Whether `usage` says what always reading the documents would have taken. `True` knows the
            length of documents that were given as a list or read before; `"background"` also has stored documents
            counted in a thread, once; `False` measures nothing.
        priced_as: `provider:name` of the first step's model, for the prices.
        long_context_priced_as: The same for the second step's model.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    refusal: str = "unanswerable"
    answerability: Answerability = "text"
    max_context_tokens: int | None = None
    token_counter: Callable[[str], int] | None = None
    measure_savings: MeasureSavings = True
    priced_as: str | None = None
    long_context_priced_as: str | None = None

    def __post_init__(self) -> None:
        for name in SETTINGS:
            value = getattr(self, name)
            checked_value = checked(name, value)
            if checked_value is not value:
                object.__setattr__(self, name, checked_value)

    @property
    def structured(self) -> bool:
        """Whether the model fills a report in, in place of writing text."""
        return self.answerability == "structured"

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text with `token_counter`, or estimate them."""
        return self.token_counter(text) if self.token_counter else count_tokens(text)

    def document_budget(self, window: int | None) -> int | None:
        """Return how many tokens of documents the second step may be given, None for no limit.

        Args:
            window: The window of its model in tokens, None if the model does not say.
        """
        if self.max_context_tokens is not None:
            return self.max_context_tokens
        return None if window is None else room_in(window)

    def declared_model(self, step: Route, *, shared: bool) -> PricedModel | None:
        """Return the model that the user declared for pricing a step, None if there is no declaration.

        Args:
            step: The step.
            shared: Whether one model performs both steps.
        """
        first, second = self.priced_as, self.long_context_priced_as
        if not (first or second):
            return None
        return declared_models(priced_as=first, long_context_priced_as=second, shared=shared)[step]


SETTINGS = tuple(field.name for field in fields(Settings))


def checked(name: str, value: Any) -> Any:
    """Check one option.

    Args:
        name: Its name.
        value: Its value.

    Returns:
        The value as it is used.

    Raises:
        ConfigurationError: It makes no sense.
    """
    return _CHECKS[name](name, value)


def _refusal(_: str, value: Any) -> str:
    return refusal_of(value)


def _answerability(_: str, value: Any) -> Answerability:
    return answerability_of(value)


def _tokens(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    msg = f"{name} must be a positive number of tokens, or None; it is {value!r}"
    raise ConfigurationError(msg)


def _counter(name: str, value: Any) -> Callable[[str], int] | None:
    if value is None or callable(value):
        return value  # type: ignore[no-any-return]
    msg = f"{name} must be a callable that is given a text and returns how many tokens it has"
    raise ConfigurationError(msg)


def _measure(name: str, value: Any) -> MeasureSavings:
    if value in (True, False, "background"):
        return value  # type: ignore[no-any-return]
    msg = f"{name} must be True, False or 'background', not {value!r}"
    raise ConfigurationError(msg)


def _priced_as(name: str, value: Any) -> str | None:
    if value is not None:
        PricedModel.of(name, value)
    return value  # type: ignore[no-any-return]


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "refusal": _refusal,
    "answerability": _answerability,
    "max_context_tokens": _tokens,
    "token_counter": _counter,
    "measure_savings": _measure,
    "priced_as": _priced_as,
    "long_context_priced_as": _priced_as,
}
