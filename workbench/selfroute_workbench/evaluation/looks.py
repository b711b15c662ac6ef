"""Looks: what the model replied to each question, step by step, and the results that follow from them.

A look is one step that a strategy took at one question. A reply is paid once, whatever strategies took it.
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
Strategy = Literal["yours", "rag", "rag_20", "paper", "long_context", "tried"]
STRATEGIES: tuple[Strategy, ...] = ("yours", "rag", "rag_20", "paper", "long_context")
"""What was passed as it runs; the draft alone, of as many passages as its own, and of 20; the paper's rule; and all
documents behind the passages at once."""
TRIED: Strategy = "tried"
"""Reads on at each doubt that some bound could have: what other bounds would have answered is computed from it."""
_NAMES = ("yours", "RAG", "RAG with 20 passages", "the paper's rule", "the long context")
NAMES: Mapping[Strategy, str] = dict(zip(STRATEGIES, _NAMES, strict=True))
"""The strategies in a sentence."""
_TITLES = ("yours", "RAG", "RAG, 20 passages", "the paper's rule", "long context", "other bounds", "the judge")
TITLES: Mapping[str, str] = dict(zip((*STRATEGIES, TRIED, "judge"), _TITLES, strict=True))
"""The strategies in a table or a chart."""
Measure = Literal["judged", "score"]
"""`"judged"` is `Look.judged`, `"score"` the questions' own metrics."""
MOST_DOUBT = 90
"""The highest bound of the confidence that can be replayed: more is read after each reply below it."""
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
    """What the model replied in one step that a strategy took at one question.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        strategy: The strategy; `"tried"` reads on at each doubt that some bound could have.
        step: `"rag"` is the draft, `"sections"` a reply to sections, `"long_context"` one to whole documents.
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

    strategy: Strategy
    step: Route
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

    def value(self, measure: Measure) -> float | None:
        """Return how good it is, from 0 to 1; None if it was not judged."""
        return self.judged if measure == "judged" else self.score

    @property
    def usage(self) -> StepUsage:
        """The tokens and the cost of this step."""
        cost = _UNPRICED if self.cost is None else Cost(Decimal(self.cost))
        return StepUsage(self.input_tokens, self.output_tokens, cost=cost)


def by_question(looks: Iterable[Look]) -> Mapping[Key, Mapping[Strategy, Sequence[Look]]]:
    """Return the looks at each question, by strategy, in the order in which they were taken."""
    found: dict[Key, dict[Strategy, list[Look]]] = {}
    for look in looks:
        found.setdefault(look.key, {}).setdefault(look.strategy, []).append(look)
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
        return self.shown.step

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
        return reduce(add, (Usage.of(look.step, look.usage) for look in self.paid))

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
    """A strategy that could not be finished for a question.

    Attributes:
        dataset: The question's data set.
        id: The question's id in the data set.
        strategy: The strategy; `"judge"` if the answers were to be judged.
        error: The error, in one line and without keys.
    """

    strategy: Strategy | Literal["judge"]
    error: str
