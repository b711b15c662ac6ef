"""Evaluates chains of LangChain: each strategy is the real chain with one part replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.prompts import format_document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding, RunnableBindingBase
from pydantic import Field
from typing_extensions import override

from langchain_selfroute import SelfRouteChain, caching, prompting
from langchain_selfroute.documents import label_of
from langchain_selfroute.host import Parts
from langchain_selfroute.models import MessageTally, name_of, text_of_prompt, window_of
from langchain_selfroute.rebuilding import retrieving
from langchain_selfroute.structured import text_of
from selfroute.answerability.gate import declines
from selfroute.answerability.structured import Form
from selfroute.calls.settings import reach_of
from selfroute.documents.window import room_in
from selfroute.effects import Route
from selfroute.evaluation.asking.asker import Asker
from selfroute.evaluation.asking.identity import identity_of, judge_identity
from selfroute.evaluation.asking.judge import ModelJudge
from selfroute.evaluation.asking.replies import Replies, Reply, usage_of
from selfroute.evaluation.asking.runner import Task, TaskOutcome, with_choices
from selfroute.evaluation.asking.strategies import (
    StepReply,
    Used,
    draft_in,
    looks_of,
    nothing_used,
    numbered,
    only_sections,
    options_of,
    settings_of,
    trial_memory,
    whole_of,
)
from selfroute.evaluation.prompts import CLOSED_BOOK, REASONS
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import GRADED, Passage, Strategy
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel, cost_of

_NUMBERS: tuple[tuple[str, ...], ...] = ((), ("confidence",), ("graded",))  # what asks for no, one or two numbers


class KeptModel(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """A model whose replies are kept, so that it is never asked the same twice.

    Attributes:
        replies: Keeps them.
        step: The kind of prompt.
        used: The replies that were used, in order.
        parts: The parts of the chain that the model belongs to.
        model: The model itself; `bound` may be that model with structured output.
        identity: Describes the model, as plain JSON.
        priced_as: The model that it is priced as, if not as itself.
        structured: Whether its replies are structured; they are kept and returned as text.
        graded: Whether these reports have numbers.
    """

    replies: Any = Field(repr=False)
    step: str
    used: Any = Field(repr=False)
    parts: Any = Field(repr=False)
    model: Any = Field(repr=False)
    identity: Any = Field(repr=False)
    priced_as: Any = None
    structured: bool = False
    graded: bool = False

    @override
    def invoke(self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the kept reply to a prompt, or ask for one and keep it."""
        configured = name_of(self.model, config, kwargs)
        ask = partial(self._ask, input, config, kwargs=kwargs, configured=configured)
        tokens = self.parts.settings.count_tokens(text_of_prompt(input))
        reply: Reply = self.replies.get(
            self._identity(input, config, kwargs),
            ask,
            step=self.step,
            price=lambda output: cost_of(self.priced_as or configured, StepUsage(tokens, output)),
        )
        self.used.append(reply.priced(self.priced_as))
        return self._as_given(reply)

    def _identity(self, prompt: PromptValue, config: RunnableConfig | None, kwargs: Mapping[str, Any]) -> object:
        """Return all that a reply depends on."""
        return {
            "model": self.identity,
            "called": astuple(name_of(self.model, config, kwargs)),
            "given": {name: value for name, value in kwargs.items() if name not in caching.OPTIONS},
            "structured": self._report(config),
            "prompt": [[message.type, caching.unmarked(message.content)] for message in prompt.to_messages()],
        }

    def _report(self, config: RunnableConfig | None) -> Any:
        """Return what a structured reply depends on besides its prompt."""
        if not self.structured:
            return None
        form, refusal = self._form(config), self.parts.settings.refusal
        asked = [*_NUMBERS[form.numbers], *(("quotes",) if form.quotes else ())]
        return [refusal, *asked] if asked else refusal

    def _form(self, config: RunnableConfig | None) -> Form:
        """Return the report that is asked for; the chain names the run of a model by its step."""
        numbers = 1 if config and config.get("run_name") == "sections" else 2
        return Form(numbers=numbers if self.graded else 0, quotes=self.parts.settings.citations)

    def _ask(
        self, prompt: PromptValue, config: RunnableConfig | None, *, kwargs: Mapping[str, Any], configured: PricedModel
    ) -> Reply:
        given = super().invoke(prompt, config, **kwargs)
        tally = MessageTally(whole=True)
        settings = self.parts.settings
        form = self._form(config)
        text = text_of(given, tally, refusal=settings.refusal, form=form) if self.structured else tally.add(given)
        counts = tally.usage(partial(text_of_prompt, prompt), count=settings.count_tokens) or StepUsage(0, 0)
        model = tally.model(configured)
        return Reply.of(text, counts.with_cost(cost_of(self.priced_as or model, counts)), model, ending=tally.ending())

    def _as_given(self, reply: Reply) -> Any:
        """Return a reply in the form in which the model gives it."""
        counts = UsageMetadata(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            total_tokens=reply.input_tokens + reply.output_tokens,
            input_token_details={
                "cache_read": reply.cached_tokens,
                "cache_creation": reply.cache_write_tokens,
                "ephemeral_1h_input_tokens": reply.cache_write_1h_tokens,  # type: ignore[typeddict-unknown-key]
            },
        )
        about = {
            "model_name": reply.model,
            "model_provider": reply.provider,
            "finish_reason": reply.finish_reason,
            "refusal": reply.refusal,
        }
        message = AIMessage(reply.text, response_metadata={key: value for key, value in about.items() if value})
        if reply.calls_tool:
            message.tool_calls = [ToolCall(name="", args={}, id=None)]
        message.usage_metadata = None if reply.estimated else counts
        return {"raw": message, "parsed": None} if self.structured else message


class _Declines(Runnable[Any, AIMessage]):
    """A model of the first step that declines at once and costs nothing."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        return AIMessage("")

    def with_structured_output(self, _: Any, **__: Any) -> Runnable[Any, Any]:
        """Decline in structured form, too."""
        return self


_STEPS: tuple[Route, ...] = ("rag", "long_context")


def _no_documents(_: Any) -> list[Document]:
    return []


def is_chain(given: Any) -> bool:
    """Return whether something is a chain, or what `with_config`, `bind`, `with_retry` and the like return for one."""
    return isinstance(_inside(given), SelfRouteChain)


def _inside(given: Any) -> Any:
    return _inside(given.bound) if isinstance(given, RunnableBindingBase) else given


def _within(given: Runnable[Any, Any], chain: SelfRouteChain) -> Runnable[Any, Any]:
    """Return a chain within the same bindings as another one."""
    if not isinstance(given, RunnableBindingBase):
        return chain
    return given.model_copy(update={"bound": _within(given.bound, chain)})


def judge_with(
    llm: Runnable[Any, Any],
    replies: Replies,
    *,
    name: str | None = None,
    named: str | None = None,
    priced_as: PricedModel | None = None,
) -> ModelJudge:
    """Make a judge of a model.

    Args:
        llm: The model.
        replies: Keeps its replies.
        name: As in `evaluate`; it counts only where the model cannot be described.
        named: The model's name for people; None for its own.
        priced_as: The model that it is priced as, if not as itself.

    Raises:
        ConfigurationError: As in `judge_identity`; or there is a cap on the cost, and no price of the model is known.
    """
    identity = judge_identity(llm, name, replies)
    call = partial(_call, llm)
    return ModelJudge(call, replies, configured=name_of(llm), identity=identity, name=named, priced_as=priced_as)


def asker_with(llm: Runnable[Any, Any], replies: Replies, *, priced_as: PricedModel | None = None) -> Asker:
    """Return what sends prompts to a model and keeps its replies.

    Raises:
        ConfigurationError: As in `judge_with`.
    """
    identity = judge_identity(llm, None, replies)
    return Asker(partial(_call, llm), replies, configured=name_of(llm), identity=identity, priced_as=priced_as)


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
    """Evaluates a chain."""

    def __init__(self, chain: Runnable[Any, Any], replies: Replies, *, name: str | None = None) -> None:
        """Take a chain.

        Args:
            chain: The chain, or bindings around one, for which `is_chain` holds; it is not changed.
            replies: Keeps its models' replies.
            name: As in `evaluate`.

        Raises:
            ConfigurationError: The replies are kept in a folder, and a model can neither be described nor has a name.
        """
        self.bound, self.chain = chain, _inside(chain)
        self.parts: Parts = self.chain.parts()
        self.replies, self._name = replies, name
        self._identities = {step: identity_of(self.parts.models[step], step, name, replies) for step in _STEPS}

    def judge(self, priced_as: PricedModel | None = None) -> ModelJudge:
        """Return the model that reads whole documents as a judge.

        Args:
            priced_as: The model that it is priced as, if not as in the pipeline.
        """
        llm, declared = self.parts.models["long_context"], self._priced_as("long_context")
        return judge_with(llm, self.replies, name=self._name, priced_as=priced_as or declared)

    def check(self, strategies: Sequence[Strategy], ks: Sequence[int | None]) -> None:
        """Check, before anything is paid, that the chain can follow the strategies.

        Raises:
            ConfigurationError: Its retriever takes no number of passages, or its prompt does not ask for two numbers.
        """
        for k in filter(None, ks):
            self._retriever(k)
        for strategy in set(GRADED) & set(strategies):
            changed = self.chain.model_copy(update=self._options(strategy))
            if not changed.parts().settings.structured:
                prompting.check_numbers("rag_prompt", changed.parts().prompts["rag"])

    def settings(self, strategies: Sequence[Strategy]) -> dict[str, Any]:
        """Return what the strategies are tried with, for the report."""
        tried = settings_of(strategies, self.parts.settings, model=name_of(self.parts.models["rag"]))
        return {**tried, "prompts": self.chain.wordings()}

    def ask(self, task: Task, given: Mapping[str, Any] | None = None) -> TaskOutcome:
        """Answer a task's question by its strategy.

        Args:
            task: The task.
            given: The chain's input; None for the question, with its choices below it.
        """
        if task.strategy == "closed_book":
            return self._closed_book(task.question)
        given = given or {"input": with_choices(task.question)}
        options, used = self._options(task.strategy), nothing_used()
        output = self._chain_for(task, used, options).invoke(given)
        outcome = TaskOutcome(
            answer=output["answer"],
            route="rag" if task.strategy == "rag" else output["route"],
            answerable=output["answerable"],
            decision=output["decision"],
            usage=output["usage"],
            draft=draft_in(used["rag"], output["usage"]),
            passages=self._passages_in(output["retrieved"], task.k),
            cut=any(label_of(document).get("trimmed") for document in output["context"]),
            seconds=sum(reply.seconds for replies in used.values() for reply in replies),
        )
        if task.strategy == "long_context":
            looks = whole_of(output["answer"], used["long_context"], declined=not output["answerable"])
            alone = usage_of(used["long_context"])
            return replace(outcome, route="long_context", decision={}, usage=alone, passages=(), looks=looks)
        looks = self._looks(task, used, output, options)
        if task.strategy == "graded_sections" and outcome.route == "rag" and looks[0].may_be_doubted:
            used, further = nothing_used(), only_sections(options)
            output = self._chain_for(task, used, further).invoke(given)
            looks = self._looks(task, used, output, further)
        return replace(outcome, looks=looks)

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the first step's model why the passages do not answer a question (Table 8)."""
        context = "\n\n".join(passage.text for passage in passages)
        return self._text("rag", "reason", REASONS.format(context=context, input=with_choices(task.question)), [])

    def _options(self, strategy: Strategy) -> dict[str, Any]:
        own_prompt = not self.chain.has_default_rag_prompt
        return options_of(strategy, self.parts.settings, own_prompt=own_prompt)

    def _retriever(self, k: int | None) -> Runnable[Any, Any]:
        """Return the retriever, for another number of passages that the draft reads."""
        retriever: Runnable[Any, Any] = self.chain.retriever
        if k is not None:
            retriever = retrieving(retriever, reach_of(k, None, sections=self.parts.settings.sections), {})
        return retriever

    def _passages_in(self, retrieved: Sequence[Document], k: int | None) -> list[Passage]:
        """Return the passages of the draft as the model read them."""
        template, found = self.chain.document_prompt, retrieved[: k or self.chain.draft_passages]
        scores = [passage.metadata.get("score") for passage in found]
        texts = [format_document(passage, template) if template else passage.page_content for passage in found]
        return [
            Passage(text, score if isinstance(score, float) else None)
            for text, score in zip(texts, scores, strict=True)
        ]

    def _looks(self, task: Task, used: Used, output: Any, options: Mapping[str, Any]) -> list[StepReply]:
        graded, refusal = numbered(options), self.chain.refusal
        return looks_of(task.strategy, used["rag"], output["usage"], graded=graded, refusal=refusal)

    def _chain_for(self, task: Task, used: Used, options: Mapping[str, Any]) -> Runnable[Any, Any]:
        """Return the chain with the parts of a strategy, within the same bindings."""
        chain = self.chain
        changes: dict[str, Any] = {
            **options,
            "retriever": self._retriever(task.k),
            "draft_passages": task.k or chain.draft_passages,
            "llm": self._kept("rag", "rag", used["rag"], graded=numbered(options)),
            "long_context_llm": self._kept("long_context", "long_context", used["long_context"]),
            "long_context_priced_as": chain.long_context_priced_as
            or (chain.priced_as if self.parts.one_model else None),  # there are two now, priced alike
            "memory": trial_memory(name_of, self.parts.memory),
        }
        if task.strategy == "rag":
            changes |= {"documents": _no_documents, "measure_savings": False}
        elif task.strategy == "long_context":
            changes["llm"] = _Declines()
        return _within(self.bound, chain.model_copy(update=changes))

    def _kept(self, step: Route, purpose: str, used: list[Reply], *, graded: bool = False) -> KeptModel:
        parts = self.parts
        structured = purpose == step and parts.settings.structured
        return KeptModel(
            bound=parts.models[step],
            model=parts.models[step],
            parts=parts,
            replies=self.replies,
            step=purpose,
            used=used,
            identity=self._identities[step],
            priced_as=self._priced_as(step),
            structured=structured,
            graded=structured and graded,
        )

    def _priced_as(self, step: Route) -> PricedModel | None:
        return self.parts.settings.declared_model(step, shared=self.parts.one_model)

    def _text(self, step: Route, purpose: str, prompt: str, used: list[Reply]) -> str:
        self._kept(step, purpose, used).invoke(ChatPromptValue(messages=[HumanMessage(prompt)]))
        return used[-1].text_of(purpose)

    def _closed_book(self, question: Question) -> TaskOutcome:
        used: list[Reply] = []
        refusal = self.chain.refusal
        prompt = CLOSED_BOOK.format(input=with_choices(question), refusal=refusal)
        text = self._text("long_context", "closed_book", prompt, used)
        return TaskOutcome(text, None, not declines(text, refusal=refusal), {}, usage_of(used))
