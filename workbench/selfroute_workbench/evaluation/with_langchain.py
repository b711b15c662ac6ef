"""Evaluate chains of LangChain: the real chain with other options, through a host whose replies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import VectorStoreRetriever

from langchain_selfroute import SelfRouteChain, running, runs
from langchain_selfroute.host import LangChainHost
from langchain_selfroute.models.clients import name_of, window_of
from langchain_selfroute.models.tally import MessageTally
from selfroute.calls.call import Call
from selfroute.calls.drivers import run
from selfroute.documents.window import room_in
from selfroute.effects import Answer
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.looking import WIDE, Pipeline, Wrap
from selfroute_workbench.evaluation.replies import Replies


def pipeline_of(given: Any, kept: Replies, *, name: str | None) -> ChainPipeline | None:
    """Return the pipeline of a chain, or of what `with_config`, `bind`, `with_retry` and the like return for one."""
    return ChainPipeline(given, kept, name=name) if isinstance(_inside(given), SelfRouteChain) else None


def is_model(given: Any) -> bool:
    """Return whether something can be asked as a model."""
    return isinstance(given, Runnable)


def _inside(given: Any) -> Any:
    return _inside(given.bound) if isinstance(given, RunnableBindingBase) else given


def _within(given: Runnable[Any, Any], inner: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a runnable within the same bindings as a chain."""
    if not isinstance(given, RunnableBindingBase):
        return inner
    return given.model_copy(update={"bound": _within(given.bound, inner)})


def room_for(llm: Runnable[Any, Any], *, window: int | None = None) -> int | None:
    """Return how many tokens of a document fit a model's prompt; None if nobody says how long its window is."""
    window = window or window_of(llm)
    return None if window is None else room_in(window)


def asker_with(
    llm: Runnable[Any, Any], kept: Replies, *, name: str | None = None, priced_as: PricedModel | None = None
) -> Asker:
    """Return what sends prompts to a model and keeps its replies; the arguments are those of `Asker`."""
    return Asker(partial(_call, llm), kept, model=name_of(llm), name=name, priced_as=priced_as)


def _call(llm: Runnable[Any, Any], prompt: str) -> MessageTally:
    tally = MessageTally(whole=True)
    tally.add(llm.invoke(ChatPromptValue(messages=[HumanMessage(prompt)])))
    return tally


class ChainPipeline(Pipeline):
    """Evaluates a chain."""

    name_of = staticmethod(name_of)
    asker_with = staticmethod(asker_with)

    def __init__(self, chain: Runnable[Any, Any], kept: Replies, *, name: str | None = None) -> None:
        """Take a chain, or bindings around one, which are not changed; `name` is as in `evaluate`."""
        self._bound, self._chain = chain, _inside(chain)
        has_own_prompt = not self._chain._has_default_rag_prompt  # noqa: SLF001
        super().__init__(self._chain._parts(), kept, name=name, has_own_prompt=has_own_prompt)  # noqa: SLF001

    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host."""
        changes = {**options, "_memory": self._trial_memory()}
        chain = self._chain.model_copy(update=changes)

        def perform(given: Any, config: RunnableConfig, **kwargs: Any) -> tuple[Answer, dict[str, Any]]:
            with running.Running(chain.get_name(), given, config) as run:
                parts, manager = chain._parts(), run.manager  # noqa: SLF001
                host = LangChainHost(parts, given, manager=manager, config=config, kwargs=kwargs, streaming=False)
                record = runs.entry_recorder(manager.handlers)
                call = Call(wrap(host), parts.plan, memory=parts.memory, record=record)
                return run.end(run.perform(lambda: _answered(call)), _recorded)

        answered = _within(self._bound, RunnableLambda(perform)).invoke(given)
        return cast("Answer", answered[0])

    @cached_property
    def wide(self) -> ChainPipeline | None:
        """The same over a retriever that finds at least `WIDE` passages; None if it cannot be told to."""
        retriever = _widened(self._chain.retriever)
        if retriever is None:
            return None
        chain = self._chain.model_copy(update={"retriever": retriever})
        return ChainPipeline(_within(self._bound, chain), self.kept, name=self.name)


def _widened(retriever: Runnable[Any, Any]) -> BaseRetriever | None:
    if isinstance(retriever, VectorStoreRetriever):
        given = retriever.search_kwargs
        return retriever.model_copy(update={"search_kwargs": {**given, "k": max(WIDE, given.get("k", 0))}})
    if isinstance(retriever, BaseRetriever) and isinstance(k := getattr(retriever, "k", None), int):
        return retriever.model_copy(update={"k": max(WIDE, k)})
    return None


def _answered(call: Call[Any]) -> tuple[Answer, dict[str, Any]]:
    answer = run(call.flow(), call)
    return answer, runs.output_of(call, answer)


def _recorded(answered: tuple[Answer, dict[str, Any]]) -> dict[str, Any]:
    """Return what a run of the chain records, as for a ledger."""
    return running.recorded(answered[1])
