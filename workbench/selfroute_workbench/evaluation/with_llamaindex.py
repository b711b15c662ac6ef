"""Evaluate query engines of LlamaIndex: the real engine with other options, through a host whose replies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property, partial
from typing import Any, cast

from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle

from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, internals
from llamaindex_selfroute.host import LlamaIndexHost, SynthesizerParts
from llamaindex_selfroute.models import clients
from llamaindex_selfroute.models.clients import name_of
from llamaindex_selfroute.models.tally import ResponseTally
from llamaindex_selfroute.synthesizer import limited
from selfroute.calls.call import Call
from selfroute.calls.drivers import run
from selfroute.effects import Answer
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.looking import WIDE, Pipeline, Wrap
from selfroute_workbench.evaluation.replies import Replies


def pipeline_of(given: Any, kept: Replies, *, name: str | None) -> EnginePipeline | None:
    """Return the pipeline of a `SelfRouteQueryEngine`, or of another engine with a `SelfRouteSynthesizer`."""
    is_engine = isinstance(given, RetrieverQueryEngine) and isinstance(_synthesizer(given), SelfRouteSynthesizer)
    return EnginePipeline(given, kept, name=name) if is_engine else None


def is_model(given: Any) -> bool:
    """Return whether something can be asked as a model."""
    return isinstance(given, LLM)


def asker_with(llm: LLM, kept: Replies, *, name: str | None = None, priced_as: PricedModel | None = None) -> Asker:
    """Return what sends prompts to a model and keeps its replies; the arguments are those of `Asker`."""
    return Asker(partial(_call, llm), kept, model=name_of(llm), name=name, priced_as=priced_as)


def _call(llm: LLM, prompt: str) -> ResponseTally:
    tally = ResponseTally(whole=True)
    tally.add(clients.ask(llm, internals.formatted(llm, PromptTemplate("{text}"), {"text": prompt})))
    return tally


def _synthesizer(engine: RetrieverQueryEngine) -> SelfRouteSynthesizer:
    return cast("SelfRouteSynthesizer", engine._response_synthesizer)  # noqa: SLF001


class EnginePipeline(Pipeline):
    """Evaluates a query engine."""

    name_of = staticmethod(name_of)
    asker_with = staticmethod(asker_with)

    def __init__(self, engine: RetrieverQueryEngine, kept: Replies, *, name: str | None = None) -> None:
        """Take an engine, which is not changed; `name` is as in `evaluate`."""
        self._engine, self._synthesizer = engine, _synthesizer(engine)
        has_own_prompt = not self._synthesizer._has_default_rag_prompt  # noqa: SLF001
        super().__init__(self._parts(self._synthesizer), kept, name=name, has_own_prompt=has_own_prompt)

    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host."""
        synthesizer = self._with(options)
        synthesizer._memory = self._trial_memory()  # noqa: SLF001
        query = QueryBundle(given)
        host = LlamaIndexHost(self._parts(synthesizer), query, nodes=self._engine.retrieve(query))
        host.streaming = False
        call = Call[Any](wrap(host), host.plan, memory=host.parts.memory)
        return run(call.flow(), call)

    @cached_property
    def wide(self) -> EnginePipeline | None:
        """The same over a retriever that finds at least `WIDE` nodes; None if it cannot be told to."""
        engine = copy(self._engine)
        if not isinstance(engine.retriever, VectorIndexRetriever) or engine._node_postprocessors:  # noqa: SLF001
            return None
        engine._retriever = retriever = copy(engine.retriever)  # noqa: SLF001
        retriever.similarity_top_k = max(WIDE, retriever.similarity_top_k)
        return EnginePipeline(engine, self.kept, name=self.name)

    def _with(self, options: Mapping[str, Any]) -> SelfRouteSynthesizer:
        synthesizer = copy(self._synthesizer)
        for name, value in options.items():
            setattr(synthesizer, name, value)
        return synthesizer

    def _parts(self, synthesizer: SelfRouteSynthesizer) -> SynthesizerParts:
        """Return the parts of a synthesizer that is held to the engine's retriever, if that alone selects the nodes."""
        engine = self._engine
        own = isinstance(engine, SelfRouteQueryEngine) and internals.selects_nodes_as(
            type(engine), SelfRouteQueryEngine
        )
        retriever = internals.fixed(engine.retriever) if own else None
        return synthesizer._parts(limited(synthesizer.documents, retriever, engine._node_postprocessors))  # noqa: SLF001
