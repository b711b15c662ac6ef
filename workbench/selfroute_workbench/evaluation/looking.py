"""Ask a pipeline a question as each strategy would: through the real chain or engine, with replies that are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import numbers_of
from selfroute.calls.host import Host
from selfroute.calls.memory import Memory
from selfroute.calls.settings import DEFAULTS
from selfroute.effects import Answer, Route
from selfroute.paper import PAPER
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import LongContextEstimate
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.hosts import KeptHost, Used
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looks import MOST_DOUBT, STRATEGIES, TRIED, Key, Look, Passage, Strategy
from selfroute_workbench.evaluation.replies import Replies

Wrap = Callable[[Host[Any]], Any]
"""Wraps the host of a question."""
WIDE = 20
"""The passages of the draft that `rag_20` reads."""
_STEERS = ("answerability", "sections", "max_documents", "doubt_below", "stop_below", "escalation", "start")


class Pipeline(ABC):
    """A chain or an engine to evaluate; it is called from several threads at once."""

    def __init__(self, parts: Any, kept: Replies, *, name: str | None, has_own_prompt: bool) -> None:
        """Keep the parts of a chain or an engine."""
        self.plan, self.has_own_prompt, self.kept, self.name = parts.plan, has_own_prompt, kept, name
        self._models, self._memory, self._one_model = parts.models, parts.memory, parts.one_model

    @abstractmethod
    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host."""

    @cached_property
    @abstractmethod
    def wide(self) -> Pipeline | None:
        """The same over a retriever that finds at least `WIDE` passages; None if it cannot be told to."""

    name_of: Callable[[Any], PricedModel]
    """Returns the name that a model reports."""
    asker_with: Callable[..., Asker]
    """Returns what sends prompts to a model and keeps its replies; the arguments are those of `Asker`."""

    @property
    def strategies(self) -> list[Strategy]:
        """The strategies that can be compared with this pipeline."""
        return [each for each in STRATEGIES if each != "rag_20" or self.wide]

    @property
    def takes_bounds(self) -> bool:
        """Whether its replies begin with numbers, or would if it asked for them, so that bounds can be tried."""
        plan = self.plan
        return plan.bounds is not None or (plan.answerability == "text" and not self.has_own_prompt)

    def options(self, row: Strategy) -> dict[str, Any]:
        """Return the options that make another strategy of this pipeline; none for what it is itself.

        A prompt of its own that asks for numbers is asked as it is, and they rule nothing.
        """
        if row == "yours":
            return {}
        plan = self.plan
        plain: dict[str, Any] = {**PAPER, "escalation": None, "start": "rag", "doubt_below": None, "stop_below": None}
        if plan.structured:
            plain["answerability"] = "structured"
        elif plan.answerability == "graded" and self.has_own_prompt:
            plain |= {"answerability": "graded", "doubt_below": 0, "stop_below": 0}
        of_row: Mapping[Strategy, dict[str, Any]] = {
            "rag": {"max_documents": 0},
            "rag_20": {"max_documents": 0, "draft_passages": WIDE},
            "long_context": {"start": "long_context"},
            TRIED: {
                "answerability": "structured" if plan.structured else "graded",
                "sections": plan.sections or DEFAULTS.sections,
                "max_documents": plan.most_compared,
                "doubt_below": MOST_DOUBT,
                "stop_below": 0,
            },
        }
        return {**plain, **of_row.get(row, {})}

    def told(self, row: Strategy) -> dict[str, Any]:
        """Return what steers a strategy, as plain JSON: where it is not the default, and without tried bounds."""
        options = {name: getattr(self.plan, name) for name in _STEERS} | self.options(row)
        usual = {name: getattr(DEFAULTS, name, None) for name in options} | {"answerability": "graded"}
        if row == "rag_20":
            options["reach"] = WIDE
        if row == TRIED:
            options |= {"doubt_below": None, "stop_below": None}
        return {name: _as_json(value) for name, value in options.items() if value != usual.get(name)}

    def models(self) -> Mapping[Route, PricedModel]:
        """Return the names by which the models of the steps are known."""
        return {step: self.name_of(model) for step, model in self._models.items()}

    def priced(self) -> Mapping[Route, PricedModel]:
        """Return the models that those of the steps are priced as."""
        declared = partial(self.plan.declared_model, shared=self._one_model)
        return {step: declared(step) or model for step, model in self.models().items()}

    def judge(self, priced_as: PricedModel | None = None, *, title: str | None = None) -> ModelJudge:
        """Return the model that reads whole documents as a judge."""
        llm, priced_as = self._models["long_context"], priced_as or self.priced()["long_context"]
        return ModelJudge(self.asker_with(llm, self.kept, name=self.name, priced_as=priced_as), title=title)

    def check(self) -> None:
        """Check, before anything is paid for, that this pipeline can be asked.

        Raises:
            ConfigurationError: Its replies are kept, and a model does not report its name; or there is a cap on the
                cost, and no price of a model is known.
        """
        for step, model in self.models().items():
            self.kept.identity(model, self.name, step=step)
        for priced in self.priced().values():
            self.kept.spending.check(partial(_price, priced))

    def _trial_memory(self) -> Memory:
        """Return the memory of one call: it learns nothing, so that no estimate depends on earlier questions."""
        return Memory(self.name_of, estimate=LongContextEstimate(calibrates=False), said=self._memory.said)


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if callable(value):
        return f"{getattr(value, '__qualname__', type(value).__qualname__)}()"
    return value if value is None or isinstance(value, str | int | dict) else str(value)


def _price(model: PricedModel, output: int) -> Cost:
    return cost_of(model, StepUsage(1, output))


def look(pipeline: Pipeline, key: Key, given: Any, row: Strategy) -> list[Look]:
    """Ask a question as a strategy would; return the steps that it took, which are not scored yet."""
    hosts = list[KeptHost]()

    def wrap(host: Host[Any]) -> KeptHost:
        hosts.append(KeptHost(host, pipeline.kept, question=key, name=pipeline.name))
        return hosts[-1]

    asked = pipeline.wide if row == "rag_20" and pipeline.wide else pipeline
    answer = asked.ask(pipeline.options(row), given, wrap)
    host = hosts[-1]  # the last attempt, if there were several
    made = partial(Look, dataset=key[0], id=key[1], strategy=row, score=0.0)
    looks = [made(step=used.step, rung=used.rung, **_said(host, used)) for used in host.replies]
    end: dict[str, Any] = {"answer": answer.text, "declined": not answer.answerable, "cut": host.cut}
    if looks:
        looks[-1] = replace(looks[-1], **end)
    if not looks or (row == TRIED and looks[0].step != "rag"):  # nothing was found to draft from
        unasked = made(step="rag", answer="", declined=True, **_paid(StepUsage(0, 0, cost=FREE)))
        looks.insert(0, unasked if looks else replace(unasked, step=answer.route, **end))
    if looks[0].step == "rag":
        looks[0] = replace(looks[0], passages=tuple(_passages(host, answer)))
    return looks


def _passages(host: KeptHost, answer: Answer) -> Iterator[Passage]:
    """Yield the passages that the draft read."""
    for one in answer.passages:
        score = getattr(one, "score", None) or host.place_of(one).metadata.get("score")
        yield Passage(host.text_of(one), score if isinstance(score, float) else None)


def _paid(usage: StepUsage, seconds: float = 0.0) -> dict[str, Any]:
    """Return what a reply took, as fields of a look."""
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {**tokens, "cost": usage.cost.as_text(), "seconds": seconds}


def _said(host: KeptHost, used: Used) -> dict[str, Any]:
    """Judge a reply without any bounds; return what it says, as fields of a look."""
    reply, refusal, paid = used.reply, host.plan.refusal, _paid(used.usage, used.reply.seconds)
    asks = host.plan.bounds is not None and used.step != "long_context"
    numbers = (1 if used.step == "sections" else 2) if asks else 0
    gate = GradedGate(refusal, numbers=numbers) if numbers else Gate(refusal)
    shown = gate.feed(reply.text) + gate.end(reply.ending.kind)
    verdict = gate.verdict
    if verdict is None:
        return {"answer": reply.text, "declined": True, **paid}
    if verdict.declined:  # in its own words
        shown = numbers_of(reply.text, numbers)[1] if numbers else reply.text
    said = {"declined": verdict.declined, "prospect": verdict.prospect, "confidence": verdict.confidence}
    return {"answer": shown, **said, **paid}
