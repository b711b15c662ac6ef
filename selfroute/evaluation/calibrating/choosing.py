"""Choose a rule by its quality and tokens on some questions, and test the choice on documents that it did not see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from selfroute.evaluation.calibrating.evidence import PUBLISHED, Evidence, Trial
from selfroute.evaluation.calibrating.rows import Rule
from selfroute.evaluation.sampling import Floats, Units

WORTH_OF_A_DOCUMENT = 0.05
"""Reading a document of mean length must raise the quality of that question by so much (5 points of 100) to pay."""

_MOST_FOLDS = 50
_CLEARLY, _SLIGHTLY = 2.0, 1.0  # standard errors
_ROUNDING = 1e-9


def choose(evidence: Evidence, among: Collection[int], *, token_share: float | None = None) -> Rule:
    """Choose a rule by some of the questions.

    Of the rules with the default bounds the best one that fits the budget is taken. Other bounds replace it only if
    they are better by two standard errors and fit the budget with one to spare, so that chance does not set them. Below
    ten documents bounds are not tuned, and the published rule stays unless another is better by one standard error;
    below 50 questions it stays in any case.

    Args:
        evidence: All questions; how many there are decides on how much is tried.
        among: The numbers of the questions to choose by.
        token_share: The budget, as a share of the long context's tokens, in which the highest quality is looked for.
            None for the tokens of Self-Route as published, and then a rule must also be worth what it reads (see
            `WORTH_OF_A_DOCUMENT`).

    Returns:
        The rule; the one with the fewest tokens if none fits the budget.
    """
    compared = _Compared(evidence, sorted(among), token_share)
    fitting = [rule for rule in evidence.rules if rule.is_default and compared.fits(rule)]
    if not fitting:
        return min(evidence.rules, key=compared.share)
    simple = compared.best(fitting)
    if not (evidence.few_questions or evidence.few_documents):
        tuned = [rule for rule in evidence.rules if compared.is_better(rule, simple, by=_CLEARLY)]
        return compared.best([rule for rule in tuned if compared.fits(rule, to_spare=1.0)] or [simple])
    keep = evidence.few_questions or not compared.is_better(simple, PUBLISHED, by=_SLIGHTLY)
    return PUBLISHED if keep and compared.fits(PUBLISHED) else simple


class _Compared:
    """The rules on the questions to choose by."""

    def __init__(self, evidence: Evidence, among: Sequence[int], token_share: float | None) -> None:
        self._evidence, self._among = evidence, np.array(among, dtype=np.intp)
        self._units = Units([evidence.rows[number].document for number in among])
        whole = np.array([evidence.rows[number].long_context.tokens for number in among])
        self._whole = float(whole.sum()) or 1.0
        self._nets: dict[Rule, Floats] = {}
        self._worth = WORTH_OF_A_DOCUMENT if token_share is None else 0.0
        self._budget = self._tokens(PUBLISHED) if token_share is None else token_share * whole

    def share(self, rule: Rule) -> float:
        return float(self._tokens(rule).sum()) / self._whole

    def fits(self, rule: Rule, *, to_spare: float = 0.0) -> bool:
        """Return whether a rule fits the budget, with some standard errors to spare."""
        over = self._tokens(rule) - self._budget
        spare = to_spare * self._units.standard_error(over) if to_spare else 0.0
        return float(over.mean()) + spare <= _ROUNDING * self._whole

    def best(self, rules: Sequence[Rule]) -> Rule:
        """Return the best rule; of those that tie, the one with fewer tokens, then the first."""
        return max(rules, key=lambda rule: (round(float(self._net(rule).mean()), 9), -self.share(rule)))

    def is_better(self, first: Rule, second: Rule, *, by: float) -> bool:
        gains = self._net(first) - self._net(second)
        gain = float(gains.mean())
        return gain > _ROUNDING and gain >= by * self._units.standard_error(gains)

    def _tokens(self, rule: Rule) -> Floats:
        return self._evidence.trial(rule).tokens[self._among]

    def _net(self, rule: Rule) -> Floats:
        """Return the value of each answer less the worth of what was read for it."""
        if rule not in self._nets:
            rate = self._worth * len(self._among) / self._whole
            self._nets[rule] = self._evidence.trial(rule).values[self._among] - rate * self._tokens(rule)
        return self._nets[rule]


def cross_validated(evidence: Evidence, *, token_share: float | None = None) -> tuple[Trial, Mapping[Rule, int]]:
    """Choose for each document by the others, and return what the choices bring together.

    With one document, its questions are tested by turns; with one question nothing is tested.

    Returns:
        The trial, and how many folds chose each rule.
    """
    values, tokens, dollars = (np.zeros(len(evidence.rows)) for _ in range(3))
    chosen: dict[Rule, int] = {}
    priced = True
    for tested in _folds(evidence.by_document):
        left_out = set(tested)
        rest = [number for number in range(len(evidence.rows)) if number not in left_out]
        rule = choose(evidence, rest or tested, token_share=token_share)
        chosen[rule] = chosen.get(rule, 0) + 1
        trial = evidence.trial(rule)
        values[tested], tokens[tested] = trial.values[tested], trial.tokens[tested]
        if trial.dollars is None:
            priced = False
        else:
            dollars[tested] = trial.dollars[tested]
    return Trial(values, tokens, dollars if priced else None), chosen


def _folds(by_document: Mapping[str, Sequence[int]]) -> Iterator[Sequence[int]]:
    """Yield the questions of each fold: a document each, or ten folds of many documents, about equally large."""
    if len(by_document) == 1:
        (by_document,) = ({str(number): [number] for number in found} for found in by_document.values())
    if len(by_document) <= _MOST_FOLDS:
        yield from by_document.values()
        return
    folds: list[list[int]] = [[] for _ in range(10)]
    for document in sorted(by_document, key=lambda name: (-len(by_document[name]), name)):
        min(folds, key=len).extend(by_document[document])
    yield from folds
