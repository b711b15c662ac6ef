"""The options that every framework's chain or engine takes, described and checked once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import index
from typing import Any, Literal, TypedDict, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from selfroute.answerability.structured import Answerability
from selfroute.arguments import check_takes, refuse_unknown
from selfroute.caching import PromptCache
from selfroute.describing import described
from selfroute.effects import Start
from selfroute.errors import ConfigurationError
from selfroute.usage.prices import PricedModel

Doubt = int | tuple[int, ...] | None
Stop = int | tuple[int, int] | None
Sections = int | tuple[int, ...] | Literal["auto"] | None
PricedAs = str | Mapping[str, str] | None
MAX_DOCUMENTS = 2
"""Two of the documents behind 20 passages hold the right one as often as all behind five (88.5 and 87.8 %)."""
_STARTS = get_args(Start)
_PRICED = frozenset(("llm", "long_context_llm"))


class Options(TypedDict, total=False):
    """The options as keyword arguments, for type checkers; `RoutingOptions` describes them."""

    answerability: Answerability | None
    sections: Sections
    max_documents: int | None
    citations: bool
    doubt_below: Doubt
    stop_below: Stop
    escalation: Any
    instructions: str | None
    not_found: str | None
    start: Any
    refusal: str
    draft_passages: int | None
    max_context_tokens: int | None
    prompt_cache: PromptCache
    priced_as: PricedAs


def _whole(least: int, most: int | None = None) -> Callable[[Any], int | None]:
    """Return a check for a whole number within these bounds, or None."""

    def check(value: Any) -> int | None:
        if value is None:
            return None
        number = index(value)  # numpy's integers, too
        if isinstance(value, bool) or number < least or (most is not None and number > most):
            raise ValueError
        return number

    return check


_score, _tokens = _whole(0, 100), _whole(1)
_LEAST = 100  # tokens; a section has some 300


def _several(check: Callable[[Any], int | None], least: int, most: int | None = None) -> Callable[[Any], Any]:
    """Return a check for one value, or a tuple of so many of them without None."""

    def checked(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return check(value)
        if len(value) < least or (most is not None and len(value) > most) or None in value:
            raise ValueError
        return tuple(map(check, value))

    return checked


def _sections(value: Any) -> Any:
    if isinstance(value, str) and value == "auto":
        return value
    numbers = _several(_whole(_LEAST), 1)(value)
    if isinstance(numbers, tuple) and list(numbers) != sorted(set(numbers)):
        raise ValueError
    return numbers


def _words(value: Any) -> str:
    if not isinstance(value, str) or not any(map(str.isalnum, value)):
        raise ValueError
    return value.strip()


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


def _escalation(value: Any) -> Any:
    if value is None:
        return None
    from selfroute.policies.policy import policy_of  # noqa: PLC0415 - most chains have no policy

    return policy_of(value)


def _start(value: Any) -> Any:
    if isinstance(value, type) or not (callable(value) or hasattr(value, "invoke")):
        return start_of(value)
    if not hasattr(value, "invoke"):
        check_takes("start", value, "inputs")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _one_of(values: Collection[str]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in values:
            raise ValueError
        return value

    return check


def _priced_as(value: Any) -> PricedAs:
    if isinstance(value, Mapping):
        if not value or not value.keys() <= _PRICED:
            raise ValueError
        for field, model in value.items():
            PricedModel.parse(f"priced_as[{field!r}]", model)
        return dict(value)  # the caller may change theirs
    if value is not None:
        PricedModel.parse("priced_as", value)
    return value  # type: ignore[no-any-return]


_CHECKS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "answerability": (_optional(_one_of(get_args(Answerability))), "'text', 'graded' or 'structured', or None"),
    "doubt_below": (
        _several(_score, 2),
        "a whole number from 0 to 100, a pair of them (draft, sections), or None",
    ),
    "stop_below": (
        _several(_score, 2, 2),
        "a whole number from 0 to 100, a pair of them (draft, sections), or None",
    ),
    "sections": (
        _sections,
        f"'auto', a positive number of tokens, {_LEAST} or more, or None, or ascending ones, such as (4_000, 16_000)",
    ),
    "refusal": (_words, "a word or words that a model can write, such as 'unanswerable'"),
    "instructions": (_optional(_words), "a text for the model, such as 'Answer in French.', or None"),
    "not_found": (_optional(_words), "a text to show where nothing was found, or None"),
    "draft_passages": (_whole(1), "a whole number from 1 on, or None for all"),
    "max_documents": (_whole(0), "a whole number from 0 on, or None for all"),
    "escalation": (_escalation, ""),
    "start": (_start, ""),
    "max_context_tokens": (_tokens, "a positive number of tokens, or None"),
    "citations": (_switch, "True or False"),
    "prompt_cache": (_one_of(get_args(PromptCache)), "'auto', 'off', '5m' or '1h'"),
    "priced_as": (
        _priced_as,
        "a name or {'llm': 'provider:name', 'long_context_llm': 'provider:name'}",
    ),
    "reach": (_whole(1), "a whole number from 1 on, or None for all"),
}
"""A check of each option, which says what is wrong itself or raises a bare error, and what the option takes."""


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
    check, what = _CHECKS[name]
    try:
        return check(value)
    except ConfigurationError:
        raise
    except (TypeError, ValueError):
        msg = f"{name} must be {what}; it is {value!r}"
        raise ConfigurationError(msg) from None


def start_of(value: Any) -> Start:
    """Return the first step of a question, checked.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, str) and value in _STARTS:
        return value  # type: ignore[return-value]
    either = "'rag', 'sections', 'auto' or 'long_context', or a callable that returns one of them"
    msg = f"start must be {either}; it is {value!r}"
    raise ConfigurationError(msg)


@described()
class RoutingOptions(BaseModel):
    """The options of routing, which chains, engines and synthesizers take under the same names.

    Attributes:
        answerability: How the model reports whether it can answer. With `"graded"`, each reply before the last step
            begins with numbers from 0 to 100, which are not shown: how likely the whole text holds an answer (the
            prospect), and how likely the answer would stay the same (the confidence). With `"text"`, the model writes
            the answer or the refusal, as in the paper. With `"structured"`, it fills in `answerable` and `answer`,
            through its structured output; each step's reply then comes in one piece, even in a stream. None means
            `"graded"`, or `"text"` if your own `rag_prompt` does not ask for the numbers as `selfroute.prompts.GRADED`
            does.
        sections: The most tokens of the documents' best sections. After a decline or a doubt, the model is first asked
            again with those sections of the documents behind the passages that share the most words with the question.
            Whole documents are read only if that does not settle it. `"auto"` reads twice: 2.6 times the tokens of the
            draft's passages, at least 4,000, then four times as many. Pass a number to read once, a tuple such as
            `(4_000, 16_000)`, or None for no sections. A reading is skipped if it would be more than half of the
            documents, or nothing new.
        max_documents: How many stored documents the last step reads at most, the best of those behind the passages;
            None for all. With 0 the question ends before, so set `sections`, too.
        citations: Whether the result has `citations`: where the answer stands in what the model answered from, found by
            its words and not by a model.
        doubt_below: An answer with a lower confidence is in doubt, and more is read, as after a decline. A tuple, such
            as `(70, 60)`, gives the draft and each reading of sections a bound of its own. None means 70 for the draft,
            60 for the first sections and 50 for what follows. With `"structured"`, setting a bound adds the numbers to
            the fields.
        stop_below: A decline with a lower prospect ends the question, and no document is paid for. A pair has a bound
            for the draft and one for sections. None means 20 and 50.
        escalation: The policy that is asked before each step after the first; None reads more after each decline. Pass
            one of `selfroute.policies`, or a callable, sync or async, that takes a `selfroute.policies.Case` and
            returns a bool or a `Ruling`. After a "no" the answer is the refusal, or the answer that was in doubt.
        instructions: A text of yours before each default prompt, such as `"Answer in French, formally."`.
        not_found: What `answer` holds where no answer was found. None means the model's own words, or the refusal.
        start: The first step: `"rag"`, `"sections"` or `"long_context"` (no draft), `"auto"` (no draft if the passages
            are 60 % of the documents or more, and there is no `escalation`), or a callable, sync or async (in
            LangChain also a runnable), that returns one of them: it takes the inputs of a chain, or the QueryBundle of
            an engine.
        refusal: The word by which the model declines; `"unanswerable"` by default.
        draft_passages: How many of the retrieved passages the draft reads, the first ones; None for all. The others
            only say which documents may hold the answer.
        max_context_tokens: The limit for the text of the documents in the last step, in tokens. What a history, or a
            question or prompt of more than 250 tokens, takes is taken off it, down to a tenth, and off sections. None
            means the window that the model reports, minus room for the prompt and the answer, or no limit if it reports
            none.
        prompt_cache: How to have documents that are read again come from the provider's prompt cache, which costs less.
            With `"auto"`, the default, questions on one document that come at once wait until the first reply begins,
            for at most five seconds. `"5m"` and `"1h"` also mark where the documents end in prompts to Anthropic's
            models, where the first reading costs 1.25 or 2 times the price. `"off"` does neither.
        priced_as: The model whose price counts, as `provider:name`, if the name or address of `llm` is in no price
            list; or a dict, `{"llm": ..., "long_context_llm": ...}`.

    Raises:
        ConfigurationError: A value is not valid, or there is no option of that name (a `ValueError`).
    """

    answerability: Answerability | None = None
    sections: Sections = "auto"
    max_documents: int | None = MAX_DOCUMENTS
    citations: bool = False
    doubt_below: Doubt = None
    stop_below: Stop = None
    escalation: Any = Field(default=None, repr=False, exclude=True)
    instructions: str | None = None
    not_found: str | None = None
    start: Any = "rag"
    refusal: str = "unanswerable"
    draft_passages: int | None = None
    max_context_tokens: int | None = None
    prompt_cache: PromptCache = "auto"
    priced_as: PricedAs = None

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            for detail in error.errors():
                own = detail.get("ctx", {}).get("error")
                if isinstance(own, ConfigurationError):
                    raise own from None
                if detail["type"] == "extra_forbidden":
                    refuse_unknown(str(detail["loc"][0]), known=type(self).model_fields)
                self._refuse_missing(str(detail["loc"][0]), detail["type"])
            raise

    @classmethod
    def _refuse_missing(cls, name: str, problem: str) -> None:
        """Say what to pass for a field that is missing; pydantic's own error follows if this raises none."""

    @field_validator(*Options.__annotations__, mode="before")
    @classmethod
    def _check_option(cls, value: Any, info: ValidationInfo) -> Any:
        return checked(str(info.field_name), value)


DEFAULTS: Mapping[str, Any] = {name: field.default for name, field in RoutingOptions.model_fields.items()}
"""The default of each option."""
