"""What strategies and other bounds bring, by judged looks: quality, tokens and dollars, with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isnan

import numpy as np

from selfroute.calls.plan import DOUBT_BELOW, STOP_BELOW
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.judging import answers_of, decline_is_right
from selfroute_workbench.evaluation.looks import MOST_DOUBT, STRATEGIES, TRIED, Look, Measure, Strategy, by_question
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import Rule, rungs_in
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS, FEWEST_QUESTIONS, Floats, Units

YOURS = Rule("yours")
USUAL = (Rule(), Rule(documents=False))
"""The default bounds, with and without whole documents."""
_BOUNDS, _STOPS = (0, 30, 40, 50, 60, 70, MOST_DOUBT), ((0, 0), (20, 0), (20, 50), (30, 50))
_NEEDED: tuple[Strategy, ...] = ("yours", "rag", "long_context")


@dataclass(frozen=True, slots=True)
class Case:
    """One question with what every strategy took of it.

    Attributes:
        document: The id of its document. Documents that share text should share an id: cases with one id are never
            split between choosing and testing.
        looks: The looks of each strategy, in their order.
        answerable: Whether the documents hold the answer; None if that is not known.
    """

    document: str
    looks: Mapping[Strategy, Sequence[Look]]
    answerable: bool | None = None


def cases_of(questions: Iterable[Question], looks: Iterable[Look], *, measure: Measure) -> list[Case]:
    """Return the questions that were asked as they are, by RAG and by the long context, and have all grades."""
    found, cases = by_question(looks), []
    for question in questions:
        of = found.get(question.key, {})
        is_graded = all(look.value(measure) is not None for some in of.values() for look in some)
        if of.keys() >= set(_NEEDED) and is_graded:
            # Some of the references may say that there is no answer, as those of Qasper do; then it is not known.
            known = not (answers_of(question) and decline_is_right(question))
            cases.append(Case(question.document_id, of, not decline_is_right(question) if known else None))
    return cases


@dataclass(frozen=True, slots=True)
class Figures:
    """What a strategy brings.

    Attributes:
        quality: The mean quality of its answers, from 0 to 1.
        low: The lower end of its 95 % interval; None with fewer than two documents, or if all are equal.
        high: The upper end.
        token_share: Its tokens as a share of the long context's.
        dollars: What a question costs on average; None if a price is not known.
    """

    quality: float
    low: float | None
    high: float | None
    token_share: float
    dollars: float | None

    def __str__(self) -> str:
        """Return them in words: "85.4 for 42 % of the long context's tokens"."""
        return f"{100 * self.quality:.1f} for {100 * self.token_share:.3g} % of the long context's tokens"


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one strategy is than another on the same questions.

    Attributes:
        gain: The mean difference of quality, from -1 to 1.
        low: The lower end of its 95 % interval, documents resampled; None if all differences are equal.
        high: The upper end.
        token_share: How many tokens more it needs, as a share of the long context's.
    """

    gain: float
    low: float | None
    high: float | None
    token_share: float

    @property
    def is_distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = (self.gain if end is None else end for end in (self.low, self.high))
        return low > 0 or high < 0

    def __str__(self) -> str:
        """Return the gain in points with its interval: "+4.9 [+1.2, +9.3]"."""
        between = "" if self.low is None or self.high is None else f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f"{100 * self.gain:+.1f}{between}"


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The results of one rule, question by question."""

    values: Floats
    tokens: Floats
    dollars: Floats


class Evidence:
    """The questions to choose by, and what each rule brings on them."""

    def __init__(self, cases: Iterable[Case], measure: Measure = "score") -> None:
        """Take questions, and by what their answers are graded.

        Raises:
            ConfigurationError: There are no questions, or the documents have no tokens.
        """
        self.cases, self._measure = list(cases), measure
        if not self.cases:
            msg = "there is no question to choose by: none was finished by every strategy"
            raise ConfigurationError(msg)
        self.units = Units([case.document for case in self.cases])
        self._rungs = rungs_in(look for case in self.cases for some in case.looks.values() for look in some)
        self._trials: dict[Rule, Trial] = {}
        self._whole = float(self.trial(Rule("long_context")).tokens.sum())
        if not self._whole:
            msg = "the long context has no tokens: token shares need those of the whole documents"
            raise ConfigurationError(msg)

    @cached_property
    def by_document(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each document's questions."""
        found = defaultdict[str, list[int]](list)
        for number, case in enumerate(self.cases):
            found[case.document].append(number)
        return found

    @property
    def few_documents(self) -> bool:
        """Whether there are too few documents to say anything about others."""
        return len(self.by_document) < FEWEST_DOCUMENTS

    @property
    def few_questions(self) -> bool:
        """Whether there are too few questions to choose by."""
        return len(self.cases) < FEWEST_QUESTIONS

    @cached_property
    def strategies(self) -> Sequence[Strategy]:
        """The strategies that were run on all of these questions."""
        return [each for each in STRATEGIES if all(each in case.looks for case in self.cases)]

    @cached_property
    def simple(self) -> Sequence[Rule]:
        """What was run, what was passed first, and the default bounds, where they were tried; not the long context."""
        ran = (Rule(each) for each in self.strategies if each != "long_context")
        return [rule for rule in (*ran, *USUAL) if self._is_tried(rule)]

    @cached_property
    def tuned(self) -> Sequence[Rule]:
        """Other bounds, those nearest the defaults first."""
        pairs = [pair[:1] if pair[0] == pair[1] else pair for pair in product(_BOUNDS, repeat=2)]
        rules = [Rule(TRIED, *each) for each in product([DOUBT_BELOW, *pairs], _STOPS, (True, False))]

        def distance(rule: Rule) -> int:
            doubts = (rule.doubt_below[: at + 1][-1] for at in range(len(DOUBT_BELOW)))
            given = zip((*doubts, *rule.stop_below), (*DOUBT_BELOW, *STOP_BELOW), strict=True)
            return sum(abs(below - usual) for below, usual in given)

        return sorted((rule for rule in rules if rule not in USUAL and self._is_tried(rule)), key=distance)

    def _is_tried(self, rule: Rule) -> bool:
        return all(rule.follow(case.looks, self._rungs) for case in self.cases)

    def trial(self, rule: Rule) -> Trial:
        """Return what a rule brings, which was run or tried on all questions."""
        if rule not in self._trials:
            values, tokens, dollars = [], [], []
            for case in self.cases:
                looks = rule.follow(case.looks, self._rungs) or ()
                values.append(looks[-1].value(self._measure))
                tokens.append(sum(look.usage.total_tokens for look in looks))
                dollars.append(sum(np.nan if look.cost is None else float(look.cost) for look in looks))
            self._trials[rule] = Trial(np.array(values), np.array(tokens, float), np.array(dollars, float))
        return self._trials[rule]

    def share(self, trial: Trial) -> float:
        """Return the tokens of a trial as a share of the long context's."""
        return float(trial.tokens.sum()) / self._whole

    def figures(self, trial: Trial) -> Figures:
        """Return the figures of a trial."""
        low, high = self.units.interval(trial.values) or (None, None)
        dollars = float(trial.dollars.mean())
        return Figures(float(trial.values.mean()), low, high, self.share(trial), None if isnan(dollars) else dollars)

    def gain(self, trial: Trial, over: Trial) -> Gain:
        """Compare two trials, question by question."""
        differences = trial.values - over.values
        low, high = self.units.interval(differences) or (None, None)
        return Gain(float(differences.mean()), low, high, self.share(trial) - self.share(over))


def evidence_of(evaluation: Record, questions: Iterable[Question] | None = None) -> Evidence:
    """Return the questions of an evaluation to choose by; without others those that every strategy finished.

    Raises:
        ConfigurationError: There is no trial, or the documents have no tokens.
    """
    some = evaluation.compared if questions is None else questions
    return Evidence(cases_of(some, evaluation.looks, measure=evaluation.measure), evaluation.measure)


def counts_of(evidence: Evidence) -> str:
    """Return how much there is to choose by, in words."""
    named = ((len(evidence.cases), "question"), (len(evidence.by_document), "document"))
    return " on ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in named)
