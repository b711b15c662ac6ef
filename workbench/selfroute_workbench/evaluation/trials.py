"""What strategies and bounds bring, replayed over judged looks: quality, tokens and dollars, with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isnan

import numpy as np

from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.judging import answers_of, decline_is_right
from selfroute_workbench.evaluation.looks import MOST_DOUBT, STRATEGIES, Look, Measure, Step, Strategy, by_question
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import GRADED, WITH_SECTIONS, Rule
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS, FEWEST_QUESTIONS, Floats, Units

PUBLISHED = Rule("self_route")
_DOUBTS, _STOPS = (0, 30, 40, 50, 60, 70, MOST_DOUBT), (0, 10, 20, 30)


@dataclass(frozen=True, slots=True)
class Row:
    """One question with the replies of all steps that were tried.

    Attributes:
        document: The id of its document. Documents that share text should share an id: rows with one id are never split
            between choosing and testing.
        looks: The replies of each step; several for sections that were read more than once.
        answerable: Whether the documents hold the answer; None if that is not known.
    """

    document: str
    looks: Mapping[Step, Sequence[Look]]
    answerable: bool | None = None


def rows_of(questions: Iterable[Question], looks: Iterable[Look], *, measure: Measure) -> list[Row]:
    """Return the questions that have a plain draft, a reply to the documents, and all grades."""
    found, rows = by_question(looks), []
    for question in questions:
        of = found.get(question.key, {})
        is_graded = all(look.value(measure) is not None for some in of.values() for look in some)
        if {"rag", "long_context"} <= of.keys() and is_graded:
            # Some of the references may say that there is no answer, as those of Qasper do; then it is not known.
            known = not (answers_of(question) and decline_is_right(question))
            rows.append(Row(question.document_id, of, not decline_is_right(question) if known else None))
    return rows


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
        """Return them in words: "85.4 for 42 % of the tokens"."""
        return f"{100 * self.quality:.1f} for {100 * self.token_share:.3g} % of the tokens"


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

    def __init__(self, rows: Iterable[Row], measure: Measure = "score") -> None:
        """Take questions, and by what their answers are graded.

        Raises:
            ConfigurationError: There are no questions, or the documents have no tokens.
        """
        self.rows, self._measure = list(rows), measure
        if not self.rows:
            msg = "there is no question to choose by: evaluate rag, self_route and long_context on some questions first"
            raise ConfigurationError(msg)
        self.units = Units([row.document for row in self.rows])
        self._trials: dict[Rule, Trial] = {}
        self._whole = float(self.trial(Rule("long_context")).tokens.sum())
        if not self._whole:
            msg = "the long context has no tokens: token shares need those of the whole documents"
            raise ConfigurationError(msg)

    @cached_property
    def by_document(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each document's questions."""
        found = defaultdict[str, list[int]](list)
        for number, row in enumerate(self.rows):
            found[row.document].append(number)
        return found

    @property
    def few_documents(self) -> bool:
        """Whether there are too few documents to say anything about others."""
        return len(self.by_document) < FEWEST_DOCUMENTS

    @property
    def few_questions(self) -> bool:
        """Whether there are too few questions to choose by."""
        return len(self.rows) < FEWEST_QUESTIONS

    @cached_property
    def strategies(self) -> Sequence[Strategy]:
        """The strategies that were tried on these questions."""
        graded = all("graded" in row.looks for row in self.rows)
        some = {step for row in self.rows for step in row.looks}
        tried: dict[Strategy, bool] = {
            "sections": "sections" in some,
            "graded": graded,
            "graded_sections": graded and "graded_sections" in some,
        }
        return [strategy for strategy in STRATEGIES if tried.get(strategy, True)]

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """All rules to choose from: the published one first, then those nearest the defaults; not the long context."""
        tuned = []
        for strategy in self.strategies:
            if strategy in GRADED:
                pairs: Iterable[tuple[int, ...]] = ((doubt,) for doubt in _DOUBTS)
                if strategy in WITH_SECTIONS:
                    pairs = (pair[:1] if pair[0] == pair[1] else pair for pair in product(_DOUBTS, repeat=2))
                tuned += [Rule(strategy, pair, stop) for pair in pairs for stop in _STOPS]
        tuned.sort(
            key=lambda rule: (
                sum(abs(below - DOUBT_BELOW) for below in rule.doubt_below) + abs(rule.stop_below - STOP_BELOW)
            )
        )
        plain = [
            Rule.default(strategy) for strategy in self.strategies if strategy not in ("long_context", "self_route")
        ]
        return list(dict.fromkeys([PUBLISHED, *plain, *tuned]))

    def trial(self, rule: Rule) -> Trial:
        """Return what a rule brings.

        Raises:
            ConfigurationError: Some question lacks a look that it needs.
        """
        if rule not in self._trials:
            paid = [rule.follow(row.looks) for row in self.rows]
            values, tokens, dollars = [], [], []
            for looks in paid:
                if looks is None:
                    msg = f"the strategy {rule.strategy!r} needs looks that were not asked for: evaluate with it"
                    raise ConfigurationError(msg)
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
    return Evidence(rows_of(some, evaluation.looks, measure=evaluation.measure), evaluation.measure)


def frontier_of(evaluation: Record) -> list[tuple[Rule, Figures, bool]]:
    """Return every rule with its figures, the cheapest first, and whether nothing cheaper is as good."""
    if "long_context" not in evaluation.strategies:
        return []
    try:
        evidence = evidence_of(evaluation)
    except ConfigurationError:
        return []
    one_bound = (rule for rule in evidence.rules if len(rule.doubt_below) == 1)
    ran = [rule for rule in (*evaluation.rules.values(), *one_bound) if rule.strategy in evaluation.strategies]
    found = {rule: evidence.figures(evidence.trial(rule)) for rule in ran}
    priced = all(figures.dollars is not None for figures in found.values())
    costs = {rule: (each.dollars or 0.0) if priced else each.token_share for rule, each in found.items()}
    points, best = [], float("-inf")
    for rule in sorted(found, key=lambda rule: (costs[rule], -found[rule].quality)):
        quality = round(found[rule].quality, 12)
        points.append((rule, found[rule], quality > best))
        best = max(best, quality)
    return points


def counts_of(evidence: Evidence) -> str:
    """Return how much there is to choose by, in words."""
    named = ((len(evidence.rows), "question"), (len(evidence.by_document), "document"))
    return " on ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in named)
