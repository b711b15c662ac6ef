"""Evaluate chains of LangChain: the real chain with other options, through a host whose replies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase

from langchain_selfroute import SelfRouteChain, prompting, runs
from langchain_selfroute.host import LangChainHost
from langchain_selfroute.models import MessageTally, name_of, window_of
from selfroute.calls.call import Call
from selfroute.calls.drivers import run
from selfroute.documents.window import room_in
from selfroute.evaluation.judge import ModelJudge
from selfroute.evaluation.looking import Wrap, trial_memory
from selfroute.evaluation.replies import Asker, Replies
from selfroute.flow import Answer, Route
from selfroute.usage.prices import PricedModel


def is_chain(given: Any) -> bool:
    """Return whether something is a chain, or what `with_config`, `bind`, `with_retry` and the like return for one."""
    return isinstance(_inside(given), SelfRouteChain)


def _inside(given: Any) -> Any:
    return _inside(given.bound) if isinstance(given, RunnableBindingBase) else given


def _within(given: Runnable[Any, Any], inner: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a runnable within the same bindings as a chain."""
    if not isinstance(given, RunnableBindingBase):
        return inner
    return given.model_copy(update={"bound": _within(given.bound, inner)})


def judge_with(
    llm: Runnable[Any, Any],
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
    call, model = partial(_call, llm), name_of(llm)
    return ModelJudge(call, kept, model=model, name=name, title=title, priced_as=priced_as)


def asker_with(
    llm: Runnable[Any, Any], kept: Replies, *, name: str | None = None, priced_as: PricedModel | None = None
) -> Asker:
    """Return what sends prompts to a model and keeps its replies; arguments and errors are those of `judge_with`."""
    return Asker(partial(_call, llm), kept, model=name_of(llm), name=name, priced_as=priced_as)


def room_for(llm: Runnable[Any, Any], *, window: int | None = None) -> int | None:
    """Return how many tokens of a document fit a model's prompt; None if nobody says how long its window is.

    Args:
        llm: The model.
        window: Its window in tokens; None for what it says of itself.
    """
    window = window or window_of(llm)
    return None if window is None else room_in(window)


def _call(llm: Runnable[Any, Any], prompt: str) -> MessageTally:
    tally = MessageTally(whole=True)
    tally.add(llm.invoke(ChatPromptValue(messages=[HumanMessage(prompt)])))
    return tally


class ChainPipeline:
    """Evaluates a chain. The attributes are those of `selfroute.evaluation.looking.Pipeline`."""

    def __init__(self, chain: Runnable[Any, Any], kept: Replies, *, name: str | None = None) -> None:
        """Take a chain.

        Args:
            chain: The chain, or bindings around one, for which `is_chain` holds; it is not changed.
            kept: Keeps its models' replies.
            name: As in `evaluate`.
        """
        self._bound, self._chain = chain, _inside(chain)
        parts = self._chain.parts()
        self.settings, self.has_own_prompt = parts.settings, not self._chain.has_default_rag_prompt
        self.kept, self.name = kept, name
        self._models, self._memory, self._one_model = parts.models, parts.memory, parts.one_model

    def ask(self, options: Mapping[str, Any], given: Any, wrap: Wrap) -> Answer:
        """Answer a question with other options, through a wrapped host; see `Pipeline`."""
        changes = {**options, "memory": trial_memory(name_of, self._memory)}
        chain = self._chain.model_copy(update=changes)

        def perform(given: Any, config: RunnableConfig, **kwargs: Any) -> tuple[Answer, dict[str, Any]]:
            def make(*, manager: Any, config: RunnableConfig, streaming: bool) -> Call[Any]:
                parts = chain.parts()
                host = LangChainHost(parts, given, manager=manager, config=config, kwargs=kwargs, streaming=streaming)
                record = runs.entry_recorder(manager.handlers)
                return Call(wrap(host), parts.settings, memory=parts.memory, record=record)

            return runs.invoke(chain.get_name(), given, config, make, _answered, record=_recorded)

        answered = _within(self._bound, RunnableLambda(perform)).invoke(given)
        return cast("Answer", answered[0])

    def check_numbers(self, options: Mapping[str, Any]) -> None:
        """Check that the first prompt asks for the two numbers that options need; see `Pipeline`."""
        parts = self._chain.model_copy(update=dict(options)).parts()
        if not parts.settings.structured:
            prompting.check_numbers("rag_prompt", parts.prompts["rag"])

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


def _answered(call: Call[Any]) -> tuple[Answer, dict[str, Any]]:
    answer = run(call.flow(), call)
    return answer, runs.output_of(call, answer)


def _recorded(answered: tuple[Answer, dict[str, Any]]) -> dict[str, Any]:
    """Return what a run of the chain records, as for a ledger."""
    return runs.recorded(answered[1])
