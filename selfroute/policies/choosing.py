"""Choose a rule by its quality and tokens on some questions, and test the choice on documents that it did not see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from selfroute.policies.evidence import PUBLISHED, Evidence, Trial
from selfroute.policies.rows import Rule
from selfroute.policies.sampling import Units

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
        self._evidence, self._among = evidence, among
        self._units = Units([evidence.rows[number].document for number in among])
        self._whole = sum(evidence.rows[number].long_context.tokens for number in among) or 1.0
        self._nets: dict[Rule, list[float]] = {}
        self._worth = WORTH_OF_A_DOCUMENT if token_share is None else 0.0
        whole = [evidence.rows[number].long_context.tokens for number in among]
        published = [evidence.trial(PUBLISHED).tokens[number] for number in among]
        self._budget = published if token_share is None else [token_share * each for each in whole]

    def share(self, rule: Rule) -> float:
        tokens = self._evidence.trial(rule).tokens
        return sum(tokens[number] for number in self._among) / self._whole

    def fits(self, rule: Rule, *, to_spare: float = 0.0) -> bool:
        """Return whether a rule fits the budget, with some standard errors to spare."""
        tokens = self._evidence.trial(rule).tokens
        over = [tokens[number] - most for number, most in zip(self._among, self._budget, strict=True)]
        spare = to_spare * self._units.standard_error(over) if to_spare else 0.0
        return self._units.mean(over) + spare <= _ROUNDING * self._whole

    def best(self, rules: Sequence[Rule]) -> Rule:
        """Return the best rule; of those that tie, the one with fewer tokens, then the first."""
        return max(rules, key=lambda rule: (round(self._units.mean(self._net(rule)), 9), -self.share(rule)))

    def is_better(self, first: Rule, second: Rule, *, by: float) -> bool:
        gains = [a - b for a, b in zip(self._net(first), self._net(second), strict=True)]
        gain = self._units.mean(gains)
        return gain > _ROUNDING and gain >= by * self._units.standard_error(gains)

    def _net(self, rule: Rule) -> list[float]:
        """Return the value of each answer less the worth of what was read for it."""
        if rule not in self._nets:
            trial, rate = self._evidence.trial(rule), self._worth * len(self._among) / self._whole
            self._nets[rule] = [trial.values[number] - rate * trial.tokens[number] for number in self._among]
        return self._nets[rule]


def cross_validated(evidence: Evidence, *, token_share: float | None = None) -> tuple[Trial, Mapping[Rule, int]]:
    """Choose for each document by the others, and return what the choices bring together.

    With one document, its questions are tested by turns; with one question nothing is tested.

    Returns:
        The trial, and how many folds chose each rule.
    """
    values, tokens, dollars = ([0.0] * len(evidence.rows) for _ in range(3))
    chosen: dict[Rule, int] = {}
    priced = True
    for tested in _folds(evidence.by_document):
        left_out = set(tested)
        rest = [number for number in range(len(evidence.rows)) if number not in left_out]
        rule = choose(evidence, rest or tested, token_share=token_share)
        chosen[rule] = chosen.get(rule, 0) + 1
        trial = evidence.trial(rule)
        priced = priced and trial.dollars is not None
        for number in tested:
            values[number], tokens[number] = trial.values[number], trial.tokens[number]
            dollars[number] = trial.dollars[number] if trial.dollars else 0.0
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
