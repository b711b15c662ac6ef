"""Ask the papers' questions as the papers do, on looks.

Each question is asked about its own document (Li et al., 2024, section 3.2): chunks of 300 words, the k nearest as
passages with their numbers in front, the prompt of its data set (Table 9). A document that is longer than the model's
window is shortened by the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_selfroute import SelfRouteChain
from selfroute.answerability.gate import declines
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation import runs
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.looks import Failure, Key, Look, Result, Strategy
from selfroute_workbench.evaluation.metrics import exact_loose
from selfroute_workbench.evaluation.questions import Question, choice_lines
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.with_langchain import ChainPipeline, asker_with

from .chunks import chunks
from .found import Found, Retriever, mark_of
from .prompts import CLOSED_BOOK, REASONS, prompt_of, with_based_only_on
from .reasons import letter_in

STRATEGIES: tuple[Strategy, ...] = ("rag", "paper", "long_context")
_MARKED = PromptTemplate.from_template("{mark}{page_content}")
_chunks = lru_cache(64)(chunks)


@dataclass(frozen=True, slots=True)
class Variant:
    """How questions are asked.

    Attributes:
        retriever: The retriever's name.
        k: How many passages are retrieved.
    """

    retriever: str
    k: int


@dataclass
class Study:
    """What came of the questions.

    Attributes:
        questions: The questions.
        results: The results of each strategy, by variant; those of the long context are in each.
        failures: The steps that could not be finished.
        stopped: Why it ended early; None if it did not.
        closed_book: Whether each question is answered correctly without any text; empty if that was not asked.
        based_only_on: The score of each question with "based only on the passage"; empty if that was not asked.
        reasons: The letter of the reason why each declined draft was not enough; empty if that was not asked.
    """

    questions: Sequence[Question]
    results: dict[Variant, list[Result]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    stopped: str | None = None
    closed_book: dict[Key, bool] = field(default_factory=dict)
    based_only_on: dict[Key, float] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)


class PaperPipelines:
    """Makes the chain of each question, as the papers set it up."""

    def __init__(self, llm: Runnable[Any, Any], replies: Replies, *, priced_as: str | None = None) -> None:
        """Take a model, and what keeps its replies."""
        self.llm, self.replies, self._priced_as = llm, replies, priced_as

    def of(self, question: Question, passages: Sequence[Found], *, change: Callable[[str], str] = str) -> ChainPipeline:
        """Return the pipeline of a question.

        Args:
            question: The question.
            passages: Its passages.
            change: Changes its prompt.
        """
        prompt = ChatPromptTemplate([("human", change(prompt_of(question)))])
        found = [Document(one.text, metadata={"mark": mark_of(one), "score": one.score}) for one in passages]
        chain = SelfRouteChain(
            retriever=RunnableLambda(lambda _: found),
            llm=self.llm,
            documents=[Document(question.document or "", metadata={"mark": ""})],
            rag_prompt=prompt,
            long_context_prompt=prompt,
            document_prompt=_MARKED,
            priced_as=self._priced_as,
        )
        return ChainPipeline(chain, self.replies)


def ask(  # noqa: PLR0913 - what there is to choose
    questions: Sequence[Question],
    pipelines: PaperPipelines,
    retrievers: Mapping[str, Retriever],
    ks: Sequence[int],
    *,
    concurrency: int = 4,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Study:
    """Ask questions with each retriever and each number of passages, and read each document once.

    Args:
        questions: The questions, each with its document.
        pipelines: Makes their chains.
        retrievers: The retrievers by name; each is tried with the first k, and the first one with all.
        ks: The numbers of passages.
        concurrency: How many questions are asked at a time.
        on_progress: Called with 1 for each question that is done, of each variant.
    """
    study, first = Study(questions), next(iter(retrievers))
    variants = [Variant(first, k) for k in ks] + [Variant(name, ks[0]) for name in retrievers if name != first]
    whole: dict[Key, Look] = {}
    for number, variant in enumerate(variants):
        retriever = retrievers[variant.retriever]

        def pipeline_of(
            question: Question, retriever: Retriever = retriever, variant: Variant = variant
        ) -> ChainPipeline:
            found = retriever.search(
                _chunks(question.document or ""), question.question, k=variant.k, document_id=question.document_id
            )
            return pipelines.of(question, found)

        steps: tuple[Strategy, ...] = ("rag", "long_context") if number == 0 else ("rag",)
        asked = runs.ask_looks(
            pipeline_of, questions, steps, given=given_of, concurrency=concurrency, on_progress=on_progress
        )
        whole |= {look.key: look for look in asked.looks if look.strategy == "long_context"}
        drafts = {look.key: look for look in asked.looks if look.strategy == "rag"}
        study.results[variant] = [
            result for question in questions for result in _results(drafts.get(question.key), whole.get(question.key))
        ]
        study.failures += asked.failures
        if asked.stopped:
            study.stopped = asked.stopped
            break
    return study


def _results(draft: Look | None, whole: Look | None) -> Iterator[Result]:
    """Yield the results of the strategies: the paper's rule reads the document after a draft that declines."""
    if draft:
        yield Result("rag", (draft,))
    if draft and (whole or not draft.declined):
        yield Result("paper", (draft, whole) if whole and draft.declined else (draft,))
    if whole:
        yield Result("long_context", (whole,))


def given_of(question: Question) -> dict[str, str]:
    """Return what a chain of the papers is given."""
    return {"input": question.question, "choices": choice_lines(question.choices)}


def ask_based_only_on(study: Study, pipelines: PaperPipelines, *, concurrency: int = 4) -> None:
    """Ask the documents again with "based only on the provided passage" (Table 4)."""
    asked = runs.ask_looks(
        lambda question: pipelines.of(question, (), change=with_based_only_on),
        study.questions,
        ("long_context",),
        given=given_of,
        concurrency=concurrency,
    )
    study.based_only_on = {look.key: look.score for look in asked.looks}
    study.failures += asked.failures


def ask_closed_book(study: Study, asker: Asker) -> None:
    """Ask each question without any text (Table 5)."""
    for question in study.questions:
        asked = "\n".join(filter(None, (question.question, choice_lines(question.choices))))
        reply, _ = asker.ask(CLOSED_BOOK.format(input=asked, refusal="unanswerable"), "closed_book")
        declined = bool(declines(reply.text))
        said = "" if declined else reply.text
        score = runs.score_of(question, reply.text, declined=declined)
        study.closed_book[question.key] = is_correct(question, said, score)


def is_correct(question: Question, said: str, score: float) -> bool:
    """Return whether an answer is correct, as the sequel counts.

    Args:
        question: The question.
        said: The answer; empty for a decline, which is not knowledge even if the text has no answer.
        score: Its score by the question's own metric, which decides for a choice.
    """
    return score == 1 if question.choices else bool(exact_loose(said, question.answers))


def ask_reasons(study: Study, asker: Asker) -> None:
    """Ask why declined drafts were not enough (Figure 4), with the first variant."""
    results = next(iter(study.results.values()), [])
    for result in results:
        if result.strategy == "rag" and not result.answerable:
            question = next(one for one in study.questions if one.key == result.key)
            context = "\n\n".join(passage.text for passage in result.passages)
            reply, _ = asker.ask(REASONS.format(context=context, input=question.question), "reason")
            study.reasons[result.key] = letter_in(reply.text)


def asker_of(llm: Runnable[Any, Any], replies: Replies, *, priced_as: str | None = None) -> Asker:
    """Return what asks single prompts."""
    asker = asker_with(llm, replies, priced_as=PricedModel.parse("--priced-as", priced_as) if priced_as else None)
    asker.check("closed_book")
    return asker
