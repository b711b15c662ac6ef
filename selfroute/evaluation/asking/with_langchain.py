"""Evaluates LangChain's chains: each strategy is the real chain with one part of it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from pydantic import Field
from typing_extensions import override

from langchain_selfroute import SelfRouteChain
from langchain_selfroute.documents import label_of
from langchain_selfroute.models import Tally, asked, name_of
from langchain_selfroute.structured import StructuredReply, text_of
from selfroute.answerability.gate import declines
from selfroute.evaluation.asking.identity import describe_model
from selfroute.evaluation.asking.replies import Replies, Reply, usage_of
from selfroute.evaluation.asking.runner import Outcome, Task, with_choices
from selfroute.evaluation.prompts import CLOSED_BOOK, REASONS
from selfroute.evaluation.questions import Question
from selfroute.evaluation.results import Passage
from selfroute.flow import Route
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import ModelNames, PricedModel, cost_of
from selfroute.usage.savings import LongContextEstimate


class KeptModel(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """A model whose replies are kept: what it was asked once it is not asked again.

    Attributes:
        replies: Where they are kept.
        step: What it is asked for.
        heard: The replies that were used, in order.
        chain: Whose model it is.
        model: The model itself; a structured one is `bound` as it is asked for its report.
        priced_as: What it is priced as, if not as it calls itself.
        structured: Whether it fills a report in, which is kept, and given back, as text.
    """

    replies: Any = Field(repr=False)
    step: str
    heard: Any = Field(repr=False)
    chain: Any = Field(repr=False)
    model: Any = Field(repr=False)
    priced_as: Any = None
    structured: bool = False

    @override
    def invoke(self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the kept reply to a prompt, or ask for it and keep it."""
        configured = name_of(self.model, config, kwargs)
        ask = partial(self._ask, input, config, kwargs=kwargs, configured=configured)
        tokens = self.chain.count_tokens(asked(input))
        reply: Reply = self.replies.get(
            self._identity(input, config, kwargs),
            ask,
            step=self.step,
            price=lambda output: cost_of(self.priced_as or configured, StepUsage(tokens, output)),
        )
        self.heard.append(reply.priced(self.priced_as))
        return self._told(reply)

    def _identity(self, prompt: PromptValue, config: RunnableConfig | None, kwargs: Mapping[str, Any]) -> object:
        """All that a reply depends on."""
        return {
            "model": describe_model(self.model, config),
            "about": astuple(name_of(self.model, config, kwargs)),
            "given": kwargs,
            "structured": self.chain.refusal if self.structured else None,
            "prompt": [[message.type, message.content] for message in prompt.to_messages()],
        }

    def _ask(
        self, prompt: PromptValue, config: RunnableConfig | None, *, kwargs: Mapping[str, Any], configured: PricedModel
    ) -> Reply:
        told = super().invoke(prompt, config, **kwargs)
        tally = Tally(whole=True)
        text = (
            text_of(told, tally, refusal=self.chain.refusal) if isinstance(told, StructuredReply) else tally.add(told)
        )
        counts = tally.usage(prompt, count=self.chain.count_tokens) or StepUsage(0, 0)
        model = tally.model(configured)
        return Reply.of(text, counts.with_cost(cost_of(self.priced_as or model, counts)), model)

    def _told(self, reply: Reply) -> Any:
        """The reply as the model would give it."""
        counts = UsageMetadata(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            total_tokens=reply.input_tokens + reply.output_tokens,
            input_token_details={"cache_read": reply.cached_tokens, "cache_creation": reply.cache_write_tokens},
        )
        about = {"model_name": reply.model, "model_provider": reply.provider}
        message = AIMessage(reply.text, response_metadata={key: value for key, value in about.items() if value})
        message.usage_metadata = None if reply.estimated else counts
        return StructuredReply(message, None) if self.structured else message


class _Declines(Runnable[Any, AIMessage]):
    """A first step that declines at once, for nothing."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        return AIMessage("")

    def with_structured_output(self, _: Any) -> Runnable[Any, Any]:
        """Decline this way, too."""
        return self


def _no_documents(_: Any) -> list[Document]:
    return []


class ChainPipeline:
    """A chain of the user's own."""

    def __init__(self, chain: SelfRouteChain, replies: Replies) -> None:
        """Take a chain.

        Args:
            chain: The chain; it is not changed.
            replies: Where its models' replies are kept.
        """
        self.chain = chain
        self.replies = replies

    def ask(self, task: Task, given: Mapping[str, Any] | None = None) -> Outcome:
        """Perform a task.

        Args:
            task: The task.
            given: What the chain is given; the question, with its choices below it, if None.
        """
        if task.strategy == "closed_book":
            return self._closed_book(task.question)
        heard: dict[Route, list[Reply]] = {"rag": [], "long_context": []}
        output = self._by(task, heard).invoke(given or {"input": with_choices(task.question)})
        passages = [
            Passage(passage.page_content, score if isinstance(score := passage.metadata.get("score"), float) else None)
            for passage in (output["retrieved"] if task.strategy != "long_context" else ())
        ]
        outcome = Outcome(
            answer=output["answer"],
            route=output["route"] if task.strategy == "self_route" else task.strategy,
            answerable=output["answerable"],
            decision=output["decision"],
            usage=output["usage"],
            draft=heard["rag"][-1].text if heard["rag"] else None,
            passages=passages,
            cut=any(label_of(document).get("trimmed") for document in output["context"]),
            seconds=sum(reply.seconds for replies in heard.values() for reply in replies),
        )
        if task.strategy != "long_context":
            return outcome
        return replace(outcome, decision={}, usage=usage_of(heard["long_context"]))

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the first step's model why the passages do not answer a question (Table 8)."""
        context = "\n\n".join(passage.text for passage in passages)
        return self._text("rag", "reason", REASONS.format(context=context, input=with_choices(task.question)), [])

    def _by(self, task: Task, heard: Mapping[Route, list[Reply]]) -> SelfRouteChain:
        """The chain as a strategy has it."""
        chain = self.chain
        changes: dict[str, Any] = {
            "llm": self._kept("rag", "rag", heard["rag"]),
            "long_context_llm": self._kept("long_context", "long_context", heard["long_context"]),
            "long_context_priced_as": chain.long_context_priced_as
            or (None if chain.long_context_llm else chain.priced_as),
            "names": ModelNames(name_of),
            "baseline": LongContextEstimate(),  # shared, what one question taught would change the next one
        }
        if task.strategy == "rag":
            changes |= {"documents": _no_documents, "measure_savings": False}
        elif task.strategy == "long_context":
            changes["llm"] = _Declines()
        return chain.model_copy(update=changes)

    def _kept(self, step: Route, purpose: str, heard: list[Reply]) -> KeptModel:
        chain = self.chain
        return KeptModel(
            bound=chain.model_of(step),
            model=chain.model_of(step),
            chain=chain,
            replies=self.replies,
            step=purpose,
            heard=heard,
            priced_as=chain.priced_model_of(step),
            structured=purpose == step and chain.answerability == "structured",
        )

    def _text(self, step: Route, purpose: str, prompt: str, heard: list[Reply]) -> str:
        message = self._kept(step, purpose, heard).invoke(ChatPromptValue(messages=[HumanMessage(prompt)]))
        return str(message.content)

    def _closed_book(self, question: Question) -> Outcome:
        heard: list[Reply] = []
        refusal = self.chain.refusal
        text = self._text(
            "long_context", "closed_book", CLOSED_BOOK.format(input=with_choices(question), refusal=refusal), heard
        )
        return Outcome(text, None, not declines(text, refusal=refusal), {}, usage_of(heard))
