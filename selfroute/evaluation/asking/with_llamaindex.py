"""Evaluates LlamaIndex's query engines: each strategy is the real engine with one part of it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import astuple, replace
from functools import partial
from typing import Any, cast

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
from pydantic import BaseModel, Field
from typing_extensions import override

from llamaindex_selfroute import SelfRouteSynthesizer, convert, structured
from llamaindex_selfroute.convert import Prompt
from llamaindex_selfroute.documents import is_trimmed
from llamaindex_selfroute.models import Response, Tally, name_of
from selfroute.answerability.gate import declines
from selfroute.evaluation.asking.replies import NO_SETTINGS, Replies, Reply, usage_of
from selfroute.evaluation.asking.runner import Outcome, Task, with_choices
from selfroute.evaluation.prompts import CLOSED_BOOK, REASONS
from selfroute.evaluation.questions import Question
from selfroute.evaluation.results import Passage
from selfroute.flow import Route
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import ModelNames, cost_of
from selfroute.usage.savings import LongContextEstimate


class KeptLLM(CustomLLM):
    """A model whose replies are kept: what it was asked once it is not asked again.

    A report that it fills in is kept, and given back, as a model that writes text would write it.

    Attributes:
        inner: The model.
        replies: Where they are kept.
        step: What it is asked for.
        heard: The replies that were used, in order.
        synthesizer: Whose model it is.
    """

    inner: LLM = Field(exclude=True, repr=False)
    replies: Any = Field(exclude=True, repr=False)
    step: str
    heard: Any = Field(exclude=True, repr=False)
    synthesizer: Any = Field(exclude=True, repr=False)
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

    def _prepare_schema(self, options: Mapping[str, Any], _: Any) -> dict[str, Any]:
        return {**options, "structured": True}

    @override
    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        """Return the kept reply to messages, or ask for it and keep it."""
        reply = self._reply(list(messages), options)
        message = ChatMessage(role=MessageRole.ASSISTANT, content=reply.text)
        return ChatResponse(message=message, **_about(reply))

    @override
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        """Return the kept reply to a prompt, or ask for it and keep it."""
        reply = self._reply(prompt, options)
        return CompletionResponse(text=reply.text, **_about(reply))

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError  # nothing streams here

    def _reply(self, prompt: Prompt, options: Mapping[str, Any]) -> Reply:
        tokens = self.synthesizer.count_tokens(convert.text_of(prompt))
        reply: Reply = self.replies.get(
            self._identity(prompt, options),
            partial(self._ask, prompt, options),
            step=self.step,
            price=lambda output: cost_of(self.priced_as or name_of(self.inner), StepUsage(tokens, output)),
        )
        self.heard.append(reply.priced(self.priced_as))
        return reply

    def _identity(self, prompt: Prompt, options: Mapping[str, Any]) -> object:
        """All that a reply depends on."""
        kind = type(self.inner)
        return {
            "model": [kind.__module__, kind.__qualname__, *astuple(name_of(self.inner))],
            "settings": _settings(self.inner),
            "given": dict(options),
            "structured": self.synthesizer.refusal if options.get("structured") else None,
            "prompt": prompt if isinstance(prompt, str) else [message.model_dump() for message in prompt],
        }

    def _ask(self, prompt: Prompt, options: Mapping[str, Any]) -> Reply:
        tally = Tally(whole=True)
        if options.get("structured"):
            told = structured.ask(self.inner, prompt)
            text = structured.text_of(self.inner, told, tally, refusal=self.synthesizer.refusal)
        else:
            text = tally.add(_ask(self.inner, prompt, options))
        counts = tally.usage(prompt, count=self.synthesizer.count_tokens) or StepUsage(0, 0)
        model = tally.model(name_of(self.inner))
        return Reply.of(text, counts.with_cost(cost_of(self.priced_as or model, counts)), model)


def _ask(llm: LLM, prompt: Prompt, options: Mapping[str, Any]) -> Response:
    return llm.complete(prompt, formatted=True, **options) if isinstance(prompt, str) else llm.chat(prompt, **options)


def _about(reply: Reply) -> dict[str, Any]:
    """What a response says beside its text, as `Tally` reads it."""
    if reply.estimated:
        return {"raw": {"model": reply.model}}
    written = reply.cache_write_tokens  # which is not counted among the others there
    usage = {
        "cache_creation_input_tokens": written,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    counts = {"prompt_tokens": reply.input_tokens - written, "completion_tokens": reply.output_tokens}
    return {"raw": {"model": reply.model, "usage": usage}, "additional_kwargs": counts}


def _settings(llm: LLM) -> Any:
    """A model's settings as plain JSON: of what is none, only the kind, which is the same in another run."""
    fields = {name: getattr(llm, name) for name, field in type(llm).model_fields.items() if not field.exclude}
    fields["_generation_config"] = getattr(llm, "_generation_config", None)  # where Gemini's models keep theirs
    told = {name: value for name, value in fields.items() if not name.endswith(NO_SETTINGS)}
    return json.loads(json.dumps(told, skipkeys=True, default=_plain))


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else type(value).__qualname__


class _Declines(CustomLLM):
    """A first step that declines at once, for nothing."""

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


class _Noted(BaseNodePostprocessor):
    """Notes the nodes that the first step is given."""

    nodes: Any = Field(default_factory=list, exclude=True, repr=False)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.nodes.extend(nodes)
        return nodes


def _no_documents(*_: Any) -> list[Any]:
    return []


class EnginePipeline:
    """A query engine of the user's own."""

    def __init__(self, engine: RetrieverQueryEngine, replies: Replies) -> None:
        """Take an engine.

        Args:
            engine: A `SelfRouteQueryEngine`, or another engine with a `SelfRouteSynthesizer`; it is not changed.
            replies: Where its models' replies are kept.
        """
        self.engine = engine
        self.synthesizer = cast("SelfRouteSynthesizer", engine._response_synthesizer)  # noqa: SLF001
        self.replies = replies

    def ask(self, task: Task) -> Outcome:
        """Perform a task."""
        if task.strategy == "closed_book":
            return self._closed_book(task.question)
        heard: dict[Route, list[Reply]] = {"rag": [], "long_context": []}
        noted = _Noted()
        response = cast("EngineResponse", self._by(task, heard, noted).query(with_choices(task.question)))
        told = response.metadata or {}
        outcome = Outcome(
            answer=response.response or "",
            route=told["route"] if task.strategy == "self_route" else task.strategy,
            answerable=told["answerable"],
            decision=told["decision"],
            usage=told["usage"],
            draft=heard["rag"][-1].text if heard["rag"] else None,
            passages=[self._passage(node) for node in noted.nodes if node.node.node_id in told["retrieved"]],
            cut=any(map(is_trimmed, response.source_nodes)),
            seconds=sum(reply.seconds for replies in heard.values() for reply in replies),
        )
        if task.strategy != "long_context":
            return outcome
        return replace(outcome, decision={}, usage=usage_of(heard["long_context"]), passages=())

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the first step's model why the passages do not answer a question (Table 8)."""
        context = "\n\n".join(passage.text for passage in passages)
        return self._text("rag", "reason", REASONS.format(context=context, input=with_choices(task.question)), [])

    def _by(self, task: Task, heard: Mapping[Route, list[Reply]], noted: _Noted) -> RetrieverQueryEngine:
        """The engine as a strategy has it."""
        engine, synthesizer = copy(self.engine), copy(self.synthesizer)
        first = self._kept("rag", "rag", heard["rag"])
        synthesizer._llm = _Declines() if task.strategy == "long_context" else first  # noqa: SLF001
        synthesizer._long_context_llm = self._kept("long_context", "long_context", heard["long_context"])  # noqa: SLF001
        synthesizer._streaming = False  # noqa: SLF001
        synthesizer.baseline = (
            LongContextEstimate()
        )  # what one question taught would change another's estimate, by their order
        synthesizer.names = ModelNames(lambda llm: name_of(getattr(llm, "inner", llm)))
        if task.strategy == "rag":
            synthesizer.documents, synthesizer._source = _no_documents, None  # noqa: SLF001
            synthesizer.measure_savings = False
        engine._response_synthesizer = synthesizer  # noqa: SLF001
        engine._node_postprocessors = [*self.engine._node_postprocessors, noted]  # noqa: SLF001
        return engine

    def _kept(self, step: Route, purpose: str, heard: list[Reply]) -> KeptLLM:
        return KeptLLM(
            inner=self.synthesizer.model_of(step)[0],
            replies=self.replies,
            step=purpose,
            heard=heard,
            synthesizer=self.synthesizer,
            priced_as=self.synthesizer.priced_model_of(step),
        )

    def _passage(self, item: NodeWithScore) -> Passage:
        return Passage(convert.context_of([item], self.synthesizer.document_prompt, whole=False), item.score)

    def _text(self, step: Route, purpose: str, prompt: str, heard: list[Reply]) -> str:
        llm = self._kept(step, purpose, heard)
        asked = convert.formatted(llm, PromptTemplate("{text}"), {"text": prompt})
        return Tally(whole=True).add(_ask(llm, asked, {}))

    def _closed_book(self, question: Question) -> Outcome:
        heard: list[Reply] = []
        refusal = self.synthesizer.refusal
        prompt = CLOSED_BOOK.format(input=with_choices(question), refusal=refusal)
        text = self._text("long_context", "closed_book", prompt, heard)
        return Outcome(text, None, not declines(text, refusal=refusal), {}, usage_of(heard))
