"""Evaluate query engines of LlamaIndex: the real engine with other options, through a host whose replies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from typing import Any, cast

from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle

from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, internals, models
from llamaindex_selfroute.host import LlamaIndexHost
from llamaindex_selfroute.models import ResponseTally, name_of
from selfroute.calls.call import Call
from selfroute.calls.drivers import run
from selfroute.evaluation.judge import ModelJudge
from selfroute.evaluation.looking import Wrap, trial_memory
from selfroute.evaluation.replies import Replies
from selfroute.flow import Answer, Route
from selfroute.usage.prices import PricedModel


def is_engine(given: Any) -> bool:
    """Return whether something is a `SelfRouteQueryEngine`, or another engine with a `SelfRouteSynthesizer`."""
    return isinstance(given, RetrieverQueryEngine) and isinstance(_synthesizer(given), SelfRouteSynthesizer)


def _synthesizer(engine: RetrieverQueryEngine) -> SelfRouteSynthesizer:
    return cast("SelfRouteSynthesizer", engine._response_synthesizer)  # noqa: SLF001


def judge_with(
    llm: LLM,
    kept: Replies,
    *,
    name: str | None = None,
    title: str | None = None,
    priced_as: PricedModel | None = None,
) -> ModelJudge:
    """Make a judge of a model.

    Args:
        llm: The model.
        kept: Keeps its replies.
        name: As in `evaluate`; it counts only where the model does not report its name.
        title: The model's name for people; None for its own.
        priced_as: The model that it is priced as, if not as itself.

    Raises:
        ConfigurationError: As for `Asker`.
    """

    def call(prompt: str) -> ResponseTally:
        tally = ResponseTally(whole=True)
        tally.add(models.ask(llm, internals.formatted(llm, PromptTemplate("{text}"), {"text": prompt})))
        return tally

    return ModelJudge(call, kept, model=name_of(llm), name=name, title=title, priced_as=priced_as)


class EnginePipeline:
    """Evaluates a query engine. The attributes are those of `selfroute.evaluation.looking.Pipeline`."""

    def __init__(self, engine: RetrieverQueryEngine, kept: Replies, *, name: str | None = None) -> None:
        """Take an engine.

        Args:
            engine: The engine, for which `is_engine` holds; it is not changed.
            kept: Keeps its models' replies.
            name: As in `evaluate`.
        """
        self._engine, self._synthesizer = engine, _synthesizer(engine)
        with self._scoped(self._synthesizer):
            parts = self._synthesizer.parts()
        self.settings, self.has_own_prompt = parts.settings, not self._synthesizer.has_default_rag_prompt
        self.kept, self.name = kept, name
        self._models, self._memory, self._one_model = parts.models, parts.memory, parts.one_model

    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host; see `Pipeline`."""
        synthesizer = self._with(options)
        synthesizer.memory = trial_memory(name_of, self._memory)
        with self._scoped(synthesizer):
            query = QueryBundle(given)
            host = LlamaIndexHost(synthesizer.parts(), query, nodes=self._engine.retrieve(query))
            host.streaming = False
            call = Call[Any](wrap(host), host.settings, memory=host.parts.memory, retrieves=False)
            return run(call.flow(), call)

    def check_numbers(self, options: Mapping[str, Any]) -> None:
        """Check that the first prompt asks for the two numbers that options need; see `Pipeline`."""
        synthesizer = self._with(options)
        with self._scoped(synthesizer):
            synthesizer.parts()

    def models(self) -> Mapping[Route, PricedModel]:
        """Return the names by which the models of the steps are known."""
        return {step: name_of(model) for step, model in self._models.items()}

    def priced(self) -> Mapping[Route, PricedModel]:
        """Return the models that those of the steps are priced as."""
        models, declared = self.models(), partial(self.settings.declared_model, shared=self._one_model)
        return {step: declared(step) or model for step, model in models.items()}

    def judge(self, priced_as: PricedModel | None = None, *, title: str | None = None) -> ModelJudge:
        """Return the model that reads whole documents as a judge; see `Pipeline`."""
        priced_as = priced_as or self.priced()["long_context"]
        return judge_with(self._models["long_context"], self.kept, name=self.name, title=title, priced_as=priced_as)

    def _with(self, options: Mapping[str, Any]) -> SelfRouteSynthesizer:
        synthesizer = copy(self._synthesizer)
        for name, value in options.items():
            setattr(synthesizer, name, value)
        return synthesizer

    def _scoped(self, synthesizer: SelfRouteSynthesizer) -> AbstractContextManager[Any]:
        """Attach the engine's retriever to a synthesizer if it alone selects the nodes."""
        engine = self._engine
        own = isinstance(engine, SelfRouteQueryEngine) and internals.selects_nodes_as(
            type(engine), SelfRouteQueryEngine
        )
        return synthesizer.behind(engine.retriever if own else None, engine._node_postprocessors)  # noqa: SLF001
