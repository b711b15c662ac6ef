"""The questions to choose by, and what each rule brings on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np

from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.rows import GRADED, Row, Rule, value_of
from selfroute.evaluation.records import MOST_DOUBT
from selfroute.evaluation.sampling import FEWEST_DOCUMENTS, Floats, Units
from selfroute.policies.calibration import STRATEGIES, Strategy

FEWEST_QUESTIONS = 50

_DOUBTS = (0, 30, 40, 50, 60, 70, MOST_DOUBT)
_STOPS = (0, 10, 20, 30)
PUBLISHED = Rule("self_route")


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The results of one rule, question by question.

    Attributes:
        values: The value of each answer; with wrong answers at a price of 1, its quality.
        tokens: The tokens of all steps that ran.
        dollars: What they cost; None if a price is not known.
    """

    values: Floats
    tokens: Floats
    dollars: Floats | None


def is_number(value: object) -> bool:
    """Return whether a value that a user gave is a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


class Evidence:
    """The questions to choose by, and what each rule brings on them.

    Args:
        rows: The questions.
        price_of_wrong: What a wrong answer costs; see `selfroute.evaluation.calibrating.rows.value_of`.

    Raises:
        ConfigurationError: There are no questions, the documents have no tokens, or the price is below 0.
    """

    def __init__(self, rows: Iterable[Row], *, price_of_wrong: float = 1.0) -> None:
        self.rows = list(rows)
        if not self.rows:
            msg = "there is no question to choose by: evaluate rag, self_route and long_context on some questions first"
            raise ConfigurationError(msg)
        if not (is_number(price_of_wrong) and 0 <= price_of_wrong < float("inf")):
            msg = f"price_of_wrong is a number, 0 or more; it is {price_of_wrong!r}"
            raise ConfigurationError(msg)
        self.price_of_wrong = price_of_wrong
        self.units = Units([row.document for row in self.rows])
        self.whole_tokens = sum(row.long_context.tokens for row in self.rows)
        if not self.whole_tokens:
            msg = "the long context has no tokens: token shares need those of the whole documents"
            raise ConfigurationError(msg)
        self._trials: dict[Rule, Trial] = {}

    @cached_property
    def by_document(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each document's questions."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            found.setdefault(row.document, []).append(number)
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
        graded = all(row.graded for row in self.rows)
        tried = {
            "sections": any(row.sections for row in self.rows),
            "graded": graded,
            "graded_sections": graded and any(row.graded_sections for row in self.rows),
        }
        return [strategy for strategy in STRATEGIES if tried.get(strategy, True)]

    @property
    def plain(self) -> Sequence[Rule]:
        """The strategies with the default bounds, those that are simpler first."""
        return [_default(strategy) for strategy in self.strategies]

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """All rules to choose from: the published one first, then those nearest the defaults; not the long context."""
        tuned = [
            Rule(strategy, doubt, stop)
            for strategy in self.strategies
            if strategy in GRADED
            for doubt in _DOUBTS
            for stop in _STOPS
        ]
        tuned.sort(key=lambda rule: abs(rule.doubt_below - DOUBT_BELOW) + abs(rule.stop_below - STOP_BELOW))
        first = [PUBLISHED, *(rule for rule in self.plain if rule.strategy not in ("long_context", "self_route"))]
        return list(dict.fromkeys([*first, *tuned]))

    def trial(self, rule: Rule) -> Trial:
        """Return what a rule brings."""
        if rule not in self._trials:
            outcomes = [rule.follow(row) for row in self.rows]
            dollars = [outcome.dollars for outcome in outcomes]
            known = [each for each in dollars if each is not None]
            self._trials[rule] = Trial(
                np.array(
                    [
                        value_of(outcome.shown, row.answerable, self.price_of_wrong)
                        for outcome, row in zip(outcomes, self.rows, strict=True)
                    ]
                ),
                np.array([outcome.tokens for outcome in outcomes]),
                np.array(known) if len(known) == len(dollars) else None,
            )
        return self._trials[rule]

    def share(self, trial: Trial) -> float:
        """Return the tokens of a trial as a share of the long context's."""
        return float(trial.tokens.sum()) / self.whole_tokens


def _default(strategy: Strategy) -> Rule:
    return Rule(strategy, DOUBT_BELOW, STOP_BELOW) if strategy in GRADED else Rule(strategy)
