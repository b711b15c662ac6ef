"""What LangChain does for one call of a chain: it runs its retriever, prompts, models and documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import (
    BaseCallbackManager,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_selfroute import models, prompting, structured
from langchain_selfroute.convert import (
    acall,
    call,
    is_too_long,
)
from langchain_selfroute.models import TooLongHeard, has_fallbacks
from langchain_selfroute.prompting import FilledPrompt, context_of
from langchain_selfroute.retrieving import RetrievingHost
from langchain_selfroute.tally import MessageTally
from selfroute.answerability.structured import length_of
from selfroute.caching import ProviderCache
from selfroute.calls.host import Prompt
from selfroute.effects import Decided, Route
from selfroute.prompts import sendable
from selfroute.usage.account import Tally
from selfroute.usage.addresses import account_of
from selfroute.usage.prices import PricedModel

EVENT = "selfroute_decision"
_Asked: TypeAlias = "tuple[Runnable[Any, Any], PromptValue, RunnableConfig, dict[str, Any]]"
"""The model, its prompt, its config and its options."""


class LangChainHost(RetrievingHost):
    """What LangChain does for one call of a chain."""

    tally = MessageTally
    _heard: TooLongHeard | None = None  # within the latest call of a model

    @override
    def choose(self, start: Any) -> Any:
        return call(start, dict(self.inputs), self._child("start"), name="start")

    @override
    async def achoose(self, start: Any) -> Any:
        return await acall(start, dict(self.inputs), self._child("start"))

    @override
    def prompt(self, step: Route, context: Sequence[Document]) -> FilledPrompt:
        text = context_of(context, self.parts.document_prompt, whole=step != "rag", name_of=self.source_of)
        words = {**self.inputs, **self.plan.words, "context": sendable(text)}
        schema = length_of(self.plan.form_of(step)) if self.plan.structured else 0
        return FilledPrompt(prompting.filled_in(self.parts.prompts[step], words, self.config), words, schema=schema)

    @override
    def ask(self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None) -> str | Iterator[Any]:
        filled, self._heard = cast("FilledPrompt", prompt), TooLongHeard()
        if filled.value is None:
            filled.value = prompting.formatted(*self._formatting(step, filled))
        model, value, config, options = self._asked(step, filled, cache)
        if self._streams(model, config, options, awaited=False):
            return model.stream(value, config, **options)
        return self._text_of_reply(step, model.invoke(value, config, **options), cast("MessageTally", tally))

    @override
    async def aask(
        self, step: Route, prompt: Prompt, tally: Tally, cache: ProviderCache | None
    ) -> str | AsyncIterator[Any]:
        filled, self._heard = cast("FilledPrompt", prompt), TooLongHeard()
        if filled.value is None:
            filled.value = await prompting.aformatted(*self._formatting(step, filled))
        model, value, config, options = self._asked(step, filled, cache)
        if self._streams(model, config, options, awaited=True):
            return model.astream(value, config, **options)
        return self._text_of_reply(step, await model.ainvoke(value, config, **options), cast("MessageTally", tally))

    def _formatting(self, step: Route, prompt: FilledPrompt) -> tuple[Runnable[Any, Any], Any, RunnableConfig]:
        return self.parts.prompts[step], prompt.words, self._child(f"{step}_prompt")

    def _asked(self, step: Route, prompt: FilledPrompt, cache: ProviderCache | None) -> _Asked:
        own = model = self.parts.models[step]
        if self.plan.structured:
            model = structured.asking("llm", model, self.config, form=self.plan.form_of(step))
        config = self._child(step, f"selfroute:{step}")
        if self._heard and has_fallbacks(own, self.config):
            cast("BaseCallbackManager", config["callbacks"]).add_handler(self._heard)
        prefix = prompt.prefix(self.question) if cache and cache.ttl else None
        value = prompt.value if cache is None or prefix is None else prompting.marked(prompt.value, prefix, cache)
        return model, value, config, self.kwargs

    def _streams(
        self, model: Runnable[Any, Any], config: RunnableConfig, options: Mapping[str, Any], *, awaited: bool
    ) -> bool:
        """Return whether to read a stream, which can be hung up on, also where the answer is wanted whole."""
        if self.streaming or self.plan.structured:
            return self.streaming
        return models.streams_whole(model, config, options, awaited=awaited)

    def _text_of_reply(self, step: Route, reply: Any, tally: MessageTally) -> str:
        if self.plan.structured:
            form = self.plan.form_of(step)
            return structured.text_of(reply, tally, refusal=self.plan.refusal, form=form)
        return tally.add(reply)

    @override
    def announce(self, decided: Decided) -> None:
        """Send the custom event `selfroute_decision`."""
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            dispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})

    @override
    async def aannounce(self, decided: Decided) -> None:
        if self.manager.handlers:
            data = {"route": decided.route, "decision": decided.decision.as_dict()}
            await adispatch_custom_event(EVENT, data, config={**self.config, "callbacks": self.manager.get_child()})

    @override
    def window(self, step: Route) -> int | None:
        return models.window_of(self.parts.models[step], self.config)

    @override
    def name_of(self, step: Route) -> PricedModel:
        model = self.parts.models[step]
        if self.kwargs or self.config.get("configurable"):  # these may select another model for each call
            return models.name_of(model, self.config, self.kwargs)
        return self.parts.memory.names.of(step, model)

    @override
    def account(self, step: Route) -> Hashable:
        inside, _ = models.inside_of(self.parts.models[step], self.config)
        return account_of(inside)

    @override
    def takes_marks(self, step: Route) -> bool:
        return prompting.takes_marks(self.parts.models[step], self.config, self.kwargs)

    @override
    def too_long(self, error: Exception) -> Exception | None:
        heard = self._heard.error if self._heard else None
        return error if is_too_long(error) else heard

    @override
    def log_missing_usage(self, step: Route) -> None:
        models.log_missing_usage(self.parts.models[step], self.config, self.parts.memory.said)
