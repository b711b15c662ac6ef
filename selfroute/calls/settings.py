"""The options that every framework's chain or engine takes, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import index
from typing import Any, TypedDict, get_args

from selfroute.answerability.structured import Answerability, Form, answerability_of
from selfroute.arguments import check_takes
from selfroute.caching import PromptCache
from selfroute.documents.window import room_in
from selfroute.effects import Route, Start
from selfroute.errors import ConfigurationError
from selfroute.prompts import refusal_of
from selfroute.usage.prices import PricedModel

Doubt = int | tuple[int, ...] | None
Sections = int | tuple[int, ...] | None
PricedAs = str | Mapping[str, str] | None
DOUBT_BELOW, STOP_BELOW = 50, 20
"""The bounds of graded answerability that were measured first; there may be better."""
REACH = 20
"""The passages that point to documents for sections: behind them stands the right one in 94 % of cases."""
MAX_DOCUMENTS = 2
"""Two of the documents behind 20 passages hold the right one as often as all behind five (88.5 and 87.8 %)."""
_HIGHEST = 100
_STARTS = get_args(Start)
_PRICED = frozenset(("llm", "long_context_llm"))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the numbers that a reply begins with.

    Attributes:
        doubt_below: A draft with a lower confidence is in doubt.
        stop_below: A decline of a draft with a lower prospect ends the question.
        sections_below: For each reading of sections, the confidence below which its answer is in doubt; the last one
            holds for those that come after.
    """

    doubt_below: int
    stop_below: int
    sections_below: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of one chain or engine.

    Attributes:
        refusal: The word by which the model declines.
        answerability: How the model reports whether it can answer: `"text"`, `"graded"` or `"structured"`.
        doubt_below: The bound of the confidence, from 0 to 100, or several: for the draft, and for each reading of
            sections. None for 50 where the model is asked for numbers.
        stop_below: The bound of the prospect, from 0 to 100; None for 20 where the model is asked for numbers.
        sections: The most tokens of the documents' best sections, which are read before whole documents: one number, or
            a tuple with one for each reading, ascending; None for no sections.
        draft_passages: How many of the retrieved passages the draft reads, the first ones; None for all.
        max_documents: How many stored documents the last step reads at most, the best ones; 0 for none, so that the
            question ends before; None for all.
        escalation: The policy that is asked before a step after the draft is paid for; None to pay for each.
        start: The first step: `"rag"`, `"sections"`, `"long_context"`, `"auto"`, which is the latter where the passages
            are most of the documents and there is no policy, or a callable that says which for each question.
        max_context_tokens: The limit for the documents' text in the second step; None for as much as the model's
            window takes.
        citations: Whether to say where the answer stands in what the model answered from.
        prompt_cache: What to do so that a document which is read again comes from the provider's prompt cache.
        priced_as: The model as which `llm` is priced, as `provider:name`; a dict with the keys `llm` and
            `long_context_llm` where they differ; None to use the names that the models report.

    Raises:
        ConfigurationError: A value is not valid.
    """

    refusal: str = "unanswerable"
    answerability: Answerability = "text"
    doubt_below: Doubt = None
    stop_below: int | None = None
    sections: Sections = None
    draft_passages: int | None = None
    max_documents: int | None = MAX_DOCUMENTS
    escalation: Any = None
    start: Any = "rag"
    max_context_tokens: int | None = None
    citations: bool = False
    prompt_cache: PromptCache = "auto"
    priced_as: PricedAs = None

    def __post_init__(self) -> None:
        for name in SETTINGS:
            value = getattr(self, name)
            checked_value = checked(name, value)
            if checked_value is not value:
                object.__setattr__(self, name, checked_value)
        if self.answerability == "text" and not self.doubt_below is self.stop_below is None:
            msg = "doubt_below and stop_below need the model's numbers: set answerability='graded' or 'structured'"
            raise ConfigurationError(msg)
        if isinstance(self.doubt_below, tuple) and len(self.doubt_below) > 1 + len(self.section_tokens):
            msg = (
                f"doubt_below={self.doubt_below} has more bounds than there are steps: one for the draft, and one for "
                f"each reading of sections; set sections=4_000, or pass one number"
            )
            raise ConfigurationError(msg)
        if isinstance(self.start, str):
            self.ladder(start_of(self.start))

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of the numbers that the first steps are asked for; None if they are not asked for numbers."""
        doubt, stop = self.doubt_below, self.stop_below
        if self.answerability == "text" or (self.answerability == "structured" and doubt is stop is None):
            return None
        doubt = DOUBT_BELOW if doubt is None else doubt
        draft, *sections = doubt if isinstance(doubt, tuple) else (doubt, doubt)
        return Bounds(draft, STOP_BELOW if stop is None else stop, tuple(sections))

    def ladder(self, start: Start) -> tuple[Route, ...]:
        """Return the steps of a question, the cheapest first.

        Raises:
            ConfigurationError: The question starts with documents, which it may not read, or with sections, and
                there are none.
        """
        if start == "sections" and not self.section_tokens:
            msg = "start='sections' reads the sections of documents: set sections=4_000, too"
            raise ConfigurationError(msg)
        if start == "long_context" and self.max_documents == 0:
            msg = "start='long_context' reads documents, and max_documents=0 forbids it: leave out one of them"
            raise ConfigurationError(msg)
        if start == "long_context":
            return ("long_context",)
        sections: list[Route] = ["sections"] * len(self.section_tokens)
        draft: tuple[Route, ...] = () if start == "sections" else ("rag",)
        return (*draft, *sections) if self.max_documents == 0 else (*draft, *sections, "long_context")

    @property
    def most_compared(self) -> int | None:
        """How many documents always reading them would read, with which `usage` compares; None for all."""
        return MAX_DOCUMENTS if self.max_documents == 0 else self.max_documents

    @property
    def section_tokens(self) -> tuple[int, ...]:
        """The most tokens of each reading of sections."""
        return (self.sections,) if isinstance(self.sections, int) else self.sections or ()

    @property
    def structured(self) -> bool:
        """Whether the model fills in a report instead of writing text."""
        return self.answerability == "structured"

    def form_of(self, step: Route) -> Form:
        """Return the report that the model of a step fills in, with `answerability="structured"`."""
        numbers = 0 if self.bounds is None else {"rag": 2, "sections": 1, "long_context": 0}[step]
        return Form(numbers)

    def check_prices(self, name_of: Callable[[Route], PricedModel], *, shared: bool) -> None:
        """Check that the models may have a price, if the policy needs one.

        Args:
            name_of: Returns the name by which the model of a step is priced.
            shared: Whether one model performs all steps.

        Raises:
            ConfigurationError: A model says its name, and has no price.
        """
        if self.escalation is not None:
            from selfroute.policies.policy import check_prices  # noqa: PLC0415 - most chains have no policy

            def priced_as(step: Route) -> PricedModel:
                return self.declared_model(step, shared=shared) or name_of(step)

            check_prices(self.escalation, priced_as, shared=shared, sections=bool(self.sections))

    def document_budget(self, window: int | None) -> int | None:
        """Return how many tokens of documents the second step may be given after a short question; None for no limit.

        Args:
            window: The window of its model in tokens; None if the model does not report it.
        """
        if self.max_context_tokens is not None:
            return self.max_context_tokens
        return None if window is None else room_in(window)

    def declared_model(self, step: Route, *, shared: bool) -> PricedModel | None:
        """Return the model that the user declared for pricing a step; None if there is no declaration.

        Args:
            step: The step.
            shared: Whether one model performs all steps.
        """
        named = self.priced_as
        if named is None:
            return None
        models = {"llm": named} if isinstance(named, str) else named
        own = models.get("long_context_llm") if step == "long_context" else None
        name = own or (models.get("llm") if shared or step != "long_context" else None)
        return PricedModel.parse("priced_as", name) if name else None


_DEFAULTS = {field.name: field.default for field in fields(Settings)}
SETTINGS = tuple(_DEFAULTS)


class Options(TypedDict, total=False):
    """The same options as keyword arguments, for type checkers."""

    refusal: str
    answerability: Answerability
    doubt_below: Doubt
    stop_below: int | None
    sections: Sections
    draft_passages: int | None
    max_documents: int | None
    escalation: Any
    start: Any
    max_context_tokens: int | None
    citations: bool
    prompt_cache: PromptCache
    priced_as: PricedAs


def _shown(value: Any) -> str:
    """Return a value of an option for a message; an object is only named."""
    return repr(value) if isinstance(value, str | int | tuple | None) else type(value).__name__


def checked(name: str, value: Any) -> Any:
    """Check one option.

    Args:
        name: The name of the option.
        value: The value that the user passed.

    Returns:
        The value to use.

    Raises:
        ConfigurationError: The value is not valid.
    """
    return _CHECKS[name](name, value)


def _refusal(_: str, value: Any) -> str:
    return refusal_of(value)


def _answerability(_: str, value: Any) -> Answerability:
    return answerability_of(value)


def _score(name: str, value: Any) -> int | None:
    if value is None:
        return None
    with suppress(TypeError):
        number = index(value)
        if 0 <= number <= _HIGHEST and not isinstance(value, bool):
            return number
    msg = f"{name} must be a whole number from 0 to 100, or None; it is {value!r}"
    raise ConfigurationError(msg)


def _doubt(name: str, value: Any) -> Doubt:
    if not isinstance(value, list | tuple):
        return _score(name, value)
    if len(value) > 1 and None not in value:
        return tuple(_score(name, one) or 0 for one in value)
    msg = f"{name} must be a whole number from 0 to 100, a pair of them (draft, sections), or None; it is {value!r}"
    raise ConfigurationError(msg)


def _sections(name: str, value: Any) -> Sections:
    if not isinstance(value, list | tuple):
        return _tokens(name, value)
    numbers = tuple(_tokens(name, one) or 0 for one in value)
    if numbers and 0 not in numbers and list(numbers) == sorted(set(numbers)):
        return numbers
    msg = f"{name} must be a number of tokens, or ascending ones, such as (4_000, 16_000); it is {value!r}"
    raise ConfigurationError(msg)


def _number(name: str, value: Any) -> int | None:
    if value is None:
        return None
    least = 0 if name == "max_documents" else 1
    with suppress(TypeError):
        number = index(value)
        if number >= least and not isinstance(value, bool):
            return number
    msg = f"{name} must be a whole number from {least} on, or None for all; it is {value!r}"
    raise ConfigurationError(msg)


def _escalation(_: str, value: Any) -> Any:
    if value is None:
        return None
    from selfroute.policies.policy import policy_of  # noqa: PLC0415

    return policy_of(value)


def start_of(value: Any) -> Start:
    """Return the first step of a question, checked.

    Raises:
        ConfigurationError: It is something else.
    """
    if value in _STARTS:
        return value  # type: ignore[no-any-return]
    either = "'rag', 'sections', 'auto' or 'long_context', or a callable that returns one of them"
    msg = f"start must be {either}; it is {value!r}"
    raise ConfigurationError(msg)


def _start(_: str, value: Any) -> Any:
    if isinstance(value, type) or not (callable(value) or hasattr(value, "invoke")):
        return start_of(value)
    if not hasattr(value, "invoke"):
        check_takes("start", value, "inputs")
    return value


def _tokens(name: str, value: Any) -> int | None:
    if value is None:
        return None
    with suppress(TypeError):
        number = index(value)  # numpy's integers, too
        if number > 0 and not isinstance(value, bool):
            return number
    msg = f"{name} must be a positive number of tokens, or None; it is {value!r}"
    raise ConfigurationError(msg)


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    msg = f"{name} must be True or False, not {value!r}"
    raise ConfigurationError(msg)


def _prompt_cache(name: str, value: Any) -> PromptCache:
    if isinstance(value, str) and value in get_args(PromptCache):
        return value  # type: ignore[return-value]
    msg = f"{name} must be 'auto', 'off', '5m' or '1h', not {value!r}"
    raise ConfigurationError(msg)


def reach_of(k: int, reach: int | None, *, sections: Sections, name: str = "k") -> int:
    """Return how many passages are retrieved, so that they point to more documents than the draft reads of.

    Args:
        k: The number of passages that the draft reads.
        reach: The number of passages to retrieve; None for 20 if there are sections, else `k`.
        sections: The option of that name.
        name: What the framework calls `k`.

    Raises:
        ConfigurationError: `k` is no number of passages, or fewer would be retrieved than the draft reads.
    """
    if isinstance(k, bool) or not hasattr(k, "__index__") or index(k) < 1:
        msg = f"{name}={k!r}: the draft reads at least one passage, so pass a whole number from 1 on"
        raise ConfigurationError(msg)
    reach = _number("reach", reach)
    if reach is not None and reach < k:
        msg = f"reach={reach} is less than the {k} passages that the draft reads: leave it out, or pass more"
        raise ConfigurationError(msg)
    return reach or (max(REACH, k) if sections else k)


def _priced_as(name: str, value: Any) -> PricedAs:
    if isinstance(value, Mapping):
        if not value or not value.keys() <= _PRICED:
            msg = (
                f"{name} takes a name or {{'llm': 'provider:name', 'long_context_llm': 'provider:name'}}, not {value!r}"
            )
            raise ConfigurationError(msg)
        for field, model in value.items():
            PricedModel.parse(f"{name}[{field!r}]", model)
        return dict(value)  # the caller may change theirs
    if value is not None:
        PricedModel.parse(name, value)
    return value  # type: ignore[no-any-return]


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "refusal": _refusal,
    "answerability": _answerability,
    "doubt_below": _doubt,
    "stop_below": _score,
    "sections": _sections,
    "draft_passages": _number,
    "max_documents": _number,
    "escalation": _escalation,
    "start": _start,
    "max_context_tokens": _tokens,
    "citations": _switch,
    "prompt_cache": _prompt_cache,
    "priced_as": _priced_as,
}
