"""What the settings of a chain or engine mean for its questions: which steps there are, and what each may read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any, TypeVar

from pydantic import ConfigDict

from selfroute.answerability.structured import Form
from selfroute.calls.settings import MAX_DOCUMENTS, PASSAGES, Sections, Settings, rungs_of
from selfroute.documents.window import room_in
from selfroute.effects import Route, Start
from selfroute.errors import ConfigurationError
from selfroute.prompts import ASKS_FOR_NUMBERS
from selfroute.usage.prices import PricedModel

P = TypeVar("P")

DOUBT_BELOW, STOP_BELOW = (70, 60, 50), (20, 50)
"""The bounds of graded answerability: of the draft, and of the readings of sections, the last for all that follow."""
LEAST_SECTIONS, MORE_THAN_DRAFT, MORE_THAN_BEFORE = 4_000, 2.6, 4
"""The tokens of sections by default: so many at least; times those of the draft; and of each further reading."""
REACH = 20
"""The passages that point to documents for sections: behind them stands the right one in 94 % of cases."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the numbers that a reply begins with.

    Attributes:
        doubt_below: A draft with a lower confidence is in doubt.
        stop_below: A decline of a draft with a lower prospect ends the question.
        sections_below: For each reading of sections, the confidence below which its answer is in doubt; the last one
            holds for those that come after.
        sections_stop: A refusal of sections with a lower prospect ends the question.
    """

    doubt_below: int
    stop_below: int
    sections_below: tuple[int, ...]
    sections_stop: int


class Plan(Settings):
    """The settings of one chain or engine, and what follows from them.

    Raises:
        ConfigurationError: As for `Settings`.
    """

    model_config = ConfigDict(frozen=True)

    degraded: bool = False
    """Whether replies are judged as text because the user's prompt asks for no numbers."""

    @cached_property
    def bounds(self) -> Bounds | None:
        """The bounds of the numbers that the first steps are asked for; None if they are not asked for numbers."""
        doubt, stop = self.doubt_below, self.stop_below
        if self.answerability == "text" or (self.answerability == "structured" and doubt is stop is None):
            return None
        draft, *sections = _each(DOUBT_BELOW if doubt is None else doubt)
        stop, sections_stop = _each(STOP_BELOW if stop is None else stop)
        return Bounds(draft, stop, tuple(sections), sections_stop)

    @cached_property
    def words(self) -> dict[str, str]:
        """The variables of prompts that no input changes."""
        own = {} if self.instructions is None else {"instructions": self.instructions}
        return {"refusal": self.refusal, **own}

    def ladder(self, start: Start) -> tuple[Route, ...]:
        """Return the steps of a question, the cheapest first.

        Raises:
            ConfigurationError: The question starts with documents, which it may not read, or with sections, and
                there are none.
        """
        if start in ("sections", "long_context"):
            self._check_first(start)
        if start == "long_context":
            return ("long_context",)
        sections: list[Route] = ["sections"] * rungs_of(self.sections)
        draft: tuple[Route, ...] = () if start == "sections" else ("rag",)
        return (*draft, *sections) if self.max_documents == 0 else (*draft, *sections, "long_context")

    @property
    def most_compared(self) -> int | None:
        """How many documents always reading them would read, with which `usage` compares; None for all."""
        return MAX_DOCUMENTS if self.max_documents == 0 else self.max_documents

    @property
    def rungs(self) -> int:
        """How many readings of sections there are."""
        return rungs_of(self.sections)

    def section_tokens(self, rung: int, *, drafted: int) -> int:
        """Return the most tokens of a reading of sections.

        Args:
            rung: Its number, from 0.
            drafted: The tokens of the passages that the draft reads.
        """
        if self.sections == "auto":
            return int(max(LEAST_SECTIONS, round(drafted * MORE_THAN_DRAFT)) * MORE_THAN_BEFORE**rung)
        several: Sequence[int | None] = self.sections if isinstance(self.sections, tuple) else (self.sections,)
        return several[rung] or 0

    @cached_property
    def as_graded(self) -> Plan:
        """The same plan for a prompt that asks for numbers."""
        return self._resolved(answerability="graded")

    @cached_property
    def as_text(self) -> Plan:
        """The same plan for a prompt that asks for no numbers.

        Raises:
            ConfigurationError: There are bounds of the numbers.
        """
        if not self.doubt_below is self.stop_below is None:
            msg = f"doubt_below and stop_below need {ASKS_FOR_NUMBERS.format('rag_prompt')}; or leave them out"
            raise ConfigurationError(msg)
        return self._resolved(answerability="text", degraded=True)

    def _resolved(self, **changes: Any) -> Plan:
        made = self.model_copy(update=changes)
        vars(made).pop("bounds", None)  # which are cached, and may be others now
        return made

    @property
    def structured(self) -> bool:
        """Whether the model fills in a report instead of writing text."""
        return self.answerability == "structured"

    def form_of(self, step: Route) -> Form | None:
        """Return the report that the model of a step fills in; None if it writes text."""
        return Form(graded=self.bounds is not None and step != "long_context") if self.structured else None

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
        """Return how many tokens of documents the last step may be given after a short question; None for no limit.

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


def plan_of(settings: Settings) -> Plan:
    """Return the plan for settings, or the plan that they are."""
    return settings if isinstance(settings, Plan) else Plan(**vars(settings))


def _each(bound: int | tuple[int, ...]) -> tuple[int, ...]:
    return bound if isinstance(bound, tuple) else (bound, bound)


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
    reach = PASSAGES.checked("reach", reach)
    if reach is not None and reach < k:
        msg = f"reach={reach} is less than the {k} passages that the draft reads: leave it out, or pass more"
        raise ConfigurationError(msg)
    return reach or (max(REACH, k) if sections else k)
