"""The options of a chain or engine, as the fields of `Settings`: each is typed, checked and described in one place.

`calls/plan.py` says what they mean for a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from selfroute.answerability.structured import Answerability
from selfroute.arguments import check_takes, refuse_unknown
from selfroute.calls.caching import PromptCache
from selfroute.calls.option_checks import Takes, one_of, several, switch, whole, words
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
_LEAST_SECTIONS = 100  # tokens; a section has some 300


class Options(TypedDict, total=False):
    """The fields of `Settings` as keyword arguments, for type checkers."""

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


def _sections(value: Any) -> Any:
    if isinstance(value, str) and value == "auto":
        return value
    numbers = several(whole(_LEAST_SECTIONS), 1)(value)
    if isinstance(numbers, tuple) and list(numbers) != sorted(set(numbers)):
        raise ValueError
    return numbers


def _escalation(value: Any) -> Any:
    from selfroute.policies.policy import policy_of  # noqa: PLC0415 - most chains have no policy

    return policy_of(value)


def _start(value: Any) -> Any:
    if isinstance(value, type) or not (callable(value) or hasattr(value, "invoke")):
        return start_of(value)
    if not hasattr(value, "invoke"):
        check_takes("start", value, "inputs")
    return value


def _priced_as(value: Any) -> PricedAs:
    if not isinstance(value, Mapping):
        PricedModel.parse("priced_as", value)
        return value  # type: ignore[no-any-return]
    if not value or not value.keys() <= {"llm", "long_context_llm"}:
        raise ValueError
    for field, model in value.items():
        PricedModel.parse(f"priced_as[{field!r}]", model)
    return dict(value)  # the caller may change theirs


_ANSWERABILITY = Takes("'text', 'graded' or 'structured', or None", one_of(get_args(Answerability)), optional=True)
_SECTIONS = Takes(
    f"'auto', a positive number of tokens, {_LEAST_SECTIONS} or more, or None, or ascending ones, such as "
    "(4_000, 16_000)",
    _sections,
    optional=True,
)
_DOCUMENTS = Takes("a whole number from 0 on, or None for all", whole(0), optional=True)
PASSAGES = Takes("a whole number from 1 on, or None for all", whole(1), optional=True)
_SCORES = "a whole number from 0 to 100, a pair of them (draft, sections), or None"
_DOUBT = Takes(_SCORES, several(whole(0, 100), 2), optional=True)
_STOP = Takes(_SCORES, several(whole(0, 100), 2, 2), optional=True)
_POLICY = Takes("", _escalation, optional=True)
_INSTRUCTIONS = Takes("a text for the model, such as 'Answer in French.', or None", words, optional=True)
_NOT_FOUND = Takes("a text to show where nothing was found, or None", words, optional=True)
_REFUSAL = Takes("a word or words that a model can write, such as 'unanswerable'", words)
_TOKENS = Takes("a positive number of tokens, or None", whole(1), optional=True)
_CACHE = Takes("'auto', 'off', '5m' or '1h'", one_of(get_args(PromptCache)))
_PRICED = Takes("a name or {'llm': 'provider:name', 'long_context_llm': 'provider:name'}", _priced_as, optional=True)


class Settings(BaseModel):
    """The options, which chains, engines and synthesizers take under the same names.

    Raises:
        ConfigurationError: A value is not valid, or does not go with another one; or there is no option of that name
            (a `ValueError`).
    """

    answerability: Annotated[Answerability | None, BeforeValidator(_ANSWERABILITY)] = None
    """How the model reports whether it can answer. With `"graded"`, each reply before the last step begins with numbers
    from 0 to 100, which are not shown: how likely the whole text holds an answer (the prospect), and how likely the
    answer would stay the same (the confidence). With `"text"`, the model writes the answer or the refusal, as in the
    paper. With `"structured"`, it fills in `answerable` and `answer`, through its structured output; each step's reply
    then comes in one piece, even in a stream. None means `"graded"`, or `"text"` if your own `rag_prompt` does not ask
    for the numbers as `selfroute.prompts.GRADED` does."""

    sections: Annotated[Sections, BeforeValidator(_SECTIONS)] = "auto"
    """The most tokens of the documents' best sections. After a decline or a doubt, the model is first asked again with
    those sections of the documents behind the passages that share the most words with the question. Whole documents are
    read only if that does not settle it. `"auto"` reads twice: 2.6 times the tokens of the draft's passages, at least
    4,000, then four times as many. Pass a number to read once, a tuple such as `(4_000, 16_000)`, or None for no
    sections. A reading is skipped if it would be more than half of the documents, or nothing new."""

    max_documents: Annotated[int | None, BeforeValidator(_DOCUMENTS)] = MAX_DOCUMENTS
    """How many stored documents the last step reads at most, the best of those behind the passages; None for all. With
    0 the question ends before, so set `sections`, too."""

    citations: Annotated[bool, BeforeValidator(Takes("True or False", switch))] = False
    """Whether the result has `citations`: where the answer stands in what the model answered from, found by its words
    and not by a model."""

    doubt_below: Annotated[Doubt, BeforeValidator(_DOUBT)] = None
    """An answer with a lower confidence is in doubt, and more is read, as after a decline. A tuple, such as `(70, 60)`,
    gives the draft and each reading of sections a bound of its own. None means 70 for the draft, 60 for the first
    sections and 50 for what follows. With `"structured"`, setting a bound adds the numbers to the fields."""

    stop_below: Annotated[Stop, BeforeValidator(_STOP)] = None
    """A decline with a lower prospect ends the question, and no document is paid for. A pair has a bound for the draft
    and one for sections. None means 20 and 50."""

    escalation: Annotated[Any, BeforeValidator(_POLICY)] = Field(default=None, repr=False, exclude=True)
    """The policy that is asked before each step after the first; None reads more after each decline. Pass one of
    `selfroute.policies`, or a callable, sync or async, that takes a `selfroute.policies.Case` and returns a bool or a
    `Ruling`. After a "no" the answer is the refusal, or the answer that was in doubt."""

    instructions: Annotated[str | None, BeforeValidator(_INSTRUCTIONS)] = None
    """A text of yours before each default prompt, such as `"Answer in French, formally."`."""

    not_found: Annotated[str | None, BeforeValidator(_NOT_FOUND)] = None
    """What `answer` holds where no answer was found. None means the model's own words, or the refusal."""

    start: Annotated[Any, BeforeValidator(Takes("", _start))] = "rag"
    """The first step: `"rag"`, `"sections"` or `"long_context"` (no draft), `"auto"` (no draft if the passages are 60 %
    of the documents or more, and there is no `escalation`), or a callable, sync or async (in LangChain also a
    runnable), that returns one of them: it takes the inputs of a chain, or the QueryBundle of an engine."""

    refusal: Annotated[str, BeforeValidator(_REFUSAL)] = "unanswerable"
    """The word by which the model declines; `"unanswerable"` by default."""

    draft_passages: Annotated[int | None, BeforeValidator(PASSAGES)] = None
    """How many of the retrieved passages the draft reads, the first ones; None for all. The others only say which
    documents may hold the answer."""

    max_context_tokens: Annotated[int | None, BeforeValidator(_TOKENS)] = None
    """The limit for the text of the documents in the last step, in tokens. What a history, or a question or prompt of
    more than 250 tokens, takes is taken off it, down to a tenth, and off sections. None means the window that the model
    reports, minus room for the prompt and the answer, or no limit if it reports none."""

    prompt_cache: Annotated[PromptCache, BeforeValidator(_CACHE)] = "auto"
    """How to have documents that are read again come from the provider's prompt cache, which costs less. With `"auto"`,
    the default, questions on one document that come at once wait until the first reply begins, for at most five
    seconds. `"5m"` and `"1h"` also mark where the documents end in prompts to Anthropic's models, where the first
    reading costs 1.25 or 2 times the price. `"off"` does neither."""

    priced_as: Annotated[PricedAs, BeforeValidator(_PRICED)] = None
    """The model whose price counts, as `provider:name`, if the name or address of `llm` is in no price list; or a dict,
    `{"llm": ..., "long_context_llm": ...}`."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        defer_build=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

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
                if detail["type"] == "missing":
                    self._refuse_missing(str(detail["loc"][0]))
            raise

    @classmethod
    def _refuse_missing(cls, name: str) -> None:
        """Say what to pass for a field that is missing; pydantic's own error follows if this raises none."""

    @model_validator(mode="after")
    def _check_together(self) -> Settings:
        if self.answerability == "text" and not self.doubt_below is self.stop_below is None:
            msg = "doubt_below and stop_below need the model's numbers: set answerability='graded' or 'structured'"
            raise ConfigurationError(msg)
        if isinstance(self.doubt_below, tuple) and len(self.doubt_below) > 1 + rungs_of(self.sections):
            msg = (
                f"doubt_below={self.doubt_below} has more bounds than there are steps: one for the draft, and one for "
                f"each reading of sections; set sections='auto' or sections=4_000, or pass one number"
            )
            raise ConfigurationError(msg)
        if isinstance(self.start, str):
            self._check_first(start_of(self.start))
        return self

    def _check_first(self, start: Start) -> None:
        """Check that the first step of a question may be taken.

        Raises:
            ConfigurationError: It reads documents where `max_documents` is 0, or sections where `sections` is None.
        """
        if start == "sections" and self.sections is None:
            msg = "start='sections' reads the sections of documents: set sections='auto' or sections=4_000, too"
            raise ConfigurationError(msg)
        if start == "long_context" and self.max_documents == 0:
            msg = "start='long_context' reads documents, and max_documents=0 forbids it: leave out one of them"
            raise ConfigurationError(msg)


DEFAULTS = Settings.model_construct()
"""The default of each option."""


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
    return Settings.model_fields[name].metadata[0].func.checked(name, value)


def start_of(value: Any) -> Start:
    """Return the first step of a question, checked.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, str) and value in _STARTS:
        return value  # type: ignore[return-value]
    msg = (
        "start must be 'rag', 'sections', 'auto' or 'long_context', or a callable that returns one of them; it is "
        f"{value!r}"
    )
    raise ConfigurationError(msg)


def rungs_of(sections: Sections) -> int:
    """Return how many readings of sections there are."""
    if sections == "auto":
        return 2
    return len(sections) if isinstance(sections, tuple) else int(sections is not None)
