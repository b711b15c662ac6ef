"""What each strategy is, as options of a chain or engine, and the looks that its replies are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import numbers_of
from selfroute.calls.memory import Memory
from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW, Bounds, Settings
from selfroute.effects import Route
from selfroute.evaluation.asking.replies import Reply
from selfroute.evaluation.records import GRADED, MOST_DOUBT, SECTIONS, WITH_SECTIONS, LookStep, Strategy
from selfroute.policies.calibration import tokens_text
from selfroute.policies.case import Case
from selfroute.usage.counts import NOTHING, StepUsage
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import LongContextEstimate

Used = Mapping[Route, list[Reply]]
"""The replies that were used, by the model: that of the first step answers from sections, too."""
_DEFAULTS = Bounds(DOUBT_BELOW, STOP_BELOW, sections_below=(DOUBT_BELOW,))


@dataclass(frozen=True, slots=True)
class StepReply:
    """The reply of a step, before it is scored; the attributes are those of `Look`."""

    step: LookStep
    answer: str
    declined: bool
    prospect: int | None
    confidence: int | None
    usage: StepUsage

    @property
    def may_be_doubted(self) -> bool:
        """Whether the question would go on at some bounds."""
        return self.declined or (self.confidence is not None and self.confidence < MOST_DOUBT)


def options_of(strategy: Strategy, settings: Settings, *, own_prompt: bool) -> dict[str, Any]:
    """Return the options with which a chain or engine follows a strategy.

    Every strategy is a rule of its own, so policies and other first steps are left out. Bounds and sections of the
    chain's own hold where a strategy has some. All but `"rag"` may read documents, even if the chain itself reads none.

    Args:
        strategy: The strategy.
        settings: The options of the chain or engine.
        own_prompt: Whether its first prompt is the user's own. If that asks for two numbers, it does so in each
            strategy; those without bounds pass over them.
    """
    bounds = settings.bounds or _DEFAULTS
    options: dict[str, Any] = {"escalation": None, "start": "rag", "sections": None}
    options["max_documents"] = settings.most_compared
    if strategy in WITH_SECTIONS:
        options["sections"] = settings.sections or SECTIONS
    how = "structured" if settings.structured else "graded"
    if strategy in GRADED:
        both = (bounds.doubt_below, *bounds.sections_below)
        doubt = both if strategy in WITH_SECTIONS else bounds.doubt_below
        return {**options, "answerability": how, "doubt_below": doubt, "stop_below": bounds.stop_below}
    if settings.answerability == "graded" and own_prompt:
        return {**options, "answerability": how, "doubt_below": 0, "stop_below": 0}
    how = "structured" if settings.structured else "text"
    return {**options, "answerability": how, "doubt_below": None, "stop_below": None}


def only_sections(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by which sections follow each draft that may be doubted, but no whole document does."""
    return {**options, "doubt_below": MOST_DOUBT, "stop_below": 0, "escalation": _is_sections}


def _is_sections(case: Case) -> bool:
    return case.step == "sections"


def settings_of(
    strategies: Sequence[Strategy], settings: Settings, *, model: PricedModel | None = None
) -> dict[str, Any]:
    """Return what the strategies were tried with, for the report.

    Args:
        strategies: The strategies.
        settings: The options of the chain or engine.
        model: The model of the first step, if its name should be among them.
    """
    bounds = settings.bounds or _DEFAULTS
    about: dict[str, Any] = {}
    if model and model.name:
        about["model"] = ":".join(filter(None, (model.provider, model.name)))
    if set(GRADED) & set(strategies):
        about["doubt_below"], about["stop_below"] = bounds.doubt_below, bounds.stop_below
    if set(WITH_SECTIONS) & set(strategies):
        about["sections"] = settings.sections or SECTIONS
    if "graded_sections" in strategies:
        about["sections_below"] = tokens_text(bounds.sections_below)
    return about


def trial_memory(look_up: Callable[[Any], PricedModel], memory: Memory) -> Memory:
    """Return the memory of one task: it learns nothing, so that no estimate depends on earlier questions.

    Args:
        look_up: Returns the name of a model.
        memory: That of the chain or engine, which says each thing once for all tasks.
    """
    return Memory(look_up, estimate=LongContextEstimate(calibrates=False), said=memory.said)


def numbered(options: Mapping[str, Any]) -> bool:
    """Return whether the steps before whole documents are asked for numbers."""
    return options["doubt_below"] is not None


def looks_of(
    strategy: Strategy, replies: Sequence[Reply], usage: Mapping[str, Any], *, graded: bool, refusal: str
) -> list[StepReply]:
    """Return the looks before whole documents: the draft, and the reply to sections if there was one.

    Args:
        strategy: The strategy.
        replies: The replies of the first step's model, in order; those of an earlier attempt come first.
        usage: The usage of the last attempt.
        graded: Whether they begin with numbers.
        refusal: The word that declines.
    """
    steps: tuple[LookStep, LookStep] = ("graded", "graded_sections") if strategy in GRADED else ("rag", "sections")
    draft, sections = _apart(replies, usage)
    looks = [StepReply(steps[0], "", True, None, None, NOTHING)]  # nothing was retrieved
    if draft:
        looks = [_read(steps[0], draft, numbers=2 if graded else 0, refusal=refusal)]
    if sections:
        last = _read(steps[1], sections[-1], numbers=1 if graded else 0, refusal=refusal)
        looks.append(replace(last, usage=_sum(sections)))
    return looks


def _apart(replies: Sequence[Reply], usage: Mapping[str, Any]) -> tuple[Reply | None, Sequence[Reply]]:
    """Return the draft, and the replies to sections: the last ones, which together took what that step took."""
    at, left = len(replies), usage["sections"]["input_tokens"] if usage["sections"] else 0
    while at and left > 0:
        at -= 1
        left -= replies[at].input_tokens
    return replies[at - 1] if at and usage["rag"] else None, replies[at:]


def _sum(replies: Sequence[Reply]) -> StepUsage:
    return reduce(add, (reply.usage() for reply in replies))


def nothing_used() -> dict[Route, list[Reply]]:
    """Return where the models of the two steps note their replies."""
    return {"rag": [], "long_context": []}


def draft_in(replies: Sequence[Reply], usage: Mapping[str, Any]) -> str | None:
    """Return the draft among the replies of the first step's model; the arguments are those of `looks_of`."""
    draft, _ = _apart(replies, usage)
    return draft.text if draft else None


def whole_of(answer: str, replies: Sequence[Reply], *, declined: bool) -> list[StepReply]:
    """Return the look over whole documents, if the model was asked for one."""
    return [StepReply("long_context", answer, declined, None, None, _sum(replies))] if replies else []


def _read(step: LookStep, reply: Reply, *, numbers: int, refusal: str) -> StepReply:
    """Judge a reply without any bounds.

    Args:
        step: The step.
        reply: The reply.
        numbers: How many numbers it begins with, as in `Form`.
        refusal: The word that declines.
    """
    gate = GradedGate(refusal, numbers=numbers) if numbers else Gate(refusal)
    shown = gate.feed(reply.text) + gate.end(reply.ending.kind)
    verdict = gate.verdict
    if verdict is None or verdict.declined:
        own_words = numbers_of(reply.text, numbers)[1] if numbers else reply.text
        scores = (verdict.prospect, verdict.confidence) if verdict else (None, None)
        return StepReply(step, own_words, True, *scores, reply.usage())
    return StepReply(step, shown, False, verdict.prospect, verdict.confidence, reply.usage())
