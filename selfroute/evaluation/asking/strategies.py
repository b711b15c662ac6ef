"""What each strategy is, as options of a chain or engine, and the looks that its replies are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import numbers_of
from selfroute.evaluation.asking.replies import Reply
from selfroute.evaluation.records import GRADED, MOST_DOUBT, WIDENED, LookStep, Strategy
from selfroute.flow import Route
from selfroute.memory import Memory
from selfroute.policies.case import Case
from selfroute.settings import DOUBT_BELOW, STOP_BELOW, WIDTH, Settings
from selfroute.usage.counts import NOTHING, StepUsage
from selfroute.usage.prices import PricedModel
from selfroute.usage.savings import LongContextEstimate

Used = Mapping[Route, list[Reply]]
"""The replies that were used, by the model: that of the first step answers from more passages, too."""


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

    Every strategy is a rule of its own, so policies and other first steps are left out. Bounds and a width of the
    chain's own hold where a strategy has some.

    Args:
        strategy: The strategy.
        settings: The options of the chain or engine.
        own_prompt: Whether its first prompt is the user's own. If that asks for two numbers, it does so in each
            strategy; those without bounds pass over them.
    """
    bounds = settings.bounds
    options: dict[str, Any] = {"escalation": None, "start": "rag", "widen": None}
    if strategy in WIDENED:
        options["widen"] = width_of(settings)
    how = "structured" if settings.structured else "graded"
    if strategy in GRADED:
        doubt, stop = (bounds.doubt_below, bounds.stop_below) if bounds else (DOUBT_BELOW, STOP_BELOW)
        return {**options, "answerability": how, "doubt_below": doubt, "stop_below": stop}
    if settings.answerability == "graded" and own_prompt:
        return {**options, "answerability": how, "doubt_below": 0, "stop_below": 0}
    how = "structured" if settings.structured else "text"
    return {**options, "answerability": how, "doubt_below": None, "stop_below": None}


def width_of(settings: Settings) -> Any:
    """Return the width of the wider look: a number of passages, or a retriever of its own."""
    return WIDTH if settings.widen is None else settings.widen


def looking_wider(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by which a wider look follows each draft that may be doubted, but no document is read."""
    return {**options, "doubt_below": MOST_DOUBT, "stop_below": 0, "escalation": _only_wider}


def _only_wider(case: Case) -> bool:
    return case.step == "wider"


def settings_of(
    strategies: Sequence[Strategy], settings: Settings, *, model: PricedModel | None = None
) -> dict[str, Any]:
    """Return what the strategies were tried with, for the report.

    Args:
        strategies: The strategies.
        settings: The options of the chain or engine.
        model: The model of the first step, if its name should be among them.
    """
    bounds, width = settings.bounds, width_of(settings)
    about: dict[str, Any] = {}
    if model and model.name:
        about["model"] = ":".join(filter(None, (model.provider, model.name)))
    if set(GRADED) & set(strategies):
        about["doubt_below"] = bounds.doubt_below if bounds else DOUBT_BELOW
        about["stop_below"] = bounds.stop_below if bounds else STOP_BELOW
    if set(WIDENED) & set(strategies):
        about["widen"] = width if isinstance(width, int) else type(width).__name__
    return about


def trial_memory(look_up: Callable[[Any], PricedModel], memory: Memory) -> Memory:
    """Return the memory of one task: it learns nothing, so that no estimate depends on earlier questions.

    Args:
        look_up: Returns the name of a model.
        memory: That of the chain or engine, which says each thing once for all tasks.
    """
    return Memory(look_up, estimate=LongContextEstimate(calibrates=False), said=memory.said)


def numbered(options: Mapping[str, Any]) -> bool:
    """Return whether the first steps are asked for two numbers."""
    return options["doubt_below"] is not None


def looks_of(
    strategy: Strategy, replies: Sequence[Reply], *, wider: bool, graded: bool, refusal: str
) -> list[StepReply]:
    """Return the looks over passages: the draft, and the wider look if there was one.

    Args:
        strategy: The strategy.
        replies: The replies to prompts with passages, in order; those of an earlier attempt come first.
        wider: Whether the last of them is that of a wider look.
        graded: Whether they begin with two numbers.
        refusal: The word that declines.
    """
    steps: tuple[LookStep, LookStep] = ("graded", "graded_wider") if strategy in GRADED else ("rag", "wider")
    if not replies:  # nothing was retrieved
        return [StepReply(steps[0], "", True, None, None, NOTHING)]
    last = replies[-2:] if wider else replies[-1:]
    return [_read(step, reply, graded=graded, refusal=refusal) for step, reply in zip(steps, last, strict=False)]


def nothing_used() -> dict[Route, list[Reply]]:
    """Return where the models of the two steps note their replies."""
    return {"rag": [], "long_context": []}


def draft_in(replies: Sequence[Reply], usage: Mapping[str, Any]) -> str | None:
    """Return the draft among the replies to prompts with passages; a wider look's comes after it."""
    before = replies[:-1] if usage["wider"] else replies
    return before[-1].text if before else None


def whole_of(answer: str, replies: Sequence[Reply], *, declined: bool) -> list[StepReply]:
    """Return the look over whole documents, if the model was asked for one."""
    if not replies:
        return []
    usage = reduce(add, (reply.usage() for reply in replies))
    return [StepReply("long_context", answer, declined, None, None, usage)]


def _read(step: LookStep, reply: Reply, *, graded: bool, refusal: str) -> StepReply:
    """Judge a reply without any bounds."""
    gate = GradedGate(refusal) if graded else Gate(refusal)
    shown = gate.feed(reply.text) + gate.end(reply.ending.kind)
    verdict = gate.verdict
    if verdict is None or verdict.declined:
        own_words = numbers_of(reply.text)[1] if graded else reply.text
        numbers = (verdict.prospect, verdict.confidence) if verdict else (None, None)
        return StepReply(step, own_words, True, *numbers, reply.usage())
    return StepReply(step, shown, False, verdict.prospect, verdict.confidence, reply.usage())
