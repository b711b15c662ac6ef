"""Answers each question from its own document, set up as in the paper: a LangChain chain for each question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_selfroute import SelfRouteChain
from langchain_selfroute.models import name_of
from selfroute.errors import ConfigurationError
from selfroute.evaluation import prompts
from selfroute.evaluation.asking.chunks import chunks, cut_in_the_middle
from selfroute.evaluation.asking.found import Found, Order, Retriever, mark_of, ordered
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.runner import Task, TaskOutcome
from selfroute.evaluation.asking.with_langchain import ChainPipeline, room_for
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import GRADED, Passage
from selfroute.flow import Route
from selfroute.usage.prices import PricedModel, declared_models

_DOCUMENTS = 64
_MARKED = PromptTemplate.from_template("{mark}{page_content}")


class DocumentsPipeline:
    """Answers each question from its own document (Li et al., 2024, section 3.2).

    The document is split into chunks of 300 words, and the k nearest are the passages, each with its number in front.
    Both steps use the data set's prompt (Table 9). A document that is longer than the model's window is cut in the
    middle before it is read whole, as in LongBench.
    """

    def __init__(  # noqa: PLR0913 - what there is to choose
        self,
        llm: Runnable[Any, Any],
        *,
        replies: Replies,
        retriever: Retriever | None,
        long_context_llm: Runnable[Any, Any] | None = None,
        order: Order = "score",
        window: int | None = None,
        priced_as: str | None = None,
        long_context_priced_as: str | None = None,
    ) -> None:
        """Set up.

        Args:
            llm: The model.
            replies: Keeps the replies.
            retriever: Finds passages; None if no strategy reads any.
            long_context_llm: Another model for whole documents.
            order: `"score"` puts the nearest passage first, as the paper does; `"document"` keeps the document's order
                (OP-RAG, Yu et al., 2024).
            window: The context window, in tokens, of the model that reads whole documents; None for what it says of
                itself.
            priced_as: As in `SelfRouteChain`.
            long_context_priced_as: As in `SelfRouteChain`.
        """
        self._llm, self._long_context_llm = llm, long_context_llm
        self.replies, self._retriever, self._order = replies, retriever, order
        self._priced: dict[str, Any] = {
            "priced_as": priced_as,
            "long_context_priced_as": long_context_priced_as,
        }
        self.budget = room_for(long_context_llm or llm, window=window)

    @property
    def priced_models(self) -> dict[Route, PricedModel]:
        """The model of each step as it is priced."""
        declared = declared_models(**self._priced, shared=self._long_context_llm is None)
        return {
            "rag": declared["rag"] or name_of(self._llm),
            "long_context": declared["long_context"] or name_of(self._long_context_llm or self._llm),
        }

    def ask(self, task: Task) -> TaskOutcome:
        """Answer a task's question by its strategy."""
        question = task.question
        read, cut = self.whole(question)
        passages = self._passages(question, task.k) if task.k and task.strategy != "long_context" else []
        given = {"input": question.question, "choices": prompts.choice_lines(question.choices)}
        outcome = self._pipeline(task, passages, read).ask(replace(task, k=None), given)
        return replace(outcome, cut=outcome.route == "long_context" and (cut or outcome.cut))

    def explain(self, task: Task, passages: Sequence[Passage]) -> str:
        """Ask the model why passages do not answer a task's question."""
        return self._pipeline(task, [], "").explain(task, passages)

    def whole(self, question: Question) -> tuple[str, bool]:
        """Return a question's document as the model reads it, and whether it was cut in the middle."""
        text = question.document or ""
        return (text, False) if self.budget is None else cut_in_the_middle(text, self.budget)

    def _passages(self, question: Question, k: int) -> list[Document]:
        return _as_documents(ordered(self._found(question, k), self._order))

    def _found(self, question: Question, k: int) -> list[Found]:
        if self._retriever is None:
            msg = "there is no retriever: give one, or ask for long_context only"
            raise ConfigurationError(msg)
        return self._retriever.search(
            _chunks(question.document or ""), question.question, k=k, document_id=question.document_id
        )

    def _pipeline(self, task: Task, passages: list[Document], read: str) -> ChainPipeline:
        template = prompts.PROMPTS[task.question.prompt]
        first = ChatPromptTemplate([("human", prompts.with_numbers(template))]) if task.strategy in GRADED else None
        prompt = ChatPromptTemplate(
            [("human", prompts.with_based_only_on(template) if task.based_only_on else template)]
        )
        chain = SelfRouteChain(
            retriever=RunnableLambda(lambda _: passages),
            llm=self._llm,
            long_context_llm=self._long_context_llm,
            documents=[Document(read, metadata={"mark": ""})],
            rag_prompt=first or prompt,
            long_context_prompt=prompt,
            document_prompt=_MARKED,
            max_context_tokens=self.budget,
            **self._priced,
        )
        return ChainPipeline(chain, self.replies)


def _as_documents(found: Sequence[Found]) -> list[Document]:
    return [
        Document(one.text, metadata={"mark": mark_of(one), "score": one.score, "start_index": one.index})
        for one in found
    ]


_chunks = lru_cache(_DOCUMENTS)(chunks)
