"""Evaluates query engines of LlamaIndex: each strategy is the real engine with one part replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import astuple, replace
from functools import partial
from typing import Any, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response as EngineResponse
from llama_index.core.llms import (
    LLM,
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field
from typing_extensions import override

from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, caching, convert, internals, structured
from llamaindex_selfroute.convert import ModelInput
from llamaindex_selfroute.documents import is_trimmed
from llamaindex_selfroute.models import LLMResponse, ResponseTally, name_of
from selfroute.answerability.gate import declines
from selfroute.answerability.structured import Form
from selfroute.calls.settings import reach_of
from selfroute.effects import Route
from selfroute.errors import ConfigurationError
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

_NUMBERS = {"confidence": 1, "graded": 2}  # of a report, by what its kept replies are found by


class KeptLLM(CustomLLM):
    """A model whose replies are kept, so that it is never asked the same twice.

    Structured replies are kept and returned as text.

    Attributes:
        inner: The model.
        replies: Keeps them.
        step: The kind of prompt.
        used: The replies that were used, in order.
        parts: The parts of the synthesizer that the model belongs to.
        identity: Describes the model, as plain JSON.
        priced_as: The model that it is priced as, if not as itself.
    """

    inner: LLM = Field(exclude=True, repr=False)
    replies: Any = Field(exclude=True, repr=False)
    step: str
    used: Any = Field(exclude=True, repr=False)
    parts: Any = Field(exclude=True, repr=False)
    identity: Any = Field(exclude=True, repr=False)
    priced_as: Any = None

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return self.inner.metadata

    @override
    def _get_messages(self, prompt: Any, **words: Any) -> list[ChatMessage]:
        return self.inner._get_messages(prompt, **words)  # noqa: SLF001 - with the model's own system prompt

    @override
    def _get_prompt(self, prompt: Any, **words: Any) -> str:
        return self.inner._get_prompt(prompt, **words)  # noqa: SLF001

    def _should_use_structure_outputs(self) -> bool:
        return True

    def _prepare_schema(self, options: Mapping[str, Any], report: Any) -> dict[str, Any]:
        fields = report.model_fields
        asked = {"structured": "graded" if "prospect" in fields else "confidence" if "confidence" in fields else True}
        return {**options, **asked, "quotes": True} if "quotes" in fields else {**options, **asked}

    @override
    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        """Return the kept reply to messages, or ask for one and keep it."""
        reply = self._reply(list(messages), options)
        calls: dict[str, Any] = {"tool_calls": [{}]} if reply.calls_tool else {}
        message = ChatMessage(role=MessageRole.ASSISTANT, content=reply.text, additional_kwargs=calls)
        return ChatResponse(message=message, **_counts(reply))

    @override
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        """Return the kept reply to a prompt, or ask for one and keep it."""
        reply = self._reply(prompt, options)
        return CompletionResponse(text=reply.text, **_counts(reply))

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError  # nothing streams here

    def _reply(self, prompt: ModelInput, options: Mapping[str, Any]) -> Reply:
        tokens = self.parts.settings.count_tokens(convert.text_of(prompt))
        reply: Reply = self.replies.get(
            self._identity(prompt, options),
            partial(self._ask, prompt, options),
            step=self.step,
            price=lambda output: cost_of(self.priced_as or name_of(self.inner), StepUsage(tokens, output)),
        )
        self.used.append(reply.priced(self.priced_as))
        return reply

    def _identity(self, prompt: ModelInput, options: Mapping[str, Any]) -> object:
        """Return all that a reply depends on."""
        return {
            "model": self.identity,
            "called": astuple(name_of(self.inner)),
            "given": dict(options),
            "structured": self.parts.settings.refusal if options.get("structured") else None,
            "prompt": prompt
            if isinstance(prompt, str)
            else [message.model_dump() for message in caching.unmarked(prompt)],
        }

    def _ask(self, prompt: ModelInput, options: Mapping[str, Any]) -> Reply:
        tally = ResponseTally(whole=True)
        if how := options.get("structured"):
            form = Form(numbers=_NUMBERS.get(how, 0), quotes=options.get("quotes", False))
            given = structured.ask(self.inner, prompt, form)
            text = structured.text_of(self.inner, given, tally, refusal=self.parts.settings.refusal, form=form)
        else:
            text = tally.add(_ask(self.inner, prompt, options))
        counts = tally.usage(partial(convert.text_of, prompt), count=self.parts.settings.count_tokens) or StepUsage(
            0, 0
        )
        model = tally.model(name_of(self.inner))
        return Reply.of(text, counts.with_cost(cost_of(self.priced_as or model, counts)), model, ending=tally.ending())


def _ask(llm: LLM, prompt: ModelInput, options: Mapping[str, Any]) -> LLMResponse:
    return llm.complete(prompt, formatted=True, **options) if isinstance(prompt, str) else llm.chat(prompt, **options)


def _counts(reply: Reply) -> dict[str, Any]:
    """Return the fields of a response in which `Tally` finds a reply's counts and its end."""
    raw: dict[str, Any] = {"model": reply.model}
    if reply.finish_reason:
        raw |= {"finish_reason": reply.finish_reason, "refusal": reply.refusal}
    if reply.estimated:
        return {"raw": raw}
    written = reply.cache_write_tokens  # in this form the others do not include them
    usage = {
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_1h_input_tokens": reply.cache_write_1h_tokens},
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    counts = {"prompt_tokens": reply.input_tokens - written, "completion_tokens": reply.output_tokens}
    return {"raw": {**raw, "usage": usage}, "additional_kwargs": counts}


class _Declines(CustomLLM):
    """A model of the first step that declines at once and costs nothing."""

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @override
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text="")

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError


class _Noting(BaseNodePostprocessor):
    """Notes the nodes that the first step is given."""

    nodes: Any = Field(default_factory=list, exclude=True, repr=False)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.nodes.extend(nodes)
        return nodes


_STEPS: tuple[Route, ...] = ("rag", "long_context")


def _no_documents(*_: Any) -> list[Any]:
    return []


def judge_with(
    llm: LLM, replies: Replies, *, name: str | None = None, priced_as: PricedModel | None = None
) -> ModelJudge:
    """Make a judge of a model.

    Args:
        llm: The model.
        replies: Keeps its replies.
        name: As in `evaluate`; it counts only where the model cannot be described.
        priced_as: The model that it is priced as, if not as itself.

    Raises:
        ConfigurationError: As in `judge_identity`; or there is a cap on the cost, and no price of the model is known.
    """

    def call(prompt: str) -> ResponseTally:
        tally = ResponseTally(whole=True)
        tally.add(_ask(llm, internals.formatted(llm, PromptTemplate("{text}"), {"text": prompt}), {}))
        return tally

    identity = judge_identity(llm, name, replies)
    return ModelJudge(call, replies, configured=name_of(llm), identity=identity, priced_as=priced_as)


class EnginePipeline:
    """Evaluates a query engine."""

    def __init__(self, engine: RetrieverQueryEngine, replies: Replies, *, name: str | None = None) -> None:
        """Take an engine.

        Args:
            engine: A `SelfRouteQueryEngine`, or another engine with a `SelfRouteSynthesizer`; it is not changed.
            replies: Keeps its models' replies.
            name: As in `evaluate`.

        Raises:
            ConfigurationError: The replies are kept in a folder, and a model can neither be described nor has a name.
        """
        self.engine = engine
        self.synthesizer = cast("SelfRouteSynthesizer", engine._response_synthesizer)  # noqa: SLF001
        with self._scoped():
            self.parts = self.synthesizer.parts()
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
        """Check, before anything is paid, that the engine can follow the strategies.

        Raises:
            ConfigurationError: Its retriever takes no number of nodes, or its prompt does not ask for two numbers.
        """
        for k in filter(None, ks):
            self._retriever(k)
        for strategy in set(GRADED) & set(strategies):
            synthesizer = self._synthesizer_with(self._options(strategy))
            with self._scoped(synthesizer):
                synthesizer.parts()

    def settings(self, strategies: Sequence[Strategy]) -> dict[str, Any]:
        """Return what the strategies are tried with, for the report."""
        tried = settings_of(strategies, self.parts.settings, model=name_of(self.parts.models["rag"]))
        return {**tried, "prompts": self.synthesizer.wordings()}

    def ask(self, task: Task) -> TaskOutcome:
        """Answer a task's question by its strategy."""
        if task.strategy == "closed_book":
            return self._closed_book(task.question)
        options, used, noting = self._options(task.strategy), nothing_used(), _Noting()
        response = self._response(task, used, noting, options)
        found, draft = response.metadata or {}, noting.nodes[: task.k or self.synthesizer.draft_passages]
        outcome = TaskOutcome(
            answer=response.response or "",
            route="rag" if task.strategy == "rag" else found["route"],
            answerable=found["answerable"],
            decision=found["decision"],
            usage=found["usage"],
            draft=draft_in(used["rag"], found["usage"]),
            passages=[self._passage(node) for node in draft if node.node.node_id in found["retrieved"]],
            cut=any(map(is_trimmed, response.source_nodes)),
            seconds=sum(reply.seconds for replies in used.values() for reply in replies),
        )
        if task.strategy == "long_context":
            looks = whole_of(outcome.answer, used["long_context"], declined=not outcome.answerable)
            alone = usage_of(used["long_context"])
            return replace(outcome, route="long_context", decision={}, usage=alone, passages=(), looks=looks)
        looks = self._looks(task, used, found, options)
        if task.strategy == "graded_sections" and outcome.route == "rag" and looks[0].may_be_doubted:
            used, further = nothing_used(), only_sections(options)
            found = self._response(task, used, _Noting(), further).metadata or {}
            looks = self._looks(task, used, found, further)
        return replace(outcome, looks=looks)

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the first step's model why the passages do not answer a question (Table 8)."""
        context = "\n\n".join(passage.text for passage in passages)
        return self._text("rag", "reason", REASONS.format(context=context, input=with_choices(task.question)), [])

    def _options(self, strategy: Strategy) -> dict[str, Any]:
        own_prompt = not self.synthesizer.has_default_rag_prompt
        return options_of(strategy, self.parts.settings, own_prompt=own_prompt)

    def _retriever(self, k: int) -> BaseRetriever:
        """Return the engine's retriever, for another number of nodes that the draft reads.

        Raises:
            ConfigurationError: It takes none.
        """
        retriever = self.engine.retriever
        found = internals.with_top_k(retriever, reach_of(k, None, sections=self.parts.settings.sections))
        if found is None:
            msg = f"k={k} needs a retriever with similarity_top_k, but {type(retriever).__name__} has none"
            raise ConfigurationError(msg)
        return found

    def _looks(self, task: Task, used: Used, found: Mapping[str, Any], options: Mapping[str, Any]) -> list[StepReply]:
        graded, refusal = numbered(options), self.synthesizer.refusal
        return looks_of(task.strategy, used["rag"], found["usage"], graded=graded, refusal=refusal)

    def _response(self, task: Task, used: Used, noting: _Noting, options: Mapping[str, Any]) -> EngineResponse:
        engine = self._engine_for(task, used, noting, options)
        return cast("EngineResponse", engine.query(with_choices(task.question)))

    def _scoped(self, synthesizer: SelfRouteSynthesizer | None = None) -> AbstractContextManager[Any]:
        """Attach the engine's retriever to a synthesizer if it alone selects the nodes."""
        postprocessors = self.engine._node_postprocessors  # noqa: SLF001
        return (synthesizer or self.synthesizer).behind(self._known_retriever, postprocessors)

    @property
    def _known_retriever(self) -> BaseRetriever | None:
        own = isinstance(self.engine, SelfRouteQueryEngine)
        return (
            self.engine.retriever
            if own and internals.selects_nodes_as(type(self.engine), SelfRouteQueryEngine)
            else None
        )

    def _synthesizer_with(self, options: Mapping[str, Any]) -> SelfRouteSynthesizer:
        synthesizer = copy(self.synthesizer)
        for name, value in options.items():
            setattr(synthesizer, name, value)
        return synthesizer

    def _engine_for(self, task: Task, used: Used, noting: _Noting, options: Mapping[str, Any]) -> RetrieverQueryEngine:
        """Return the engine with the parts of a strategy."""
        engine, synthesizer = copy(self.engine), self._synthesizer_with(options)
        if task.k is not None:
            engine._retriever = self._retriever(task.k)  # noqa: SLF001
            synthesizer.draft_passages = task.k
        first = self._kept("rag", "rag", used["rag"])
        synthesizer.llm = _Declines() if task.strategy == "long_context" else first
        synthesizer.long_context_llm = self._kept("long_context", "long_context", used["long_context"])
        synthesizer.streaming = False
        if self.parts.one_model:  # there are two now, priced alike
            synthesizer.long_context_priced_as = synthesizer.long_context_priced_as or synthesizer.priced_as
        synthesizer.memory = trial_memory(lambda llm: name_of(getattr(llm, "inner", llm)), self.parts.memory)
        if task.strategy == "rag":
            synthesizer.documents = _no_documents
            synthesizer.measure_savings = False
        engine._response_synthesizer = synthesizer  # noqa: SLF001
        engine._node_postprocessors = [*self.engine._node_postprocessors, noting]  # noqa: SLF001
        return engine

    def _kept(self, step: Route, purpose: str, used: list[Reply]) -> KeptLLM:
        return KeptLLM(
            inner=self.parts.models[step],
            replies=self.replies,
            step=purpose,
            used=used,
            parts=self.parts,
            identity=self._identities[step],
            priced_as=self._priced_as(step),
        )

    def _priced_as(self, step: Route) -> PricedModel | None:
        return self.parts.settings.declared_model(step, shared=self.parts.one_model)

    def _passage(self, item: NodeWithScore) -> Passage:
        return Passage(convert.context_of([item], self.synthesizer.document_prompt, whole=False), item.score)

    def _text(self, step: Route, purpose: str, prompt: str, used: list[Reply]) -> str:
        llm = self._kept(step, purpose, used)
        asked = internals.formatted(llm, PromptTemplate("{text}"), {"text": prompt})
        _ask(llm, asked, {})
        return used[-1].text_of(purpose)

    def _closed_book(self, question: Question) -> TaskOutcome:
        used: list[Reply] = []
        refusal = self.synthesizer.refusal
        prompt = CLOSED_BOOK.format(input=with_choices(question), refusal=refusal)
        text = self._text("long_context", "closed_book", prompt, used)
        return TaskOutcome(text, None, not declines(text, refusal=refusal), {}, usage_of(used))
