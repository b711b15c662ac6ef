"""Ask a pipeline for the looks of one question: each step once, through the real chain or engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import numbers_of
from selfroute.calls.host import Host
from selfroute.calls.memory import Memory
from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW, Bounds
from selfroute.effects import Answer, Route
from selfroute.policies.case import Case
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import LongContextEstimate
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.hosts import KeptHost, Used
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looks import MOST_DOUBT, SECTIONS, STEPS, Key, Look, Passage, Step, Strategy
from selfroute_workbench.evaluation.replay import GRADED, WITH_SECTIONS, Rule
from selfroute_workbench.evaluation.replies import Replies

Wrap = Callable[[Host[Any]], Any]
"""Wraps the host of a question."""
_TOGETHER: tuple[tuple[Step, ...], ...] = (("rag", "sections"), ("graded", "graded_sections"), ("long_context",))
_DEFAULTS = Bounds(DOUBT_BELOW, STOP_BELOW, sections_below=(DOUBT_BELOW,))


class Pipeline(ABC):
    """A chain or an engine to evaluate; it is called from several threads at once."""

    def __init__(self, parts: Any, kept: Replies, *, name: str | None, has_own_prompt: bool) -> None:
        """Keep the parts of a chain or an engine."""
        self.settings, self.has_own_prompt, self.kept, self.name = parts.settings, has_own_prompt, kept, name
        self._models, self._memory, self._one_model = parts.models, parts.memory, parts.one_model

    @abstractmethod
    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host."""

    @abstractmethod
    def check_numbers(self, options: Mapping[str, Any]) -> None:
        """Check that the first prompt asks for the two numbers that options need.

        Raises:
            ConfigurationError: It does not.
        """

    name_of: Callable[[Any], PricedModel]
    """Returns the name that a model reports."""
    asker_with: Callable[..., Asker]
    """Returns what sends prompts to a model and keeps its replies; the arguments are those of `Asker`."""

    def models(self) -> Mapping[Route, PricedModel]:
        """Return the names by which the models of the steps are known."""
        return {step: self.name_of(model) for step, model in self._models.items()}

    def priced(self) -> Mapping[Route, PricedModel]:
        """Return the models that those of the steps are priced as."""
        declared = partial(self.settings.declared_model, shared=self._one_model)
        return {step: declared(step) or model for step, model in self.models().items()}

    def judge(self, priced_as: PricedModel | None = None, *, title: str | None = None) -> ModelJudge:
        """Return the model that reads whole documents as a judge."""
        llm, priced_as = self._models["long_context"], priced_as or self.priced()["long_context"]
        return ModelJudge(self.asker_with(llm, self.kept, name=self.name, priced_as=priced_as), title=title)

    def _trial_memory(self) -> Memory:
        """Return the memory of one call: it learns nothing, so that no estimate depends on earlier questions."""
        return Memory(self.name_of, estimate=LongContextEstimate(calibrates=False), said=self._memory.said)


def steps_of(strategies: Iterable[Strategy]) -> tuple[Step, ...]:
    """Return the looks that strategies need, in the order in which they are asked."""
    needed = {step for strategy in strategies for step in Rule(strategy).steps()}
    return tuple(step for step in STEPS if step in needed)


def check(pipeline: Pipeline, steps: Sequence[Step]) -> None:
    """Check, before anything is paid for, that a pipeline can be asked for these looks.

    Raises:
        ConfigurationError: Its replies are kept, and a model does not report its name; there is a cap on the cost, and
            no price of a model is known; or its own first prompt does not ask for two numbers.
    """
    for step, model in pipeline.models().items():
        pipeline.kept.identity(model, pipeline.name, step=step)
    for priced in pipeline.priced().values():
        pipeline.kept.spending.check(partial(_price, priced))
    if "graded" in steps:
        pipeline.check_numbers(_options(pipeline, ("graded",)))


def _price(model: PricedModel, output: int) -> Cost:
    return cost_of(model, StepUsage(1, output))


def together(steps: Iterable[Step]) -> Iterator[tuple[Step, ...]]:
    """Yield the steps that one call asks for: a draft with the sections after it, or the documents."""
    wanted = set(steps)
    for some in _TOGETHER:
        if asked := tuple(step for step in some if step in wanted):
            yield asked


def look(pipeline: Pipeline, key: Key, given: Any, steps: tuple[Step, ...]) -> list[Look]:
    """Ask for looks at one question, in one call; they are not scored yet.

    Sections are asked for after every draft that some bound could doubt.
    """
    options, hosts = _options(pipeline, steps), list[KeptHost]()

    def wrap(host: Host[Any]) -> KeptHost:
        hosts.append(KeptHost(host, pipeline.kept, question=key, name=pipeline.name))
        return hosts[-1]

    answer = pipeline.ask(options, given, wrap)
    host = hosts[-1]  # the last attempt, if there were several
    made = partial(Look, dataset=key[0], id=key[1], score=0.0)
    if steps == ("long_context",):
        declined, paid = not answer.answerable, _paid(host.replies)
        return [made(step="long_context", answer=answer.text, declined=declined, cut=host.cut, **paid)]
    numbered, said = options["doubt_below"] is not None, partial(_said, refusal=pipeline.settings.refusal)
    drafts = [used for used in host.replies if used.step == "rag"][-1:]
    sections = [used for used in host.replies if used.step == "sections"]
    return [
        made(step=steps[0], passages=_passages(host, answer), **said(drafts, numbers=2 * numbered)),
        *(made(step=steps[-1], rung=rung, **said([used], numbers=int(numbered))) for rung, used in enumerate(sections)),
    ]


def _options(pipeline: Pipeline, steps: Sequence[Step]) -> dict[str, Any]:
    """Return the options with which a chain or engine takes some steps, and no others.

    Policies and other first steps are left out, and documents may be read even if the pipeline itself reads none. Its
    own sections hold, if it has any.
    """
    settings = pipeline.settings
    how = "structured" if settings.structured else "text"
    options: dict[str, Any] = {
        "escalation": None,
        "start": "rag",
        "sections": None,
        "max_documents": settings.most_compared,
        "answerability": how,
        "doubt_below": None,
        "stop_below": None,
    }
    if steps == ("long_context",):
        return {**options, "start": "long_context"}
    if steps[-1] in WITH_SECTIONS:
        options |= {"sections": settings.sections or SECTIONS, "escalation": _is_sections}
    else:
        options["max_documents"] = 0
    if steps[0] in GRADED:
        how = "structured" if settings.structured else "graded"
        return {**options, "answerability": how, "doubt_below": MOST_DOUBT, "stop_below": 0}
    if settings.answerability == "graded" and pipeline.has_own_prompt:  # it asks for numbers, whatever the strategy
        return {**options, "answerability": "graded", "doubt_below": 0, "stop_below": 0}
    return options


def _is_sections(case: Case) -> bool:
    return case.step == "sections"


def settings_of(pipeline: Pipeline, strategies: Sequence[Strategy]) -> dict[str, Any]:
    """Return what strategies are tried with, for the report."""
    settings, about = pipeline.settings, dict[str, Any]()
    bounds, model = settings.bounds or _DEFAULTS, pipeline.models()["rag"]
    if model.name:
        about["model"] = model.title
    if set(GRADED) & set(strategies):
        about["doubt_below"] = [bounds.doubt_below, *bounds.sections_below]
        about["stop_below"] = bounds.stop_below
    if set(WITH_SECTIONS) & set(strategies):
        about["sections"] = settings.sections or SECTIONS
    return about


def _passages(host: KeptHost, answer: Answer) -> tuple[Passage, ...]:
    """Return the passages that the draft read."""
    scores = [getattr(one, "score", None) or host.place_of(one).metadata.get("score") for one in answer.passages]
    return tuple(
        Passage(host.text_of(one), score if isinstance(score, float) else None)
        for one, score in zip(answer.passages, scores, strict=True)
    )


def _paid(replies: Sequence[Used]) -> dict[str, Any]:
    """Return what replies took, as fields of a look."""
    usage = reduce(add, [used.usage for used in replies]) if replies else StepUsage(0, 0, cost=FREE)
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost.as_text(),
        "seconds": sum(used.reply.seconds for used in replies),
    }


def _said(replies: Sequence[Used], *, numbers: int, refusal: str) -> dict[str, Any]:
    """Judge a reply without any bounds; return what it says, as fields of a look."""
    if not replies:
        return {"answer": "", "declined": True, **_paid(())}
    reply = replies[0].reply
    gate = GradedGate(refusal, numbers=numbers) if numbers else Gate(refusal)
    shown = gate.feed(reply.text) + gate.end(reply.ending.kind)
    verdict = gate.verdict
    if verdict is None:
        return {"answer": reply.text, "declined": True, **_paid(replies)}
    if verdict.declined:  # in its own words
        shown = numbers_of(reply.text, numbers)[1] if numbers else reply.text
    return {
        "answer": shown,
        "declined": verdict.declined,
        "prospect": verdict.prospect,
        "confidence": verdict.confidence,
        **_paid(replies),
    }
