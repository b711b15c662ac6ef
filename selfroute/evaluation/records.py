"""The plain data of an evaluation: one `Result` for each question and strategy, and all of them as a `Record`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from selfroute.effects import Route
from selfroute.evaluation.questions import Question
from selfroute.usage.counts import STEPS

Strategy = Literal["rag", "long_context", "self_route", "sections", "graded", "graded_sections", "closed_book"]
STRATEGIES: tuple[Strategy, ...] = ("rag", "long_context", "self_route")
"""The strategies of the paper, which are compared unless others are asked for."""
ALL_STRATEGIES: tuple[Strategy, ...] = (*STRATEGIES, "sections", "graded", "graded_sections")
WITH_SECTIONS: tuple[Strategy, ...] = ("sections", "graded_sections")
GRADED: tuple[Strategy, ...] = ("graded", "graded_sections")
MOST_DOUBT = 90
"""The highest bound of the confidence that is tried: sections are read after drafts below it, too."""
SECTIONS = 4_000
"""The tokens of sections that are tried, unless the pipeline has its own."""
LookStep = Literal["rag", "sections", "graded", "graded_sections", "long_context"]
"""The step and its prompt: `"graded"` asks for two numbers, `"graded_sections"` for the confidence alone."""
Measure = Literal["judged", "score"]
"""`"judged"` is `Result.judged`, `"score"` the questions' own metrics."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage.

    Attributes:
        text: Its text, as the model read it.
        score: How near it is to the question, by the retriever's own measure; None if the retriever gives none.
    """

    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one strategy to one question.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        strategy: `"rag"` is the first step alone, with a decline as its final answer; `"long_context"` reads the
            documents at once; `"self_route"` is both, where every decline goes on to the documents; `"sections"` reads
            sections of the documents in between; `"graded"` goes by the two numbers of graded answerability, and
            `"graded_sections"` with sections; `"closed_book"` reads no text at all.
        k: How many passages were retrieved; None if no number was set, or no passages are read.
        based_only_on: Whether the prompt said "based only on the provided passage" (Table 4).
        answer: The final answer; if there is none, the model's own words or the refusal word.
        route: The step that produced it; None for closed book.
        answerable: Whether the model answered.
        decision: The chain's decision: why it took that route, with `prospect` and `confidence` if it was graded.
        usage: The chain's usage: tokens and cost. Kept replies count as if they were asked for again.
        draft: The model's whole reply in the first step, with its numbers if it was graded; None if that did not run.
        passages: The retrieved passages that the draft reads.
        cut: Whether the model read only a part of the document, because it was longer than the model's window.
        seconds: The model's time for all steps that ran; for a kept reply, when it was asked for.
        score: By the question's own metric, from 0 to 1.
        exact: The loose exact match of Li et al. (2025), 0 or 1; for SQuAD its own, for choices and keys the score.
        set_f1: The F1 of Li et al. (2025), over sets of words, from 0 to 1; with the same exceptions.
        judged: Whether the answer says what the references say: 1, 0.5 or 0. None without a judge, and for a question
            that a strategy, or the judge itself, did not finish.
        judged_by: Whether a `"model"` judged it, or a `"rule"`: a decline is right if the text has no answer, and
            wrong if it has one, and any other answer to a question without one is wrong. None if nobody judged it.
        retriever: The retriever, if it is one that is only compared with the run's own.
    """

    dataset: str
    id: str
    strategy: Strategy
    k: int | None
    based_only_on: bool
    answer: str
    route: Route | None
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    draft: str | None
    passages: Sequence[Passage]
    cut: bool
    seconds: float = field(compare=False)
    score: float
    exact: float
    set_f1: float
    judged: float | None = None
    judged_by: Literal["model", "rule"] | None = None
    retriever: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The question's key."""
        return self.dataset, self.id

    @property
    def input_tokens(self) -> int:
        """The input tokens of all steps that ran."""
        return sum(step["input_tokens"] for step in steps_of(self.usage))

    @property
    def output_tokens(self) -> int:
        """The output tokens of all steps that ran."""
        return sum(step["output_tokens"] for step in steps_of(self.usage))


def steps_of(usage: Mapping[str, Any]) -> list[Mapping[str, int]]:
    """Return the counts of the steps that ran."""
    return [usage[step] for step in STEPS if usage.get(step)]


@dataclass(frozen=True, slots=True)
class Look:
    """What the model replied in one step to one question, whether or not a strategy showed it.

    With the looks of all steps, other bounds of the two numbers can be tried without asking again.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        step: `"rag"` is the plain draft, `"graded"` the draft with its two numbers, read to its end; `"sections"` and
            `"graded_sections"` are the replies to sections; `"long_context"` is that over whole documents.
        k: How many passages the draft had; None for whole documents, or if no number was set.
        answer: The reply, without its numbers.
        declined: Whether it declines.
        prospect: How likely the whole text holds an answer, from 0 to 100, as the reply says; None if it does not.
        confidence: How likely the answer would stay the same if all of the text were read, from 0 to 100 as well.
        input_tokens: The tokens of this step's prompt.
        output_tokens: The tokens of its reply.
        cost: What this step alone costs in US dollars, a decimal string; None if it is not known.
        score: By the question's own metric, from 0 to 1.
        judged: As in `Result`.
        judged_by: As in `Result`.
    """

    dataset: str
    id: str
    step: LookStep
    k: int | None
    answer: str
    declined: bool
    prospect: int | None
    confidence: int | None
    input_tokens: int
    output_tokens: int
    cost: str | None
    score: float
    judged: float | None = None
    judged_by: Literal["model", "rule"] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The question's key."""
        return self.dataset, self.id

    @property
    def answerable(self) -> bool:
        """Whether it answers."""
        return not self.declined


Answer = Result | Look
"""What can be judged."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that a strategy could not finish; it is not scored.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        strategy: The strategy; `"reason"` if the model was asked why it declined, `"judge"` if the answers were to be
            judged.
        k: How many passages were to be retrieved.
        based_only_on: As in `Result`.
        error: The error, in one line and without keys.
        retriever: As in `Result`.
    """

    dataset: str
    id: str
    strategy: Strategy | Literal["reason", "judge"]
    k: int | None
    based_only_on: bool
    error: str
    retriever: str | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the passages were not enough, according to the model (section 5.2 of the paper).

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        k: How many passages were retrieved.
        letter: "A" multi-step, "B" general, "C" long and complex, "D" implicit, "E" other; "answerable" if the model,
            when asked for a reason, answered after all; "?" if its reply cannot be read.
        reply: The model's reply.
    """

    dataset: str
    id: str
    k: int | None
    letter: str
    reply: str


@dataclass(frozen=True, slots=True)
class OtherGrade:
    """What somebody else, such as a person, says of an answer.

    Attributes:
        id: The question's id in the data set.
        strategy: The strategy that gave the answer.
        grade: 1, 0.5 or 0.
        dataset: The question's data set; None if the id is enough to find it.
    """

    id: str
    strategy: str
    grade: float
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a document that an answer stands in, or that was read for it.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        strategies: The strategies with such an answer.
        start: The offset of `text` in the document.
        score: How much of the answer stands there, from 0 to 1; None if that is not known.
        before: Some text before it.
        text: The sentence in which the answer stands; empty if that is not known.
        after: Some text behind it.
        source: The document's name; None if it has none.
    """

    dataset: str
    id: str
    strategies: Sequence[Strategy]
    start: int
    score: float | None
    before: str
    text: str
    after: str
    source: str | None = None


@dataclass(frozen=True, repr=False)
class Record:
    """All that an evaluation found out, as plain data; `Evaluation` describes the attributes."""

    questions: Sequence[Question]
    results: Sequence[Result]
    failures: Sequence[Failure] = ()
    reasons: Sequence[Reason] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    stopped: str | None = None
    other_grades: Sequence[OtherGrade] = ()
    looks: Sequence[Look] = ()
    excerpts: Sequence[Excerpt] = ()

    def __repr__(self) -> str:
        """Return how much there is: all of it would fill the screen."""
        counts = {"questions": self.questions, "results": self.results, "failures": self.failures}
        return f"{type(self).__name__}({', '.join(f'{len(found):,} {what}' for what, found in counts.items())})"


def measure_of(record: Record) -> Measure:
    """Return by which scores a record is to be judged: those of its judge, if it has one that works.

    Where the model failed throughout, only what a rule decides has a grade, and that is no fair sample.
    """
    by = {each.judged_by for each in record.results if not each.based_only_on}
    failed = any(each.strategy == "judge" for each in record.failures)
    return "judged" if "model" in by or ("rule" in by and not failed) else "score"
