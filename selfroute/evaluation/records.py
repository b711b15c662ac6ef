"""The plain data of an evaluation: one `Result` for each question and strategy, and all of them as a `Record`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from selfroute.evaluation.questions import Question
from selfroute.flow import Route

Strategy = Literal["rag", "long_context", "self_route", "closed_book"]
STRATEGIES: tuple[Strategy, ...] = ("rag", "long_context", "self_route")


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage.

    Attributes:
        text: Its text, as the model was given it.
        score: How near it is to the question, by the retriever's own measure; None if the retriever does not say.
    """

    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What one strategy made of one question.

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        strategy: `"rag"` is the first step alone, with a decline as its final answer; `"long_context"` reads the
            documents at once; `"self_route"` is both, as the chain decides; `"closed_book"` sees no text at all.
        k: How many passages were retrieved; None where no number was set or none are.
        based_only_on: Whether the prompt said "based only on the provided passage" (Table 4).
        answer: The final answer; the refusal word if there is none.
        route: The step that produced it; None for closed book.
        answerable: Whether the model answered.
        decision: Why it took that route, as the chain says it.
        usage: What it took, as the chain says it; what a kept reply took counts as if it was asked for again.
        draft: What the model wrote in the first step, None if that did not run.
        passages: What was retrieved.
        cut: Whether the model did not read the document whole, as it was longer than its window.
        seconds: How long the model took to reply, in all steps that ran; of a kept reply when it was asked for.
        score: By the question's own metric, from 0 to 1.
        exact: The loose exact match of Li et al. (2025), 0 or 1; of SQuAD its own, of choices and pass keys the score.
        set_f1: The F1 of Li et al. (2025), over sets of words, from 0 to 1; likewise.
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

    @property
    def key(self) -> tuple[str, str]:
        """The question's key."""
        return self.dataset, self.id

    @property
    def input_tokens(self) -> int:
        """The tokens that the model read, in all steps that ran."""
        steps = (self.usage.get("rag"), self.usage.get("long_context"))
        return sum(step["input_tokens"] for step in steps if step)


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that a strategy could not finish: it is not scored.

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        strategy: Which strategy; `"reason"` where the model was to say why it declined.
        k: How many passages were asked for.
        based_only_on: As in `Result`.
        error: What went wrong, in one line and without keys.
    """

    dataset: str
    id: str
    strategy: Strategy | Literal["reason"]
    k: int | None
    based_only_on: bool
    error: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the passages did not do, by the model's own account (section 5.2 of the paper).

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        k: How many passages were retrieved.
        letter: "A" multi-step, "B" general, "C" long and complex, "D" implicit, "E" other; "answerable" if
            the model, asked for a reason, answered after all; "?" if its reply can not be read.
        reply: What it wrote.
    """

    dataset: str
    id: str
    k: int | None
    letter: str
    reply: str


@dataclass(frozen=True, repr=False)
class Record:
    """All that an evaluation found out, as plain data; `Evaluation` describes the attributes."""

    questions: Sequence[Question]
    results: Sequence[Result]
    failures: Sequence[Failure] = ()
    reasons: Sequence[Reason] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    stopped: str | None = None

    def __repr__(self) -> str:
        """Return how much there is: all of it would fill the screen."""
        counts = {"questions": self.questions, "results": self.results, "failures": self.failures}
        return f"{type(self).__name__}({', '.join(f'{len(found):,} {what}' for what, found in counts.items())})"
