"""Ask the papers' questions as the papers do, on looks.

Each question is asked about its own document (Li et al., 2024, section 3.2): chunks of 300 words, the k nearest as
passages with their numbers in front, the prompt of its data set (Table 9). The long context is the document alone. One
that is longer than the model's window loses its end, as in the sequel (Li et al., 2025, section 3.1), or its middle, as
in LongBench's program; the paper does not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda

from langchain_selfroute import SelfRouteChain
from langchain_selfroute.models.clients import window_of
from selfroute.answerability.gate import declines
from selfroute.documents.window import room_in
from selfroute.languages.tokens import count_tokens
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation import runs
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looks import Failure, Key, Look, Measure, Result, Strategy
from selfroute_workbench.evaluation.questions import Question, choice_lines
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.spending import CostCapError
from selfroute_workbench.evaluation.with_langchain import ChainPipeline, asker_with

from .found import Found, Retriever, chunks
from .prompts import CLOSED_BOOK, REASONS, letter_in, prompt_of, without_based_on

STRATEGIES: tuple[Strategy, ...] = ("rag", "paper", "long_context")
REFUSAL = "unanswerable"
WITHOUT_K = ("tree", "raptor")  # they find one chunk, and so many tokens
Cut = Literal["back", "middle"]
_BEGINNING = 100  # characters
_MARKED = PromptTemplate.from_template("{mark}{page_content}")
_chunks = lru_cache(64)(chunks)


@dataclass(frozen=True, slots=True)
class Variant:
    """How drafts are asked for: the retriever's name, and how many passages are retrieved."""

    retriever: str
    k: int

    @property
    def label(self) -> str:
        """What a title says."""
        return f"{self.retriever}, k={self.k}"


@dataclass
class Study:
    """What came of the questions.

    Attributes:
        questions: The questions.
        results: The results of each strategy, by variant; those of the long context are in each.
        failures: The steps that could not be finished.
        stopped: Why it ended early; None if it did not.
        measure: Whether answers were judged by meaning, or have the scores of their data sets' metrics alone.
        lost: How many tokens were cut off each document that did not fit the window.
        where: Where they were cut off.
        dropped: How many drafts lost passages that did not fit the window, by variant.
        index_tokens: What an index asked the model itself, in tokens, by the retriever's name.
        closed_book: What was answered without any text, empty for a decline, and its score; None if not asked.
        without: The looks of the long context without "based on the article"; empty if not asked.
        reasons: The letter of the reason why each declined draft was not enough; empty if not asked.
    """

    questions: Sequence[Question]
    results: dict[Variant, list[Result]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    stopped: str | None = None
    measure: Measure = "score"
    lost: dict[Key, int] = field(default_factory=dict)
    where: Cut = "back"
    dropped: dict[Variant, int] = field(default_factory=dict)
    index_tokens: Mapping[str, int] = field(default_factory=dict)
    closed_book: dict[Key, tuple[str, float]] | None = None
    without: dict[Key, Look] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Experiment:
    """Asks a model as the papers do.

    Attributes:
        llm: The model.
        replies: Keeps its replies.
        judge: Judges answers by meaning; None for the data sets' metrics alone.
        priced_as: What the model is priced as, as `provider:name`.
        window: The model's window in tokens; None for what the model says of itself.
        cut: Where a document that is longer loses text.
        of_sequel: Whether to ask by the sequel's prompt.
        concurrency: How many questions are asked at a time.
        on_progress: Called with 1 for each question that is done.
    """

    llm: BaseChatModel
    replies: Replies
    judge: ModelJudge | None = None
    priced_as: str | None = None
    window: int | None = None
    cut: Cut = "back"
    of_sequel: bool = False
    concurrency: int = 4
    on_progress: Callable[[int], object] = lambda _: None
    index_tokens: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        """Have the model say how long its window is."""
        if self.window:
            profile = {**(getattr(self.llm, "profile", None) or {}), "max_input_tokens": self.window}
            self.llm = self.llm.model_copy(update={"profile": profile})

    def ask(self, questions: Sequence[Question], retrievers: Mapping[str, Retriever], ks: Sequence[int]) -> Study:
        """Ask questions, each about its document, by each retriever with the first k, and by the first with all.

        The whole of each document is asked about once.
        """
        measure: Measure = "judged" if self.judge else "score"
        study = Study(questions, measure=measure, where=self.cut, index_tokens=self.index_tokens)
        first = next(iter(retrievers))
        ks = ks[:1] if first in WITHOUT_K else ks
        variants = [Variant(first, k) for k in ks] + [Variant(name, ks[0]) for name in retrievers if name != first]
        whole: dict[Key, Look] | None = None
        for variant in variants:
            retriever, k = retrievers[variant.retriever], variant.k
            found: dict[Key, int] = {}
            drafts = self._looks(study, "rag", lambda one: self._draft(one, retriever, k, found))  # noqa: B023
            study.dropped[variant] = sum(len(look.passages) < found[look.key] for look in drafts.values())
            if whole is None and not study.stopped:
                whole = self._looks(study, "long_context", lambda one: self._whole(one, study))
            study.results[variant] = [
                result for one in questions for result in _results(drafts.get(one.key), (whole or {}).get(one.key))
            ]
            if study.stopped:
                break
        return study

    def ask_without(self, study: Study) -> None:
        """Ask the documents again without "based on the article" (Table 4)."""
        study.without = self._looks(study, "long_context", lambda one: self._whole(one, study, change=without_based_on))

    def ask_closed_book(self, study: Study) -> None:
        """Ask each question without any text (Table 5; the sequel's section 2.1)."""
        study.closed_book = {}
        for question in study.questions:
            asked = "\n".join(filter(None, (question.question, choice_lines(question.choices))))
            text = self._reply(study, question, CLOSED_BOOK.format(input=asked, refusal=REFUSAL), "closed_book")
            if text is not None:
                declined = bool(declines(text))
                score = runs.score_of(question, text, declined=declined)
                study.closed_book[question.key] = ("" if declined else text, score)
            self.on_progress(1)

    def ask_reasons(self, study: Study) -> None:
        """Ask why declined drafts were not enough (Figure 4), with the first variant."""
        by_key = {one.key: one for one in study.questions}
        for result in next(iter(study.results.values()), []):
            if result.strategy == "rag" and not result.answerable:
                context = "\n\n".join(passage.text for passage in result.passages)
                question = by_key[result.key]
                prompt = REASONS.format(context=context, input=question.question)
                if (text := self._reply(study, question, prompt, "reason")) is not None:
                    study.reasons[result.key] = letter_in(text)

    def _reply(self, study: Study, question: Question, prompt: str, step: str) -> str | None:
        try:
            with runs.failing(question, "rag", study.failures):
                return self._asker(step).ask(prompt, step)[0].text_of(step)
        except CostCapError as error:
            study.stopped = study.stopped or str(error)
        return None

    def answer(self, retriever: str, prompt: str) -> str:
        """Answer the prompt of a retriever's index, which has the model summarize or choose."""
        reply, _ = self._asker("index").ask(prompt, "index")
        self.index_tokens[retriever] += reply.input_tokens
        return reply.text_of("index")

    def _asker(self, step: str) -> Asker:
        priced_as = PricedModel.parse("--priced-as", self.priced_as) if self.priced_as else None
        asker = asker_with(self.llm, self.replies, priced_as=priced_as)
        asker.check(step)
        return asker

    def _looks(
        self, study: Study, strategy: Strategy, pipeline_of: Callable[[Question], ChainPipeline]
    ) -> dict[Key, Look]:
        how: dict[str, Any] = {"concurrency": self.concurrency, "on_progress": self.on_progress, "judge": self.judge}
        asked = runs.ask_looks(pipeline_of, study.questions, (strategy,), given=_given_of, **how)
        study.failures += asked.failures
        study.stopped = study.stopped or asked.stopped
        return {look.key: look for look in asked.looks}

    def _draft(self, question: Question, retriever: Retriever, k: int, counts: dict[Key, int]) -> ChainPipeline:
        text = question.document or ""
        found = retriever.search(_chunks(text), question.question, k=k, document_id=question.document_id)
        counts[question.key] = len({one.text for one in found})  # the chain reads a text once
        return self._pipeline(prompt_of(question, of_sequel=self.of_sequel), text, found)

    def _whole(self, question: Question, study: Study, *, change: Callable[[str], str] = str) -> ChainPipeline:
        text, prompt = question.document or "", prompt_of(question, of_sequel=self.of_sequel)
        if window := window_of(self.llm):
            around = count_tokens(prompt.format(context="", refusal=REFUSAL, **_given_of(question)))
            kept = shortened(text, room_in(window, around=around), self.cut)
            if kept != text:
                study.lost[question.key] = count_tokens(text) - count_tokens(kept)
                text = kept
        # The chain reads what was found, so that has to be something.
        return self._pipeline(change(prompt), text, [Found(0, text[:_BEGINNING], 1.0)])

    def _pipeline(self, prompt: str, text: str, found: Sequence[Found]) -> ChainPipeline:
        template = ChatPromptTemplate([("human", prompt)])
        passages = [Document(one.text, metadata={"mark": one.mark, "score": one.score}) for one in found]
        chain = SelfRouteChain(
            retriever=RunnableLambda(lambda _: passages),
            llm=self.llm,
            documents=[Document(text, metadata={"mark": ""})],
            rag_prompt=template,
            long_context_prompt=template,
            document_prompt=_MARKED,
            priced_as=self.priced_as,
            answerability="text",
        )
        return ChainPipeline(chain, self.replies)


@lru_cache(64)
def shortened(text: str, room: int, cut: Cut) -> str:
    """Cut a text to a number of tokens: it loses its end, or its middle."""
    length, kept = len(text), text
    while (size := count_tokens(kept)) > room:
        length = min(length * room // size, length - 1)
        head = length if cut == "back" else length // 2
        kept = text[:head] + text[len(text) - (length - head) :]
    return kept


def _results(draft: Look | None, whole: Look | None) -> Iterator[Result]:
    """Yield the results of the strategies: the paper's rule reads the document after a draft that declines."""
    if draft:
        yield Result("rag", (draft,))
    if whole:
        yield Result("long_context", (whole,))
    if draft and whole:
        yield Result("paper", (draft, whole) if draft.declined else (draft,))


def _given_of(question: Question) -> dict[str, str]:
    """Return what a chain of the papers is given."""
    return {"input": question.question, "choices": choice_lines(question.choices)}
