"""Looks: what the model replied in each step to each question, and the results that strategies make of them.

A look is one step asked of one question. Each is asked once, whatever strategies are compared; where a strategy leads a
question is then computed by `selfroute_workbench.evaluation.replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Literal

from selfroute.effects import Route
from selfroute.usage.counts import Cost, StepUsage, Usage

Key = tuple[str, str]
"""A question's data set and its id in there, as in `Question.key`."""
Step = Literal["rag", "graded", "sections", "graded_sections", "long_context"]
STEPS: tuple[Step, ...] = ("rag", "graded", "sections", "graded_sections", "long_context")
Strategy = Literal["rag", "self_route", "sections", "graded", "graded_sections", "long_context"]
STRATEGIES: tuple[Strategy, ...] = ("rag", "self_route", "sections", "graded", "graded_sections", "long_context")
_SENTENCE = (
    "RAG, Self-Route, Self-Route with sections, graded Self-Route, graded Self-Route with sections, the long context"
)
NAMES: Mapping[Strategy, str] = dict(zip(STRATEGIES, _SENTENCE.split(", "), strict=True))
"""The strategies in a sentence."""
_TABLE = "RAG, Self-Route, Self-Route + sections, graded, graded + sections, long context"
TITLES: Mapping[str, str] = dict(zip(STRATEGIES, _TABLE.split(", "), strict=True))
"""The strategies in a table or a chart."""
ROUTES: Mapping[Step, Route] = dict(zip(STEPS, ("rag", "rag", "sections", "sections", "long_context"), strict=True))
"""The step as answers name it."""
Measure = Literal["judged", "score"]
"""`"judged"` is `Look.judged`, `"score"` the questions' own metrics."""
MOST_DOUBT = 90
"""The highest bound of the confidence that can be replayed: sections are asked after each draft below it."""
SECTIONS = 4_000
"""The tokens of sections that are tried, unless the pipeline has its own."""
_UNPRICED = Cost(None, "no price was known")


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
class OfQuestion:
    """What belongs to a question.

    Attributes:
        dataset: The question's data set.
        id: The question's id, unique in the data set.
    """

    dataset: str
    id: str

    @property
    def key(self) -> Key:
        """The data set and the id, which together are unique."""
        return self.dataset, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(OfQuestion):
    """What the model replied in one step to one question.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        step: `"rag"` is the plain draft, `"graded"` the draft with its two numbers, read to its end; `"sections"` and
            `"graded_sections"` are the replies to sections after such a draft; `"long_context"` is the reply to whole
            documents.
        rung: Which reading of sections it is, from 0.
        answer: The reply, without its numbers; a decline in the model's own words.
        declined: Whether it declines.
        prospect: How likely the whole text holds an answer, from 0 to 100; None if the reply does not say.
        confidence: How likely the answer would stay the same if all of the text were read, from 0 to 100; None if the
            reply does not say.
        input_tokens: The tokens of this step's prompt.
        output_tokens: The tokens of its reply.
        cost: What this step alone costs in US dollars, a decimal string; None if it is not known.
        seconds: The model's time, when it was asked.
        cut: Whether the model read only a part of the documents, because they did not fit its window.
        passages: The retrieved passages that a draft reads; empty for other steps.
        score: By the question's own metric, from 0 to 1.
        judged: Whether it says what the references say: 1, 0.5 or 0. None without a judge, or if the judge failed.
        judged_by: Whether a `"model"` judged it, or a `"rule"`: a decline is right if the text has no answer, and
            wrong if it has one, and any other answer to a question without one is wrong.
    """

    step: Step
    rung: int = 0
    answer: str
    declined: bool
    prospect: int | None = None
    confidence: int | None = None
    input_tokens: int
    output_tokens: int
    cost: str | None = None
    seconds: float = field(default=0.0, compare=False)
    cut: bool = False
    passages: Sequence[Passage] = ()
    score: float
    judged: float | None = None
    judged_by: Literal["model", "rule"] | None = None

    @property
    def route(self) -> Route:
        """The step as answers name it."""
        return ROUTES[self.step]

    def value(self, measure: Measure) -> float | None:
        """Return how good it is, from 0 to 1; None if it was not judged."""
        return self.judged if measure == "judged" else self.score

    @property
    def usage(self) -> StepUsage:
        """The tokens and the cost of this step."""
        cost = _UNPRICED if self.cost is None else Cost(Decimal(self.cost))
        return StepUsage(self.input_tokens, self.output_tokens, cost=cost)


def by_question(looks: Iterable[Look]) -> Mapping[Key, Mapping[Step, Sequence[Look]]]:
    """Return the looks at each question, by step; those at sections in the order of their readings."""
    found: dict[Key, dict[Step, list[Look]]] = {}
    for look in looks:
        found.setdefault(look.key, {}).setdefault(look.step, []).append(look)
    return found


@dataclass(frozen=True, slots=True)
class Result:
    """What one strategy answers to one question.

    Attributes:
        strategy: The strategy.
        paid: The looks that it pays for, in order; the last one is shown.
    """

    strategy: Strategy
    paid: Sequence[Look]

    @property
    def shown(self) -> Look:
        """The look that is the answer."""
        return self.paid[-1]

    @property
    def key(self) -> Key:
        """The question's key."""
        return self.shown.key

    @property
    def route(self) -> Route:
        """The step that answered."""
        return self.shown.route

    @property
    def answer(self) -> str:
        """The answer."""
        return self.shown.answer

    @property
    def answerable(self) -> bool:
        """Whether the model answered."""
        return not self.shown.declined

    @property
    def score(self) -> float:
        """The answer's score by the question's own metric, from 0 to 1."""
        return self.shown.score

    @property
    def judged(self) -> float | None:
        """As in `Look`."""
        return self.shown.judged

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages that the draft read; empty if there was no draft."""
        return self.paid[0].passages

    @property
    def usage(self) -> Usage:
        """The tokens and the cost of all steps that ran."""
        return reduce(add, (Usage.of(look.route, look.usage) for look in self.paid))

    @property
    def input_tokens(self) -> int:
        """The input tokens of all steps that ran."""
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        """The output tokens of all steps that ran."""
        return self.usage.total_tokens - self.usage.input_tokens

    @property
    def cost(self) -> Decimal | None:
        """What all steps that ran cost in US dollars; None if a price is not known."""
        return self.usage.cost.dollars

    @property
    def seconds(self) -> float:
        """The model's time for all steps that ran."""
        return sum(look.seconds for look in self.paid)


@dataclass(frozen=True, slots=True)
class Failure(OfQuestion):
    """A step that could not be finished for a question.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        step: The step; `"judge"` if the answers were to be judged.
        error: The error, in one line and without keys.
    """

    step: Step | Literal["judge"]
    error: str
